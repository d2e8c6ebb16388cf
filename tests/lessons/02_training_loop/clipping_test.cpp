// The norm, clipping, and the order of a step: value, memory, order, robustness.
#include "run/train.hpp"
#include "training_test.hpp"

namespace shardlings {
namespace {

using namespace training_test;

// Value. Rejects: sums in float (infinite above 1.8e19, and wrong in the fourth digit for a million
// elements), a norm without the root.
TEST(GlobalNorm, IsTheLengthOfTheWholeGradient) {
  const std::vector<float> two = {3, -4};
  EXPECT_DOUBLE_EQ(global_norm(two.data(), 2), 5) << "of (3, -4). 25 is the square of it";
  const std::vector<double> one = {-7};
  EXPECT_DOUBLE_EQ(global_norm(one.data(), 1), 7) << "of one element";
  EXPECT_EQ(global_norm(one.data(), 0), 0) << "of no element";
  const std::vector<float> large(4, 1e25F);
  EXPECT_NEAR(global_norm(large.data(), 4) / 2e25, 1, 1e-6)
      << "of four times 1e25: the square of a float does not fit into a float";
  const std::vector<float> many(3'000'017, 0.1F);
  EXPECT_NEAR(global_norm(many.data(), 3'000'017), static_cast<double>(0.1F) * std::sqrt(3'000'017.0), 1e-6)
      << "of 3,000,017 times 0.1: probably summed in float, where small squares are lost beside a large sum";
}

// Value and robustness. Rejects: dividing by the norm always, also when it is 0; a limit of 0 that stops the
// training.
TEST(ClipScale, ActsAboveTheLimitOnly) {
  EXPECT_NEAR(clip_scale(4, 1), 0.25, 1e-7) << "norm 4, limit 1";
  EXPECT_EQ(clip_scale(0.5, 1), 1) << "norm 0.5 is below the limit 1: nothing is clipped. Scaled up "
                                      "to the limit?";
  EXPECT_EQ(clip_scale(1, 1), 1) << "norm 1 is not above the limit 1";
  EXPECT_EQ(clip_scale(0, 1), 1) << "norm 0: no division by it";
  EXPECT_EQ(clip_scale(4, 0), 1) << "a limit of 0 means no clipping";
}

// Value. Rejects: clipping each parameter by its own norm, clipping element by element, clipping nothing.
// After one step from zero, m is (1 - beta1) times the clipped gradient. (The weights would not show it:
// AdamW's first step is the same for a gradient of any size.)
TEST(EndStep, ClipsByTheNormOfTheWholeModel) {
  on_one_rank([](Rank& rank) {
    for (const double factor : {1e-3, 0.5, 30.0}) {
      Program program(rank, small_config(DType::f64));
      program.make_gradients(factor);
      const std::vector<double> g = lesson::values_of(program.trainer.flat.grads);
      double squares = 0;
      for (double x : g) squares += x * x;
      const double norm = std::sqrt(squares), scale = std::min(1.0, program.trainer.config.clip / norm);
      program.trainer.end_step(1e-3);
      const std::vector<double> m = lesson::values_of(program.trainer.m);
      double worst = 0;
      std::size_t where = 0;
      for (std::size_t i = 0; i < m.size(); ++i) {
        const double off = std::abs(m[i] - 0.1 * scale * g[i]);
        if (off > worst) worst = off, where = i;
      }
      double m_squares = 0;
      for (double x : m) m_squares += x * x;
      // Along the gradient: cosine 1 if all was multiplied by one number.
      double dot = 0;
      for (std::size_t i = 0; i < m.size(); ++i) dot += m[i] * g[i];
      const double cosine = dot / (std::sqrt(m_squares) * norm);
      EXPECT_LE(worst, 1e-7 * factor)
          << fmt::format("gradient norm {:.4g}, limit 1: the gradient must be multiplied by {:.4g}. ", norm,
                         scale)
          << (cosine < 1 - 1e-9
                  ? "Its direction changed: probably each parameter was clipped by its own norm, or each "
                    "element by its size. Clipping shortens the whole gradient, as one vector"
                  : fmt::format("It was multiplied by {:.4g}", 10 * m[where] / g[where]));
    }
  });
}

// Value. Rejects: a norm reported after clipping, which is never above the limit: a run that explodes then
// looks calm, and AdamW hides the rest.
TEST(EndStep, ReportsTheNormBeforeClipping) {
  on_one_rank([](Rank& rank) {
    Program program(rank);
    program.make_gradients(1);
    double squares = 0;
    for (double x : lesson::values_of(program.trainer.flat.grads)) squares += x * x;
    const double norm = program.trainer.end_step(1e-3);
    EXPECT_NEAR(norm / std::sqrt(squares), 1, 1e-6)
        << (std::abs(norm - 1) < 1e-3
                ? "the norm after clipping was reported; what happened is the norm before"
                : "the norm of the whole gradient is wanted");
  });
}

// Order. Rejects: an update before the norm of everything is known, and several updates in one step.
TEST(EndStep, NormThenOneUpdate) {
  on_one_rank([](Rank& rank) {
    Program program(rank);
    program.make_gradients(1);
    rank.trace.clear();
    program.trainer.end_step(1e-3);
    EXPECT_EQ(lesson::events_of(rank, Event::optimizer), (std::vector<std::string>{"global norm", "AdamW"}))
        << "one norm of the whole gradient, then one update: whoever updates first cannot clip";
  });
}

// Robustness. Rejects: an update with gradients that are not finite. One NaN would be in all weights after
// it, and in every checkpoint.
TEST(EndStep, BadGradientsTouchNothing) {
  on_one_rank([](Rank& rank) {
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), HUGE_VAL}) {
      Program program(rank);
      program.make_gradients(1);
      program.trainer.end_step(1e-3);
      const i64 steps = program.trainer.steps;
      const std::vector<double> w = lesson::values_of(program.trainer.flat.values),
                                m = lesson::values_of(program.trainer.m);
      program.make_gradients(1, 1);
      program.trainer.flat.grads.set(17, bad);
      EXPECT_FALSE(std::isfinite(program.trainer.end_step(1e-3)))
          << "the caller learns from the norm that the step is bad";
      EXPECT_TRUE(w == lesson::values_of(program.trainer.flat.values))
          << "one gradient was " << bad << ", and weights were changed: nothing can be saved from that";
      EXPECT_TRUE(m == lesson::values_of(program.trainer.m)) << "moments were changed by a bad gradient";
      EXPECT_EQ(program.trainer.steps, steps) << "a step that was not applied must not count";
    }
  });
}

