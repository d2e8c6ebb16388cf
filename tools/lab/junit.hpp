#pragma once
// CTest's JUnit file. CTest itself says "100% tests passed" for skipped tests and for none at all, so we
// count.
#include <string>
#include <vector>

namespace shardlings::lab {

struct TestCounts {
  int passed = 0;
  int failed = 0;
  struct Skip {
    std::string name, reason;
  };
  std::vector<Skip> skipped;
  std::vector<std::string> failures;
  int ran() const { return passed + failed; }
};

/// Counts the test cases in the text of a JUnit file. Throws Error for a text that is not one.
TestCounts count_tests(const std::string& junit);

}  // namespace shardlings::lab
