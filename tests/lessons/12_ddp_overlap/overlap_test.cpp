// Buckets that travel during backward against one sum after it: the same bits, the same bytes, another order.
#include <fmt/format.h>

#include "lesson_test.hpp"
#include "overlap.hpp"
#include "small_model.hpp"

namespace shardlings {
namespace {

GptConfig small_config(bool tied = true) { return lesson::small_model(3, DType::f32, tied); }
using lesson::small_batch;

/// `micro_batches` of a rank in a step; ranks have different numbers of counted tokens.
std::vector<data::Batch> batches_of(i64 step, int rank, int ranks, i64 micro_batches) {
  std::vector<data::Batch> batches;
  for (i64 k = 0; k < micro_batches; ++k)
    batches.push_back(small_batch((step * ranks + rank) * micro_batches + k, 5 - (rank + k) % 4));
  return batches;
}

constexpr double kRate = 1e-2;

/// lesson::run_on, where ranks that do not call the same things are the fault to be found.
void run_on_saying(const std::string& hint, int ranks, const std::function<void(Rank&)>& body) {
  try {
    lesson::run_on(ranks, body);
  } catch (const Todo&) {
    throw;
  } catch (const Error& error) {
    ADD_FAILURE() << hint << "\n" << error.what();
  }
}

struct Seen {
  std::vector<double> losses, norms, weights;
};

/// Trains some steps with whatever strategy.
Seen train(Rank& rank, Gpt& model, Ddp& strategy, i64 steps, i64 micro_batches) {
  Seen seen;
  for (i64 step = 0; step < steps; ++step) {
    const run::GlobalStep result =
        step_over(rank, rank.world(), model, strategy,
                  batches_of(step, rank.rank(), rank.size(), micro_batches), step, kRate);
    seen.losses.push_back(result.loss);
    seen.norms.push_back(result.norm);
  }
  seen.weights = lesson::values_of(strategy.flat().values);
  return seen;
}

AdamConfig clipping() {
  AdamConfig adam;
  adam.clip = 2.5;  // acts in some steps and not in others
  return adam;
}

/// With the reference of the lesson before: one sum, after backward.
std::vector<Seen> plain(int ranks, i64 steps, i64 micro_batches, bool tied = true) {
  return lesson::on_each_rank<Seen>(ranks, [&](Rank& rank) {
    Gpt model(small_config(tied));
    Ddp ddp(rank, rank.world(), model, clipping());
    return train(rank, model, ddp, steps, micro_batches);
  });
}

std::vector<Seen> overlapped(int ranks, i64 steps, i64 micro_batches, i64 bucket_bytes, bool tied = true) {
  return lesson::on_each_rank<Seen>(ranks, [&](Rank& rank) {
    Gpt model(small_config(tied));
    OverlappedDdp ddp(rank, rank.world(), model, clipping(), bucket_bytes);
    return train(rank, model, ddp, steps, micro_batches);
  });
}

void expect_equal(const std::vector<Seen>& got, const std::vector<Seen>& want, const std::string& what) {
  const int ranks = static_cast<int>(got.size());
  for (std::size_t r = 0; r < got.size(); ++r) {
    const std::string where = fmt::format("{}, rank {} of {}", what, r, ranks);
    const double ratio = got[r].norms.at(0) / want[r].norms.at(0);
    EXPECT_TRUE(lesson::same(got[r].norms, want[r].norms))
        << where << ": norms before clipping. "
        << (std::isnan(ratio) ? "Was every Work waited for before the update?"
            : ranks > 1 && std::abs(ratio - ranks) < 1e-3
                ? "N times too large: was a bucket added up twice?"
                : "Was a bucket not added up, or sent before all of it was complete?");
    EXPECT_TRUE(lesson::same(got[r].losses, want[r].losses)) << where << ": losses";
    EXPECT_TRUE(lesson::same(got[r].weights, want[r].weights)) << where << ": weights at the end";
  }
}

constexpr i64 kUnitEach = 4, kHuge = 1 << 30;

// Value. Rejects: a last bucket that is lost because it never became full (the embedding, and so the tied
// head), overlaps, gaps.
TEST(Buckets, HaveEveryElementOnce) {
  const std::vector<i64> offsets{0, 100, 300, 330, 600};
  for (const i64 least : {1, 31, 200, 299, 10000}) {
    const std::vector<Bucket> buckets = cut_buckets(offsets, 601, least);
    i64 end = 601;
    for (const Bucket& b : buckets) {
      EXPECT_EQ(b.end, end) << "buckets of at least " << least << " elements: a bucket ends at " << b.end
                            << ", the one before it begins at " << end
                            << ". They come from the end of the gradients, which backward finishes first";
      end = b.begin;
    }
    EXPECT_EQ(end, 0) << "buckets of at least " << least << " elements: the first " << end
                      << " are in no bucket. Was the last one forgotten because it was not full?";
  }
}

// Value. Rejects: buckets that are closed too early or too late, and a cut inside a unit.
TEST(Buckets, AreFullWithWholeUnits) {
  const std::vector<i64> offsets{0, 100, 300, 330, 600};
  const auto begins = [&](i64 least) {
    std::vector<double> all;
    for (const Bucket& b : cut_buckets(offsets, 601, least)) all.push_back(static_cast<double>(b.begin));
    return all;
  };
  EXPECT_TRUE(lesson::same(begins(1), {600, 330, 300, 100, 0})) << "every unit is at least 1 element";
  EXPECT_TRUE(lesson::same(begins(31), {330, 100, 0})) << "units of 1 + 270, 30 + 200, and 100 elements";
  EXPECT_TRUE(lesson::same(begins(271), {330, 0})) << "the first is full with exactly 271 elements";
  EXPECT_TRUE(lesson::same(begins(10000), {0})) << "one bucket holds all, and is not full";
}

// Value, case C47: overlap on and off, three bucket sizes, 50 steps. Rejects: a bucket that is never added
// up, or twice; gradients that are used before they have arrived, or overwritten while they travel.
TEST(Overlap, ChangesNoBit) {
  for (const int ranks : {1, 2, 3}) {
    const std::vector<Seen> want = plain(ranks, 50, 1);
    for (const i64 bytes : {kUnitEach, i64{10000}, kHuge})
      expect_equal(overlapped(ranks, 50, 1, bytes), want, fmt::format("buckets of {} bytes", bytes));
  }
}

// Value: 8 ranks, and a head that has a table of its own, or the embedding's. Rejects: a table that is sent
// when the head is done with it, although the embedding still adds to it.
TEST(Overlap, TiedOrNot) {
  for (const bool tied : {true, false}) {
    for (const int ranks : {4, 8})
      expect_equal(overlapped(ranks, 3, 1, kUnitEach, tied), plain(ranks, 3, 1, tied),
                   tied ? "tied head" : "head of its own");
  }
}

// Value and order, case C04: 2 ranks with 4 micro-batches against one rank with 8. Rejects: sums that are
// sent after the first micro-batch, or after each: what later ones add is lost, or added up again.
TEST(Overlap, OneSumPerBucketAndStep) {
  constexpr i64 kSteps = 3;
  std::vector<Seen> both = lesson::on_each_rank<Seen>(2, [&](Rank& rank) {
    Gpt model(small_config());
    OverlappedDdp ddp(rank, rank.world(), model, clipping(), kUnitEach);
    Seen seen = train(rank, model, ddp, kSteps, 4);
    const auto buckets = static_cast<i64>(ddp.buckets().size());
    EXPECT_TRUE(lesson::equals_formula(rank.traffic.calls["all_reduce"], kSteps * (buckets + 2),
                                       "calls of all_reduce: one a bucket and step, and two for numbers"))
        << "a step has 4 micro-batches and " << buckets << " buckets";
    return seen;
  });
  EXPECT_TRUE(lesson::same(both[0].weights, both[1].weights, 2)) << "weights of rank 0 against rank 1's";
  lesson::run_on(1, [&](Rank& rank) {
    Gpt model(small_config());
    Single single(rank, model, clipping());
    for (i64 step = 0; step < kSteps; ++step) {
      std::vector<MicroBatch> all;
      i64 tokens = 0;
      for (const int r : {0, 1}) {
        for (const data::Batch& b : batches_of(step, r, 2, 4)) tokens += b.counted;
      }
      for (const int r : {0, 1}) {
        for (const data::Batch& b : batches_of(step, r, 2, 4))
          all.push_back(run::micro_batch_of(b, step, tokens, false));
      }
      const StepResult alone = train_step(rank, model, single, all, kRate);
      const auto at = static_cast<std::size_t>(step);
      EXPECT_NEAR(both[0].losses[at], alone.loss, 1e-6 * alone.loss)
          << "loss of step " << step << " against one rank with all 8 micro-batches";
      EXPECT_NEAR(both[0].norms[at], alone.norm, 1e-6 * alone.norm)
          << "norm of step " << step
          << " against one rank with all 8 micro-batches. Were gradients sent before "
          << "the last micro-batch had added to them?";
    }
  });
}

// Robustness, case C29: nobody calls after_backward on a rank without data. Rejects: no flush at the end of
// the step: this rank then sends nothing, and the others wait.
TEST(Overlap, ARankWithoutDataTakesPart) {
  std::vector<std::vector<double>> weights(2);
  const std::string hint =
      "rank 1 had no data, so backward never announced a unit to it: it must send all the same, with zeros. "
      "Is everything flushed at the end of the step?";
  run_on_saying(hint, 2, [&](Rank& rank) {
    Gpt model(small_config());
    OverlappedDdp ddp(rank, rank.world(), model, {}, kUnitEach);
    const std::vector<data::Batch> batches(rank.rank() == 0 ? 1 : 0, small_batch(0, 5));
    step_over(rank, rank.world(), model, ddp, batches, 0, kRate);
    weights[static_cast<std::size_t>(rank.rank())] = lesson::values_of(ddp.flat().values);
  });
  EXPECT_TRUE(lesson::same(weights[1], weights[0]))
      << "rank 1 had no data, and should have the weights of rank 0 after the step";
}

/// Forward and backward of all units but one.
void skipping(Rank& rank, Gpt& model, Strategy& strategy, const MicroBatch& mb, std::size_t skipped) {
  Saved saved(rank, mb, model.config.dtype);
  const std::size_t end = model.units.size();
  const Tensor x = model.forward({}, saved, strategy, 0, skipped);
  model.forward(x, saved, strategy, skipped + 1, end);
  const Tensor dx = model.backward({}, saved, strategy, skipped + 1, end);
  model.backward(dx, saved, strategy, 0, skipped);
}

// Robustness, case C30: a block is skipped on rank 1 only, or on both. Rejects: a bucket that is sent by the
// ranks that used the unit, or that is forgotten when nobody announces it.
TEST(Overlap, AnUnusedBlockContributesZeros) {
  constexpr std::size_t kSkipped = 2;
  const std::string hint =
      "a block took no part in the step: its gradient is zero, and zeros are a contribution. All ranks must "
      "post the same buckets in the same order";
  for (const bool everywhere : {false, true}) {
    for (const i64 bytes : {kUnitEach, i64{10000}}) {
      run_on_saying(hint, 2, [&](Rank& rank) {
        Gpt model(small_config());
        OverlappedDdp ddp(rank, rank.world(), model, {}, bytes);
        const MicroBatch mb = run::micro_batch_of(small_batch(rank.rank(), 5), 0, 10, true);
        ddp.begin_step();
        if (everywhere || rank.rank() == 1)
          skipping(rank, model, ddp, mb, kSkipped);
        else
          run_micro_batch(rank, model, mb, ddp);
        EXPECT_TRUE(std::isfinite(ddp.end_step(0)));
        const double sum = sum_squares(ddp.flat().grad(kSkipped), ddp.flat().flats[kSkipped].segments);
        const auto [all, ignored] = sums_over(rank, rank.world(), sum, 0);
        EXPECT_EQ(all, 2 * sum) << "the ranks do not hold the same sum of the skipped block";
        EXPECT_EQ(sum > 0, !everywhere) << (everywhere ? "nobody used the block" : "rank 0 used the block");
      });
    }
  }
}

// Order. Rejects: one sum after all of backward; buckets cut from the wrong end, so that none is complete
// before the end; a wait inside the hook, which stops backward until the bucket has arrived. On every rank.
TEST(Overlap, BucketsTravelDuringBackward) {
  for (const int ranks : {2, 4}) {
    lesson::run_on(ranks, [&](Rank& rank) {
      Gpt model(small_config());
      OverlappedDdp ddp(rank, rank.world(), model, {}, kUnitEach);
      ddp.begin_step();
      run_micro_batch(rank, model, run::micro_batch_of(small_batch(rank.rank(), 5), 0, 5 * ranks, true), ddp);
      ddp.end_step(kRate);
      std::string order;  // b: backward of a unit, p: a bucket was posted, d: one was waited for
      for (const Event& e : rank.trace.events()) {
        if (e.kind == Event::backward) order += 'b';
        if (e.kind == Event::post) order += 'p';
        if (e.kind == Event::done) order += 'd';
      }
      EXPECT_EQ(order, "bpbpbpbpbpddddd")
          << "rank " << rank.rank()
          << ": b = backward of a unit, p = a bucket posted, d = waited for; 5 units, "
          << "each a bucket. "
          << (order.find('p') > order.rfind('b') ? "All were posted after backward: nothing is hidden"
              : order.find('d') < order.rfind('b')
                  ? "A bucket was waited for in the middle of backward: nothing is hidden"
                  : "");
    });
  }
}

// Order. Rejects: a bucket that is sent when the first of its units is complete: the others are still
// written, while they travel.
TEST(Overlap, ABucketWaitsForItsLastUnit) {
  lesson::run_on(2,
                 [](Rank& rank) {
                   Gpt model(small_config());
                   OverlappedDdp ddp(rank, rank.world(), model, {}, 4 * parameter_count(model.config) / 2);
                   const std::size_t buckets = ddp.buckets().size();
                   ddp.begin_step();
                   run_micro_batch(rank, model, run::micro_batch_of(small_batch(rank.rank(), 5), 0, 10, true),
                                   ddp);
                   ddp.end_step(kRate);
                   EXPECT_EQ(buckets, 2U);
                   std::string order;
                   for (const Event& e : rank.trace.events()) {
                     if (e.kind == Event::backward) order += 'b';
                     if (e.kind == Event::post) order += 'p';
                   }
                   EXPECT_EQ(order, "bbbpbbp")
                       << "b = backward of a unit, p = a bucket posted. The first bucket is the head and "
                          "two blocks: it is complete after the third";
                 });
}

// Traffic. Rejects: buckets that travel twice, or everything once more at the end.
TEST(Overlap, SendsWhatDdpSends) {
  for (const int ranks : lesson::kRankCounts) {
    lesson::run_on(ranks, [&](Rank& rank) {
      Gpt model(small_config());
      OverlappedDdp ddp(rank, rank.world(), model, {}, kUnitEach);
      i64 want = 2 * (2 * 16 * (ranks - 1) / ranks);  // tokens and loss
      for (const Bucket& b : ddp.buckets()) want += 2 * 4 * (b.end - b.begin) * (ranks - 1) / ranks;
      train(rank, model, ddp, 1, 2);
      EXPECT_TRUE(lesson::equals_formula(rank.traffic.total(), want,
                                         "bytes sent: 2 (N-1)/N of each bucket, and four numbers", ranks));
    });
  }
}

// Memory. Rejects: buckets that are copies of the gradients. They are views: no byte more than plain DDP.
TEST(Overlap, BucketsAreNoCopies) {
  lesson::run_on(2, [](Rank& rank) {
    Gpt model(small_config());
    OverlappedDdp ddp(rank, rank.world(), model, {}, 10000);
    train(rank, model, ddp, 2, 2);
    EXPECT_TRUE(lesson::equals_formula(rank.memory.peak(Category::gradients),
                                       4 * parameter_count(model.config), "bytes of gradients", 2))
        << "a bucket is a slice of the gradients, in the same memory";
    EXPECT_LE(rank.memory.peak(Category::communication), 64);
  });
}

// Robustness: one rank is late with its backward, the others have posted long ago. Rejects: reading before
// waiting.
TEST(Overlap, OneRankIsLate) {
  const auto norms = lesson::on_each_rank<double>(3, [](Rank& rank) {
    Gpt model(small_config());
    OverlappedDdp ddp(rank, rank.world(), model, {}, kUnitEach);
    if (rank.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ddp.begin_step();
    run_micro_batch(rank, model, run::micro_batch_of(small_batch(rank.rank(), 5), 0, 15, true), ddp);
    return ddp.end_step(kRate);
  });
  for (const double norm : norms) {
    EXPECT_EQ(norm, norms[0]) << "ranks disagree on the norm"
                              << (std::isnan(norm)
                                      ? ". NaN: gradients were read while they were on their way. "
                                        "Was every Work waited for before the update?"
                                      : "");
  }
}

}  // namespace
}  // namespace shardlings
