#include "comm/bandwidth.hpp"

#include <gtest/gtest.h>

#include "comm/link.hpp"

namespace shardlings {
namespace {

// Rejects: a factor in the wrong column, (n-1)/n for an all_reduce, and 2 for a broadcast. The numbers are
// those of nccl-tests' doc/PERFORMANCE.md.
TEST(Bandwidth, FactorsAreThoseOfNcclTests) {
  const int ranks[] = {2, 4, 8};
  const double all_reduce[] = {1.0, 1.5, 1.75}, half[] = {0.5, 0.75, 0.875};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(bus_factor("all_reduce", ranks[i]), all_reduce[i]);
    EXPECT_EQ(bus_factor("reduce_scatter", ranks[i]), half[i]);
    EXPECT_EQ(bus_factor("all_gather", ranks[i]), half[i]);
    EXPECT_EQ(bus_factor("all_to_all", ranks[i]), half[i]);
    EXPECT_EQ(bus_factor("broadcast", ranks[i]), 1.0);
    EXPECT_EQ(bus_factor("send", ranks[i]), 1.0);
  }
  EXPECT_EQ(bus_factor("all_reduce", 1), 0.0) << "one rank sends nothing";
  EXPECT_EQ(bus_factor("broadcast", 1), 0.0) << "one rank sends nothing";
}

// Rejects: the size per rank where the total is meant (a column n times too small), and time in other units.
TEST(Bandwidth, IsTheWholeSizeOverTheTime) {
  EXPECT_EQ(algorithm_bandwidth(64'000'000, 0.5), 128e6);
  EXPECT_EQ(bus_bandwidth("all_reduce", 4, 64'000'000, 0.5), 192e6);
  EXPECT_EQ(bus_bandwidth("all_gather", 4, 64'000'000, 0.5), 96e6);
  EXPECT_EQ(algorithm_bandwidth(i64{5'000'000'000}, 1), 5e9) << "sizes above 32 bits";
}

// Rejects: a factor that does not belong to the link's cost model. Without latency, a transfer's bus
// bandwidth is the link's, for each operation and any number of ranks: that is what the factor is for.
TEST(Bandwidth, OfAModelledTransferIsTheLinks) {
  Link link = link_from("0,2.5");
  for (const char* operation : {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast"}) {
    for (const int ranks : {2, 3, 4, 8}) {
      const double seconds = transfer_seconds(link, operation, ranks, 1'000'000);
      EXPECT_NEAR(bus_bandwidth(operation, ranks, 1'000'000, seconds), 2.5e9, 1) << operation << " " << ranks;
    }
  }
}

// Rejects: a division by zero that prints "inf GB/s", and a silent factor for an operation that has none.
TEST(Bandwidth, RefusesWhatHasNone) {
  EXPECT_THROW(algorithm_bandwidth(1, 0), Error);
  EXPECT_THROW(bus_factor("barrier", 2), Error);
  EXPECT_THROW(bus_factor("all_reduce", 0), Error);
}

}  // namespace
}  // namespace shardlings
