// Types, memory and random numbers that everything else counts on.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random.hpp"
#include "core/tensor.hpp"
#include "core/trace.hpp"

namespace shardlings {
namespace {

// The nearest value of a 16-bit type by search over its neighbours, ties to the even bit pattern: slow, and
// plainly right.
template <class S>
std::uint16_t nearest_bits(float x) {
  const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const double magnitude = std::abs(static_cast<double>(x));
  std::uint16_t below = 0, above = std::is_same_v<S, f16>
                                       ? 0x7c00
                                       : 0x7f80;  // 0 and infinity; positive patterns are in order
  const double beyond = std::is_same_v<S, f16> ? 65536.0 : 0x1p128;  // what infinity stands for when rounding
  const auto value = [&](std::uint16_t bits) {
    S s;
    s.bits = bits;
    const auto f = static_cast<double>(static_cast<float>(s));
    return std::isinf(f) ? beyond : f;
  };
  while (above - below > 1) {
    const auto middle = static_cast<std::uint16_t>((below + above) / 2);
    (value(middle) <= magnitude ? below : above) = middle;
  }
  const double down = magnitude - value(below), up = value(above) - magnitude;
  const std::uint16_t best = down < up || (down == up && below % 2 == 0) ? below : above;
  return static_cast<std::uint16_t>(sign | best);
}

template <class S>
void expect_round_to_nearest_even() {
  std::vector<float> inputs = {0.0F,          -0.0F,        1.0F,          65504.0F,       65519.996F,
                               65520.0F,      1e-8F,        5.9604645e-8F, 2.9802322e-8F,  2.9802326e-8F,
                               6.1035156e-5F, 6.097555e-5F, 3.3895314e38F, 1.1754944e-38F, 1e-45F,
                               1.00390625F,   1.01171875F};
  for (std::uint64_t i = 0; i < 20000; ++i) {
    inputs.push_back(static_cast<float>(normal(5, i) * std::exp2(std::floor(uniform(6, i) * 60 - 30))));
  }
  for (float x : inputs) {
    for (float v : {x, -x}) ASSERT_EQ(S(v).bits, nearest_bits<S>(v)) << name_of(dtype_of<S>()) << " of " << v;
  }
}

TEST(DTypes, ConversionsRoundToNearestEven) {
  expect_round_to_nearest_even<f16>();
  expect_round_to_nearest_even<bf16>();
}

TEST(DTypes, EveryBitPatternSurvivesFloatAndNanStaysNan) {
  for (int i = 0; i < 65536; ++i) {
    f16 h;
    h.bits = static_cast<std::uint16_t>(i);
    bf16 b;
    b.bits = static_cast<std::uint16_t>(i);
    if (std::isnan(static_cast<float>(h)))
      ASSERT_TRUE(std::isnan(static_cast<float>(f16(static_cast<float>(h)))));
    else
      ASSERT_EQ(f16(static_cast<float>(h)).bits, i);
    if (std::isnan(static_cast<float>(b)))
      ASSERT_TRUE(std::isnan(static_cast<float>(bf16(static_cast<float>(b)))));
    else
      ASSERT_EQ(bf16(static_cast<float>(b)).bits, i);
  }
  EXPECT_TRUE(std::isnan(static_cast<float>(bf16(std::numeric_limits<float>::signaling_NaN()))));
  EXPECT_EQ(f16(std::numeric_limits<float>::infinity()).bits, 0x7c00);
  EXPECT_EQ(bf16(-std::numeric_limits<float>::infinity()).bits, 0xff80);
}

TEST(DTypes, UnknownNameSaysWhichAreKnown) {
  EXPECT_EQ(dtype_from("bf16"), DType::bf16);
  try {
    dtype_from("fp8");
    FAIL() << "fp8 was accepted";
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find("bf16"), std::string::npos);
  }
}

TEST(Ledger, ChargesByCategoryUntilTheLastCopyIsGone) {
  MemoryLedger ledger;
  Tensor part;
  {
    const Tensor a(ledger, Category::parameters, DType::f32, {10, 3});
    const Tensor b(ledger, Category::gradients, DType::bf16, {7});
    EXPECT_EQ(ledger.now(Category::parameters), 120);
    EXPECT_EQ(ledger.now(Category::gradients), 14);
    part = a.slice(2, 4);  // a view keeps all of it
  }
  EXPECT_EQ(ledger.now(), 120);
  EXPECT_EQ(ledger.peak(), 134);
  part = {};
  EXPECT_EQ(ledger.now(), 0);
  EXPECT_EQ(ledger.peak(Category::gradients), 14);
  ledger.reset_peaks();
  EXPECT_EQ(ledger.peak(), 0);
}

TEST(Ledger, NewMemoryIsNanAlsoWhenABlockIsHandedOutAgain) {
  MemoryLedger ledger;
  for (int round = 0; round < 2; ++round) {
    const Tensor t(ledger, Category::activations, DType::f32, {5});
    for (i64 i = 0; i < 5; ++i) EXPECT_TRUE(std::isnan(t.get(i))) << "round " << round;
    t.zero();
  }
}

#ifndef SHARDLINGS_SANITIZED  // the sanitizers' allocators stop the program at such a request
TEST(Ledger, OutOfMemoryNamesBytesAndCategories) {
  MemoryLedger ledger;
  const Tensor small(ledger, Category::optimizer, DType::f32, {25});
  try {
    const Tensor huge(ledger, Category::parameters, DType::f64, {i64{1} << 58});
    FAIL() << "2^61 bytes were handed out";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("2305843009213693952 bytes of parameters"), std::string::npos)
        << e.what();
    EXPECT_NE(std::string(e.what()).find("100 of optimizer"), std::string::npos) << e.what();
  }
  EXPECT_EQ(ledger.now(), 100);
}
#endif

