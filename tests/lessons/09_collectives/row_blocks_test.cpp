// row_blocks: value, and counts that do not fit into 32 bits. Nothing is allocated.
#include "collectives_test.hpp"

namespace shardlings {
namespace {

// Rejects: places that are multiples of the own count, which is right only while all have the same number.
TEST(RowBlocks, LieOneAfterTheOther) {
  const std::vector<Slice> blocks = row_blocks({3, 0, 5, 1}, 10);
  ASSERT_EQ(blocks.size(), 4U);
  const i64 begins[] = {0, 30, 30, 80}, ends[] = {30, 30, 80, 90};
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(blocks[r].begin, begins[r])
        << "rank " << r << " begins where the rows of all ranks before it end";
    EXPECT_EQ(blocks[r].end, ends[r]) << "rank " << r;
  }
}

// Rejects: a product of two ints. The table is a real one (262,144 x 8,960); its row 239,674 ends at element
// 2,147,487,999, and int ends at 2,147,483,647.
TEST(RowBlocks, CountsBeyondTwoBillion) {
  const std::vector<Slice> blocks = row_blocks({239'674, 1, 22'469}, 8960);
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_EQ(blocks[1].end - 1, i64{2'147'487'999})
      << "the last element of row 239,674: was the product an int?";
  EXPECT_EQ(blocks[2].end, i64{2'348'810'240}) << "all elements: was the product an int?";
  EXPECT_EQ(row_blocks({300'000}, 8960)[0].end, i64{2'688'000'000})
      << "one rank with all: was the product an int?";
}

}  // namespace
}  // namespace shardlings
