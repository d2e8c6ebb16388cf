// The judge of stubs and mutants: what it must not let pass.
#include "judge/process.hpp"
#include "judge/verdict.hpp"

#include <gtest/gtest.h>

namespace shardlings::judge {
namespace {

const std::string kTodo = "TODO exercises/00_hello_ranks/";

Outcome outcome_of(std::vector<TestResult> tests) {
  Outcome outcome;
  outcome.code = 1;
  outcome.tests = std::move(tests);
  return outcome;
}

const TestResult kGap{"S.Gap", false, {"threw TODO exercises/00_hello_ranks/hello.hpp:12  fill it"}};
const TestResult kPasses{"S.Passes", false, {}};
const TestResult kSkipped{"S.Skipped", true, {}};
const TestResult kOther{"S.Other", false, {"4 times too large"}};

// Rejects: a judge that is content when some test fails, or fails for another reason, or is skipped.
TEST(Judge, StubMustFailEverywhereBecauseOfAGap) {
  EXPECT_TRUE(judge_stub(outcome_of({kGap}), kTodo).ok);
  EXPECT_FALSE(judge_stub(outcome_of({kGap, kPasses}), kTodo).ok);
  EXPECT_FALSE(judge_stub(outcome_of({kGap, kSkipped}), kTodo).ok);
  EXPECT_FALSE(judge_stub(outcome_of({kGap, kOther}), kTodo).ok);
  EXPECT_FALSE(judge_stub(outcome_of({}), kTodo).ok);
}

// Rejects: a judge that takes any failure for a rejection, does not know the tests' names, or does not read.
TEST(Judge, MutantMustBeRejectedByTheNamedTestsWithTheseWords) {
  EXPECT_TRUE(judge_mutant(outcome_of({kOther, kPasses}), {"S.Other"}, "4 times").ok);
  EXPECT_FALSE(judge_mutant(outcome_of({kOther, kPasses}), {"S.Passes"}, "4 times").ok);
  EXPECT_FALSE(judge_mutant(outcome_of({kOther, kPasses}), {"S.Other", "S.Passes"}, "4 times").ok);
  EXPECT_FALSE(judge_mutant(outcome_of({kOther}), {"S.Renamed"}, "4 times").ok);
  EXPECT_FALSE(judge_mutant(outcome_of({kOther}), {"S.Other"}, "3 times").ok);
  EXPECT_FALSE(judge_mutant(outcome_of({kOther, kGap}), {"S.Other"}, "fill it").ok) << "said by another test";
  EXPECT_FALSE(judge_mutant(outcome_of({kOther}), {}, "4 times").ok);
}

// Rejects: taking a crash or a hang for a rejection.
TEST(Judge, CrashAndHangAreNoRejection) {
  Outcome outcome = outcome_of({kOther});
  outcome.end = Outcome::crashed;
  EXPECT_FALSE(judge_mutant(outcome, {"S.Other"}, "4 times").ok);
  EXPECT_FALSE(judge_stub(outcome, kTodo).ok);
  outcome.end = Outcome::hung;
  EXPECT_FALSE(judge_mutant(outcome, {"S.Other"}, "4 times").ok);
  outcome.end = Outcome::exited;
  outcome.code = 66;  // a sanitizer's report
  EXPECT_FALSE(judge_mutant(outcome, {"S.Other"}, "4 times").ok);
}

// Rejects: reading another field than the message, or forgetting tests that were skipped.
TEST(Judge, ReadsGoogletestsReport) {
  const auto results = parse_results(R"({"testsuites": [{"name": "S", "testsuite": [
      {"name": "A", "result": "COMPLETED", "failures": [{"failure": "no", "type": ""}]},
      {"name": "B", "result": "SKIPPED"}]}]})");
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].name, "S.A");
  EXPECT_EQ(results[0].failures, std::vector<std::string>{"no"});
  EXPECT_TRUE(results[1].skipped);
  EXPECT_TRUE(results[1].failures.empty());
}

// Rejects: waiting for a program that hangs, or confusing an exit code with a signal.
TEST(Judge, RunsProgramsWithALimit) {
  const Finished said = run_program({"sh", "-c", "echo out; echo err >&2; exit 3"}, 10);
  EXPECT_EQ(said.code, 3);
  EXPECT_EQ(said.output, "out\nerr\n");
  EXPECT_EQ(run_program({"sh", "-c", "kill -SEGV $$"}, 10).signal, 11);
  EXPECT_TRUE(run_program({"sh", "-c", "sleep 60"}, 1).timed_out);
  EXPECT_THROW(run_program({"/no/such/program"}, 1), std::runtime_error);
}

}  // namespace
}  // namespace shardlings::judge
