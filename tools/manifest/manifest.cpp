#include "manifest/manifest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.hpp"

namespace shardlings::manifest {
namespace {
using nlohmann::json;

/// Collects faults, so that an author sees all of them at once.
class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  void fault(const std::string& where, const std::string& what) {
    faults_.push_back(fmt::format("{}: {}: {}", path_, where, what));
  }

  template <class T>
  void read(const json& object, const std::string& where, const char* key, T& value) {
    if (!object.contains(key)) return fault(where, fmt::format("'{}' is missing", key));
    try {
      object.at(key).get_to(value);
    } catch (const json::exception&) {
      fault(where, fmt::format("'{}' has the wrong type: {}", key, object.at(key).dump()));
    }
  }

  void read_text(const json& object, const std::string& where, const char* key, std::string& value) {
    const std::size_t before = faults_.size();
    read(object, where, key, value);
    if (faults_.size() == before && value.empty()) fault(where, fmt::format("'{}' is empty", key));
  }

  void only(const json& object, const std::string& where, const std::set<std::string>& known) {
    if (!object.is_object()) return fault(where, "is no object");
    for (const auto& [key, value] : object.items()) {
      if (known.count(key) == 0) {
        fault(where, fmt::format("'{}' is unknown; there are {}", key, fmt::join(known, ", ")));
      }
    }
  }

  /// The array under `key`, each item an object.
  template <class Item>
  void each(const json& object, const std::string& where, const char* key, Item&& item) {
    if (!object.contains(key) || !object.at(key).is_array()) {
      return fault(where, fmt::format("'{}' is missing or no list", key));
    }
    for (const json& entry : object.at(key)) {
      if (entry.is_object()) item(entry);
      if (!entry.is_object())
        fault(where, fmt::format("'{}' holds {}, which is no object", key, entry.dump()));
    }
  }

  void finish() const {
    if (!faults_.empty()) fail(fmt::format("{}", fmt::join(faults_, "\n")));
  }

