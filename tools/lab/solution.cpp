// `lab solution`, `lab diff`, `lab reset`: the reference, how two texts differ, and the way back to the gap.
#include <fmt/format.h>

#include <fstream>

#include "core/error.hpp"
#include "lab/lab.hpp"
#include "lab/process.hpp"
#include "lab/terminal.hpp"
#include "stubgen/markers.hpp"

namespace shardlings::lab {
namespace {

/// The reference is shown to who has passed, or says that they give up.
void require_right_to_see(Lab& lab, const Lesson& lesson, bool give_up) {
  LessonProgress& progress = lab.progress.change(lesson.slug);
  if (progress.passed) return;
  if (!give_up)
    fail_usage(fmt::format(
        "{} is not passed yet: ./lab hint {} helps, and --give-up shows the reference all the same",
        lesson.slug, lesson.slug));
  progress.gave_up = true;
  lab.progress.save();
}

void write_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  require(out.good(), [&] { return fmt::format("cannot write {}: is the disk full?", path.string()); });
}

/// The reference without the markers and the stub lines, or with the learner's markers: only code is to
/// differ.
std::string plain_reference(const std::string& text, bool keep_markers) {
  std::string out;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1);
    std::string line = text.substr(begin, end + 1 - begin);
    begin = end + 1;
    const size_t marker = line.find("// SOLUTION ");
    if (marker != std::string::npos) {
      if (!keep_markers || line.find("// SOLUTION STUB") != std::string::npos) continue;
      line.replace(marker, 11, "// YOUR CODE");
    }
    out += line;
  }
  return out;
}

/// Shows how two texts differ. True if they are the same.
bool show_difference(const fs::path& scratch, const std::string& left_name, const std::string& left,
                     const std::string& right_name, const std::string& right) {
  write_file(scratch / "a", left);
  write_file(scratch / "b", right);
  Command command{"diff", "-u", "--label", left_name, "--label", right_name};
  if (is_terminal()) command.emplace_back("--color=always");
  command.push_back((scratch / "a").string());
  command.push_back((scratch / "b").string());
  std::fflush(stdout);
  const ProcessResult result = run_process(command);
  require(result.code <= 1, "diff failed; is the package diffutils there?");
  return result.code == 0;
}

/// All of a lesson's reference files, one after the other.
std::string whole_reference(const Lab& lab, const Lesson& lesson) {
  std::string text;
  for (const Exercise& exercise : lesson.exercises)
    text += plain_reference(read_file(lab.solution(lesson, exercise)), false);
  return text;
}

}  // namespace

int solution(Lab& lab, const Words& words) {
  std::string slug;
  bool give_up = false;
  Options options("solution", "The reference code of a lesson's gaps.");
  options.word("slug", slug, "lesson (default: the next one)");
  options.flag("--give-up", give_up, "show it although the lesson is not passed");
  if (const auto done = options.parse(words)) return *done;
  const Lesson& lesson = lab.lesson(slug);
  require_right_to_see(lab, lesson, give_up);
  for (const Exercise& exercise : lesson.exercises) {
    const fs::path file = lab.solution(lesson, exercise);
    fmt::print("{}\n", paint(Colour::kBold, lab.shown(file)));
    for (const stubgen::Region& region : stubgen::regions_of(lab.shown(file), read_file(file))) {
      fmt::print("\n{}\n", paint(Colour::kDim, fmt::format("// line {}: {}", region.line, region.name)));
      for (const std::string& line : region.body) fmt::print("{}\n", line);
    }
    fmt::print("\n");
  }
  fmt::print("Beside yours: ./lab diff {}\n", lesson.slug);
  return 0;
}

int diff(Lab& lab, const Words& words) {
  std::string first, second;
  bool give_up = false;
  Options options(
      "diff", "How the solutions of two lessons differ; with one lesson: your file against the reference.");
  options.word("A", first, "lesson", true);
  options.word("B", second, "lesson; without it, A's reference against your file");
  options.flag("--give-up", give_up, "compare with the reference although the lesson is not passed");
  if (const auto done = options.parse(words)) return *done;
  const fs::path scratch = lab.kept / "diff";
  const Lesson& lesson = lab.lesson(first);
  if (!second.empty()) {
    const Lesson& other = lab.lesson(second);
    if (show_difference(scratch, lesson.slug, whole_reference(lab, lesson), other.slug,
                        whole_reference(lab, other)))
      fmt::print("The solutions of {} and {} are the same.\n", lesson.slug, other.slug);
    return 0;
  }
  require_right_to_see(lab, lesson, give_up);
  for (const Exercise& exercise : lesson.exercises) {
    const fs::path yours = lab.exercise(lesson, exercise), reference = lab.solution(lesson, exercise);
    if (show_difference(scratch, lab.shown(yours), read_file(yours), lab.shown(reference),
                        plain_reference(read_file(reference), true)))
      fmt::print("{} is the reference, word for word.\n", lab.shown(yours));
  }
  return 0;
}

int reset(Lab& lab, const Words& words) {
  std::string slug;
  Options options("reset", "Put the gap back. Your file is kept, with the date, under .lab/kept/.");
  options.word("slug", slug, "lesson", true);
  if (const auto done = options.parse(words)) return *done;
  const Lesson& lesson = lab.lesson(slug);
  for (const Exercise& exercise : lesson.exercises) {
    const fs::path file = lab.exercise(lesson, exercise), reference = lab.solution(lesson, exercise);
    const std::string stub = stubgen::make_stub(lab.shown(reference), read_file(reference));
    if (fs::exists(file)) {
      if (read_file(file) == stub) {
        fmt::print("{} has nothing of yours in it.\n", lab.shown(file));
        continue;
      }
      // Two resets within a second must not lose the first copy.
      const std::string when = local_time("%Y-%m-%d-%H%M%S");
      fs::path copy = lab.kept / "kept" / lesson.slug / when / exercise.file;
      for (int i = 2; fs::exists(copy); ++i)
        copy = lab.kept / "kept" / lesson.slug / fmt::format("{}-{}", when, i) / exercise.file;
      write_file(copy, read_file(file));
      fmt::print("Kept yours as {}\n", lab.shown(copy));
    }
    write_file(file, stub);
    fmt::print("{} is a gap again.\n", lab.shown(file));
  }
  LessonProgress& progress = lab.progress.change(lesson.slug);
  progress.passed = false;
  progress.passed_at.clear();
  lab.progress.save();
  return 0;
}

}  // namespace shardlings::lab
