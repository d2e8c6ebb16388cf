// AdamW on flat slices, norms, clipping, the schedule: the numbers of the literature, and any cut of the
// buffers gives the same bits.
#include <cmath>
#include <limits>

#include "data_fixture.hpp"
#include "train_fixture.hpp"

namespace shardlings {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void make_gradients(const Tensor& grads, std::uint64_t step) {
  for (i64 i = 0; i < grads.numel(); ++i)
    grads.set(i, normal(key_of({key_of("g"), step}), static_cast<std::uint64_t>(i)));
}

/// Values after three steps of a whole model, updated in pieces of `piece` elements of each unit.
std::vector<double> updated_in_pieces(DType dtype, i64 piece) {
  std::vector<double> result;
  on_one_rank([&](Rank& rank) {
    Gpt model(tiny_config(dtype));
    FlatModel flat(rank, model);
    AdamW adam(rank, {}, dtype, flat.size);
    for (std::size_t u = 0; u < flat.flats.size(); ++u)
      adam.initialize_master(flat.flats[u], 0, flat.flats[u].size, flat.offset[u]);
    for (std::uint64_t step = 0; step < 3; ++step) {
      make_gradients(flat.grads, step);
      adam.begin_step();
      for (std::size_t u = 0; u < flat.flats.size(); ++u) {
        for (i64 begin = 0; begin < flat.flats[u].size; begin += piece) {
          const i64 end = std::min(begin + piece, flat.flats[u].size);
          adam.step(flat.value(u).slice(begin, end), flat.grad(u).slice(begin, end),
                    flat.flats[u].part(begin, end), flat.offset[u] + begin, 1e-2, 0.7);
        }
      }
    }
    result = elements_of(flat.values);
  });
  return result;
}

// Rejects: fused or vectorized code whose last bits depend on where a loop begins, and a shard's master copy
// taken from rounded weights. ZeRO's equality to the bit stands on it.
TEST(AdamW, AnyCutGivesTheSameBits) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    const std::vector<double> whole = updated_in_pieces(dtype, 1 << 20);
    for (const i64 piece : {1, 7, 100, 1023})
      EXPECT_TRUE(updated_in_pieces(dtype, piece) == whole) << name_of(dtype) << " in pieces of " << piece;
  }
}

// Rejects: a master copy made from the rounded parameters, which has lost what it is kept for; values that
// are not its rounding.
TEST(AdamW, MasterCopyIsExact) {
  on_one_rank([](Rank& rank) {
    Gpt model(tiny_config(DType::bf16));
    Single single(rank, model, {});
    const FlatModel& flat = single.flat();
    i64 between = 0;
    const auto check = [&](bool initial) {
      for (const Segment& s : flat.segments) {
        for (i64 i = s.begin; i < s.end; ++i) {
          const auto exact = static_cast<float>(single.adam().master().get(i));
          ASSERT_EQ(flat.values.get(i), static_cast<double>(static_cast<float>(bf16(exact))));
          if (initial) {
            ASSERT_EQ(exact, static_cast<float>(s.parameter->initial(i - s.begin)));
          }
          between += flat.values.get(i) != static_cast<double>(exact) ? 1 : 0;
        }
      }
    };
    check(true);
    EXPECT_GT(between, 0) << "no value lies between two bf16 numbers: the test proves nothing";
    make_gradients(flat.grads, 0);
    single.end_step(1e-3);
    check(false);
  });
}

// Rejects: moments in the parameters' 16 bits, a master copy for fp32. The 16-bytes-per-parameter rule.
TEST(AdamW, StateBytes) {
  for (const auto& [dtype, bytes] : {std::pair{DType::f32, 8}, std::pair{DType::bf16, 12},
                                     std::pair{DType::f16, 12}, std::pair{DType::f64, 16}}) {
    on_one_rank([&, t = dtype, b = bytes](Rank& rank) {
      const AdamW adam(rank, {}, t, 1001);
      EXPECT_EQ(rank.memory.now(Category::optimizer), b * 1001) << name_of(t);
    });
  }
}

