#pragma once
// What the learner has done, by slug: lessons may be renumbered. Kept in .lab/progress.json, which git
// ignores.
#include <filesystem>
#include <map>
#include <string>

namespace shardlings::lab {

struct LessonProgress {
  bool passed = false;
  bool gave_up = false;              ///< looked at the solution before passing
  int attempts = 0;                  ///< checks so far
  std::string passed_at;             ///< local date and time
  std::map<std::string, int> hints;  ///< highest level seen, by exercise file
};

class Progress {
 public:
  /// Reads the file; none is an empty progress, and one that cannot be understood is kept aside, never
  /// overwritten.
  explicit Progress(std::filesystem::path file);

  const LessonProgress& of(const std::string& slug) const;
  LessonProgress& change(const std::string& slug) { return lessons_[slug]; }
  void save() const;  ///< written beside, then renamed

 private:
  std::filesystem::path file_;
  std::map<std::string, LessonProgress> lessons_;
};

/// Local date and time with the given strftime format.
std::string local_time(const char* format);

}  // namespace shardlings::lab
