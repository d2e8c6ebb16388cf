// `lab check`: builds the tests with the learner's file, runs them, and says what is wrong in words.
#include <fmt/format.h>

#include <map>

#include "core/error.hpp"
#include "lab/answers.hpp"
#include "lab/build.hpp"
#include "lab/lab.hpp"
#include "lab/process.hpp"
#include "lab/results.hpp"
#include "lab/suggest.hpp"
#include "lab/terminal.hpp"

namespace shardlings::lab {
namespace {

/// First 12 digits of the file's SHA-256, as sha256sum prints it: anyone can see that this file was tested.
std::string short_hash(const fs::path& file, const fs::path& scratch) {
  const fs::path log = scratch / "hash.log";
  run_process({"sha256sum", file.string()}, {log, {}, {}});
  return read_file(log).substr(0, 12);
}

/// Predictions are graded and shown; a wrong one is a thing learned, so it does not hold up the lesson.
void grade_answers(const Lab& lab, const Lesson& lesson) {
  if (lesson.answers.empty()) return;
  const fs::path file = lab.root / "exercises" / lesson.folder / "answers.txt";
  fmt::print("\nPredictions ({}):\n", lab.shown(file));
  std::map<std::string, double> given;
  try {
    given = parse_answers(fs::exists(file) ? read_file(file) : "");
  } catch (const UsageError& error) {
    fmt::print("  {} {}\n", paint(Colour::kRed, "✗"), error.what());
    return;
  }
  for (const manifest::Question& question : lesson.answers) {
    const Grade result = grade(question, given);
    if (result == Grade::kMissing) {
      fmt::print("  {} {}: {}\n", paint(Colour::kDim, "·"), question.key, question.question);
    } else if (result == Grade::kRight) {
      fmt::print("  {} {} = {}\n", paint(Colour::kGreen, "✓"), question.key, given[question.key]);
    } else {
      fmt::print("  {} {} = {}: too {}. {}\n", paint(Colour::kRed, "✗"), question.key, given[question.key],
                 result == Grade::kTooHigh ? "high" : "low", question.question);
    }
  }
}

int check_mutant(const Lab& lab, const Lesson& lesson, const std::string& name) {
  const manifest::Mutant* mutant = nullptr;
  std::vector<std::string> known;
  for (const auto& each : lesson.mutants) {
    if (each.name == name) mutant = &each;
    known.push_back(each.name);
  }
  if (mutant == nullptr) fail_usage(unknown_sentence("mutant of " + lesson.slug, name, known));
  fmt::print("Testing the wrong answer {}: {}\n", paint(Colour::kBold, name), mutant->story);
  const std::string target = fmt::format("mut_{}_{}", lesson.slug, name);
  const BuildResult built = build_targets(lab.build, {target}, false);
  require(built.ok,
          [&] { return fmt::format("{} does not build:\n{}", target, compiler_messages(built.output)); });
  const TestResults results = run_tests(program_of(lab.build, target), lab.kept / "check");
  fmt::print("{}", describe(results, 4));
  if (results.passed()) {
    fmt::print("{} No test caught it, and one should: please report this.\n", paint(Colour::kRed, "✗"));
    return 1;
  }
  fmt::print("{} Caught by {} of {} tests. What in the code would make them say that?\n",
             paint(Colour::kGreen, "✓"), results.failures.size(), results.ran);
  return 0;
}

}  // namespace

bool check_lesson(Lab& lab, const Lesson& lesson) {
  const fs::path scratch = lab.kept / "check";
  fs::create_directories(scratch);
  LessonProgress& progress = lab.progress.change(lesson.slug);
  ++progress.attempts;
  lab.progress.save();
  for (const Exercise& exercise : lesson.exercises) {
    const fs::path file = lab.exercise(lesson, exercise);
    require(fs::exists(file), [&] {
      return fmt::format("{} is not there; ./lab reset {} puts the gap back", lab.shown(file), lesson.slug);
    });
    fmt::print("Testing {} (sha256 {}…)\n", lab.shown(file), short_hash(file, scratch));
  }
  std::fflush(stdout);

  const std::string target = "yours_" + lesson.slug;
  const BuildResult built = build_targets(lab.build, {target}, false);
  if (!built.ok) {
    fmt::print("\n{}\n{} It does not compile yet; the first message is usually the one to read.\n",
               indented(compiler_messages(built.output), "  ", 40), paint(Colour::kRed, "✗"));
    return false;
  }
  const TestResults results = run_tests(program_of(lab.build, target), scratch);
  fmt::print("\n{}", describe(results, 6));
  grade_answers(lab, lesson);
  const int right = results.ran - static_cast<int>(results.failures.size());
  fmt::print("\n{} {} of {} tests pass  (built in {:.1f} s, ran in {:.1f} s)\n", bar(right, results.ran, 20),
             right, results.ran, built.seconds, results.seconds);
  if (!results.passed()) {
    fmt::print("Stuck? ./lab hint {}\n", lesson.slug);
    return false;
  }
  if (!progress.passed) {
    progress.passed = true;
    progress.passed_at = local_time("%Y-%m-%d %H:%M");
    lab.progress.save();
  }
  fmt::print("{} {} is passed. See it run: ./lab run {} --impl yours", paint(Colour::kGreen, "✓"),
             lesson.slug, lesson.slug);
  const Lesson* next = lab.next();
  fmt::print("{}\n", next == nullptr ? "" : fmt::format("   Next: {} (./lab)", next->slug));
  return true;
}

int check(Lab& lab, const Words& words) {
  std::string slug, mutant;
  Options options("check", "Test your file of a lesson, or a known wrong answer.");
  options.word("slug", slug, "lesson (default: the next one)");
  options.option("--mutant", mutant, "test this wrong answer instead of your file");
  if (const auto done = options.parse(words)) return *done;
  const Lesson& lesson = lab.lesson(slug);
  if (!mutant.empty()) return check_mutant(lab, lesson, mutant);
  return check_lesson(lab, lesson) ? 0 : 1;
}

}  // namespace shardlings::lab
