#include "optim/adamw.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "kernels/ops.hpp"

namespace shardlings {

void check_adam(const AdamConfig& c) {
  const auto check = [](const char* what, double value, double below) {
    if (!(value >= 0 && value < below)) {
      fail_usage(std::isinf(below)
                     ? fmt::format("{} is {}: it must be at least 0", what, value)
                     : fmt::format("{} is {}: it must be at least 0 and below {}", what, value, below));
    }
  };
  check("beta1", c.beta1, 1);
  check("beta2", c.beta2, 1);
  check("eps", c.eps, INFINITY);
  check("weight decay", c.decay, INFINITY);
  check("gradient clip", c.clip, INFINITY);
}

AdamW::AdamW(Rank& rank, const AdamConfig& its_config, DType dtype, i64 n) : config(its_config) {
  check_adam(config);
  const DType state = dtype == DType::f64 ? DType::f64 : DType::f32;
  const auto make = [&] {
    Tensor t(rank.memory, Category::optimizer, state, {n});
    t.zero();
    return t;
  };
  m_ = make();
  v_ = make();
  if (dtype == DType::bf16 || dtype == DType::f16) master_ = make();
}

void AdamW::initialize_master(const FlatUnit& unit, i64 begin, i64 end, i64 offset) {
  if (master_) unit.initialize(master_.slice(offset, offset + end - begin), begin);
}

void AdamW::step(const Tensor& value, const Tensor& grad, const std::vector<Segment>& segments, i64 offset,
                 double learning_rate, double scale) {
  const i64 n = value.numel();
  const Tensor m = m_.slice(offset, offset + n), v = v_.slice(offset, offset + n);
  const Tensor master = master_ ? master_.slice(offset, offset + n) : Tensor();
  for (std::size_t i = 0; i < segments.size();) {
    // Neighbours with the same decay are one run: fewer, longer loops.
    const bool decay = segments[i].decay();
    const i64 begin = segments[i].begin;
    i64 end = segments[i].end;
    for (++i; i < segments.size() && segments[i].begin == end && segments[i].decay() == decay; ++i)
      end = segments[i].end;
    const kernels::AdamWStep s{
        learning_rate, config.beta1, config.beta2, config.eps, decay ? config.decay : 0, step_, scale};
    kernels::adamw(s, begin, end, value, grad, m, v, master);
  }
}

double sum_squares(const Tensor& grad, const std::vector<Segment>& segments) {
  double sum = 0;
  for (std::size_t i = 0; i < segments.size();) {
    if (!segments[i].counted()) {
      ++i;
      continue;
    }
    const i64 begin = segments[i].begin;
    i64 end = segments[i].end;
    for (++i; i < segments.size() && segments[i].begin == end && segments[i].counted(); ++i)
      end = segments[i].end;
    sum += kernels::sum_squares(grad, begin, end);
  }
  return sum;
}

double clip_factor(double norm, double limit) {
  const auto n = static_cast<float>(norm), l = static_cast<float>(limit);
  return l > 0 && n > l ? static_cast<double>(l / n) : 1.0;
}

void finish_gradients(Unit& unit) {
  for (Parameter& p : unit.params) {
    if (p.grad_sum) p.grad_sum.all_reduce(p.grad).wait();
  }
}

double Schedule::rate(i64 step) const {
  if (step < warmup) return max * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  if (step >= steps) return min;
  const double progress = static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
  return min + 0.5 * (1 + std::cos(std::numbers::pi * progress)) * (max - min);
}

void check_schedule(const Schedule& s) {
  if (!(s.max >= 0) || std::isinf(s.max))
    fail_usage(fmt::format("learning rate {} must be a finite number of at least 0", s.max));
  if (!(s.min >= 0 && s.min <= s.max)) {
    fail_usage(
        fmt::format("minimum learning rate {} must lie between 0 and the learning rate {}", s.min, s.max));
  }
  if (s.warmup < 0 || s.warmup > s.steps) {
    fail_usage(
        fmt::format("warm-up of {} steps must lie between 0 and the {} steps of the run", s.warmup, s.steps));
  }
}

}  // namespace shardlings
