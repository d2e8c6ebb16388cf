// my_slice: value (every element once, evenly) and robustness (sizes that do not divide, fewer elements than
// ranks, more elements than 32 bits can count).
#include "hello.hpp"
#include "lesson_test.hpp"

namespace shardlings {
namespace {

constexpr std::array<i64, 9> kElementCounts{0, 1, 2, 3, 5, 8, 64, 1000, 1003};

std::vector<Slice> slices_of(i64 n, int size) {
  std::vector<Slice> slices;
  for (int rank = 0; rank < size; ++rank) slices.push_back(my_slice(n, rank, size));
  return slices;
}

// Rejects: a tail that nobody owns, slices that overlap or leave a gap.
TEST(Slice, OwnsEveryElementOnce) {
  for (int size : lesson::kRankCounts) {
    for (i64 n : kElementCounts) {
      i64 next = 0;  // the first element that nobody owns yet
      for (const Slice& slice : slices_of(n, size)) {
        ASSERT_EQ(slice.begin, next) << n << " elements on " << size << " ranks: a slice begins at "
                                     << slice.begin << ", but the ones before it end at " << next;
        ASSERT_GE(slice.end, slice.begin)
            << n << " elements on " << size << " ranks: a slice ends before it begins";
        next = slice.end;
      }
      ASSERT_EQ(next, n) << n << " elements on " << size << " ranks: nobody owns the last " << n - next;
    }
  }
}

// Rejects: giving the rest to the last rank, and rounding every slice up, which leaves ranks without work.
TEST(Slice, SizesDifferByAtMostOne) {
  for (int size : lesson::kRankCounts) {
    for (i64 n : kElementCounts) {
      const std::vector<Slice> slices = slices_of(n, size);
      const auto [least, most] = std::minmax_element(
          slices.begin(), slices.end(), [](const Slice& a, const Slice& b) { return a.size() < b.size(); });
      ASSERT_LE(most->size() - least->size(), 1)
          << n << " elements on " << size << " ranks: one has " << most->size() << ", another only "
          << least->size() << "; all wait for the slowest";
    }
  }
}

// Rejects: counting in int. A 7-billion-parameter model has 7e9 elements; int ends at 2147483647.
TEST(Slice, CountsBeyondTwoBillion) {
  const i64 n = 7'000'000'001;
  const std::vector<Slice> slices = slices_of(n, 8);
  EXPECT_EQ(slices.back().end, n) << "7,000,000,001 elements: was one of the numbers an int?";
  i64 owned = 0;
  for (const Slice& slice : slices) owned += slice.size();
  EXPECT_EQ(owned, n) << "7,000,000,001 elements: was one of the numbers an int?";
}

}  // namespace
}  // namespace shardlings
