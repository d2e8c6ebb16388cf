// A step of many ranks against one rank that plays all of them: value, traffic, memory, order, robustness.
#include "ddp_test.hpp"

namespace shardlings {
namespace {

using namespace ddp_test;

void expect_equal_runs(const std::vector<Seen>& got, const Seen& want, const std::string& what) {
  const int ranks = static_cast<int>(got.size());
  for (std::size_t r = 0; r < got.size(); ++r) {
    const std::string where = fmt::format("{}, rank {} of {}", what, r, ranks);
    if (got[r].norms.empty()) continue;  // the ranks did not come to an end, and that was said
    EXPECT_TRUE(lesson::same(got[r].norms, want.norms))
        << where << ": norms before clipping" << norm_hint(got[r].norms[0], want.norms[0], ranks)
        << ". They show what AdamW hides: a gradient of the wrong size";
    EXPECT_TRUE(lesson::same(got[r].losses, want.losses))
        << where << ": losses. If the first is right, the gradients are not; if it is not, look at the "
        << "scale, 1 / (tokens of all ranks), and at the sum of the losses";
    EXPECT_TRUE(lesson::same(got[r].weights, want.weights)) << where << ": weights at the end, on bits";
  }
}

// Value: the proof of the lesson. N ranks with a micro-batch each against one rank that makes the same N
// gradients and adds them up in that order, bit for bit, dropout and clipping included. Rejects: gradients
// that are not added up, or averaged; clipping by this rank's own norm; a rate multiplied by N; masks of
// dropout that repeat on each rank.
TEST(Step, ManyRanksAreOneRankToTheBit) {
  AdamConfig adam;
  adam.clip = 2.5;  // acts in some steps and not in others
  for (const int ranks : lesson::kRankCounts) {
    std::vector<StepData> steps;
    for (i64 s = 0; s < 4; ++s) steps.push_back(one_each(s, ranks));
    expect_equal_runs(all_ranks(ranks, steps, adam), one_rank(steps, adam), "one micro-batch each");
  }
}

/// A model of one number: its loss is the sum of values, one for each counted token, and so is its gradient.
/// Rank 0 has 1 token and the sum 2, rank 1 has 3 and 14.
struct OneNumber : Strategy {
  explicit OneNumber(Rank& its_rank) : rank(its_rank) {}
  void begin_step() override { gradient = 0; }
  void after_backward(Unit& unit, const MicroBatch& mb) override {
    if (unit.index == 0) gradient += (rank.rank() == 0 ? 2 : 14) * mb.loss_scale;
  }
  double end_step(double rate) override {
    used_rate = rate;
    return gradient = sums_over(rank, rank.world(), gradient, 0).first;
  }
  Rank& rank;
  double gradient = 0, used_rate = 0;
};

// Value, case C02. Rejects: each rank dividing by its own tokens. Averaged over the ranks that is (2 + 14/3)
// / 2 = 3.3333; summed, 6.6667.
TEST(Step, EveryTokenWeighsTheSame) {
  const auto gradients = lesson::on_each_rank<double>(2, [](Rank& rank) {
    Gpt model(small_config());
    const FlatModel memory(rank, model);
    OneNumber strategy(rank);
    const run::GlobalStep result = step_over(rank, rank.world(), model, strategy,
                                             {small_batch(rank.rank(), rank.rank() == 0 ? 1 : 3)}, 0, kRate);
    EXPECT_EQ(result.tokens, 4) << "tokens of the step: 1 on rank 0 and 3 on rank 1";
    return strategy.gradient;
  });
  for (const double gradient : gradients) {
    EXPECT_NEAR(gradient, 4.0, 1e-12)
        << "rank 0 has 1 token and gradient 2, rank 1 has 3 tokens and 14: (2 + 14) / 4 = 4. "
        << (std::abs(gradient - 10.0 / 3) < 1e-9
                ? "3.3333 is the average of 2/1 and 14/3: each rank divided by its own tokens"
            : std::abs(gradient - 20.0 / 3) < 1e-9
                ? "6.6667 is 2/1 + 14/3: each rank divided by its own tokens"
                : "");
  }
}

// Value, case C28. Rejects: a rate that is scaled with the number of ranks behind the schedule's back.
TEST(Step, TheRateIsTheSchedules) {
  for (const int ranks : {1, 2, 4}) {
    lesson::run_on(ranks, [&](Rank& rank) {
      Gpt model(small_config());
      const FlatModel memory(rank, model);
      OneNumber strategy(rank);
      step_over(rank, rank.world(), model, strategy, {small_batch(rank.rank(), 5)}, 0, 0.125);
      EXPECT_EQ(strategy.used_rate, 0.125)
          << "the strategy was given another rate than the schedule's on " << ranks << " ranks";
    });
  }
}

// Value, case C02 with accumulation: 3 micro-batches on rank 0, 1 on rank 1, 2 on rank 2, all with different
// numbers of tokens. Rejects: dividing by the number of micro-batches or of ranks, tokens of the last
// micro-batch only.
TEST(Step, MicroBatchesAddUpBeforeRanksDo) {
  std::vector<StepData> steps;
  for (i64 s = 0; s < 3; ++s) {
    const i64 first = 6 * s;
    steps.push_back({{small_batch(first, 5), small_batch(first + 1, 1), small_batch(first + 2, 3)},
                     {small_batch(first + 3, 2)},
                     {small_batch(first + 4, 4), small_batch(first + 5, 5)}});
  }
  expect_equal_runs(all_ranks(3, steps), one_rank(steps), "3, 1 and 2 micro-batches");
}

// Robustness, case C29: 5 steps on rank 0, 4 on rank 1. The rule: who has nothing left takes part with zeros,
// and the divisor is the number of tokens that are there. Rejects: a rank that leaves when its data end, and
// so lets the others wait for ever; a divisor that counts absent micro-batches.
TEST(Step, ARankWithoutDataTakesPart) {
  std::vector<StepData> steps;
  for (i64 s = 0; s < 5; ++s) {
    steps.push_back(one_each(s, 2));
    if (s == 4) steps.back()[1].clear();
  }
  const std::string hint =
      "in the fifth step rank 1 has no data: it must make the same calls as rank 0, with zeros";
  expect_equal_runs(all_ranks(2, steps, {}, hint), one_rank(steps), "the fifth step has data on rank 0 only");
}

/// Forward and backward of all units but one, as a model with a layer switched off does it.
double skipping(Rank& rank, Gpt& model, Strategy& strategy, const MicroBatch& mb, std::size_t skipped) {
  Saved saved(rank, mb, model.config.dtype);
  const std::size_t end = model.units.size();
  Tensor x = model.forward({}, saved, strategy, 0, skipped);
  model.forward(x, saved, strategy, skipped + 1, end);
  const Tensor dx = model.backward({}, saved, strategy, skipped + 1, end);
  model.backward(dx, saved, strategy, 0, skipped);
  return saved.loss;
}

// Robustness, case C30: a block that took no part in the step, on rank 1 only, and on all ranks. Its gradient
// is zero there, and zeros are contributed. Rejects: leaving out what was not used: the ranks then disagree
// on what is added up.
TEST(Step, AnUnusedBlockContributesZeros) {
  constexpr std::size_t kSkipped = 2;
  const std::string hint =
      "a block took no part in the step: its gradient is zero, and zeros are a contribution. Whoever leaves "
      "something out disagrees with the others on what is added up";
  for (const bool everywhere : {false, true}) {
    run_on_saying(hint, 2, [&](Rank& rank) {
      Gpt model(small_config());
      Ddp ddp(rank, rank.world(), model, {});
      for (i64 step = 0; step < 2; ++step) {
        // The first step uses everything: its gradients would be the stale ones.
        const bool skip = step == 1 && (everywhere || rank.rank() == 1);
        const MicroBatch mb = run::micro_batch_of(small_batch(2 * step + rank.rank(), 5), step, 10, true);
        ddp.begin_step();
        if (skip)
          skipping(rank, model, ddp, mb, kSkipped);
        else
          run_micro_batch(rank, model, mb, ddp);
        const std::vector<double> mine = lesson::values_of(ddp.flat().grad(kSkipped));
        ddp.end_step(0);
        const std::vector<double> all = lesson::values_of(ddp.flat().grad(kSkipped));
        if (step == 0) continue;
        if (everywhere) {
          EXPECT_TRUE(lesson::same(all, std::vector<double>(all.size(), 0)))
              << "no rank used the block: its gradient is zero, not that of the step before";
        } else if (rank.rank() == 0) {
          EXPECT_TRUE(lesson::same(all, mine, 2))
              << "only this rank used the block: the sum over the ranks is its own gradient";
        }
      }
    });
  }
}

// Traffic. Rejects: collecting everybody's gradients to add them up here (every bit is right); a sum for each
// parameter; a sum for each micro-batch.
TEST(Step, OneSumOfAllGradients) {
  for (const int ranks : lesson::kRankCounts) {
    lesson::run_on(ranks, [&](Rank& rank) {
      Gpt model(small_config());
      Ddp ddp(rank, rank.world(), model, {});
      const i64 n = parameter_count(model.config);
      const i64 first = 2 * rank.rank();
      step_over(rank, rank.world(), model, ddp, {small_batch(first, 5), small_batch(first + 1, 3)}, 0, kRate);
      const i64 numbers = rank.traffic.calls["all_reduce"] - 1;
      EXPECT_TRUE(numbers == 1 || numbers == 2)
          << "all_reduce was called " << numbers + 1
          << " times: one for all gradients, one for the tokens and one for the loss are enough";
      const i64 small = 2 * 16 * (ranks - 1) / ranks;
      EXPECT_TRUE(
          lesson::equals_formula(rank.traffic.total() - numbers * small, 2 * 4 * n * (ranks - 1) / ranks,
                                 "bytes sent for gradients, 2 (N-1)/N of 4 bytes a parameter", ranks));
    });
  }
}

// Memory. Rejects: a copy of the gradients, or everybody's gradients side by side.
TEST(Step, NoMemoryBesideOneRanks) {
  lesson::run_on(4, [](Rank& rank) {
    Gpt model(small_config());
    Ddp ddp(rank, rank.world(), model, {});
    const i64 n = parameter_count(model.config);
    step_over(rank, rank.world(), model, ddp, {small_batch(rank.rank(), 5)}, 0, kRate);
    const auto peak = [&](Category c) { return rank.memory.peak(c); };
    EXPECT_TRUE(lesson::equals_formula(peak(Category::parameters), 4 * n, "bytes of parameters", 4));
    EXPECT_TRUE(lesson::equals_formula(peak(Category::gradients), 4 * n, "bytes of gradients", 4))
        << "all_reduce works in place: no copy is needed";
    EXPECT_TRUE(lesson::equals_formula(peak(Category::optimizer), 8 * n, "bytes of m and v", 4));
    EXPECT_LE(peak(Category::communication), 64) << "bytes for communication: a few numbers are enough";
  });
}

// Order. Rejects: an update before the sum has arrived; rank 0 is late, so nobody is lucky.
TEST(Step, SumThenUpdate) {
  lesson::run_on(
      2, [](Rank& rank) {
        Gpt model(small_config());
        Ddp ddp(rank, rank.world(), model, {});
        ddp.begin_step();
        run_micro_batch(rank, model, run::micro_batch_of(small_batch(rank.rank(), 5), 0, 10, true), ddp);
        if (rank.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const double norm = ddp.end_step(kRate);
        EXPECT_TRUE(std::isfinite(norm))
            << "the norm is " << norm
            << ": gradients were read while they were on their way. Where is the wait()?";
        std::int64_t summed = 0, updated = 0;
        for (const Event& e : rank.trace.events()) {
          if (e.kind == Event::done && e.what.rfind("all_reduce", 0) == 0) summed = e.begin;
          if (e.kind == Event::optimizer) updated = e.begin;
        }
        EXPECT_LT(summed, updated) << "AdamW began before the sum of the gradients was there";
      });
}

}  // namespace
}  // namespace shardlings
