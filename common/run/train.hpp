#pragma once
// The training loop that lessons and the demo share: batches, steps, validation, metrics, checkpoints, a
// clean stop. It knows no algorithm: the strategy is handed in, and the learner's code with it.
#include <functional>
#include <string>
#include <vector>

#include "data/loader.hpp"
#include "optim/single.hpp"
#include "run/metrics.hpp"

namespace shardlings::run {

/// What all ranks together did in one step.
struct GlobalStep {
  double loss = 0;  ///< mean over the step's counted tokens of all ranks, in nats
  double norm = 0;  ///< of the whole gradient, before clipping
  i64 tokens = 0;   ///< counted, over all ranks
};

struct TrainOptions {
  i64 steps = 100;                     ///< number of the step at which the run ends
  i64 first_step = 0;                  ///< steps done before (a resumed run)
  i64 micro_batches = 1;               ///< per rank and step
  std::function<double(i64)> rate;     ///< learning rate of a step, counted from 0
  i64 eval_every = 0;                  ///< steps between validations; 0 = none
  i64 eval_batches = 20;               ///< validation batches then (spread over the validation text)
  double max_seconds = 0;              ///< of training; 0 = no limit. Validation and saving do not count
  i64 checkpoint_every = 0;            ///< steps between calls of save; 0 = only at the end and on Ctrl-C
  std::function<void(i64 done)> save;  ///< writes a checkpoint after `done` steps; may be empty
  std::function<void(const StepMetrics&)> on_step;  ///< rank 0 only: metrics, progress
  /// This rank's micro-batches of a step; may be none. Empty: the loader's next `micro_batches`.
  std::function<std::vector<data::Batch>(i64 step)> batches;
  /// Does a step with them and a learning rate. Empty: counts the tokens of all ranks and calls train_step.
  std::function<GlobalStep(const std::vector<data::Batch>&, i64 step, double rate)> step;
  i64 trace_steps = 3;  ///< how many of the first and of the last steps the trace keeps
};

/// What a training run works on; owned by the caller. `validation` may be null.
struct Training {
  Rank& rank;
  Gpt& model;
  Strategy& strategy;
  data::Loader& loader;
  const data::Sequential* validation = nullptr;
};

struct TrainResult {
  i64 steps_done = 0;        ///< number of the last step + 1
  double loss = 0;           ///< of the last step, over all ranks
  double seconds = 0;        ///< of training, without validation and saving
  bool interrupted = false;  ///< Ctrl-C or SIGTERM: saved and left early
  std::vector<StepMetrics> metrics;
};

/// Trains to options.steps. Losses are summed over all ranks. A loss or norm that is not finite stops the run
/// before the weights are touched: Error naming the step and the first bad tensor; the last checkpoint stays
/// as it is.
TrainResult train(const Training& t, const TrainOptions& options);

/// Mean loss over `batches` batches of the validation text, spread evenly (0 = all of it). Ranks share the
/// batches; every token counts once. Collective.
double validation_loss(const Training& t, i64 batches);

/// A loader's batch as the model takes it. `counted` = counted targets of the whole step, over ranks and
/// micro-batches.
MicroBatch micro_batch_of(const data::Batch& batch, i64 step, i64 counted, bool last, bool training = true);

/// "output of block2, element 17 is nan": the first tensor in forward order that is not finite for this
/// micro-batch; parameters are looked at first, gradients last. "" if all is finite.
std::string first_bad_tensor(Rank& rank, Gpt& model, Strategy& strategy, const MicroBatch& micro_batch);

}  // namespace shardlings::run
