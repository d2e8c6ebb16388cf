// Replays of traces made by hand, whose schedules can be computed on paper.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "run/schedule_replay.hpp"

namespace shardlings::run {
namespace {

constexpr std::int64_t kMs = 1'000'000;

struct Maker {
  RankRecord record;
  void mark(Event::Kind kind, const std::string& what, std::int64_t at) {
    record.events.push_back({kind, what, at * kMs, at * kMs, Event::compute});
  }
  void span(Event::Kind kind, const std::string& what, std::int64_t begin, std::int64_t end,
            Event::Lane lane = Event::compute) {
    record.events.push_back({kind, what, begin * kMs, end * kMs, lane});
  }
  /// A wait from `begin`, for a transfer that was under way from `from` to `to`.
  void wait(const std::string& what, std::int64_t begin, std::int64_t end, std::int64_t from,
            std::int64_t to) {
    span(Event::wait, what, begin, end);
    span(Event::transfer, what, from, to, Event::communication);
    mark(Event::done, what, end);
  }
};

/// 30 ms forward, 40 ms backward with a bucket of 15 ms after each 10 of them, no update. The program was
/// slow: each bucket was noticed `late` ms after its end or after the wait began.
RankRecord four_buckets(std::int64_t zero, std::int64_t late) {
  Maker m;
  m.span(Event::other, step_name(0), zero, zero + 100 + late);
  for (const int k : {1, 2, 3, 4}) m.mark(Event::post, "bucket #" + std::to_string(k), zero + 30 + 10 * k);
  std::int64_t at = zero + 70;
  for (const int k : {0, 1, 2, 3}) {
    const std::int64_t from = zero + 40 + 15 * k, until = std::max(at, from + 15) + late;
    m.wait("bucket #" + std::to_string(k + 1), at, until, from, from + 15);
    at = until;
  }
  return m.record;
}

// Rejects: transfers that overlap on the link, waits counted as computing, wake-ups that are thought to be
// part of the ideal, a measured time without them.
TEST(ScheduleReplay, BucketsOneAfterTheOther) {
  for (const std::int64_t late : {0, 5}) {
    const auto steps = replay_steps({four_buckets(1000, late), four_buckets(1000, late)});
    ASSERT_EQ(steps.size(), 1U);
    EXPECT_DOUBLE_EQ(steps[0].ideal, 100);
    EXPECT_DOUBLE_EQ(steps[0].serial, 130);
    EXPECT_DOUBLE_EQ(steps[0].measured, 100 + static_cast<double>(late));
  }
}

/// Computes `before` ms, adds up for 20 ms, computes 5 ms.
RankRecord one_sum(std::int64_t begin, std::int64_t before, std::int64_t from) {
  Maker m;
  m.span(Event::other, step_name(0), begin, from + 25);
  m.mark(Event::post, "sum #0", begin + before);
  m.wait("sum #0", begin + before, from + 20, from, from + 20);
  m.span(Event::optimizer, "update", from + 20, from + 25);
  m.span(Event::wait, "after the step", from + 26, from + 90);  // belongs to no step
  m.mark(Event::done, "after the step", from + 90);
  return m.record;
}

// Rejects: a transfer that starts before its last rank has posted, the wrong rank's computing, a rank that
// began late and is thought to have begun with the others.
TEST(ScheduleReplay, TheSlowestRankDecides) {
  const auto steps = replay_steps({one_sum(0, 10, 50), one_sum(20, 30, 50)});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_DOUBLE_EQ(steps[0].ideal, 75);
  EXPECT_DOUBLE_EQ(steps[0].serial, 35 + 20);
  EXPECT_DOUBLE_EQ(steps[0].measured, 75);
}

// Rejects: an endless replay of a trace that does not fit together.
TEST(ScheduleReplay, NamesWhatWasNotPosted) {
  RankRecord odd = one_sum(0, 10, 50);
  odd.events[1].what = "another #0";
  try {
    replay_steps({one_sum(0, 10, 50), odd});
    ADD_FAILURE() << "was replayed";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rank 0 waits for sum #0"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(replay_steps({}).empty());
  EXPECT_EQ(median_of({}, &StepSchedule::ideal), 0);
  EXPECT_EQ(median_of({{1, 9, 0}, {2, 7, 0}, {3, 8, 0}}, &StepSchedule::ideal), 8);
}

}  // namespace
}  // namespace shardlings::run