/// One parameter of n elements.
struct OneParameter {
  OneParameter(Rank& rank, i64 n, bool decay)
      : value(rank.memory, Category::parameters, DType::f64, {n}),
        grad(rank.memory, Category::gradients, DType::f64, {n}),
        adam(rank, {}, DType::f64, n),
        segments{{0, n, &parameter}} {
    parameter.decay = decay;
    value.zero();
    grad.zero();
  }
  void step(double rate, double scale = 1) {
    adam.begin_step();
    adam.step(value, grad, segments, 0, rate, scale);
  }
  Parameter parameter;
  Tensor value, grad;
  AdamW adam;
  std::vector<Segment> segments;
};

// Case C17. Rejects: no bias correction, a step count that stands still.
TEST(AdamW, ConstantGradientMovesByTheRate) {
  on_one_rank([](Rank& rank) {
    OneParameter p(rank, 2, false);
    p.grad.set(0, 0.5);
    p.grad.set(1, -300);
    for (i64 step = 1; step <= 200; ++step) {
      p.step(1e-3);
      ASSERT_NEAR(p.value.get(0), -1e-3 * static_cast<double>(step), 1e-7) << "step " << step;
      ASSERT_NEAR(p.value.get(1), 1e-3 * static_cast<double>(step), 1e-7) << "step " << step;
    }
    EXPECT_EQ(p.adam.steps(), 200);
  });
}

// Cases C18 and C19. Rejects: L2 in place of decay, decay where the parameter has none.
TEST(AdamW, DecayIsDecoupledAndOnlyWhereAsked) {
  on_one_rank([](Rank& rank) {
    for (const bool decay : {true, false}) {
      OneParameter p(rank, 1, decay);
      p.value.set(0, 1);
      p.step(0.01);
      EXPECT_NEAR(p.value.get(0), decay ? 0.999 : 1.0, 1e-12);
      EXPECT_EQ(p.adam.m().get(0), 0);
      EXPECT_EQ(p.adam.v().get(0), 0);
    }
    Gpt model(tiny_config());
    for (const Parameter* p : model.parameters())
      EXPECT_EQ(p->decay, p->full.size() == 2) << p->name << ": matrices and embeddings decay, nothing else";
  });
}

// Rejects: a scale that reaches one moment only.
TEST(AdamW, ScaleMultipliesTheGradient) {
  on_one_rank([](Rank& rank) {
    OneParameter scaled(rank, 1, true), plain(rank, 1, true);
    for (int step = 0; step < 3; ++step) {
      scaled.grad.set(0, 8.0 * (step + 1));
      plain.grad.set(0, 2.0 * (step + 1));
      scaled.step(1e-2, 0.25);
      plain.step(1e-2);
    }
    EXPECT_EQ(scaled.value.get(0), plain.value.get(0));
    EXPECT_EQ(scaled.adam.m().get(0), plain.adam.m().get(0));
    EXPECT_EQ(scaled.adam.v().get(0), plain.adam.v().get(0));
  });
}

TEST(AdamW, RefusesImpossibleSettings) {
  const auto refused = [](double AdamConfig::*member, double value, const char* name, const char* number) {
    AdamConfig config;
    config.*member = value;
    expect_refused([&] { check_adam(config); }, name, number);
  };
  refused(&AdamConfig::beta1, 1, "beta1", "1");
  refused(&AdamConfig::beta1, -0.1, "beta1", "-0.1");
  refused(&AdamConfig::beta2, kNan, "beta2", "nan");
  refused(&AdamConfig::eps, -1e-8, "eps", "-1e-08");
  refused(&AdamConfig::decay, kNan, "weight decay", "nan");
  refused(&AdamConfig::decay, HUGE_VAL, "weight decay", "inf");
  refused(&AdamConfig::clip, -1, "gradient clip", "-1");
  EXPECT_NO_THROW(check_adam({0, 0, 0, 0, 0}));
  on_one_rank([](Rank& rank) {
    AdamConfig config;
    config.beta2 = 2;
    expect_refused([&] { const AdamW adam(rank, config, DType::f32, 1); }, "beta2", "2");
  });
}

// Rejects: squares in float, parameters that another rank counts.
TEST(Norm, SumSquaresOfCountedSegments) {
  on_one_rank([](Rank& rank) {
    const Tensor g(rank.memory, Category::gradients, DType::f32, {10});
    for (i64 i = 0; i < 10; ++i) g.set(i, 1e20 * static_cast<double>(i));
    Parameter ours, other;
    other.counted = false;
    EXPECT_NEAR(sum_squares(g, {{0, 3, &ours}, {3, 6, &ours}, {6, 8, &other}, {8, 10, &ours}}) / 1e40,
                0 + 1 + 4 + 9 + 16 + 25 + 64 + 81, 1e-3);
    EXPECT_EQ(sum_squares(g, {{1, 10, &other}}), 0);
    EXPECT_EQ(sum_squares(g, {}), 0);
  });
}

