// metrics.jsonl and the run folder: what is written comes back, and what goes wrong is said.
#include <gtest/gtest.h>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "run/metrics.hpp"
#include "run/run_dir.hpp"

namespace shardlings::run {
namespace {

namespace fs = std::filesystem;

/// A folder of its own that is the current one while the test runs.
class RunFolders : public testing::Test {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    std::string name = (fs::temp_directory_path() / "shardlings.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    fs::current_path(folder_);
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path before_, folder_;
};
using Metrics = RunFolders;
using RunDirTest = RunFolders;

StepMetrics step(i64 number, double loss) {
  StepMetrics m;
  m.step = number;
  m.loss = loss;
  return m;
}

TEST_F(Metrics, EveryFieldComesBack) {
  StepMetrics m = step(3, 4.174387269895637);
  m.val_loss = 1.5;
  m.norm = 0.1;
  m.lr = 3e-4;
  m.tokens_per_s = 12345.5;
  m.ms = 6.25;
  m.exposed_ms = 0.0;
  m.bytes_sent = 65064960;
  m.peak = {1, 2, 3, 4, 5000000000};
  MetricsWriter("m.jsonl").write(m);
  const auto all = read_metrics("m.jsonl");
  ASSERT_EQ(all.size(), 1U);
  const StepMetrics& back = all[0];
  EXPECT_EQ(back.step, 3);
  EXPECT_EQ(back.loss, m.loss);  // to the last bit
  EXPECT_EQ(back.val_loss, m.val_loss);
  EXPECT_EQ(back.norm, m.norm);
  EXPECT_EQ(back.lr, m.lr);
  EXPECT_EQ(back.tokens_per_s, m.tokens_per_s);
  EXPECT_EQ(back.ms, m.ms);
  EXPECT_EQ(back.exposed_ms, m.exposed_ms);  // zero is a measurement, not "nothing measured"
  EXPECT_EQ(back.bytes_sent, m.bytes_sent);
  EXPECT_EQ(back.peak, m.peak);
}

TEST_F(Metrics, WhatWasNotMeasuredIsLeftOut) {
  MetricsWriter("m.jsonl").write(step(1, 2.0));
  EXPECT_EQ(read("m.jsonl"), "{\"step\":1,\"loss\":2.0}\n");
}

TEST_F(Metrics, NanIsWrittenAsNullAndReadAsNan) {
  MetricsWriter("m.jsonl").write(step(1, NAN));
  EXPECT_EQ(read("m.jsonl"), "{\"step\":1,\"loss\":null}\n");
  const auto all = read_metrics("m.jsonl");
  ASSERT_TRUE(all.at(0).loss.has_value());
  EXPECT_TRUE(std::isnan(*all[0].loss));
}

TEST_F(Metrics, ALineIsOnDiskWhenWriteReturns) {
  MetricsWriter writer("m.jsonl");
  writer.write(step(1, 2.0));
  EXPECT_EQ(read_metrics("m.jsonl").size(), 1U);
}

TEST_F(Metrics, AppendContinuesAndElseStartsAnew) {
  MetricsWriter("m.jsonl").write(step(1, 2.0));
  MetricsWriter("m.jsonl", true).write(step(2, 1.9));
  EXPECT_EQ(read_metrics("m.jsonl").size(), 2U);
  MetricsWriter("m.jsonl").write(step(1, 2.0));
  EXPECT_EQ(read_metrics("m.jsonl").size(), 1U);
}

TEST_F(Metrics, ALineCutShortIsDroppedAForeignOneIsNamed) {
  std::ofstream("m.jsonl") << "{\"step\":1,\"loss\":2.0}\n{\"step\":2,\"lo";
  EXPECT_EQ(read_metrics("m.jsonl").size(), 1U);
  std::ofstream("m.jsonl") << "{\"step\":1}\nhello\n{\"step\":3}\n";
  try {
    read_metrics("m.jsonl");
    FAIL() << "a foreign line was read";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "m.jsonl: line 2 is not a line of metrics: \"hello\".");
  }
}

TEST_F(Metrics, AFullDiskIsAnError) {
  MetricsWriter writer("/dev/full");
  EXPECT_THROW(writer.write(step(1, 2.0)), Error);
  EXPECT_THROW(MetricsWriter("no/such/folder/m.jsonl"), Error);
}

TEST_F(RunDirTest, TwoRunsInOneSecondGetTwoFoldersAndLatestIsTheSecond) {
  const RunDir first("zero1"), second("zero1");
  EXPECT_NE(first.path(), second.path());
  EXPECT_EQ(first.path().rfind("runs/zero1-", 0), 0U);
  EXPECT_TRUE(fs::is_symlink("runs/latest"));
  EXPECT_TRUE(fs::equivalent("runs/latest", second.path()));
  EXPECT_EQ(std::distance(fs::directory_iterator("runs"), {}), 3)
      << "two runs and the link, nothing left over";
}

TEST_F(RunDirTest, AnAskedFolderIsUsedAsItIs) {
  const RunDir run("zero1", "a/b");
  EXPECT_EQ(run.path(), "a/b");
  EXPECT_EQ(run.file("trace.json"), "a/b/trace.json");
  EXPECT_TRUE(fs::is_directory("a/b"));
  EXPECT_FALSE(fs::exists("runs"));
}

TEST_F(RunDirTest, AFolderThatCannotBeMadeIsAUsageError) {
  std::ofstream("file") << "in the way";
  EXPECT_THROW(RunDir("zero1", "file/run"), UsageError);
  EXPECT_THROW(RunDir("zero1", "file"), UsageError);
}

TEST_F(RunDirTest, ConfigHoldsFlagsHostAndMore) {
  const RunDir run("zero1", "here");
  run.write_config({{"ranks", "4"}, {"text", "with \"quotes\""}}, {{"parameters", "824,448"}});
  const auto config = nlohmann::json::parse(read("here/config.json"));
  EXPECT_EQ(config["program"], "zero1");
  EXPECT_EQ(config["flags"]["text"], "with \"quotes\"");
  EXPECT_EQ(config["run"]["parameters"], "824,448");
  for (const char* fact : {"CPU", "cores", "memory", "system", "compiler", "version"}) {
    EXPECT_FALSE(config["host"][fact].get<std::string>().empty()) << fact;
  }
}

}  // namespace
}  // namespace shardlings::run
