// `lab test`: builds everything, runs all tests, and ends with one line: N passed, M failed, K skipped.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>

#include "core/error.hpp"
#include "lab/build.hpp"
#include "lab/junit.hpp"
#include "lab/lab.hpp"
#include "lab/process.hpp"

namespace shardlings::lab {
namespace {

/// Skips by reason, so that a hundred tests that need a GPU are one line.
void explain_skips(const TestCounts& counts) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto& skip : counts.skipped) by_reason[skip.reason].push_back(skip.name);
  for (const auto& [reason, names] : by_reason)
    fmt::print("skipped {}: {} ({}{})\n", names.size(), reason, names.front(), names.size() > 1 ? ", …" : "");
}

}  // namespace

int test(Lab& lab, const Words& words) {
  if (!words.empty() && (words[0] == "--help" || words[0] == "-h")) {
    fmt::print(
        "./lab test [flags]: builds everything and runs all tests. Flags go to ctest, e.g. -R hello_ranks, "
        "-L common.\n");
    return 0;
  }
  const auto jobs = std::to_string(std::max(1U, std::thread::hardware_concurrency()));
  fmt::print("Building ...\n");
  std::fflush(stdout);
  const BuildResult built = build_targets(lab.build, {}, true);
  if (!built.ok) {
    fmt::print(
        "The build failed after {:.0f} s; the output above says why. No test was run.\n0 passed, 1 failed, 0 "
        "skipped\n",
        built.seconds);
    return 1;
  }
  fmt::print("Built in {:.0f} s. Testing ...\n", built.seconds);
  std::fflush(stdout);
  const fs::path junit = lab.build / "test-results.xml";
  fs::remove(junit);
  Command command{"ctest",       "--test-dir",          lab.build.string(), "-j",
                  jobs,          "--output-on-failure", "--no-tests=error", "--output-junit",
                  junit.string()};
  for (const std::string& word : words) {
    if (word != "--") command.push_back(word);
  }
  const ProcessResult result = run_process(command);
  if (!fs::exists(junit)) {
    fmt::print("ctest left no results.\n0 passed, 1 failed, 0 skipped\n");
    return 1;
  }
  const TestCounts counts = count_tests(read_file(junit));
  fmt::print("\nTested in {:.0f} s.\n", result.seconds);
  for (const std::string& name : counts.failures) fmt::print("failed: {}\n", name);
  explain_skips(counts);
  fmt::print("{} passed, {} failed, {} skipped\n", counts.passed, counts.failed, counts.skipped.size());
  // ctest's own code also covers what leaves no case, such as a test program that lists no tests.
  return counts.failed == 0 && counts.ran() > 0 && result.ok() ? 0 : 1;
}

}  // namespace shardlings::lab
