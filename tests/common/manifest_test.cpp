// The manifest reader: the real file loads, and each kind of mistake gets its sentence.
#include "manifest/manifest.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace shardlings::manifest {
namespace {
using nlohmann::json;

json lesson(int number, const std::string& slug) {
  const json mutant = {{"name", "m1"}, {"story", "s"}, {"caught_by", {"A.B"}}, {"says", "x"}};
  json mutants = {mutant, mutant, mutant};
  for (int i = 0; i < 3; ++i) mutants[static_cast<std::size_t>(i)]["name"] = "m" + std::to_string(i);
  return {{"number", number},
          {"slug", slug},
          {"folder", "0" + std::to_string(number) + "_" + slug},
          {"title", "T"},
          {"part", "Start"},
          {"kind", "core"},
          {"outcome", "o"},
          {"needs", json::array()},
          {"minutes", 10},
          {"ranks", 4},
          {"hardware", "cpu"},
          {"smoke", {"--quiet"}},
          {"tests", 3},
          {"exercises",
           {{{"file", "a.hpp"},
             {"goal", "g"},
             {"lines", 3},
             {"regions", {{{"name", "r"}, {"goal", "g"}}}},
             {"hints", {"a", "b", "c"}}}}},
          {"mutants", mutants},
          {"answers", {{{"key", "k"}, {"question", "q"}, {"value", 0.5}, {"tolerance", 0.01}}}}};
}

std::string error_of(const json& lessons) {
  try {
    parse_manifest(json{{"lessons", lessons}}.dump(), "m.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string error_with(const std::string& pointer, const json& value) {
  json changed = lesson(1, "one");
  changed[json::json_pointer(pointer)] = value;
  return error_of(json::array({changed}));
}

// Rejects: a reader that drops or mixes up fields.
TEST(Manifest, ReadsEveryField) {
  json two = lesson(2, "two");
  two["needs"] = {"one"};
  const Manifest manifest = parse_manifest(json{{"lessons", {lesson(1, "one"), two}}}.dump(), "m.json");
  ASSERT_EQ(manifest.lessons.size(), 2U);
  EXPECT_EQ(manifest.find("three"), nullptr);
  const Lesson* found = manifest.find("two");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->number, 2);
  EXPECT_EQ(found->folder, "02_two");
  EXPECT_EQ(found->needs, std::vector<std::string>{"one"});
  EXPECT_EQ(found->smoke, std::vector<std::string>{"--quiet"});
  EXPECT_EQ(found->tests, 3);
  EXPECT_EQ(found->ranks, 4);
  EXPECT_EQ(found->minutes, 10);
  EXPECT_EQ(found->exercises.at(0).file, "a.hpp");
  EXPECT_EQ(found->exercises.at(0).regions.at(0).name, "r");
  EXPECT_EQ(found->exercises.at(0).hints.at(2), "c");
  EXPECT_EQ(found->mutants.at(2).name, "m2");
  EXPECT_EQ(found->mutants.at(0).caught_by, std::vector<std::string>{"A.B"});
  EXPECT_EQ(found->answers.at(0).value, 0.5);
}

// Rejects: each mistake going unseen until a learner meets it.
TEST(Manifest, NamesEachMistake) {
  EXPECT_EQ(error_with("/minutes", "ten"),
            "m.json: lesson one: 'minutes' has the wrong type: \"ten\"\n"
            "m.json: lesson one: minutes 0 must be at least 1");
  EXPECT_EQ(error_with("/title", ""), "m.json: lesson one: 'title' is empty");
  EXPECT_EQ(error_with("/kind", "main"), "m.json: lesson one: kind 'main' must be core or side");
  EXPECT_EQ(error_with("/folder", "02_one"), "m.json: lesson one: folder '02_one' must be 01_one");
  EXPECT_EQ(error_with("/needs", json::array({"two"})),
            "m.json: lesson one: needs 'two', which is no earlier lesson");
  EXPECT_EQ(error_with("/exercises/0/hints", {"a", "b"}),
            "m.json: lesson one: exercise a.hpp: 2 hints; there must be three: a question, an invariant, "
            "almost code");
  EXPECT_EQ(error_with("/mutants", json::array()),
            "m.json: lesson one: 0 mutants; there must be at least three");
  EXPECT_EQ(error_with("/mutants/1/name", "m0"), "m.json: lesson one: mutant 'm0' appears twice");
  EXPECT_EQ(error_with("/mutants/0/caught_by", json::array({"AB"})),
            "m.json: lesson one: mutant m0: caught_by: 'AB' is no Suite.Test");
  EXPECT_EQ(error_with("/hardware", "tpu"),
            "m.json: lesson one: hardware 'tpu' must be one of cluster, cpu, gpu, gpus");
  EXPECT_NE(error_with("/minuts", 3).find("'minuts' is unknown; there are answers,"), std::string::npos);
  json incomplete = lesson(1, "one");
  incomplete.erase("outcome");
  EXPECT_EQ(error_of(json::array({incomplete})), "m.json: lesson one: 'outcome' is missing");
  EXPECT_EQ(error_of({lesson(2, "two"), lesson(1, "one")}), "m.json: lesson one: number 1 does not follow 2");
  EXPECT_EQ(error_of({lesson(1, "one"), lesson(2, "one")}), "m.json: lesson one: the slug appears twice");
}

TEST(Manifest, SaysWhereTheJsonIsBroken) {
  EXPECT_THROW(parse_manifest("{", "m.json"), Error);
  EXPECT_THROW(load_manifest("/no/such/manifest.json"), Error);
}

// Rejects: a manifest of the course that does not load. (That it agrees with the tree is CTest entry
// manifest.agrees.)
TEST(Manifest, OfTheCourseLoads) {
  const Manifest manifest = load_manifest(SHARDLINGS_SOURCE_DIR "/lessons/manifest.json");
  EXPECT_NE(manifest.find("hello_ranks"), nullptr);
}

// Rejects: a check that sees no difference between a manifest and an empty tree.
TEST(Manifest, DisagreesWithAnEmptyTree) {
  const Manifest manifest =
      parse_manifest(json{{"lessons", json::array({lesson(1, "one")})}}.dump(), "m.json");
  const auto faults = disagreements(manifest, "/no/such/tree");
  ASSERT_EQ(faults.size(), 5U);
  EXPECT_EQ(faults[0], "lesson one: lessons/01_one/README.md is missing");
  EXPECT_EQ(faults[3], "lesson one: solutions/01_one/a.hpp is missing");
  EXPECT_EQ(faults[4], "lesson one: the folders of mutants are [], the manifest lists [m0, m1, m2]");
}

}  // namespace
}  // namespace shardlings::manifest
