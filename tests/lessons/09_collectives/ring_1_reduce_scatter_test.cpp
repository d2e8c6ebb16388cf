// ring_reduce_scatter: value, memory, traffic, robustness.
#include "collectives_test.hpp"

namespace shardlings {
namespace {

using lesson::Layout;

/// This rank's values in its blocks, kGap elsewhere.
Tensor contribution(Rank& rank, const Layout& layout) {
  std::vector<double> values(static_cast<std::size_t>(layout.total), lesson::kGap);
  for (const Slice& b : layout.blocks) {
    for (i64 i = b.begin; i < b.end; ++i)
      values[static_cast<std::size_t>(i)] = lesson::value_of(rank.rank(), i);
  }
  return lesson::tensor_of(rank, values);
}

/// Whose block holds this rank's sums, if not its own: for the failure's message.
std::string where_is_it(const std::vector<double>& got, const Layout& layout, int ranks, int me) {
  for (int r = 0; r < ranks; ++r) {
    const Slice& b = layout.block(r);
    bool whole = b.size() > 0;
    for (i64 i = b.begin; i < b.end && whole; ++i)
      whole = got[static_cast<std::size_t>(i)] == lesson::sum_of(ranks, i);
    if (whole && r != me)
      return "rank " + std::to_string(me) + " has the whole sum of block " + std::to_string(r);
  }
  return "no block of rank " + std::to_string(me) + " is the whole sum: is a step missing, or a sum?";
}

// Value and robustness. Rejects: one step too few, sums that end on the neighbour, receiving over the own
// part, a send that is waited for before the receive is posted.
TEST(RingReduceScatter, LeavesTheSumOfItsBlockOnEachRank) {
  for (const bool buffered : {true, false}) {
    for (const int n : lesson::kRingSizes) {
      for (const Layout& layout : lesson::layouts(n)) {
        lesson::run_case(layout.name, n, buffered, [&](Rank& rank) {
          const Tensor x = contribution(rank, layout);
          ring_reduce_scatter(rank, rank.world(), x, layout.blocks);
          const Slice& b = layout.block(rank.rank());
          std::vector<double> wanted;
          for (i64 i = b.begin; i < b.end; ++i) wanted.push_back(lesson::sum_of(n, i));
          const std::vector<double> got = lesson::values_of(x);
          EXPECT_TRUE(lesson::same(lesson::values_of(x.slice(b.begin, b.end)), wanted))
              << where_is_it(got, layout, n, rank.rank());
        });
      }
    }
  }
}

// Robustness. Rejects: treating the buffer as one piece from the first block to the last.
TEST(RingReduceScatter, LeavesGapsAlone) {
  for (const int n : lesson::kRingSizes) {
    const Layout layout = lesson::layout_with_gaps(n);
    lesson::run_case(layout.name, n, true, [&](Rank& rank) {
      const Tensor x = contribution(rank, layout);
      ring_reduce_scatter(rank, rank.world(), x, layout.blocks);
      for (const Slice& b : layout.blocks) {
        EXPECT_EQ(x.get(b.begin - 1), lesson::kGap) << "element " << b.begin - 1 << " belongs to no block";
        EXPECT_EQ(x.get(b.end), lesson::kGap) << "element " << b.end << " belongs to no block";
      }
    });
  }
}

// Memory. Rejects: a copy of the whole buffer to receive into.
TEST(RingReduceScatter, NeedsOneBlockOfScratch) {
  for (const int n : {2, 3, 4, 8}) {
    for (const Layout& layout : {lesson::even_layout(103, n), lesson::layout_with_gaps(n)}) {
      lesson::run_case(layout.name, n, true, [&](Rank& rank) {
        const Tensor x = contribution(rank, layout);
        rank.memory.reset_peaks();
        const i64 before = rank.memory.now();
        ring_reduce_scatter(rank, rank.world(), x, layout.blocks);
        EXPECT_LE(rank.memory.peak() - before, 4 * layout.largest())
            << "bytes allocated; one block at a time arrives, and the largest has " << 4 * layout.largest();
        EXPECT_EQ(rank.memory.now(), before) << "something is still held after the call";
      });
    }
  }
}

// Traffic. Rejects: every rank sends all blocks to all (n - 1 messages of the whole buffer, or one to each
// rank), and more steps than n - 1. Each block leaves a rank once, but not its own.
TEST(RingReduceScatter, SendsEachBlockOnceButItsOwn) {
  for (const int n : lesson::kRingSizes) {
    for (const Layout& layout : {lesson::even_layout(103, n), lesson::layout_with_gaps(n)}) {
      lesson::run_case(layout.name, n, true, [&](Rank& rank) {
        ring_reduce_scatter(rank, rank.world(), contribution(rank, layout), layout.blocks);
        const i64 bytes = 4 * (layout.sum() - layout.block(rank.rank()).size());
        EXPECT_TRUE(lesson::equals_formula(rank.traffic.total(), bytes, "bytes sent"))
            << "each block leaves a rank once, and its own block never";
        EXPECT_TRUE(lesson::equals_formula(rank.traffic.calls["send"], n - 1, "messages sent"));
      });
    }
  }
}

// Robustness. Rejects: adding what has not arrived. While rank 1 is late, nothing of it is there.
TEST(RingReduceScatter, WaitsForALateRank) {
  lesson::run_case("rank 1 is late", 4, true, [](Rank& rank) {
    const Layout layout = lesson::even_layout(103, 4);
    const Tensor x = contribution(rank, layout);
    if (rank.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    ring_reduce_scatter(rank, rank.world(), x, layout.blocks);
    const Slice& b = layout.block(rank.rank());
    EXPECT_EQ(x.get(b.begin), lesson::sum_of(4, b.begin));
  });
}

}  // namespace
}  // namespace shardlings
