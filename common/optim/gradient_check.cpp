#include "optim/gradient_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/random.hpp"

namespace shardlings {

namespace {

constexpr double kStep = 1e-5;   // truncation (h^2) and rounding (1e-16 / h) are both near 1e-10
constexpr double kFloor = 1e-3;  // see GradientError::relative

double loss_of(Rank& rank, Gpt& model, Strategy& strategy, const MicroBatch& micro_batch) {
  Saved saved(rank, micro_batch, model.config.dtype);
  model.forward({}, saved, strategy);
  return saved.loss;
}

}  // namespace

std::vector<GradientError> check_gradients(Rank& rank, Gpt& model, Strategy& strategy,
                                           const MicroBatch& micro_batch, i64 elements, std::uint64_t seed) {
  require(model.config.dtype == DType::f64, [&] {
    return fmt::format(
        "check_gradients needs a model in f64, this one is {}: in fewer digits a difference "
        "of losses is mostly rounding",
        name_of(model.config.dtype));
  });
  strategy.begin_step();
  run_micro_batch(rank, model, micro_batch, strategy);
  std::vector<GradientError> errors;
  for (const Parameter* p : model.parameters()) {
    const i64 n = p->numel();
    double norm = 0;
    for (i64 i = 0; i < n; ++i) norm += p->grad.get(i) * p->grad.get(i);
    norm = std::max(std::sqrt(norm), kFloor);
    std::vector<double> values(static_cast<std::size_t>(n));
    for (i64 i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = p->value.get(i);
    const std::uint64_t key = key_of({key_of(p->name), seed});

    const auto check = [&](std::string along, const std::vector<double>& direction) {
      const auto moved_loss = [&](double h) {
        for (i64 i = 0; i < n; ++i) {
          const auto at = static_cast<std::size_t>(i);
          p->value.set(i, values[at] + h * direction[at]);
        }
        return loss_of(rank, model, strategy, micro_batch);
      };
      GradientError e{p, std::move(along), 0, 0, 0};
      for (i64 i = 0; i < n; ++i) e.backward += p->grad.get(i) * direction[static_cast<std::size_t>(i)];
      e.difference = (moved_loss(kStep) - moved_loss(-kStep)) / (2 * kStep);
      e.relative = std::abs(e.backward - e.difference) / norm;
      for (i64 i = 0; i < n; ++i) p->value.set(i, values[static_cast<std::size_t>(i)]);
      errors.push_back(std::move(e));
    };

    std::vector<double> direction(static_cast<std::size_t>(n));
    double length = 0;
    for (i64 i = 0; i < n; ++i) {
      double& d = direction[static_cast<std::size_t>(i)];
      d = normal(key, static_cast<std::uint64_t>(i));
      length += d * d;
    }
    for (double& d : direction) d /= std::sqrt(length);
    check("a random direction", direction);
    for (i64 k = 0; k < std::min(elements, n); ++k) {
      const i64 i =
          static_cast<i64>(random_bits(key, static_cast<std::uint64_t>(k)) % static_cast<std::uint64_t>(n));
      std::vector<double> one(static_cast<std::size_t>(n));
      one[static_cast<std::size_t>(i)] = 1;
      check(fmt::format("element {}", i), one);
    }
  }
  return errors;
}

GradientError worst(const std::vector<GradientError>& errors) {
  require(!errors.empty(), "worst: nothing was checked");
  const auto less = [](const GradientError& a, const GradientError& b) {
    return !(a.relative >= b.relative) && !std::isnan(a.relative);  // a NaN is the worst of all
  };
  return *std::max_element(errors.begin(), errors.end(), less);
}

std::string to_string(const GradientError& error) {
  return fmt::format("{} along {}: backward says {}, central differences {} (relative error {:.2g})",
                     error.parameter->name, error.along, error.backward, error.difference, error.relative);
}

}  // namespace shardlings