 private:
  std::string path_;
  std::vector<std::string> faults_;
};

bool is_slug(const std::string& text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

/// "Suite.Test", also of a parameterised test.
bool is_test_name(const std::string& text) {
  const auto dot = text.find('.');
  return dot != std::string::npos && dot > 0 && dot + 1 < text.size() &&
         text.find('.', dot + 1) == std::string::npos;
}

Exercise read_exercise(Reader& in, const json& entry, const std::string& lesson) {
  Exercise exercise;
  in.only(entry, lesson, {"file", "goal", "lines", "regions", "hints"});
  in.read_text(entry, lesson, "file", exercise.file);
  const std::string where = fmt::format("{}: exercise {}", lesson, exercise.file);
  in.read_text(entry, where, "goal", exercise.goal);
  in.read(entry, where, "lines", exercise.lines);
  in.each(entry, where, "regions", [&](const json& item) {
    Region region;
    in.only(item, where, {"name", "goal"});
    in.read_text(item, where, "name", region.name);
    in.read_text(item, where, "goal", region.goal);
    exercise.regions.push_back(std::move(region));
  });
  in.read(entry, where, "hints", exercise.hints);
  if (exercise.hints.size() != 3) {
    in.fault(where, fmt::format("{} hints; there must be three: a question, an invariant, almost code",
                                exercise.hints.size()));
  }
  return exercise;
}

Mutant read_mutant(Reader& in, const json& entry, const std::string& lesson) {
  Mutant mutant;
  in.only(entry, lesson, {"name", "story", "caught_by", "says"});
  in.read_text(entry, lesson, "name", mutant.name);
  const std::string where = fmt::format("{}: mutant {}", lesson, mutant.name);
  in.read_text(entry, where, "story", mutant.story);
  in.read(entry, where, "caught_by", mutant.caught_by);
  in.read_text(entry, where, "says", mutant.says);
  if (!is_slug(mutant.name)) in.fault(where, "a mutant's name has small letters, digits and _ only");
  if (mutant.caught_by.empty()) in.fault(where, "'caught_by' names no test");
  for (const std::string& test : mutant.caught_by) {
    if (!is_test_name(test)) in.fault(where, fmt::format("caught_by: '{}' is no Suite.Test", test));
  }
  return mutant;
}

Question read_question(Reader& in, const json& entry, const std::string& lesson) {
  Question question;
  in.only(entry, lesson, {"key", "question", "value", "tolerance"});
  in.read_text(entry, lesson, "key", question.key);
  const std::string where = fmt::format("{}: question {}", lesson, question.key);
  in.read_text(entry, where, "question", question.question);
  in.read(entry, where, "value", question.value);
  in.read(entry, where, "tolerance", question.tolerance);
  if (!is_slug(question.key)) in.fault(where, "a key has small letters, digits and _ only");
  if (!(question.tolerance >= 0)) in.fault(where, "a tolerance cannot be negative");
  return question;
}

Lesson read_lesson(Reader& in, const json& entry) {
  Lesson lesson;
  const std::string slug =
      entry.value("slug", json()).is_string() ? entry.at("slug").get<std::string>() : "?";
  const std::string where = fmt::format("lesson {}", slug);
  in.only(entry, where,
          {"number", "slug", "folder", "title", "part", "kind", "outcome", "needs", "minutes", "ranks",
           "hardware", "smoke", "tests", "exercises", "mutants", "answers"});
  in.read(entry, where, "number", lesson.number);
  in.read_text(entry, where, "slug", lesson.slug);
  in.read_text(entry, where, "folder", lesson.folder);
  in.read_text(entry, where, "title", lesson.title);
  in.read_text(entry, where, "part", lesson.part);
  in.read_text(entry, where, "kind", lesson.kind);
  in.read_text(entry, where, "outcome", lesson.outcome);
  in.read(entry, where, "needs", lesson.needs);
  in.read(entry, where, "minutes", lesson.minutes);
  in.read(entry, where, "ranks", lesson.ranks);
  in.read_text(entry, where, "hardware", lesson.hardware);
  in.read(entry, where, "smoke", lesson.smoke);
  in.read(entry, where, "tests", lesson.tests);
  in.each(entry, where, "exercises",
          [&](const json& e) { lesson.exercises.push_back(read_exercise(in, e, where)); });
  in.each(entry, where, "mutants",
          [&](const json& e) { lesson.mutants.push_back(read_mutant(in, e, where)); });
  in.each(entry, where, "answers",
          [&](const json& e) { lesson.answers.push_back(read_question(in, e, where)); });

  if (!is_slug(lesson.slug)) in.fault(where, "a slug has small letters, digits and _ only");
  if (lesson.folder != fmt::format("{:02}_{}", lesson.number, lesson.slug)) {
    in.fault(where, fmt::format("folder '{}' must be {:02}_{}", lesson.folder, lesson.number, lesson.slug));
  }
  if (lesson.kind != "core" && lesson.kind != "side") {
    in.fault(where, fmt::format("kind '{}' must be core or side", lesson.kind));
  }
  const std::set<std::string> hardware{"cpu", "gpu", "gpus", "cluster"};
  if (hardware.count(lesson.hardware) == 0) {
    in.fault(where,
             fmt::format("hardware '{}' must be one of {}", lesson.hardware, fmt::join(hardware, ", ")));
  }
  if (lesson.ranks < 1) in.fault(where, fmt::format("ranks {} must be at least 1", lesson.ranks));
  if (lesson.minutes < 1) in.fault(where, fmt::format("minutes {} must be at least 1", lesson.minutes));
  if (lesson.tests < 1) in.fault(where, fmt::format("tests {} must be at least 1", lesson.tests));
  if (lesson.exercises.empty()) in.fault(where, "no exercise");
  if (lesson.mutants.size() < 3) {
    in.fault(where, fmt::format("{} mutants; there must be at least three", lesson.mutants.size()));
  }
  return lesson;
}

template <class Items, class Name>
void check_unique(Reader& in, const std::string& where, const char* what, const Items& items, Name&& name) {
  std::set<std::string> seen;
  for (const auto& item : items) {
    if (!seen.insert(name(item)).second)
      in.fault(where, fmt::format("{} '{}' appears twice", what, name(item)));
  }
}

void check_order(Reader& in, const Manifest& manifest) {
  std::set<std::string> earlier;
  int last = -1;
  for (const Lesson& lesson : manifest.lessons) {
    const std::string where = fmt::format("lesson {}", lesson.slug);
    if (lesson.number <= last) {
      in.fault(where, fmt::format("number {} does not follow {}", lesson.number, last));
    }
    last = lesson.number;
    for (const std::string& need : lesson.needs) {
      if (earlier.count(need) == 0)
        in.fault(where, fmt::format("needs '{}', which is no earlier lesson", need));
    }
    if (!earlier.insert(lesson.slug).second) in.fault(where, "the slug appears twice");
    check_unique(in, where, "exercise", lesson.exercises, [](const Exercise& e) { return e.file; });
    check_unique(in, where, "mutant", lesson.mutants, [](const Mutant& m) { return m.name; });
    check_unique(in, where, "question", lesson.answers, [](const Question& q) { return q.key; });
  }
}

}  // namespace

const Lesson* Manifest::find(const std::string& slug) const {
  const auto found =
      std::find_if(lessons.begin(), lessons.end(), [&](const Lesson& lesson) { return lesson.slug == slug; });
  return found == lessons.end() ? nullptr : &*found;
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  json root;
  try {
    root = json::parse(text);
  } catch (const json::parse_error& error) {
    fail(fmt::format("{}: this is no JSON: {}", path, error.what()));
  }
  Reader in(path);
  Manifest manifest;
  in.only(root, "top level", {"lessons"});
  in.each(root, "top level", "lessons",
          [&](const json& entry) { manifest.lessons.push_back(read_lesson(in, entry)); });
  check_order(in, manifest);
  in.finish();
  return manifest;
}

Manifest load_manifest(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  require(static_cast<bool>(in), [&] { return fmt::format("{}: cannot be read", path.string()); });
  return parse_manifest({std::istreambuf_iterator<char>(in), {}}, path.string());
}

}  // namespace shardlings::manifest
