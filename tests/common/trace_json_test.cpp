// Traces for Perfetto: tracks without overlaps, valid JSON, and the arithmetic of exposed communication.
#include <gtest/gtest.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "run/trace_json.hpp"

namespace shardlings::run {
namespace {

constexpr std::int64_t kMs = 1'000'000;

Event event(Event::Kind kind, std::int64_t begin_ms, std::int64_t end_ms, Event::Lane lane = Event::compute) {
  return {kind, name_of(kind), begin_ms * kMs, end_ms * kMs, lane};
}
Event transfer(std::int64_t begin_ms, std::int64_t end_ms) {
  return event(Event::transfer, begin_ms, end_ms, Event::communication);
}

std::vector<int> tracks(const std::vector<Event>& events, bool nested) {
  std::vector<const Event*> lane;
  for (const Event& e : events) lane.push_back(&e);
  return tracks_of(lane, nested);
}

TEST(Tracks, NestedSpansShareATrackWhereCallsNest) {
  const std::vector<Event> events{event(Event::forward, 0, 10), event(Event::wait, 2, 4),
                                  event(Event::wait, 4, 10), event(Event::backward, 10, 12)};
  EXPECT_EQ(tracks(events, true), (std::vector<int>{0, 0, 0, 0}));
}

TEST(Tracks, TransfersUnderWayAtOnceDoNot) {
  const std::vector<Event> events{transfer(0, 10), transfer(2, 4), transfer(3, 12), transfer(10, 11),
                                  transfer(5, 6)};
  EXPECT_EQ(tracks(events, false), (std::vector<int>{0, 1, 2, 0, 1}));
}

TEST(Tracks, PartialOverlapIsParted) {
  const std::vector<Event> events{event(Event::forward, 0, 10), event(Event::wait, 5, 15)};
  EXPECT_EQ(tracks(events, true), (std::vector<int>{0, 1}));
}

TEST(Tracks, OrderOfWritingDoesNotMatter) {
  // A wait is added when it ends, after what lies inside it.
  const std::vector<Event> events{event(Event::wait, 2, 4), event(Event::forward, 0, 10)};
  EXPECT_EQ(tracks(events, true), (std::vector<int>{0, 0}));
}

TEST(Exposure, IsWhatNoComputingCovers) {
  const std::vector<Event> events{event(Event::forward, 0, 10), event(Event::backward, 10, 30),
                                  transfer(20, 40), event(Event::wait, 30, 40),
                                  event(Event::optimizer, 40, 50)};
  const Exposure e = exposure_of(events);
  EXPECT_DOUBLE_EQ(e.communication, 20);
  EXPECT_DOUBLE_EQ(e.exposed, 10);
  EXPECT_DOUBLE_EQ(e.computing, 40);
  EXPECT_DOUBLE_EQ(e.total, 50);
  EXPECT_DOUBLE_EQ(e.share(), 0.5);
}

TEST(Exposure, AWaitInsideAPassCoversNothing) {
  const std::vector<Event> events{event(Event::forward, 0, 10), event(Event::wait, 4, 8), transfer(2, 7)};
  EXPECT_DOUBLE_EQ(exposure_of(events).exposed, 3);  // 4 to 7
}

TEST(Exposure, OverlappingTransfersCountOnce) {
  const std::vector<Event> events{transfer(0, 10), transfer(5, 15), transfer(5, 6),
                                  event(Event::forward, 12, 14)};
  const Exposure e = exposure_of(events);
  EXPECT_DOUBLE_EQ(e.communication, 15);
  EXPECT_DOUBLE_EQ(e.exposed, 13);
}

TEST(Exposure, AStepSpanIsNoComputing) {
  Event step = event(Event::other, 0, 20);
  step.what = step_name(3);
  EXPECT_TRUE(is_step(step));
  EXPECT_DOUBLE_EQ(exposure_of({step, transfer(5, 9)}).exposed, 4);
}

TEST(Exposure, NothingIsZero) {
  const Exposure e = exposure_of({});
  EXPECT_EQ(e.communication, 0);
  EXPECT_EQ(e.total, 0);
  EXPECT_EQ(e.share(), 0);
}

class TraceJson : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "shardlings.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  nlohmann::json written(const std::vector<RankRecord>& ranks) const {
    write_trace_json(folder_ + "/trace.json", ranks);
    std::ifstream file(folder_ + "/trace.json");
    return nlohmann::json::parse(file);
  }
  std::string folder_;
};

