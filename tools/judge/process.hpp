#pragma once
// Runs another program with a time limit.
#include <string>
#include <vector>

namespace shardlings::judge {

struct Finished {
  bool timed_out = false;
  int signal = 0;      ///< that ended it, or 0
  int code = 0;        ///< exit code when signal is 0
  std::string output;  ///< stdout and stderr together
};

/// Runs command[0] with its arguments; after `seconds` it and its children are killed.
/// Throws std::runtime_error when it cannot be started.
Finished run_program(const std::vector<std::string>& command, int seconds);

}  // namespace shardlings::judge
