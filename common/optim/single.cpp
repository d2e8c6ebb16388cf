#include "optim/single.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kernels/ops.hpp"

namespace shardlings {

Single::Single(Rank& rank, Gpt& model, const AdamConfig& config)
    : rank_(rank), flat_(rank, model), adam_(rank, config, model.config.dtype, flat_.size) {
  for (std::size_t u = 0; u < flat_.flats.size(); ++u) {
    adam_.initialize_master(flat_.flats[u], 0, flat_.flats[u].size, flat_.offset[u]);
  }
}

void Single::begin_step() { flat_.grads.zero(); }

double Single::end_step(double learning_rate) {
  const auto span = rank_.trace.span(Event::optimizer, "clip + AdamW");
  const double norm = std::sqrt(sum_squares(flat_.grads, flat_.segments));
  if (!std::isfinite(norm)) return norm;  // nothing is updated: the caller stops, or skips the step
  adam_.begin_step();
  adam_.step(flat_.values, flat_.grads, flat_.segments, 0, learning_rate,
             clip_factor(norm, adam_.config.clip));
  return norm;
}

double run_micro_batch(Rank& rank, Gpt& model, const MicroBatch& micro_batch, Strategy& strategy) {
  Saved saved(rank, micro_batch, model.config.dtype);
  model.forward({}, saved, strategy);
  model.backward({}, saved, strategy);
  require(saved.empty(), "a layer pushed more than it popped");
  return saved.loss;
}

StepResult train_step(Rank& rank, Gpt& model, Strategy& strategy,
                      const std::vector<MicroBatch>& micro_batches, double learning_rate) {
  StepResult result{};
  strategy.begin_step();
  for (const MicroBatch& mb : micro_batches) result.loss += run_micro_batch(rank, model, mb, strategy);
  result.norm = strategy.end_step(learning_rate);
  return result;
}

double evaluate(Rank& rank, Gpt& model, const MicroBatch& micro_batch, Strategy& strategy) {
  require(!micro_batch.training, "evaluate: the micro-batch is marked as training (dropout would act)");
  Saved saved(rank, micro_batch, model.config.dtype);
  model.forward({}, saved, strategy);
  return saved.loss;
}

namespace {
std::string first_bad(Gpt& model, const char* what, Tensor Parameter::*tensor) {
  for (const Parameter* p : model.parameters()) {
    const Tensor& t = p->*tensor;
    if (!t) continue;
    if (const i64 i = kernels::first_not_finite(t); i >= 0)
      return fmt::format("{} {}, element {} is {}", what, p->name, i, t.get(i));
  }
  return "";
}
}  // namespace

std::string first_bad_gradient(Gpt& model) { return first_bad(model, "gradient of", &Parameter::grad); }
std::string first_bad_value(Gpt& model) { return first_bad(model, "parameter", &Parameter::value); }

}  // namespace shardlings
