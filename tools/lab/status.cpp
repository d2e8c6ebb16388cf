// `lab status`: every lesson with its mark, how far along, and what is next.
#include <fmt/format.h>

#include "lab/lab.hpp"
#include "lab/terminal.hpp"

namespace shardlings::lab {
namespace {

std::string mark(const LessonProgress& progress, bool next) {
  if (progress.passed) return paint(Colour::kGreen, "✓");
  if (next) return paint(Colour::kYellow, "▸");
  return paint(Colour::kDim, "·");
}

void print_next(const Lab& lab, const Lesson& lesson) {
  fmt::print("\nNext: {}, about {} minutes\n", paint(Colour::kBold, lesson.title), lesson.minutes);
  fmt::print("  When it is done, you can {}\n", lesson.outcome);
  for (const std::string& need : lesson.needs) {
    if (!lab.progress.of(need).passed) fmt::print("  It builds on {}, which is not passed yet.\n", need);
  }
  fmt::print("\n  read   lessons/{}/README.md\n", lesson.folder);
  for (const Exercise& exercise : lesson.exercises)
    fmt::print("  write  {}\n", lab.shown(lab.exercise(lesson, exercise)));
  fmt::print("  test   ./lab check {0}     (stuck: ./lab hint {0})\n", lesson.slug);
  fmt::print("  see    ./lab run {}\n", lesson.slug);
}

}  // namespace

int status(Lab& lab, const Words& words) {
  Options options("status", "Where you are, and what is next.");
  if (const auto done = options.parse(words)) return *done;
  int passed = 0;
  for (const Lesson& lesson : lab.manifest.lessons) passed += lab.progress.of(lesson.slug).passed ? 1 : 0;
  const int total = static_cast<int>(lab.manifest.lessons.size());
  fmt::print("{}  {}  {} of {} lessons\n", paint(Colour::kBold, "Shardlings"), bar(passed, total, 30), passed,
             total);

  const Lesson* next = lab.next();
  std::string part;
  for (const Lesson& lesson : lab.manifest.lessons) {
    if (lesson.part != part) fmt::print("\n{}\n", paint(Colour::kDim, part = lesson.part));
    const LessonProgress& progress = lab.progress.of(lesson.slug);
    const std::string note = progress.passed     ? progress.passed_at.substr(0, 10)
                             : progress.attempts ? fmt::format("{} checks so far", progress.attempts)
                                                 : "";
    fmt::print("  {} {:<24} {}{}  {}\n", mark(progress, &lesson == next), lesson.slug, lesson.title,
               lesson.kind == "side" ? " (side)" : "", paint(Colour::kDim, note));
  }
  if (next != nullptr) {
    print_next(lab, *next);
  } else {
    fmt::print("\nAll lessons are passed. ./lab diff A B compares two of them; ./lab demo trains a model.\n");
  }
  return 0;
}

}  // namespace shardlings::lab
