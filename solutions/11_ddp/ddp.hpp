#pragma once
// Data parallelism, as plain as it can be: every rank holds the whole model, takes its share of each step's
// sequences, and all add up their gradients once, after backward. Left out: hiding that sum behind backward,
// which is the next lesson.
#include <algorithm>

#include "core/random.hpp"
#include "data/shuffle.hpp"
#include "run/train.hpp"

namespace shardlings {

/// One pass over a set of samples 0 .. samples - 1.
struct Epoch {
  i64 samples = 0;
  i64 number = 0;          ///< from 0
  std::uint64_t seed = 1;  ///< of the run
};

/// An epoch is an order of its samples; places [begin, end) of that order are dealt out to `ranks` ranks like
/// cards, the first to rank 0, the second to rank 1, …; returns those of `rank`, in order. Taken over all
/// ranks, nobody's sample is missing and none is there twice, also where the ranks do not divide their
/// number. Another epoch or another seed is another order, and all ranks know it without asking. Useful:
///   data::shuffled(i, n, key)     // the sample at place i (0 <= i < n) of permutation `key` of n samples
///   key_of({a, b})                // one key from std::uint64_t numbers; cast an i64
inline std::vector<i64> my_samples(const Epoch& epoch, i64 begin, i64 end, int rank, int ranks) {
  // SOLUTION BEGIN my_samples
  const std::uint64_t key = key_of({epoch.seed, static_cast<std::uint64_t>(epoch.number)});
  std::vector<i64> mine;
  for (i64 place = begin + rank; place < end; place += ranks)
    mine.push_back(data::shuffled(place, epoch.samples, key));
  return mine;
  // SOLUTION STUB (void)epoch, (void)begin, (void)end, (void)rank, (void)ranks;
  // SOLUTION STUB LAB_TODO("an order that all ranks agree on; then every ranks-th place, without padding");
  // SOLUTION END
}

/// A rank's micro-batch of a step, as the programs of this part deal them out: a step takes the next `batch`
/// places of the epoch, the last one of an epoch what is left of it. None when no card is left for this rank.
inline std::vector<data::Batch> my_batches(const data::Loader& loader, i64 batch, std::uint64_t seed,
                                           i64 step, int rank, int ranks) {
  const i64 n = loader.windows(), steps = (n + batch - 1) / batch;
  const Epoch epoch{n, step / steps, seed};
  const i64 begin = step % steps * batch, end = std::min(begin + batch, n);
  std::vector<i64> ids = my_samples(epoch, begin, end, rank, ranks);
  if (ids.empty()) return {};
  for (i64& id : ids) id += epoch.number * n;
  return {loader.samples(step * ranks + rank, ids)};
}

/// The sums of two numbers over all ranks, the same on each: what hello_ranks did, for a pair, in f64.
inline std::pair<double, double> sums_over(Rank& rank, const Communicator& comm, double a, double b) {
  const Tensor both(rank.memory, Category::communication, DType::f64, {2});
  both.set(0, a);
  both.set(1, b);
  comm.all_reduce(both).wait();
  return {both.get(0), both.get(1)};
}

/// The mean of `count` numbers on each rank, over all of them: an accuracy, a validation loss. `sum` is what
/// this rank's numbers add up to. Ranks may have different counts, and none at all. Useful: sums_over.
inline double mean_over(Rank& rank, const Communicator& comm, double sum, i64 count) {
  // SOLUTION BEGIN mean_over
  const auto [all, counts] = sums_over(rank, comm, sum, static_cast<double>(count));
  return all / counts;
  // SOLUTION STUB (void)rank, (void)comm, (void)sum, (void)count;
  // SOLUTION STUB LAB_TODO("one division, after everything has been added up");
  // SOLUTION END
}

/// One optimizer step of all ranks of `comm`. `batches` are this rank's micro-batches: it may have fewer of
/// them than the others, even none, and takes part all the same. batch.counted is how many of its targets
/// count. Every counted token of the step weighs the same, on whichever rank it is: losses are scaled by 1 /
/// (tokens of the step, over all ranks) before backward, so that all that follows are plain sums. Returns the
/// step's loss and tokens over all ranks, and the norm that the strategy reports. Useful:
///   sums_over(rank, comm, a, b).first                 // a double; tokens is an i64
///   MicroBatch m = run::micro_batch_of(batch, step, tokens, last)   // `last`: this rank's last of the step
///   train_step(rank, model, strategy, micro_batches, rate)   // {loss, norm}; loss is this rank's share
inline run::GlobalStep step_over(Rank& rank, const Communicator& comm, Gpt& model, Strategy& strategy,
                                 const std::vector<data::Batch>& batches, i64 step, double rate) {
  // SOLUTION BEGIN step_over
  double counted = 0;
  for (const data::Batch& batch : batches) counted += static_cast<double>(batch.counted);
  const i64 tokens = static_cast<i64>(sums_over(rank, comm, counted, 0).first);
  std::vector<MicroBatch> micro_batches;
  micro_batches.reserve(batches.size());
  for (const data::Batch& batch : batches)
    micro_batches.push_back(run::micro_batch_of(batch, step, tokens, &batch == &batches.back()));
  const StepResult mine = train_step(rank, model, strategy, micro_batches, rate);
  return {sums_over(rank, comm, mine.loss, 0).first, mine.norm, tokens};
  // SOLUTION STUB (void)rank, (void)comm, (void)model, (void)strategy, (void)batches, (void)step, (void)rate;
  // SOLUTION STUB LAB_TODO("count the step's tokens over all ranks; train on yours; add up the loss");
  // SOLUTION END
}

/// Single, on every rank of `dp` at once: the same weights, gradients and moments everywhere. train_step
/// calls begin_step (gradients become zero), forward and backward of each micro-batch (gradients add up), and
/// end_step.
class Ddp : public Single {
 public:
  Ddp(Rank& rank, Communicator dp, Gpt& model, const AdamConfig& config)
      : Single(rank, model, config), dp_(std::move(dp)) {}

  /// Makes rank 0's model everybody's, bit for bit; called once, before the first step, when rank 0 has its
  /// weights (random ones, or those of a file that only it has read). 16-bit models have them twice: AdamW
  /// works on an fp32 copy, the master, and would undo a broadcast of the parameters alone. Useful:
  ///   flat_.values       // all parameters of this rank in one tensor
  ///   adam_.master()     // the fp32 copy; without memory (false) where parameters are fp32
  void share_weights() {
    // SOLUTION BEGIN share_weights
    dp_.broadcast(flat_.values, 0).wait();
    if (adam_.master()) dp_.broadcast(adam_.master(), 0).wait();
    // SOLUTION STUB LAB_TODO("rank 0's parameters to all; and its master copy, if there is one");
    // SOLUTION END
  }

  /// This rank's gradients are complete, and of its own data. Makes them those of the whole step, then does
  /// what one rank does: Single::end_step clips by the norm of the whole gradient, updates, and returns the
  /// norm. Useful:
  ///   flat_.grads        // all gradients of this rank in one tensor
  double end_step(double rate) override {
    // SOLUTION BEGIN end_step
    dp_.all_reduce(flat_.grads).wait();
    return Single::end_step(rate);
    // SOLUTION STUB (void)rate;
    // SOLUTION STUB LAB_TODO("one sum of everything over the ranks; then one rank's end_step");
    // SOLUTION END
  }

 protected:
  /// Clip, update, norm, for whoever made the gradients complete in another way.
  double update(double rate) { return Single::end_step(rate); }

  Communicator dp_;
};

}  // namespace shardlings
