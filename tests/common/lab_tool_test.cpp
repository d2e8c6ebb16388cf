// Parts of the lab tool that have an answer without a build: guesses, options, counting tests, progress,
// processes.
#include <gtest/gtest.h>

#include <unistd.h>
#include <thread>

#include <fstream>

#include "core/error.hpp"
#include "lab/junit.hpp"
#include "lab/options.hpp"
#include "lab/process.hpp"
#include "lab/progress.hpp"
#include "lab/results.hpp"
#include "lab/suggest.hpp"
#include "lab/terminal.hpp"

namespace shardlings::lab {
namespace {

namespace fs = std::filesystem;

/// A folder of the test's own, gone at its end.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "lab-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Scratch() { fs::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

TEST(LabSuggest, CountsInsertionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("check", "check"), 0);
  EXPECT_EQ(edit_distance("chek", "check"), 1);
  EXPECT_EQ(edit_distance("chekc", "check"), 1) << "neighbours swapped are one slip of the fingers, not two";
  EXPECT_EQ(edit_distance("", "run"), 3);
}

TEST(LabSuggest, GuessesWhatIsNearAndNothingElse) {
  const std::vector<std::string> known{"hello_ranks", "gpt", "training_loop"};
  EXPECT_EQ(nearest("helo_ranks", known), "hello_ranks");
  EXPECT_EQ(nearest("train", known), "training_loop") << "the beginning of a word means the word";
  EXPECT_EQ(nearest("fsdp_wrapping", known), "");
  EXPECT_EQ(nearest("xyz", known), "") << "three changes in three letters are no resemblance";
  EXPECT_EQ(unknown_sentence("lesson", "zzzz", known),
            "there is no lesson \"zzzz\"; there are: hello_ranks, gpt, training_loop");
}

TEST(LabOptions, ReadsWordsFlagsAndOptionsInAnyOrder) {
  std::string slug, mutant;
  bool give_up = false;
  Options options("check", "a test");
  options.word("slug", slug, "lesson");
  options.option("--mutant", mutant, "which");
  options.flag("--give-up", give_up, "yes");
  EXPECT_FALSE(options.parse({"--mutant", "averaged", "gpt", "--give-up"}).has_value());
  EXPECT_EQ(slug, "gpt");
  EXPECT_EQ(mutant, "averaged");
  EXPECT_TRUE(give_up);
}

TEST(LabOptions, RefusesWithOneSentenceAndAGuess) {
  const auto refuse = [](const Words& words) -> std::string {
    std::string slug, mutant;
    int level = 0;
    Options options("check", "a test");
    options.word("slug", slug, "lesson");
    options.option("--mutant", mutant, "which");
    options.option("--level", level, "how deep");
    try {
      options.parse(words);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(refuse({"--mutan", "x"}).find("did you mean \"--mutant\""), std::string::npos)
      << refuse({"--mutan", "x"});
  EXPECT_NE(refuse({"gpt", "again"}).find("one word too many"), std::string::npos)
      << refuse({"gpt", "again"});
  EXPECT_NE(refuse({"--level", "deep"}).find("deep"), std::string::npos) << refuse({"--level", "deep"});
}

TEST(LabJunit, CountsWhatCTestCallsPassed) {
  const TestCounts counts = count_tests(
      "<?xml version=\"1.0\"?>\n<testsuite name=\"x\" tests=\"4\">\n"
      "<testcase name=\"a.A\" classname=\"a.A\" time=\"0.1\" "
      "status=\"run\"><system-out>status=\"fail\"</system-out></testcase>\n"
      "<testcase name=\"b.&lt;int&gt;\" status=\"fail\"><failure message=\"no\"/></testcase>\n"
      "<testcase name=\"c.C\" status=\"notrun\"><skipped message=\"\"/><system-out>x_test.cpp:3: "
      "Skipped\nneeds a GPU\n\n"
      "</system-out></testcase>\n"
      "<testcase name=\"d.D\" status=\"disabled\"/>\n</testsuite>\n");
  EXPECT_EQ(counts.passed, 1) << "a test that prints status=\"fail\" has not failed";
  EXPECT_EQ(counts.failed, 1);
  ASSERT_EQ(counts.failures.size(), 1U);
  EXPECT_EQ(counts.failures[0], "b.<int>");
  ASSERT_EQ(counts.skipped.size(), 2U) << "a skip must not count as a pass";
  EXPECT_EQ(counts.skipped[0].reason, "needs a GPU");
  EXPECT_EQ(counts.skipped[1].reason, "disabled");
}

TEST(LabJunit, RefusesWhatIsNotOneOrIsCutOff) {
  EXPECT_THROW(count_tests(""), Error);
  EXPECT_THROW(count_tests("<testsuite><testcase name=\"a\" status=\"run\"><system-out>"), Error);
}

TEST(LabProgress, SurvivesAndIsKeptBySlug) {
  const Scratch scratch;
  {
    Progress progress(scratch / "new/progress.json");
    progress.change("gpt").passed = true;
    progress.change("gpt").hints["norm.hpp"] = 2;
    progress.change("hello_ranks").attempts = 3;
    progress.save();
  }
  const Progress progress(scratch / "new/progress.json");
  EXPECT_TRUE(progress.of("gpt").passed);
  EXPECT_EQ(progress.of("gpt").hints.at("norm.hpp"), 2);
  EXPECT_EQ(progress.of("hello_ranks").attempts, 3);
  EXPECT_FALSE(progress.of("hello_ranks").passed);
  EXPECT_EQ(progress.of("never_seen").attempts, 0);
}

TEST(LabProgress, KeepsAsideWhatItCannotRead) {
  const Scratch scratch;
  write(scratch / "progress.json", "{\"lessons\": {\"gpt\": {\"passed\": tru");
  Progress progress(scratch / "progress.json");
  progress.change("gpt").attempts = 1;
  progress.save();
  int kept = 0;
  for (const auto& entry : fs::directory_iterator(scratch / "")) {
    kept += entry.path().filename().string().find("unreadable") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(kept, 1) << "the learner's file was overwritten";
}

TEST(LabProcess, GivesTheExitCodeAndTheOutput) {
  const Scratch scratch;
  const ProcessResult result =
      run_process({"sh", "-c", "echo out; echo err >&2; exit 3"}, {scratch / "log", {}, {}});
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(read_file(scratch / "log"), "out\nerr\n");
  EXPECT_EQ(run_process({"sh", "-c", "kill -9 $$"}, {scratch / "log", {}, {}}).code, 128 + 9);
  EXPECT_EQ(run_process({"no-such-program-here"}, {scratch / "log", {}, {}}).code, 127);
}

TEST(LabProcess, StopsAfterTheDeadlineWithAllItStarted) {
  const Scratch scratch;
  const ProcessResult result =
      run_process({"sh", "-c", "sleep 60 & echo $!; wait"}, {scratch / "log", {}, std::chrono::seconds(1)});
  EXPECT_TRUE(result.timed_out);
  EXPECT_LT(result.seconds, 20);
  // The grandchild is gone, or a zombie that nobody has collected yet.
  const std::string child = read_file(scratch / "log");
  const std::string path = "/proc/" + child.substr(0, child.find('\n')) + "/status";
  std::string text;
  const auto gone = [&] {
    std::ifstream status(path);
    text.assign(std::istreambuf_iterator<char>(status), {});
    return text.empty() || text.find("State:\tZ") != std::string::npos ||
           text.find("State:\tX") != std::string::npos;
  };
  // It was killed; the kernel may need a moment to take it away.
  for (int k = 0; k < 100 && !gone(); ++k) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(gone()) << text;
}

/// A stand-in for a GoogleTest program: a script that writes the report it is asked for.
fs::path test_program(const Scratch& scratch, const std::string& body) {
  write(scratch / "program", "#!/bin/sh\nreport=${1#--gtest_output=json:}\n" + body + "\n");
  fs::permissions(scratch / "program", fs::perms::owner_all);
  return scratch / "program";
}

TEST(LabResults, ReadsFailuresAsTheirSentences) {
  const Scratch scratch;
  const auto program = test_program(scratch, R"(cat >"$report" <<'END'
{"tests": 3, "testsuites": [{"name": "Slice", "testsuite": [
 {"name": "Good", "status": "RUN"},
 {"name": "Gap", "status": "RUN", "failures": [{"failure": "unknown file\nC++ exception with description \"TODO exercises/a.hpp:7  cut it\" thrown in the test body."}]},
 {"name": "Bad", "status": "RUN", "failures": [{"failure": "/tmp/slice_test.cpp:12\nvalues are 4 times too large"}]},
 {"name": "Off", "status": "NOTRUN"}]}]}
END
exit 1)");
  const TestResults results = run_tests(program, scratch / "out");
  EXPECT_EQ(results.ran, 3) << "a test that did not run must not count";
  ASSERT_EQ(results.failures.size(), 2U);
  EXPECT_EQ(results.failures[0].name, "Slice.Gap");
  EXPECT_EQ(results.failures[0].text, "TODO exercises/a.hpp:7  cut it");
  EXPECT_TRUE(results.failures[0].todo);
  EXPECT_EQ(results.failures[1].text, "values are 4 times too large");
  EXPECT_FALSE(results.passed());
}

TEST(LabResults, ACrashOrNoTestIsNotAPass) {
  const Scratch scratch;
  EXPECT_NE(run_tests(test_program(scratch, "kill -SEGV $$"), scratch / "out").broken.find("crashed"),
            std::string::npos);
  EXPECT_NE(run_tests(test_program(scratch, "exit 0"), scratch / "out").broken.find("exit code 0"),
            std::string::npos);
  const TestResults none =
      run_tests(test_program(scratch, "echo '{\"testsuites\": []}' >\"$report\""), scratch / "out");
  EXPECT_FALSE(none.passed());
  EXPECT_EQ(none.broken, "no test ran");
}

TEST(LabTerminal, BarsAndWrappedProse) {
  EXPECT_EQ(bar(1, 2, 4), "██░░");
  EXPECT_EQ(bar(0, 0, 3), "░░░");
  EXPECT_EQ(bar(2, 3, 3), "██░") << "a bar is full only when all is done";
  EXPECT_EQ(wrapped("one two three four", "  ", 11), "  one two\n  three\n  four\n");
  EXPECT_EQ(indented("a\nb\nc\n", "> ", 2), "> a\n> b\n> … 1 more lines\n");
}

}  // namespace
}  // namespace shardlings::lab
