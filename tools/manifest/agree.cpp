#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "manifest/manifest.hpp"
#include "stubgen/markers.hpp"

namespace shardlings::manifest {
namespace {
namespace fs = std::filesystem;

constexpr std::ptrdiff_t kProgramLines = 250;   // a lesson's program fits in the head
constexpr std::ptrdiff_t kExerciseLines = 200;  // and so does its exercise

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::set<std::string> folders_in(const fs::path& path) {
  std::set<std::string> names;
  if (!fs::is_directory(path)) return names;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.is_directory()) names.insert(entry.path().filename().string());
  }
  return names;
}

class Check {
 public:
  Check(const Lesson& lesson, fs::path root, std::vector<std::string>& faults)
      : lesson_(lesson), root_(std::move(root)), faults_(faults) {}

  void files() {
    for (const fs::path& path :
         {fs::path("lessons") / lesson_.folder / "README.md",
          fs::path("lessons") / lesson_.folder / "main.cpp", fs::path("slides") / (lesson_.folder + ".md")}) {
      if (!fs::exists(root_ / path)) fault(fmt::format("{} is missing", path.string()));
    }
    lines(fs::path("lessons") / lesson_.folder / "main.cpp", kProgramLines);
  }

  void exercises() {
    for (const Exercise& exercise : lesson_.exercises) {
      const fs::path path = fs::path("solutions") / lesson_.folder / exercise.file;
      if (!fs::exists(root_ / path)) {
        fault(fmt::format("{} is missing", path.string()));
        continue;
      }
      if (!fs::exists(root_ / "exercises" / lesson_.folder / exercise.file)) {
        fault(fmt::format("exercises/{}/{} is missing", lesson_.folder, exercise.file));
      }
      lines(path, kExerciseLines);
      std::vector<std::string> marked, listed;
      try {
        for (const auto& region : stubgen::regions_of(path.string(), read(root_ / path)))
          marked.push_back(region.name);
      } catch (const stubgen::MarkerError& error) {
        fault(error.what());
      }
      for (const Region& region : exercise.regions) listed.push_back(region.name);
      if (marked != listed) {
        fault(fmt::format("{} has the regions [{}], the manifest lists [{}]", path.string(),
                          fmt::join(marked, ", "), fmt::join(listed, ", ")));
      }
    }
  }

  void mutants() {
    std::set<std::string> listed;
    for (const Mutant& mutant : lesson_.mutants) listed.insert(mutant.name);
    const std::set<std::string> present =
        folders_in(root_ / "tests" / "lessons" / lesson_.folder / "mutants");
    if (listed != present) {
      fault(fmt::format("the folders of mutants are [{}], the manifest lists [{}]", fmt::join(present, ", "),
                        fmt::join(listed, ", ")));
    }
  }

 private:
  void fault(const std::string& what) { faults_.push_back(fmt::format("lesson {}: {}", lesson_.slug, what)); }

  void lines(const fs::path& path, std::ptrdiff_t most) {
    const std::string text = read(root_ / path);
    const auto count = std::count(text.begin(), text.end(), '\n');
    if (count > most) fault(fmt::format("{} has {} lines; {} is the limit", path.string(), count, most));
  }

  const Lesson& lesson_;
  fs::path root_;
  std::vector<std::string>& faults_;
};

}  // namespace

std::vector<std::string> disagreements(const Manifest& manifest, const fs::path& root) {
  std::vector<std::string> faults;
  for (const Lesson& lesson : manifest.lessons) {
    Check check(lesson, root, faults);
    check.files();
    check.exercises();
    check.mutants();
  }
  return faults;
}

}  // namespace shardlings::manifest
