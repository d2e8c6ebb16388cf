// report.html as text: what is in it, what cannot break it, what it says without its chart library. How it
// looks is checked in a browser (tools/browser/check_report).
#include <gtest/gtest.h>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "run/report.hpp"

namespace shardlings::run {
namespace {

namespace fs = std::filesystem;

class ReportPage : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "shardlings.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    // A stand-in for the chart library, so that the tests need nothing that is fetched.
    fs::create_directories(folder_ + "/echarts");
    std::ofstream(folder_ + "/echarts/echarts.min.js") << "var echarts={version:'</script>'};";
    setenv("SHARDLINGS_DATA", folder_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("SHARDLINGS_DATA");
    fs::remove_all(folder_);
  }
  std::string page(const Report& report) {
    had_charts_ = write_report(folder_ + "/report.html", report);
    std::ifstream file(folder_ + "/report.html", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static nlohmann::json data(const std::string& page) {
    const std::string open = "<script type=\"application/json\" id=\"data\">";
    const auto begin = page.find(open) + open.size();
    return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  }
  std::string folder_;
  bool had_charts_ = false;
};

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST_F(ReportPage, HoldsTheRunsNumbers) {
  Report report;
  report.title = "ZeRO-1";
  std::vector<StepMetrics> metrics(2);
  metrics[0].step = 1;
  metrics[0].loss = 4.5;
  metrics[1].step = 2;
  metrics[1].loss = NAN;
  metrics[1].val_loss = 4.25;
  add_run(report, "4 ranks", metrics);
  Table table;
  table.bytes("sent", 65064960, 65064961);
  report.rows = table.rows();
  const auto d = data(page(report));
  EXPECT_EQ(d["loss"][0]["name"], "4 ranks: train");
  EXPECT_EQ(d["loss"][0]["points"], nlohmann::json::parse("[[1.0,4.5],[2.0,null]]"));
  EXPECT_EQ(d["loss"][1]["points"], nlohmann::json::parse("[[2.0,4.25]]"));
  EXPECT_EQ(d["rows"][0]["predicted"], "65,064,960");
  EXPECT_EQ(d["rows"][0]["verdict"], "different");
}

TEST_F(ReportPage, NeedsNoNetwork) {
  const std::string text = page({});
  EXPECT_EQ(text.find("src="), std::string::npos);
  EXPECT_EQ(text.find("http"), std::string::npos);
  EXPECT_TRUE(had_charts_);
}

TEST_F(ReportPage, NoTextOfARunCanEndAScript) {
  Report plain, hostile;
  hostile.title = "</title><script>alert(1)</script> /*DATA*/";
  hostile.samples = {{"</script>", "</script><!--<script> /*ECHARTS*/ \xff\xfe"}};
  const std::string text = page(hostile);
  EXPECT_EQ(count(text, "</script>"), count(page(plain), "</script>"));
  EXPECT_EQ(count(text, "<script"), count(page(plain), "<script"));
  EXPECT_EQ(data(text)["samples"][0]["title"], "</script>");
}

TEST_F(ReportPage, WithoutTheChartLibraryItIsWrittenAndSaysSo) {
  fs::remove_all(folder_ + "/echarts");
  page({});
  EXPECT_FALSE(had_charts_);
}

TEST_F(ReportPage, ALongTraceIsCutToItsLastWholeSteps) {
  RankRecord rank;
  for (int step = 0; step < 100; ++step) {
    const std::int64_t begin = step * 1'000'000;
    rank.events.push_back({Event::other, step_name(step), begin, begin + 999'000, Event::compute});
    for (int i = 0; i < 500; ++i) {
      rank.events.push_back({Event::forward, "f", begin + i * 1000, begin + i * 1000 + 900, Event::compute});
    }
  }
  Report report;
  report.ranks = {rank};
  const auto timeline = data(page(report))["timeline"];
  EXPECT_EQ(timeline["window"], "step 85 to step 99, the last that fit, of 100 recorded");
  EXPECT_EQ(timeline["steps"].size(), 15U);
  EXPECT_EQ(timeline["blocks"].size(), 15U * 500);
  EXPECT_EQ(timeline["blocks"][0][1], 0.0);  // the window begins at zero
}

TEST_F(ReportPage, AShortTraceIsDrawnWhole) {
  RankRecord rank;
  rank.events = {{Event::backward, "b", 1'000'000, 3'000'000, Event::compute},
                 {Event::wait, "w", 1'500'000, 2'000'000, Event::compute},
                 {Event::transfer, "t", 1'500'000, 2'500'000, Event::communication},
                 {Event::transfer, "u", 2'000'000, 3'500'000, Event::communication},
                 {Event::post, "mark", 1'000'000, 1'000'000, Event::compute}};
  Report report;
  report.ranks = {rank};
  const auto timeline = data(page(report))["timeline"];
  EXPECT_EQ(timeline["window"], "");
  EXPECT_EQ(timeline["rows"], nlohmann::json::parse(R"(["rank 0", "network", ""])"));
  EXPECT_EQ(timeline["blocks"], nlohmann::json::parse(R"([[0, 0.0, 2.0, "b", "backward"],
      [0, 0.5, 1.0, "w", "waiting"], [1, 0.5, 1.5, "t", "communication"], [2, 1.0, 2.5, "u", "communication"]])"));
}

TEST_F(ReportPage, ThinningMemoryKeepsThePeak) {
  RankRecord rank;
  for (int i = 0; i < 10000; ++i) rank.memory.push_back({i * 1000, {i == 5003 ? 999 : 1, 0, 0, 0, 0}});
  Report report;
  report.ranks = {rank};
  const auto samples = data(page(report))["memory"]["ranks"][0]["samples"];
  EXPECT_EQ(samples.size(), 1000U);
  i64 peak = 0;
  for (const auto& sample : samples) peak = std::max(peak, sample[1].get<i64>());
  EXPECT_EQ(peak, 999);
}

TEST_F(ReportPage, AnUnwritablePathIsAnError) {
  EXPECT_THROW(write_report(folder_ + "/no/report.html", {}), Error);
}

}  // namespace
}  // namespace shardlings::run
