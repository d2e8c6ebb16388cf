#include "lab/lab.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/suggest.hpp"

namespace shardlings::lab {

const Lesson& Lab::lesson(const std::string& slug) const {
  if (slug.empty()) {
    if (const Lesson* lesson = next()) return *lesson;
    fail_usage("every lesson is passed; name the one you mean");
  }
  std::vector<std::string> known;
  for (const Lesson& lesson : manifest.lessons) {
    // Shells complete folder names, often with a slash at the end.
    const fs::path path = slug.back() == '/' ? fs::path(slug).parent_path() : fs::path(slug);
    if (lesson.slug == slug || lesson.folder == path.filename()) return lesson;
    known.push_back(lesson.slug);
  }
  fail_usage(unknown_sentence("lesson", slug, known));
}

const Lesson* Lab::next() const {
  for (const char* kind : {"core", "side"}) {
    for (const Lesson& lesson : manifest.lessons) {
      if (lesson.kind == kind && !progress.of(lesson.slug).passed) return &lesson;
    }
  }
  return nullptr;
}

fs::path Lab::exercise(const Lesson& lesson, const Exercise& exercise) const {
  return root / "exercises" / lesson.folder / exercise.file;
}

fs::path Lab::solution(const Lesson& lesson, const Exercise& exercise) const {
  return root / "solutions" / lesson.folder / exercise.file;
}

std::string Lab::shown(const fs::path& path) const { return path.lexically_relative(root).string(); }

Lab open_lab() {
  const fs::path root = SHARDLINGS_SOURCE_DIR;
  const fs::path kept = root / ".lab";
  return {root, SHARDLINGS_BINARY_DIR, kept, manifest::load_manifest(root / "lessons" / "manifest.json"),
          Progress(kept / "progress.json")};
}

}  // namespace shardlings::lab