// Rejects: scaling up, dividing by a norm of 0, a limit of 0 that stops training.
TEST(Norm, ClipFactor) {
  EXPECT_EQ(clip_factor(4, 1), 0.25);
  EXPECT_EQ(clip_factor(0.5, 1), 1);
  EXPECT_EQ(clip_factor(1, 1), 1);
  EXPECT_EQ(clip_factor(0, 1), 1);
  EXPECT_EQ(clip_factor(4, 0), 1);
  EXPECT_EQ(clip_factor(3.0000000001, 1), clip_factor(3, 1)) << "the last bits of a norm must not matter";
}

// Rejects: gradients that stay partial on each rank.
TEST(Norm, FinishGradientsAddsWhatOtherRanksHold) {
  run_ranks(3, [](Rank& rank) {
    Gpt model(tiny_config());
    const FlatModel flat(rank, model);
    Unit& head = *model.units.back();
    head.params.front().grad_sum = rank.world();
    for (i64 i = 0; i < flat.size; ++i) flat.grads.set(i, rank.rank() + 1);
    finish_gradients(head);
    EXPECT_EQ(head.params.front().grad.get(0), 1 + 2 + 3);
    EXPECT_EQ(head.params.back().grad.get(0), rank.rank() + 1) << "this one is whole already";
  });
}

// Rejects: an update with a gradient that is not finite, which would spoil every weight.
TEST(Single, BadGradientsTouchNothing) {
  on_one_rank([](Rank& rank) {
    TinyRun t(rank);
    make_gradients(t.single.flat().grads, 0);
    const std::vector<double> before = elements_of(t.single.flat().values);
    t.single.flat().grads.set(40, kNan);
    EXPECT_TRUE(std::isnan(t.single.end_step(1e-2)));
    EXPECT_TRUE(elements_of(t.single.flat().values) == before);
    EXPECT_EQ(t.single.adam().steps(), 0);
    EXPECT_EQ(first_bad_gradient(t.model), "gradient of wte.weight, element 40 is nan");
    EXPECT_EQ(first_bad_value(t.model), "");
  });
}

// Case C27. Rejects: a first step with rate 0, and a warm-up off by one.
TEST(Schedule, WarmsUpAndFalls) {
  const Schedule s{6e-4, 6e-5, 2000, 10'000};
  EXPECT_NEAR(s.rate(0), 2.9985e-7, 1e-11);
  EXPECT_NEAR(s.rate(1000), 3.0015e-4, 1e-8);
  EXPECT_EQ(s.rate(2000), 6e-4);
  EXPECT_NEAR(s.rate(6000), 3.3e-4, 1e-12);
  EXPECT_EQ(s.rate(10'000), 6e-5);
  EXPECT_EQ(s.rate(1'000'000), 6e-5);
  EXPECT_EQ((Schedule{1e-3, 1e-4, 0, 5}.rate(0)), 1e-3);
  EXPECT_EQ((Schedule{1e-3, 1e-4, 5, 5}.rate(5)), 1e-4);
}

TEST(Schedule, RefusesImpossibleOnes) {
  expect_refused([] { check_schedule({-1e-3, 0, 0, 1}); }, "learning rate", "-0.001");
  expect_refused([] { check_schedule({kNan, 0, 0, 1}); }, "learning rate", "nan");
  expect_refused([] { check_schedule({HUGE_VAL, 0, 0, 1}); }, "learning rate", "inf");
  expect_refused([] { check_schedule({1e-3, 2e-3, 0, 1}); }, "0.002", "0.001");
  expect_refused([] { check_schedule({1e-3, -1, 0, 1}); }, "minimum", "-1");
  expect_refused([] { check_schedule({1e-3, 0, 11, 10}); }, "11", "10");
  expect_refused([] { check_schedule({1e-3, 0, -1, 10}); }, "-1");
  EXPECT_NO_THROW(check_schedule({0, 0, 0, 1})) << "a rate of 0 is of no use, but possible";
}

}  // namespace
}  // namespace shardlings
