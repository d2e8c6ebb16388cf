// All ranks begin with the same weights, and not with the same dropout.
#include "ddp_test.hpp"

namespace shardlings {
namespace {

using namespace ddp_test;

/// Each rank draws weights of its own, as ranks do whose seeds differ: 1337 + rank.
void draw(const Tensor& values, int rank) {
  const std::uint64_t seed = 1337U + static_cast<std::uint64_t>(rank);
  for (i64 i = 0; i < values.numel(); ++i)
    values.set(i, 0.02 * normal(key_of({seed}), static_cast<std::uint64_t>(i)));
}

// Value, case C51. Rejects: no broadcast at all; a broadcast of the average, which is everywhere the same and
// nobody's model; parameters of one unit only.
TEST(Weights, AreRankZerosEverywhere) {
  for (const int ranks : lesson::kRankCounts) {
    std::vector<double> first;
    const auto weights = lesson::on_each_rank<std::vector<double>>(ranks, [&](Rank& rank) {
      Gpt model(small_config());
      Ddp ddp(rank, rank.world(), model, {});
      draw(ddp.flat().values, rank.rank());
      if (rank.rank() == 0) first = lesson::values_of(ddp.flat().values);
      ddp.share_weights();
      return lesson::values_of(ddp.flat().values);
    });
    for (std::size_t r = 0; r < weights.size(); ++r) {
      EXPECT_TRUE(lesson::same(weights[r], first, ranks))
          << "weights of rank " << r << " of " << ranks
          << " before step 0; wanted are those that rank 0 drew. Ranks that begin apart stay apart: the same "
             "gradient moves each from where it is";
    }
  }
}

// Value. Rejects: parameters without the master copy. The first update takes the weights from the master, and
// the ranks are apart again: one step too late to be seen in the weights before step 0.
TEST(Weights, OfSixteenBitsHaveAMaster) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const auto weights = lesson::on_each_rank<std::vector<double>>(3, [&](Rank& rank) {
      Gpt model(small_config(dtype));
      Ddp ddp(rank, rank.world(), model, {});
      draw(ddp.flat().values, rank.rank());
      draw(ddp.adam().master(), rank.rank());
      ddp.share_weights();
      ddp.begin_step();
      ddp.end_step(kRate);
      return lesson::values_of(ddp.flat().values);
    });
    for (std::size_t r = 1; r < weights.size(); ++r) {
      EXPECT_TRUE(lesson::same(weights[r], weights[0], 3))
          << name_of(dtype) << ": weights of rank " << r
          << " after one step without gradients, against rank 0's. AdamW writes the parameters from its "
             "master copy: was that one sent too?";
    }
  }
}

// Value, case C51. Rejects: micro-batches that are numbered on each rank from 0: the masks of dropout are a
// function of that number, so all ranks would drop the same activations.
TEST(Weights, AreTheSameAndDropoutIsNot) {
  const auto losses = lesson::on_each_rank<double>(4, [](Rank& rank) {
    GptConfig config = small_config();
    config.dropout = 0.5;
    Gpt model(config);
    // A group of its own for each rank, so that the step's loss is this rank's.
    const Communicator alone = rank.world().split(rank.rank(), 0);
    Ddp ddp(rank, alone, model, {});
    ddp.share_weights();
    // The same tokens everywhere; only the numbers of the micro-batches differ.
    data::Batch batch = small_batch(0, 5);
    batch.index = rank.rank();
    return step_over(rank, alone, model, ddp, {batch}, 0, 0).loss;
  });
  for (std::size_t r = 1; r < losses.size(); ++r) {
    EXPECT_NE(losses[r], losses[0])
        << "ranks 0 and " << r << " have the same tokens, the same weights, and exactly the same loss, with "
        << "dropout: both dropped the same activations. Is batch.index still the micro-batch's number in the "
           "whole run?";
  }
}

// Traffic. Rejects: sending the weights to each rank alone, or the sum of something: in a chain each rank but
// the last sends 4 bytes a parameter, once.
TEST(Weights, TravelOnce) {
  for (const int ranks : lesson::kRankCounts) {
    lesson::run_on(ranks, [&](Rank& rank) {
      Gpt model(small_config());
      Ddp ddp(rank, rank.world(), model, {});
      ddp.share_weights();
      const bool last = rank.rank() == ranks - 1;
      EXPECT_TRUE(lesson::equals_formula(rank.traffic.total(), last ? 0 : 4 * parameter_count(model.config),
                                         fmt::format("bytes sent by rank {}", rank.rank()), ranks));
    });
  }
}

}  // namespace
}  // namespace shardlings
