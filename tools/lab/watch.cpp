// `lab watch`: checks again whenever the learner's file has changed. Modification times are polled: a few
// files, no library.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "lab/lab.hpp"

namespace shardlings::lab {
namespace {

fs::file_time_type newest_change(const Lab& lab, const Lesson& lesson) {
  fs::file_time_type newest{};
  std::error_code gone;  // an editor that renames leaves a moment without the file
  for (const auto& entry : fs::directory_iterator(lab.root / "exercises" / lesson.folder, gone)) {
    const auto time = entry.last_write_time(gone);
    if (!gone) newest = std::max(newest, time);
  }
  return newest;
}

}  // namespace

int watch(Lab& lab, const Words& words) {
  std::string slug;
  bool once = false;
  Options options("watch",
                  "Check a lesson again whenever your file changes; goes on to the next one once it passes.");
  options.word("slug", slug, "lesson (default: the next one)");
  options.flag("--until-passed", once, "leave when the lesson passes");
  if (const auto done = options.parse(words)) return *done;

  const Lesson* lesson = &lab.lesson(slug);
  for (;;) {
    const auto seen = newest_change(lab, *lesson);
    const bool passed = check_lesson(lab, *lesson);
    if (passed && once) return 0;
    if (passed && lab.next() == nullptr) return 0;
    if (passed) lesson = lab.next();
    const auto before = passed ? newest_change(lab, *lesson) : seen;
    fmt::print("\nWatching exercises/{} (Ctrl-C leaves) ...\n", lesson->folder);
    std::fflush(stdout);
    while (newest_change(lab, *lesson) == before) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    // Editors write in several steps: wait for a moment of quiet.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace shardlings::lab