TEST_F(TraceJson, EveryRankIsAProcessWithNamedThreads) {
  std::vector<RankRecord> ranks(2);
  for (int r = 0; r < 2; ++r) {
    ranks[static_cast<std::size_t>(r)].rank = r;
    ranks[static_cast<std::size_t>(r)].events = {event(Event::forward, 100 + r, 110), transfer(105, 120)};
  }
  ranks[1].memory = {{107 * kMs, {1, 2, 3, 4, 5}}};
  const auto trace = written(ranks);
  std::map<std::pair<int, int>, std::string> threads;
  std::map<int, std::string> processes;
  std::vector<nlohmann::json> spans, counters;
  for (const auto& e : trace["traceEvents"]) {
    if (e["name"] == "thread_name") threads[{e["pid"], e["tid"]}] = e["args"]["name"];
    if (e["name"] == "process_name") processes[e["pid"]] = e["args"]["name"];
    if (e["ph"] == "X") spans.push_back(e);
    if (e["ph"] == "C") counters.push_back(e);
  }
  EXPECT_EQ(processes, (std::map<int, std::string>{{0, "rank 0"}, {1, "rank 1"}}));
  ASSERT_EQ(spans.size(), 4U);
  EXPECT_EQ(spans[0]["ts"], 0.0);  // the first event of all ranks is zero
  EXPECT_EQ(spans[0]["dur"], 10000.0);
  EXPECT_EQ(spans[2]["ts"], 1000.0);
  EXPECT_EQ(threads.at({1, spans[2]["tid"]}), "computing");
  EXPECT_EQ(threads.at({1, spans[3]["tid"]}), "communication");
  ASSERT_EQ(counters.size(), 1U);
  EXPECT_EQ(counters[0]["ts"], 7000.0);
  EXPECT_EQ(counters[0]["args"]["gradients"], 2);
}

TEST_F(TraceJson, SpansOfOneThreadNeverOverlapPartly) {
  RankRecord rank;
  for (int i = 0; i < 40; ++i) rank.events.push_back(transfer(i, i + 1 + (i * 7) % 11));
  std::map<int, std::vector<std::pair<double, double>>> by_thread;
  const auto trace = written({rank});
  for (const auto& e : trace["traceEvents"]) {
    if (e["ph"] == "X") by_thread[e["tid"]].emplace_back(e["ts"], e["dur"]);
  }
  EXPECT_GT(by_thread.size(), 1U);
  for (auto& [thread, spans] : by_thread) {
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i) {
      EXPECT_LE(spans[i - 1].first + spans[i - 1].second, spans[i].first) << "thread " << thread;
    }
  }
}

TEST_F(TraceJson, MarksAreInstantsAndNamesAreEscaped) {
  RankRecord rank;
  rank.events = {{Event::post, "all_reduce \"x\" \xff", 5, 5, Event::compute}};
  const auto trace = written({rank});
  const auto& mark = trace["traceEvents"].back();
  EXPECT_EQ(mark["ph"], "i");
  EXPECT_FALSE(mark.contains("dur"));
  EXPECT_EQ(mark["name"].get<std::string>().rfind("all_reduce \"x\"", 0), 0U);
}

TEST_F(TraceJson, NoRanksAndUnwritablePathsAreHandled) {
  EXPECT_TRUE(written({})["traceEvents"].empty());
  EXPECT_THROW(write_trace_json(folder_ + "/no/trace.json", {}), Error);
}

}  // namespace
}  // namespace shardlings::run
