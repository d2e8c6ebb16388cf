// ring_all_reduce: value for any count and number of ranks, memory, traffic, and what bf16 loses.
#include "collectives_test.hpp"

namespace shardlings {
namespace {

std::vector<double> values(int r, i64 count) {
  std::vector<double> all;
  for (i64 i = 0; i < count; ++i) all.push_back(lesson::value_of(r, i));
  return all;
}

std::vector<double> sums(int ranks, i64 count) {
  std::vector<double> all;
  for (i64 i = 0; i < count; ++i) all.push_back(lesson::sum_of(ranks, i));
  return all;
}

// Value and robustness. Rejects: blocks of count / n elements (the tail is not summed), an average, and
// whatever only works for many elements, few ranks or buffered sends.
TEST(RingAllReduce, InPlaceForAnyCountAndNumberOfRanks) {
  for (const bool buffered : {true, false}) {
    for (const int n : lesson::kRingSizes) {
      for (const i64 count : {1003, 64, 3, 0}) {
        lesson::run_case(std::to_string(count) + " elements", n, buffered, [&](Rank& rank) {
          const Tensor x = lesson::tensor_of(rank, values(rank.rank(), count));
          ring_all_reduce(rank, rank.world(), x, x, DType::f32);
          EXPECT_TRUE(lesson::same(lesson::values_of(x), sums(n, count), n))
              << "(all_reduce uses ring_reduce_scatter and ring_all_gather: make their tests green first)";
        });
      }
    }
  }
}

// Value. Rejects: summing in the caller's input.
TEST(RingAllReduce, OutOfPlaceLeavesTheInput) {
  for (const int n : lesson::kRingSizes) {
    for (const i64 count : {103, 2, 0}) {
      lesson::run_case(std::to_string(count) + " elements", n, false, [&](Rank& rank) {
        const Tensor in = lesson::tensor_of(rank, values(rank.rank(), count));
        const Tensor out(rank.memory, Category::communication, DType::f32, {count});
        ring_all_reduce(rank, rank.world(), in, out, DType::f32);
        EXPECT_TRUE(lesson::same(lesson::values_of(out), sums(n, count), n));
        EXPECT_TRUE(lesson::same(lesson::values_of(in), values(rank.rank(), count)))
            << "out of place, the input is the caller's and stays as it is";
      });
    }
  }
}

// Memory. Rejects: a second buffer as large as the first.
TEST(RingAllReduce, NeedsOneBlockOfScratch) {
  for (const int n : {2, 3, 4, 8}) {
    lesson::run_case("103 elements", n, true, [&](Rank& rank) {
      const Tensor x = lesson::tensor_of(rank, values(rank.rank(), 103));
      rank.memory.reset_peaks();
      const i64 before = rank.memory.now();
      ring_all_reduce(rank, rank.world(), x, x, DType::f32);
      EXPECT_LE(rank.memory.peak() - before, 4 * ((103 + n - 1) / n))
          << "bytes allocated; a ring needs room for one arriving block of n";
    });
  }
}

// Traffic. Rejects: everything to rank 0 and back, all to all, and the library's own all_reduce. With equal
// blocks the sum of both halves is 2 (n-1)/n of the tensor, on every rank.
TEST(RingAllReduce, SendsTwiceTheTensorWithoutTwoBlocks) {
  for (const int n : lesson::kRingSizes) {
    for (const i64 count : {1000, 103}) {
      lesson::run_case(std::to_string(count) + " elements", n, true, [&](Rank& rank) {
        const Tensor x = lesson::tensor_of(rank, values(rank.rank(), count));
        ring_all_reduce(rank, rank.world(), x, x, DType::f32);
        const lesson::Layout layout = lesson::even_layout(count, n);
        const i64 kept = layout.block(rank.rank()).size() + layout.block((rank.rank() + 1) % n).size();
        EXPECT_TRUE(
            lesson::equals_formula(rank.traffic.bytes["send"], 4 * (2 * count - kept), "bytes sent", n))
            << "each half sends all blocks but one";
        EXPECT_TRUE(lesson::equals_formula(rank.traffic.calls["send"], 2 * (n - 1), "messages sent"));
        EXPECT_EQ(rank.traffic.calls.size(),
                  rank.traffic.calls.count("send") + rank.traffic.calls.count("recv"))
            << "only send and recv are to be used here";
      });
    }
  }
}

constexpr i64 kBf16Count = 64;

/// 256 from rank 0 and 1 from each of the others: 263 on 8 ranks. From 256 on bf16 is even.
Tensor large_and_small(Rank& rank) {
  return lesson::tensor_of(rank, std::vector<double>(kBf16Count, rank.rank() == 0 ? 256 : 1), DType::bf16);
}

// Value. Rejects: partial sums in bf16 when fp32 was asked for. 256 + 1 is 256 again, seven times.
TEST(RingAllReduce, AddsBf16InFp32WhenAsked) {
  lesson::run_case("256 and seven times 1 in bf16, summed in f32", 8, true, [](Rank& rank) {
    const Tensor x = large_and_small(rank);
    ring_all_reduce(rank, rank.world(), x, x, DType::f32);
    EXPECT_TRUE(lesson::same(lesson::values_of(x), std::vector<double>(kBf16Count, 264)))
        << "263, rounded once at the end, is 264. Less means that ones were added to a large bf16 number and "
           "vanished";
  });
}

// Traffic. Rejects: gathering in fp32 what is rounded to bf16 afterwards: a third more bytes for nothing.
TEST(RingAllReduce, GathersInTheTypeOfTheResult) {
  lesson::run_case("bf16, summed in f32", 8, true, [](Rank& rank) {
    const Tensor x = large_and_small(rank);
    ring_all_reduce(rank, rank.world(), x, x, DType::f32);
    EXPECT_TRUE(lesson::equals_formula(rank.traffic.bytes["send"], 56 * 4 + 56 * 2, "bytes sent"))
        << "56 elements in f32 while they are summed, 56 in bf16 when they are gathered";
  });
}

}  // namespace
}  // namespace shardlings
