// `lab hint`: three levels (a question, an invariant, almost the code); each call gives the next.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "lab/lab.hpp"
#include "lab/process.hpp"
#include "lab/suggest.hpp"
#include "lab/terminal.hpp"

namespace shardlings::lab {
namespace {

/// The first file that still has a gap, else the first.
const Exercise& exercise_meant(const Lab& lab, const Lesson& lesson, const std::string& file) {
  require(!lesson.exercises.empty(), [&] { return fmt::format("{} has no exercise", lesson.slug); });
  if (file.empty()) {
    for (const Exercise& exercise : lesson.exercises) {
      const fs::path path = lab.exercise(lesson, exercise);
      if (fs::exists(path) && read_file(path).find("LAB_TODO(") != std::string::npos) return exercise;
    }
    return lesson.exercises.front();
  }
  std::vector<std::string> known;
  for (const Exercise& exercise : lesson.exercises) {
    if (exercise.file == file) return exercise;
    known.push_back(exercise.file);
  }
  fail_usage(unknown_sentence("file of " + lesson.slug, file, known));
}

}  // namespace

int hint(Lab& lab, const Words& words) {
  std::string slug, file;
  int level = 0;
  Options options(
      "hint", "A hint for your file; each call goes one level deeper: question, invariant, almost the code.");
  options.word("slug", slug, "lesson (default: the next one)");
  options.option("--file", file, "which of the lesson's files (default: the first with a gap)");
  options.option("--level", level, "this level again, 1 to 3");
  if (const auto done = options.parse(words)) return *done;
  const Lesson& lesson = lab.lesson(slug);
  const Exercise& exercise = exercise_meant(lab, lesson, file);
  const int levels = static_cast<int>(exercise.hints.size());
  if (level != 0 && (level < 1 || level > levels))
    fail_usage(fmt::format("--level is {}, and {} has hints of level 1 to {}", level, exercise.file, levels));

  int& seen = lab.progress.change(lesson.slug).hints[exercise.file];
  const bool all_seen = level == 0 && seen >= levels;
  if (level == 0) level = std::min(seen + 1, levels);
  seen = std::max(seen, level);
  lab.progress.save();
  fmt::print("{}, hint {} of {}\n\n{}\n", paint(Colour::kBold, exercise.file), level, levels,
             wrapped(exercise.hints[static_cast<size_t>(level - 1)], "  ", 100));
  if (level < levels) {
    fmt::print("Deeper: ./lab hint {}\n", lesson.slug);
  } else {
    fmt::print("{} The reference: ./lab solution {} --give-up\n",
               all_seen ? "You have seen them all." : "This is the last one.", lesson.slug);
  }
  return 0;
}

}  // namespace shardlings::lab
