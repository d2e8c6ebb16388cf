#pragma once
// What lessons/manifest.json says, read and validated. One entry per lesson that exists; the order of the
// file is the order of the course. Everything that lists lessons (lab, README, CMake, CI) reads it from
// there.
#include <filesystem>
#include <string>
#include <vector>

namespace shardlings::manifest {

/// A gap in an exercise file.
struct Region {
  std::string name;  ///< as in the markers
  std::string goal;  ///< one line
};

struct Exercise {
  std::string file;  ///< bare name, in exercises/<folder>/ and solutions/<folder>/
  std::string goal;
  int lines = 0;  ///< about how many the learner writes
  std::vector<Region> regions;
  std::vector<std::string> hints;  ///< three: a question, an invariant, almost code
};

/// A plausible wrong answer: tests/lessons/<folder>/mutants/<name>/.
struct Mutant {
  std::string name;
  std::string story;                   ///< one line: what it does wrong
  std::vector<std::string> caught_by;  ///< "Suite.Test", all of which must reject it
  std::string says;                    ///< what one of these says about it
};

/// A "predict first" question, graded from exercises/<folder>/answers.txt.
struct Question {
  std::string key;
  std::string question;
  double value = 0;
  double tolerance = 0;  ///< absolute
};

struct Lesson {
  int number = 0;
  std::string slug, folder, title, part;
  std::string kind;  ///< "core" or "side"
  std::string outcome;
  std::vector<std::string> needs;  ///< slugs of earlier lessons
  int minutes = 0;
  int ranks = 1;         ///< that its program runs by default
  std::string hardware;  ///< "cpu", "gpu", "gpus" or "cluster": the least with which all of it can be done
  std::vector<std::string> smoke;  ///< flags for the short run of the program in CTest
  int tests = 0;                   ///< in the solution's test program
  std::vector<Exercise> exercises;
  std::vector<Mutant> mutants;
  std::vector<Question> answers;
};

struct Manifest {
  std::vector<Lesson> lessons;
  /// nullptr when there is none.
  const Lesson* find(const std::string& slug) const;
};

/// Reads and validates. Throws Error with one sentence per fault, each beginning with the path and the
/// lesson: a field that is missing, unknown or of the wrong type; numbers or slugs that repeat; a need that
/// is no earlier lesson; a folder that is not NN_slug; fewer than three mutants or other than three hints; a
/// caught_by that is no "Suite.Test".
Manifest load_manifest(const std::filesystem::path& path);

/// The same from text; `path` is for messages.
Manifest parse_manifest(const std::string& text, const std::string& path);

/// Where the tree and the manifest disagree, one sentence each; empty when they agree. Checks that the files
/// of each lesson exist, regions match the markers, mutants match their folders, and sizes keep to the limits
/// of the course.
std::vector<std::string> disagreements(const Manifest& manifest, const std::filesystem::path& root);

}  // namespace shardlings::manifest
