#pragma once
// AdamW on any flat slice, the global norm, clipping, the learning-rate schedule.
#include "optim/flat.hpp"

namespace shardlings {

struct AdamConfig {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double decay = 0.1;  ///< of parameters with Parameter::decay: matrices and embeddings, not biases and gains
  double clip = 1.0;   ///< limit of the global gradient norm; 0 = no clipping
};
/// UsageError with the number if a value is impossible (NaN, negative, beta outside [0, 1)).
void check_adam(const AdamConfig& config);

/// Moments (fp32; f64 for f64) and, for 16-bit parameters, an fp32 master copy of n elements, whatever they
/// are.
class AdamW {
 public:
  AdamW(Rank& rank, const AdamConfig& its_config, DType dtype, i64 n);
  /// Elements [begin, end) of a unit have their state at `offset`. The master starts from the exact initial
  /// values, not from the rounded parameters.
  void initialize_master(const FlatUnit& unit, i64 begin, i64 end, i64 offset);
  void begin_step() { ++step_; }
  /// Elements [offset, offset + value.numel()) of the state belong to `value`. Gradients are multiplied by
  /// `scale` first.
  void step(const Tensor& value, const Tensor& grad, const std::vector<Segment>& segments, i64 offset,
            double learning_rate, double scale);

  i64 steps() const { return step_; }  ///< optimizer steps applied so far
  void restore_steps(i64 steps) { step_ = steps; }
  const Tensor& m() const { return m_; }
  const Tensor& v() const { return v_; }
  const Tensor& master() const { return master_; }  ///< empty unless parameters are 16-bit
  AdamConfig config;

 private:
  i64 step_ = 0;
  Tensor m_, v_, master_;
};

/// Over the counted segments, in double: where a buffer is cut moves only the last bits.
double sum_squares(const Tensor& grad, const std::vector<Segment>& segments);
/// limit / norm if the norm exceeds the limit, else 1. Computed in float, which hides the last bits of the
/// norm. limit 0: 1.
double clip_factor(double norm, double limit);
/// Sums the gradients that other ranks hold a part of (Parameter::grad_sum).
void finish_gradients(Unit& unit);

/// Linear warm-up, then half a cosine from max to min. Steps count from 0. Warm-up is max * (step + 1) /
/// (warmup + 1), as nanoGPT computes it since its pull request 578: the first step's rate is never 0.
struct Schedule {
  double max = 1e-3, min = 1e-4;
  i64 warmup = 100, steps = 1000;
  double rate(i64 step) const;
};
/// UsageError with the numbers if the schedule is impossible.
void check_schedule(const Schedule& schedule);

}  // namespace shardlings