TEST(Tensors, WithoutMemoryThrow) {
  const Tensor none;
  EXPECT_FALSE(none);
  EXPECT_THROW(none.zero(), Error);
}

TEST(Tensors, SlicesShareMemoryAndViewsKeepElements) {
  MemoryLedger ledger;
  const Tensor t(ledger, Category::activations, DType::f32, {4, 3});
  for (i64 i = 0; i < 12; ++i) t.set(i, static_cast<double>(i));
  const Tensor row = t.slice(2, 3).view({3});
  EXPECT_EQ(row.get(0), 6);
  row.set(1, 70);
  EXPECT_EQ(t.get(7), 70);
  EXPECT_THROW(t.view({5}), Error);
  EXPECT_THROW(t.slice(3, 5), Error);
  EXPECT_THROW(t.get(12), Error);
  EXPECT_THROW(t.data<double>(), Error);
}

TEST(Random, PhiloxMatchesTheKnownAnswerOfItsPaper) {
  const std::array<std::uint32_t, 4> want = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  EXPECT_EQ(philox(0, 0), want);
}

TEST(Random, HasNoStateAndTheRightMoments) {
  EXPECT_EQ(uniform(3, 17), uniform(3, 17));
  EXPECT_NE(key_of("wte.weight"), key_of("wpe.weight"));
  EXPECT_NE(key_of({1, 2}), key_of({2, 1}));
  EXPECT_EQ(random_bits(9, 6), philox(9, 1)[2]);
  double mean = 0, square = 0, low = 1, high = 0, uniform_mean = 0;
  constexpr int kCount = 100000;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double n = normal(42, i), u = uniform(43, i);
    mean += n / kCount, square += n * n / kCount, uniform_mean += u / kCount;
    low = std::min(low, u), high = std::max(high, u);
  }
  EXPECT_NEAR(mean, 0, 0.015);
  EXPECT_NEAR(square, 1, 0.02);
  EXPECT_NEAR(uniform_mean, 0.5, 0.005);
  EXPECT_TRUE(low >= 0 && high < 1);
}

TEST(Traces, SpansEndWhenTheyLeaveScopeAndNothingIsKeptWhilePaused) {
  Trace trace;
  {
    const auto span = trace.span(Event::forward, "block0");
    trace.mark(Event::post, "inside");
  }
  ASSERT_EQ(trace.events().size(), 2U);
  EXPECT_GE(trace.events()[0].end, trace.events()[1].begin);
  trace.recording = false;
  { const auto span = trace.span(Event::forward, "unseen"); }
  EXPECT_EQ(trace.events().size(), 2U);
}

TEST(Todos, NameFileAndLineBelowTheRepository) {
  try {
    fail_todo("/anywhere/exercises/00_x/a.hpp", 12, "do it");
    FAIL();
  } catch (const Todo& e) {
    EXPECT_STREQ(e.what(), "TODO exercises/00_x/a.hpp:12  do it");
  }
}

}  // namespace
}  // namespace shardlings
