#include "run/timing.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace shardlings {
namespace {

// Rejects: the own time in place of the slowest rank's, the mean (one slow round in three), and a first round
// that counts. The late rank sleeps 20 ms, in the first round and the third 300 ms.
TEST(SecondsOf, IsTheMedianOfTheSlowestRank) {
  std::atomic<int> calls{0};
  run_ranks(3, [&](Rank& rank) {
    int round = 0;
    const double seconds = run::seconds_of(rank, rank.world(), 3, [&] {
      ++calls;
      const int ms = round == 0 || round == 2 ? 300 : 20;
      ++round;
      if (rank.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    });
    EXPECT_GE(seconds, 0.020);
    EXPECT_LT(seconds, 0.110) << "the mean of 20, 300 and 20 ms is 113 ms";
  });
  EXPECT_EQ(calls, 3 * 4) << "one round to warm up, three that count";
}

TEST(SecondsOf, NeedsARound) {
  EXPECT_THROW(run_ranks(1, [](Rank& rank) { run::seconds_of(rank, rank.world(), 0, [] {}); }), Error);
}

}  // namespace
}  // namespace shardlings
