#pragma once
// Runs a GoogleTest program and reads what it found.
#include <filesystem>
#include <string>
#include <vector>

namespace shardlings::lab {

struct TestFailure {
  std::string name;   ///< Suite.Test
  std::string text;   ///< what the test says, without the framework's frame
  bool todo = false;  ///< the learner's code is still to be written
};

struct TestResults {
  int ran = 0;
  std::vector<TestFailure> failures;
  std::string broken;  ///< not empty: the program crashed or was stopped, in one sentence
  std::string output;  ///< the last lines of what it printed, when broken
  double seconds = 0;
  bool passed() const { return broken.empty() && ran > 0 && failures.empty(); }
};

/// Runs all tests of a program, with two minutes for them together.
TestResults run_tests(const std::filesystem::path& program, const std::filesystem::path& scratch);
/// For the person: each failing test with what it says, at most `max_tests` of them in full.
std::string describe(const TestResults& results, int max_tests);

}  // namespace shardlings::lab
