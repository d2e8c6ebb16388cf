#pragma once
// What the tests of collectives share: numbers of ranks, layouts of blocks, and values whose sums are exact
// in any order.
#include "collectives.hpp"
#include "lesson_test.hpp"

namespace shardlings::lesson {

inline constexpr std::array kRingSizes{3, 1, 2, 4, 5, 8};
inline constexpr double kGap = -7;  // what stands in a gap before, and must stand there after

inline RunOptions with_sends(bool buffered) {
  RunOptions options = test_options();
  options.buffered_send = buffered;
  return options;
}

inline std::string name_of_sends(bool buffered) {
  return buffered ? "buffered sends" : "sends that end on receipt";
}

/// Runs ranks; a failure of the run (a deadlock, a message that does not fit) says in which case it came.
inline void run_case(const std::string& what, int ranks, bool buffered,
                     const std::function<void(Rank&)>& body) {
  const std::string text = what + ", " + std::to_string(ranks) + " ranks, " + name_of_sends(buffered);
  try {
    run_on(
        ranks,
        [&](Rank& rank) {
          SCOPED_TRACE(text);
          body(rank);
        },
        with_sends(buffered));
  } catch (const Error& error) {
    ADD_FAILURE() << text << ":\n" << error.what();
  }
}

struct Layout {
  std::string name;
  i64 total = 0;  // elements of the buffer
  std::vector<Slice> blocks;
  i64 sum() const {
    i64 n = 0;
    for (const Slice& b : blocks) n += b.size();
    return n;
  }
  i64 largest() const {
    i64 n = 0;
    for (const Slice& b : blocks) n = std::max(n, b.size());
    return n;
  }
  const Slice& block(int r) const { return blocks[static_cast<std::size_t>(r)]; }
};

inline Layout even_layout(i64 n, int ranks) {
  Layout layout{std::to_string(n) + " elements, shared evenly", n, {}};
  const i64 share = n / ranks, left_over = n % ranks;
  i64 begin = 0;
  for (int r = 0; r < ranks; ++r) {
    const i64 end = begin + share + (r < left_over ? 1 : 0);
    layout.blocks.push_back({begin, end});
    begin = end;
  }
  return layout;
}

/// Blocks of different sizes, the last rank's first, with two elements of gap before each and after all.
inline Layout layout_with_gaps(int ranks) {
  Layout layout{"unequal blocks in reverse order with gaps", 0,
                std::vector<Slice>(static_cast<std::size_t>(ranks))};
  i64 at = 2;
  for (int r = ranks - 1; r >= 0; --r) {
    const i64 count = (r * 3) % 5 + (r == 0 ? 4 : 0);
    layout.blocks[static_cast<std::size_t>(r)] = {at, at + count};
    at += count + 2;
  }
  layout.total = at;
  return layout;
}

inline std::vector<Layout> layouts(int ranks) {
  return {even_layout(103, ranks), even_layout(2, ranks), even_layout(0, ranks), layout_with_gaps(ranks)};
}

/// Element i on rank r: a whole number, so that sums are exact in any order.
inline double value_of(int r, i64 i) { return (r + 1) * 100 + static_cast<double>(i % 89); }

/// The sum of value_of over ranks.
inline double sum_of(int ranks, i64 i) {
  double sum = 0;
  for (int r = 0; r < ranks; ++r) sum += value_of(r, i);
  return sum;
}

}  // namespace shardlings::lesson
