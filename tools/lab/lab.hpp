#pragma once
// What every verb is given: the folders, the lessons and the learner's progress. And the verbs themselves.
#include <filesystem>
#include <string>
#include <vector>

#include "lab/options.hpp"
#include "lab/progress.hpp"
#include "manifest/manifest.hpp"

namespace shardlings::lab {

namespace fs = std::filesystem;
using manifest::Exercise;
using manifest::Lesson;
using manifest::Manifest;

struct Lab {
  fs::path root;   ///< of the clone
  fs::path build;  ///< build folder
  fs::path kept;   ///< .lab: progress, kept copies, notes of the last check
  Manifest manifest;
  Progress progress;

  /// The lesson of that slug (its folder's name will do too); "" is the next one. Throws UsageError with a
  /// guess.
  const Lesson& lesson(const std::string& slug) const;
  /// First core lesson not passed, then first side lesson not passed; null when all are done.
  const Lesson* next() const;
  fs::path exercise(const Lesson& lesson, const Exercise& exercise) const;  ///< the learner's file
  fs::path solution(const Lesson& lesson, const Exercise& exercise) const;
  std::string shown(const fs::path& path) const;  ///< relative to the clone, for sentences
};

Lab open_lab();

// Each verb takes the words after it and returns the exit code.
int status(Lab& lab, const Words& words);
int doctor(Lab& lab, const Words& words);
int check(Lab& lab, const Words& words);
int watch(Lab& lab, const Words& words);
int hint(Lab& lab, const Words& words);
int run(Lab& lab, const Words& words);
int solution(Lab& lab, const Words& words);
int diff(Lab& lab, const Words& words);
int reset(Lab& lab, const Words& words);
int report(Lab& lab, const Words& words);
int trace(Lab& lab, const Words& words);
int demo(Lab& lab, const Words& words);
int bench(Lab& lab, const Words& words);
int test(Lab& lab, const Words& words);
int gates(Lab& lab, const Words& words);
int readme(Lab& lab, const Words& words);
int help(Lab& lab, const Words& words);

/// One check of a learner's lesson: builds, tests, prints, keeps progress. True when every test passed.
bool check_lesson(Lab& lab, const Lesson& lesson);

}  // namespace shardlings::lab