// Memory. Rejects: a scaled copy of the gradients: 4 bytes for each parameter, for a moment, at the peak. All
// values are right with it.
TEST(EndStep, EightBytesAParameterAndNoMore) {
  on_one_rank([](Rank& rank) {
    Program program(rank);
    const i64 n = parameter_count(program.model.config);
    EXPECT_TRUE(lesson::equals_formula(rank.memory.now(Category::optimizer), 8 * n, "bytes of m and v"));
    program.make_gradients(1);
    rank.memory.reset_peaks();
    const i64 before = rank.memory.now();
    program.trainer.end_step(1e-3);
    EXPECT_TRUE(lesson::equals_formula(rank.memory.peak() - before, 0, "bytes that a step allocates"))
        << "probably a scaled copy of the gradients: multiply by the scale where they are used";
  });
}

// Robustness. Rejects: state that ranks share (a static variable): ranks are threads. Each trains alone.
TEST(EndStep, RanksDoNotDisturbOneAnother) {
  for (const int ranks : lesson::kRankCounts) {
    const auto trained = lesson::on_each_rank<std::vector<double>>(ranks, [](Rank& rank) {
      Program program(rank);
      for (std::uint64_t step = 0; step < 5; ++step) {
        program.make_gradients(step % 2 == 0 ? 1 : 1e-3, step);
        program.trainer.end_step(1e-2);
        std::this_thread::yield();
      }
      return lesson::values_of(program.trainer.flat.values);
    });
    for (const std::vector<double>& one : trained) {
      EXPECT_TRUE(lesson::same(one, trained.front()))
          << ranks << " ranks train alone, on the same gradients: is there a static variable?";
    }
    if (ranks > 1) continue;
    // The reference is the library's optimizer, on the same gradients.
    on_one_rank([&](Rank& rank) {
      Program program(rank);
      Gpt model(small_config());
      Single single(rank, model, {});
      for (std::uint64_t step = 0; step < 5; ++step) {
        program.make_gradients(step % 2 == 0 ? 1 : 1e-3, step);
        single.flat().grads.copy_from(program.trainer.flat.grads);
        single.end_step(1e-2);
      }
      EXPECT_TRUE(lesson::close_to(trained.front(), lesson::values_of(single.flat().values), 1e-5))
          << "after 5 steps, of which 3 were clipped, against the library's optimizer. Do the tests of the "
             "single gaps pass?";
    });
  }
}

// Value: all of it together, in f64, against the library on real steps.
TEST(EndStep, TrainsAsTheLibraryDoes) {
  on_one_rank([](Rank& rank) {
    Program program(rank, small_config(DType::f64));
    Gpt model(small_config(DType::f64));
    Single single(rank, model, {});
    const Schedule schedule{1e-2, 1e-3, 3, 15};
    for (i64 step = 0; step < 15; ++step) {
      const data::Batch batch = program.loader.next();
      const MicroBatch mb = run::micro_batch_of(batch, step, batch.counted, true);
      const StepResult yours =
          train_step(rank, program.model, program.trainer, {mb}, learning_rate(schedule, step));
      const StepResult wanted = train_step(rank, model, single, {mb}, schedule.rate(step));
      ASSERT_NEAR(yours.loss, wanted.loss, 1e-6 * wanted.loss)
          << "loss of step " << step << ". Do the tests of the single gaps pass?";
      ASSERT_NEAR(yours.norm, wanted.norm, 1e-5 * wanted.norm) << "norm of step " << step;
    }
  });
}

}  // namespace
}  // namespace shardlings
