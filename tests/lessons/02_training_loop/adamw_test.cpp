// The learning rate, and AdamW on flat arrays: value and robustness. The expected numbers come from the
// formulas, written here once more in double.
#include "kernels/ops.hpp"
#include "training_test.hpp"

namespace shardlings {
namespace {

using namespace training_test;

// Value. Rejects: a first step with rate 0, which is a wasted step that nobody notices; a warm-up that ends a
// step too early or too late.
TEST(LearningRate, WarmsUpFromAboveZero) {
  const Schedule s{6e-4, 6e-5, 2000, 600'000};
  EXPECT_GT(learning_rate(s, 0), 0)
      << "the rate of step 0 is 0: the first step computes all gradients and moves nothing. Probably: step / "
         "warmup where (step + 1) / (warmup + 1) is meant";
  const std::pair<i64, double> wanted[] = {
      {0, 6e-4 / 2001}, {1000, 6e-4 * 1001 / 2001}, {1999, 6e-4 * 2000 / 2001}, {2000, 6e-4}};
  for (const auto& [step, rate] : wanted) {
    EXPECT_NEAR(learning_rate(s, step), rate, 1e-12) << "at step " << step << ", with a warm-up of 2000";
  }
}

// Value. Rejects: a cosine measured from step 0 (the rate jumps where warm-up ends), one that goes down to 0
// and not to min, and one that rises again after the end.
TEST(LearningRate, FallsAlongHalfACosine) {
  const Schedule s{1e-3, 1e-4, 100, 1100};
  EXPECT_NEAR(learning_rate(s, 100), 1e-3, 1e-15)
      << "the rate jumps where warm-up ends: the cosine begins at `warmup`, not at step 0";
  EXPECT_NEAR(learning_rate(s, 350), 1e-4 + 9e-4 * (1 + std::cos(std::numbers::pi / 4)) / 2, 1e-15)
      << "after a quarter of the way";
  EXPECT_NEAR(learning_rate(s, 600), 5.5e-4, 1e-15) << "half-way lies the middle between max and min";
  EXPECT_NEAR(learning_rate(s, 1099), 1e-4, 1e-8) << "the last step has almost min";
  for (i64 step : {1100, 1101, 1600, 2100, 10'000}) {
    EXPECT_EQ(learning_rate(s, step), 1e-4)
        << "step " << step << " of 1100: after the end the rate stays min. A cosine that goes on rises again";
  }
}

// Robustness. Rejects: a division by 0 where there is no warm-up or nothing but warm-up.
TEST(LearningRate, EdgesOfTheSchedule) {
  EXPECT_EQ(learning_rate({1e-3, 1e-4, 0, 10}, 0), 1e-3) << "without warm-up the first step has max";
  EXPECT_NEAR(learning_rate({1e-3, 1e-4, 10, 10}, 9), 1e-3 * 10 / 11, 1e-15) << "nothing but warm-up";
  EXPECT_EQ(learning_rate({1e-3, 1e-4, 10, 10}, 10), 1e-4) << "nothing but warm-up, and then the end";
  EXPECT_EQ(learning_rate({1e-3, 1e-4, 0, 1}, 0), 1e-3) << "one step in all";
  EXPECT_EQ(learning_rate({2e-3, 2e-3, 0, 7}, 3), 2e-3) << "max = min: a constant rate";
  const i64 long_run = 3'000'000'000;
  EXPECT_NEAR(learning_rate({1e-3, 0, 0, long_run}, long_run / 2), 5e-4, 1e-12)
      << "more steps than an int can count";
}

/// The paper's algorithm, one element at a time, in double.
struct OneWeight {
  double w = 0, m = 0, v = 0;
  void step(double g, i64 t, const AdamConfig& c, double rate, double decay) {
    m = c.beta1 * m + (1 - c.beta1) * g;
    v = c.beta2 * v + (1 - c.beta2) * g * g;
    const double correct1 = 1 - std::pow(c.beta1, static_cast<double>(t)),
                 correct2 = 1 - std::pow(c.beta2, static_cast<double>(t));
    w = w - rate * decay * w - rate * (m / correct1) / (std::sqrt(v / correct2) + c.eps);
  }
};

template <class S>
void expect_the_formula(double tolerance) {
  const AdamConfig config;
  const std::vector<i64> sizes = {5, 1, 17, 2};
  const std::vector<bool> decay = {true, false, false, true};
  Flat<S> flat(sizes, decay);
  std::vector<OneWeight> wanted(flat.w.size());
  for (std::size_t i = 0; i < flat.w.size(); ++i) wanted[i].w = flat.w[i] = S(normal(key_of("w"), i));
  for (i64 t = 1; t <= 7; ++t) {
    const double rate = 1e-2 * static_cast<double>(t), scale = t % 2 == 0 ? 0.3 : 1;
    // Gradients of every size: element i has about 10^-(i mod 9).
    for (std::size_t i = 0; i < flat.g.size(); ++i) {
      const double size = std::pow(0.1, static_cast<double>(i % 9));
      flat.g[i] = S(size * normal(key_of({key_of("g"), static_cast<std::uint64_t>(t)}), i));
    }
    for (const Segment& s : flat.segments) {
      for (auto i = static_cast<std::size_t>(s.begin); i < static_cast<std::size_t>(s.end); ++i)
        wanted[i].step(scale * flat.g[i], t, config, rate, s.decay() ? config.decay : 0);
    }
    flat.update(config, rate, scale);
    const auto check = [&](const char* what, const std::vector<S>& got, double OneWeight::*member) {
      std::vector<double> want;
      want.reserve(wanted.size());
      for (const OneWeight& one : wanted) want.push_back(one.*member);
      EXPECT_TRUE(lesson::close_to(doubles(got), want, tolerance))
          << what << " after step " << t << ", in " << (sizeof(S) == 4 ? "float" : "double")
          << ". Elements 0 to 2 and the last 3 belong to no parameter and must stay as they are";
    };
    check("m", flat.m, &OneWeight::m);
    check("v", flat.v, &OneWeight::v);
    check("weights", flat.w, &OneWeight::w);
    if (testing::Test::HasFailure()) return;
  }
}

// Value. Rejects: any other formula; epsilon inside the root, which freezes weights with small gradients; a
// loop that runs past its segment.
TEST(AdamStep, EqualsTheFormulaInDouble) { expect_the_formula<double>(1e-13); }
TEST(AdamStep, EqualsTheFormulaInFloat) { expect_the_formula<float>(1e-5); }

// Value. Rejects: epsilon inside the root. With a gradient of 1e-6 the first step still moves by about the
// rate: AdamW does not care how large gradients are, as long as epsilon is small beside them.
TEST(AdamStep, SmallGradientsMoveAsFar) {
  Flat<double> flat({1}, {false});
  flat.g[3] = 1e-6;
  AdamConfig config;
  flat.update(config, 0.01);
  EXPECT_NEAR(flat.w[3], -0.01 / 1.01, 1e-9)
      << "a gradient of 1e-6 moved its weight by " << std::abs(flat.w[3])
      << " and not by rate / 1.01 = 0.0099: probably epsilon was added inside the root";
}

// Value, case C17. Rejects: moments that are not corrected; a step count that stays at 1 (updates 2.236 times
// too large for ever) or counts once for each parameter.
TEST(AdamStep, CountsOnceForAllParameters) {
  Flat<double> flat({1, 1}, {false, false});
  flat.g[3] = flat.g[4] = 0.5;
  const AdamConfig config;
  for (i64 step = 1; step <= 200; ++step) {
    const double before[] = {flat.w[3], flat.w[4]};
    flat.update(config, 1e-3);
    for (std::size_t p : {0U, 1U}) {
      const double moved = (before[p] - flat.w[3 + p]) / 1e-3;
      const char* cause = "but this one was too short: probably t is too large";
      if (moved > 1)
        cause = "but this one went too far: probably t stands still; at 1 it goes to 2.236 times";
      if (step == 1 && p == 0) cause = "also the first: probably the bias of the moments is not corrected";
      if (step == 1 && p == 1)
        cause = "and parameter 0 did: probably t counts once for each parameter, not once a step";
      ASSERT_NEAR(moved, 1, 1e-6) << fmt::format(
          "parameter {} of 2, step {}: with a constant gradient each step moves by the rate, {}", p, step,
          cause);
    }
  }
  EXPECT_EQ(flat.steps, 200) << "steps counts those applied, for all parameters together";
}

// Value, case C18. Rejects: L2 regularisation in place of decay: added to the gradient, it is divided by the
// root of v like any gradient, and the decay's size no longer matters.
TEST(AdamStep, DecayIsDecoupled) {
  Flat<double> flat({1}, {true});
  flat.w[3] = 1;
  AdamConfig config;
  config.decay = 0.1;
  flat.update(config, 0.01);
  EXPECT_NEAR(flat.w[3], 0.999, 1e-9)
      << "a weight of 1 without gradient, rate 0.01, decay 0.1: 0.999 is wanted"
      << (std::abs(flat.w[3] - 0.99) < 1e-6 ? "; 0.990 is Adam with L2: the decay went through the gradient"
                                            : "");
  EXPECT_EQ(flat.m[3], 0) << "decay is no gradient: m must not see it";
  EXPECT_EQ(flat.v[3], 0) << "decay is no gradient: v must not see it";
}

// Value, case C19. Rejects: decay of biases and gains. The rule of this course: matrices and both embeddings
// decay, nothing else does (nanoGPT: what has two dimensions).
TEST(AdamStep, DecaysMatricesOnly) {
  on_one_rank([](Rank& rank) {
    Program program(rank);
    const std::vector<double> before = lesson::values_of(program.trainer.flat.values);
    program.trainer.update(0.01, 1);  // with decay 0.1, and all gradients 0
    for (const Segment& s : program.trainer.flat.segments) {
      const bool matrix = s.parameter->full.size() == 2;
      for (i64 i = s.begin; i < s.end; ++i) {
        const double w = before[static_cast<std::size_t>(i)], now = program.trainer.flat.values.get(i);
        if (matrix) {
          ASSERT_NEAR(now, 0.999 * w, 1e-7)
              << s.parameter->name << " is a matrix: it decays to 0.999 of itself";
        } else {
          ASSERT_EQ(now, w) << s.parameter->name
                            << " is a bias or a gain and has no gradient: it must not change. Was "
                               "segment.decay() asked?";
        }
      }
    }
  });
}

// Value. The library's kernel, on whole models and slices, agrees to rounding: lessons to come use it.
// Rejects: what small examples miss, such as a loop that stops at 4096.
TEST(AdamStep, AgreesWithTheLibrarysKernel) {
  on_one_rank([](Rank& rank) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      Program program(rank, small_config(dtype));
      Trainer& t = program.trainer;
      const auto make = [&] { return Tensor(rank.memory, Category::optimizer, dtype, {t.flat.size}); };
      const Tensor w = make(), m = make(), v = make();
      w.copy_from(t.flat.values);
      m.zero();
      v.zero();
      for (i64 step = 1; step <= 3; ++step) {
        program.make_gradients(0.1, static_cast<std::uint64_t>(step));
        t.update(1e-2, 0.7);
        for (const Segment& s : t.flat.segments) {
          const double decay = s.decay() ? t.config.decay : 0;
          kernels::adamw({1e-2, t.config.beta1, t.config.beta2, t.config.eps, decay, step, 0.7}, s.begin,
                         s.end, w, t.flat.grads, m, v, {});
        }
      }
      const double tolerance = dtype == DType::f64 ? 1e-13 : 1e-6;
      EXPECT_TRUE(lesson::close_to(lesson::values_of(t.flat.values), lesson::values_of(w), tolerance))
          << "the weights of a model, " << name_of(dtype);
      EXPECT_TRUE(lesson::close_to(lesson::values_of(t.v), lesson::values_of(v), tolerance))
          << "v of a model, " << name_of(dtype);
    }
  });
}

}  // namespace
}  // namespace shardlings
