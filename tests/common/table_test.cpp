// predicted | measured: verdicts, and text that lines up.
#include <gtest/gtest.h>
#include <cmath>

#include "run/table.hpp"

namespace shardlings::run {
namespace {

TEST(Table, BytesMustBeEqualToTheByte) {
  Table table;
  table.bytes("optimizer", 21688320, 21688320);
  EXPECT_TRUE(table.all_equal());
  table.bytes("sent", 9007199254740000, 9007199254740001);  // one byte of nine petabytes
  EXPECT_FALSE(table.all_equal());
}

TEST(Table, ValuesAreJudgedWithinTheirToleranceOrNotAtAll) {
  Table table;
  table.value("step", 10, 10.9, "ms", 0.1);
  EXPECT_TRUE(table.all_equal());
  table.value("step", 10, 25, "ms");  // shown only
  table.measured("speed", 12, "tokens/s");
  EXPECT_TRUE(table.all_equal());
  table.value("step", 10, 11.1, "ms", 0.1);
  EXPECT_FALSE(table.all_equal());
}

TEST(Table, NanEqualsNothing) {
  Table table;
  table.value("loss", 1, NAN, "nats", 0.5);
  EXPECT_FALSE(table.all_equal());
}

TEST(Table, TextLinesUpAndNamesWhatDiffers) {
  Table table;
  table.bytes("Ψ parameters", 43376640, 43376640);
  table.count("calls", 4, 5);
  table.measured("speed", 61234.56, "tokens/s");
  EXPECT_EQ(table.text(),
            "               predicted |   measured\n"
            "Ψ parameters  43,376,640 | 43,376,640  B        ✓\n"
            "calls                  4 |          5  calls    ✗\n"
            "speed                    |   61,234.6  tokens/s\n"
            "calls: measured 1 calls more than predicted.\n");
}

TEST(Table, NumbersAreGrouped) {
  EXPECT_EQ(number_text(0, true), "0");
  EXPECT_EQ(number_text(999, true), "999");
  EXPECT_EQ(number_text(1000, true), "1,000");
  EXPECT_EQ(number_text(-1234567, true), "-1,234,567");
  EXPECT_EQ(number_text(0.012345, false), "0.01235");
  EXPECT_EQ(number_text(1234.56, false), "1,234.6");
  EXPECT_EQ(number_text(NAN, false), "nan");
}

}  // namespace
}  // namespace shardlings::run
