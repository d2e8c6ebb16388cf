// The comparisons that lesson tests use: they must see differences, and say what a learner needs to hear.
#include "lesson_test.hpp"

namespace shardlings::lesson {
namespace {

const std::vector<double> kWant{1, 2, 3, 5};

std::vector<double> scaled(double k) {
  std::vector<double> values;
  for (double x : kWant) values.push_back(k * x);
  return values;
}

// Rejects: a hint that is silent about, or wrong on, the mistakes seen most.
TEST(LessonHints, NameTheUsualMistakes) {
  EXPECT_EQ(difference_hint(scaled(4), kWant, 4), "4 times too large: summed but not averaged?");
  EXPECT_EQ(difference_hint(scaled(0.25), kWant, 4),
            "4 times too small: averaged where a sum is wanted, or divided twice?");
  EXPECT_EQ(difference_hint(scaled(2), kWant, 4), "twice too large: added twice?");
  EXPECT_EQ(difference_hint(scaled(0.5), kWant), "half of what it should be: is one of two parts missing?");
  EXPECT_EQ(difference_hint(scaled(-1), kWant), "the sign is wrong");
  EXPECT_EQ(difference_hint(scaled(0), kWant),
            "all zero: was nothing computed, or the result not written back?");
  EXPECT_EQ(difference_hint(scaled(7), kWant), "7 times too large");
  EXPECT_EQ(difference_hint({1, 2, 0, 0}, kWant), "zero from [2] on: is the tail left out?");
  EXPECT_EQ(difference_hint({2, 3, 5, 9}, kWant), "every value sits one place off: an index is off by one?");
  EXPECT_EQ(difference_hint({9, 1, 2, 3}, kWant), "every value sits one place off: an index is off by one?");
  EXPECT_EQ(difference_hint({1, NAN, 3, 5}, kWant),
            "1 NaN: memory that nobody wrote, or a result read before its wait()?");
  EXPECT_EQ(difference_hint({1, 2, 3, 4}, kWant), "");
  EXPECT_EQ(difference_hint(kWant, kWant), "");
}

// Rejects: a comparison that lets a last bit, a NaN or another length through.
TEST(LessonHints, ComparisonsSeeEveryDifference) {
  EXPECT_TRUE(same(kWant, kWant));
  EXPECT_FALSE(same({1, 2, 3, std::nextafter(5.0, 6.0)}, kWant));
  EXPECT_FALSE(same({1, 2, 3}, kWant));
  EXPECT_FALSE(same({1, 2, NAN, 5}, kWant));
  EXPECT_TRUE(close_to({1, 2, 3, 5.0004}, kWant, 1e-4));
  EXPECT_FALSE(close_to({1, 2, 3, 5.0006}, kWant, 1e-4));
  EXPECT_FALSE(close_to({1, 2, NAN, 5}, kWant, 1e-4));
}

TEST(LessonHints, FormulasSayByHowMuch) {
  EXPECT_TRUE(equals_formula(8, 8, "bytes"));
  EXPECT_STREQ(equals_formula(32, 8, "bytes", 4).message(),
               "bytes: measured 32, the formula says 8: 4 times the formula, once for each rank: nothing is "
               "shared out?");
  EXPECT_STREQ(equals_formula(9, 8, "bytes").message(), "bytes: measured 9, the formula says 8: 1 too many");
  EXPECT_STREQ(equals_formula(0, 8, "calls").message(),
               "calls: measured 0, the formula says 8: nothing was counted");
  EXPECT_STREQ(equals_formula(5, 0, "calls").message(),
               "calls: measured 5, the formula says 0: nothing was expected here");
}

// Rejects: results in another order than the ranks'.
TEST(LessonHints, ResultsComeInRankOrder) {
  const auto ranks = on_each_rank<int>(3, [](Rank& rank) { return 10 * rank.rank() + rank.size(); });
  EXPECT_EQ(ranks, (std::vector<int>{3, 13, 23}));
}

}  // namespace
}  // namespace shardlings::lesson
