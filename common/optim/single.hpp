#pragma once
// One rank that holds everything: accumulate, clip, update. Every parallel algorithm is checked against it.
#include "optim/adamw.hpp"

namespace shardlings {

class Single : public Strategy {
 public:
  Single(Rank& rank, Gpt& model, const AdamConfig& config);
  void begin_step() override;
  double end_step(double learning_rate) override;
  FlatModel& flat() { return flat_; }
  AdamW& adam() { return adam_; }

 protected:
  Rank& rank_;
  FlatModel flat_;
  AdamW adam_;
};

struct StepResult {
  double loss;  ///< mean over the step's counted tokens, in nats
  double norm;  ///< of the whole gradient, before clipping
};

/// Forward and backward of one micro-batch; returns its share of the step's loss.
double run_micro_batch(Rank& rank, Gpt& model, const MicroBatch& micro_batch, Strategy& strategy);
/// One optimizer step over these micro-batches.
StepResult train_step(Rank& rank, Gpt& model, Strategy& strategy,
                      const std::vector<MicroBatch>& micro_batches, double learning_rate);
/// Loss of a micro-batch without gradients or dropout.
double evaluate(Rank& rank, Gpt& model, const MicroBatch& micro_batch, Strategy& strategy);

/// "gradient of h.0.ln_1.weight, element 3 is nan", or "" if all of `tensors` are finite. The first in model
/// order.
std::string first_bad_gradient(Gpt& model);
std::string first_bad_value(Gpt& model);

}  // namespace shardlings
