#pragma once
// Proof of a hand-written backward: central differences of the loss against the gradients of a whole model.
#include "optim/single.hpp"

namespace shardlings {

/// How far a parameter's gradient is from central differences.
struct GradientError {
  const Parameter* parameter = nullptr;
  std::string along;      ///< "element 17" or "a random direction"
  double backward = 0;    ///< dloss along it, from backward
  double difference = 0;  ///< (loss(w + h) - loss(w - h)) / 2h
  /// |backward - difference| relative to the norm of the parameter's gradient (never below 1e-3, since some
  /// gradients are zero in theory: a key's bias moves no softmax).
  double relative = 0;
};

/// Checks every parameter along one random direction and `elements` single elements, all chosen by `seed`.
/// The model must be f64 and its values and gradients bound on this rank; strategy.begin_step() must zero the
/// gradients, as Single's does. Values are moved by 1e-5 times the direction and put back. In f64 a right
/// gradient is within about 1e-7. Error for another type.
std::vector<GradientError> check_gradients(Rank& rank, Gpt& model, Strategy& strategy,
                                           const MicroBatch& micro_batch, i64 elements = 2,
                                           std::uint64_t seed = 1);
/// The one with the largest relative error. Error for an empty list.
GradientError worst(const std::vector<GradientError>& errors);
/// "h.0.ln_1.weight along element 3: backward says 0.5, central differences 0.25 (relative error 0.5)"
std::string to_string(const GradientError& error);

}  // namespace shardlings
