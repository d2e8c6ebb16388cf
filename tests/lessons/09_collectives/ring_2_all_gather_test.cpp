// ring_all_gather: value in place and out of place, gaps, traffic.
#include "collectives_test.hpp"

namespace shardlings {
namespace {

using lesson::Layout;

/// What all ranks must hold: rank r's values in block r, kGap elsewhere.
std::vector<double> gathered(const Layout& layout) {
  std::vector<double> values(static_cast<std::size_t>(layout.total), lesson::kGap);
  for (std::size_t r = 0; r < layout.blocks.size(); ++r) {
    const Slice& b = layout.blocks[r];
    for (i64 i = b.begin; i < b.end; ++i)
      values[static_cast<std::size_t>(i)] = lesson::value_of(static_cast<int>(r), i - b.begin);
  }
  return values;
}

/// This rank's block.
std::vector<double> own_values(const Layout& layout, int me) {
  std::vector<double> values;
  for (i64 i = 0; i < layout.block(me).size(); ++i) values.push_back(lesson::value_of(me, i));
  return values;
}

Tensor gap_everywhere(Rank& rank, const Layout& layout) {
  return lesson::tensor_of(rank, std::vector<double>(static_cast<std::size_t>(layout.total), lesson::kGap));
}

// Value and robustness. Rejects: the own block that is never put into out, a step too few, places computed
// from the counts of the ranks before (right while there are no gaps), gaps that are written.
TEST(RingAllGather, OutOfPlace) {
  for (const bool buffered : {true, false}) {
    for (const int n : lesson::kRingSizes) {
      for (const Layout& layout : lesson::layouts(n)) {
        lesson::run_case(layout.name, n, buffered, [&](Rank& rank) {
          const Tensor in = lesson::tensor_of(rank, own_values(layout, rank.rank()));
          const Tensor out = gap_everywhere(rank, layout);
          ring_all_gather(rank.world(), in, out, layout.blocks);
          EXPECT_TRUE(lesson::same(lesson::values_of(out), gathered(layout)))
              << lesson::kGap << " is what stood there before";
          EXPECT_TRUE(lesson::same(lesson::values_of(in), own_values(layout, rank.rank())))
              << "in was written";
        });
      }
    }
  }
}

// Value. Rejects: looking for the own block in the wrong place of out.
TEST(RingAllGather, InPlace) {
  for (const bool buffered : {true, false}) {
    for (const int n : lesson::kRingSizes) {
      for (const Layout& layout : lesson::layouts(n)) {
        lesson::run_case(layout.name, n, buffered, [&](Rank& rank) {
          const Tensor out = gap_everywhere(rank, layout);
          const Slice& b = layout.block(rank.rank());
          const Tensor in = out.slice(b.begin, b.end);
          for (i64 i = 0; i < b.size(); ++i) in.set(i, lesson::value_of(rank.rank(), i));
          ring_all_gather(rank.world(), in, out, layout.blocks);
          EXPECT_TRUE(lesson::same(lesson::values_of(out), gathered(layout)))
              << lesson::kGap << " is what stood there before";
        });
      }
    }
  }
}

// Traffic. Rejects: each rank sends its block to all others itself: the same bytes while blocks are equal,
// but its own block n - 1 times instead of each block once. All but that of the right neighbour, who sent it.
TEST(RingAllGather, PassesEachBlockOnOnce) {
  for (const int n : lesson::kRingSizes) {
    const Layout layout = lesson::layout_with_gaps(n);
    lesson::run_case(layout.name, n, true, [&](Rank& rank) {
      const Tensor in = lesson::tensor_of(rank, own_values(layout, rank.rank()));
      ring_all_gather(rank.world(), in, gap_everywhere(rank, layout), layout.blocks);
      const i64 bytes = 4 * (layout.sum() - layout.block((rank.rank() + 1) % n).size());
      EXPECT_TRUE(lesson::equals_formula(rank.traffic.total(), bytes, "bytes sent"))
          << "a rank passes on each block but that of its right neighbour";
      EXPECT_TRUE(lesson::equals_formula(rank.traffic.calls["send"], n - 1, "messages sent"));
    });
  }
}

}  // namespace
}  // namespace shardlings
