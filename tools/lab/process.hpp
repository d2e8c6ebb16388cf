#pragma once
// Other programs: run and wait, with a deadline and a log file, or hand over to them for good.
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace shardlings::lab {

using Command = std::vector<std::string>;

struct ProcessOptions {
  std::filesystem::path log;         ///< stdout and stderr go here; empty: to the terminal
  std::filesystem::path folder;      ///< where it runs; empty: here
  std::chrono::seconds deadline{0};  ///< killed with all its children after this; 0: never
};

struct ProcessResult {
  int code = 0;  ///< exit code; 128 + signal number if a signal ended it
  bool timed_out = false;
  double seconds = 0;
  bool ok() const { return code == 0 && !timed_out; }
};

/// Runs a program (found on PATH) to its end. Throws Error if it cannot be started.
ProcessResult run_process(const Command& command, const ProcessOptions& options = {});
/// Replaces this process by the program. Throws Error if that is not possible.
[[noreturn]] void hand_over(const Command& command);
/// True if PATH has a program of this name.
bool on_path(const std::string& program);
std::string read_file(const std::filesystem::path& path);  ///< throws Error when unreadable

}  // namespace shardlings::lab
