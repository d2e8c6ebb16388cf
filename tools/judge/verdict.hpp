#pragma once
// Decides what a run of a test program says about a stub or a mutant. Pure functions on the outcome of a run,
// so that the judge itself can be tested.
#include <string>
#include <vector>

namespace shardlings::judge {

struct TestResult {
  std::string name;  ///< "Suite.Test"
  bool skipped = false;
  std::vector<std::string> failures;  ///< messages; empty when it passed
};

/// How a test program ended.
struct Outcome {
  enum End { exited, crashed, hung } end = exited;
  int code = 0;     ///< exit code, or the signal's number when it crashed
  int seconds = 0;  ///< the limit, when it hung
  std::vector<TestResult> tests;
};

/// What googletest wrote with --gtest_output=json. Throws std::runtime_error when it is not that.
std::vector<TestResult> parse_results(const std::string& json);

struct Verdict {
  bool ok = false;
  std::string text;  ///< one sentence, or a line per test at fault
};

/// A stub must fail in every test, each time because of a gap: one of the test's messages contains `todo`.
Verdict judge_stub(const Outcome& outcome, const std::string& todo);

/// A mutant must be rejected by all tests of `caught_by` (others may fail too), and one of these must say
/// `says`. A crash or a hang is no rejection: the learner would not learn what is wrong.
Verdict judge_mutant(const Outcome& outcome, const std::vector<std::string>& caught_by,
                     const std::string& says);

}  // namespace shardlings::judge
