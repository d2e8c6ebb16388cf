#pragma once
// Turns gradients into a model that has learned: learning rate, global norm, clipping, AdamW, and a
// checkpoint from which a run goes on to the same bits. Left out: 16-bit parameters with a master copy, and
// ranks that share the work.
#include <cmath>
#include <numbers>

#include "data/loader.hpp"
#include "optim/adamw.hpp"
#include "run/state.hpp"

namespace shardlings {

/// The learning rate of a step. Steps count from 0; the schedule has max, min, warmup, steps.
///   step < warmup:            a line, max (step + 1) / (warmup + 1): above 0 at step 0, max at step `warmup`
///   warmup <= step < steps:   half a cosine from max to min: min + (max - min) (1 + cos(pi p)) / 2, where p
///                             goes from 0 at `warmup` to 1 at `steps`
///   step >= steps:            min
inline double learning_rate(const Schedule& s, i64 step) {
  // SOLUTION BEGIN learning_rate
  const auto part = [](i64 a, i64 b) { return static_cast<double>(a) / static_cast<double>(b); };
  if (step < s.warmup) return s.max * part(step + 1, s.warmup + 1);
  if (step >= s.steps) return s.min;
  const double p = part(step - s.warmup, s.steps - s.warmup);
  return s.min + (s.max - s.min) * (1 + std::cos(std::numbers::pi * p)) / 2;
  // SOLUTION STUB (void)s, (void)step;
  // SOLUTION STUB LAB_TODO("a line up to max, then half a cosine down to min; never 0 at the first step");
  // SOLUTION END
}

/// sqrt(g_0^2 + … + g_(n-1)^2). Squares and sums in double: the square of a float above 1.8e19 is no float.
template <class S>
double global_norm(const S* g, i64 n) {
  // SOLUTION BEGIN global_norm
  double sum = 0;
  for (i64 i = 0; i < n; ++i) sum += static_cast<double>(g[i]) * static_cast<double>(g[i]);
  return std::sqrt(sum);
  // SOLUTION STUB (void)g, (void)n;
  // SOLUTION STUB LAB_TODO("the length of the whole gradient, taken as one vector");
  // SOLUTION END
}

/// What the gradient is multiplied by, so that its norm is at most `limit`. A limit of 0 means no clipping.
inline double clip_scale(double norm, double limit) {
  // SOLUTION BEGIN clip_scale
  return limit > 0 && norm > limit ? limit / norm : 1;
  // SOLUTION STUB (void)norm, (void)limit;
  // SOLUTION STUB LAB_TODO("1, unless the norm is above the limit");
  // SOLUTION END
}

/// One AdamW step (Loshchilov and Hutter 2019, algorithm 2) on flat arrays: weights w, gradients g, moments m
/// and v. A segment is the elements [begin, end) of one parameter; what lies in none stays untouched. `steps`
/// is how many steps were applied before this one (0 at first); it counts this one too.
///   g  = scale * gradient           m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2
///   w := w - rate * decay * w - rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
/// t counts from 1 and is the same for all parameters. Weight decay acts on the weight alone, not through the
/// gradient, and only where segment.decay() says so: matrices and embeddings, not biases and gains.
template <class S>
void adamw(S* w, const S* g, S* m, S* v, i64& steps, const std::vector<Segment>& segments,
           const AdamConfig& c, double rate, double scale) {
  // SOLUTION BEGIN adamw
  ++steps;
  const auto t = static_cast<double>(steps);
  const S b1 = S(c.beta1), b2 = S(c.beta2);
  const S correct1 = S(1 - std::pow(c.beta1, t)), correct2 = S(1 - std::pow(c.beta2, t));
  for (const Segment& segment : segments) {
    const S keep = S(1 - (segment.decay() ? rate * c.decay : 0));
    for (i64 i = segment.begin; i < segment.end; ++i) {
      const S gradient = S(scale) * g[i];
      m[i] = b1 * m[i] + (1 - b1) * gradient;
      v[i] = b2 * v[i] + (1 - b2) * gradient * gradient;
      w[i] = keep * w[i] - S(rate) * (m[i] / correct1) / (std::sqrt(v[i] / correct2) + S(c.eps));
    }
  }
  // SOLUTION STUB (void)w, (void)g, (void)m, (void)v, (void)steps, (void)segments, (void)c, (void)rate;
  // SOLUTION STUB (void)scale;
  // SOLUTION STUB LAB_TODO("count the step, update both moments, correct their bias, decay, move the weight");
  // SOLUTION END
}

/// One rank that holds everything. run::train calls begin_step, then forward and backward, which add to the
/// gradients, then end_step.
class Trainer : public Strategy {
 public:
  Trainer(Rank& rank, Gpt& model, const AdamConfig& its_config)
      : config(its_config), flat(rank, model), rank_(rank) {
    check_adam(config);
    for (Tensor* moment : {&m, &v}) {
      *moment = Tensor(rank.memory, Category::optimizer, flat.values.dtype(), {flat.size});
      moment->zero();
    }
  }
  void begin_step() override { flat.grads.zero(); }

  /// Gradients are complete: clip by the norm of the whole gradient, update, and return the norm before
  /// clipping. If it is not finite (std::isfinite), return it and touch nothing: the step is not applied.
  /// Allocates nothing. Useful: gradient_norm() and update(rate, scale) below.
  double end_step(double rate) override {
    // SOLUTION BEGIN end_step
    const double norm = gradient_norm();
    if (!std::isfinite(norm)) return norm;
    update(rate, clip_scale(norm, config.clip));
    return norm;
    // SOLUTION STUB (void)rate;
    // SOLUTION STUB LAB_TODO("the norm first, then one update with the clipped gradient");
    // SOLUTION END
  }

  double gradient_norm() {
    const auto span = rank_.trace.span(Event::optimizer, "global norm");
    double norm = 0;
    with_element([&](auto element) { norm = global_norm(flat.grads.data<decltype(element)>(), flat.size); });
    return norm;
  }
  void update(double rate, double scale) {
    const auto span = rank_.trace.span(Event::optimizer, "AdamW");
    with_element([&](auto element) {
      using S = decltype(element);
      adamw(flat.values.data<S>(), flat.grads.data<S>(), m.data<S>(), v.data<S>(), steps, flat.segments,
            config, rate, scale);
    });
  }

  AdamConfig config;
  FlatModel flat;  ///< values and grads, flat [size]; segments say which parameter lies where
  Tensor m, v;     ///< moments, [size], of the parameters' type
  i64 steps = 0;   ///< steps applied so far

 private:
  template <class F>
  void with_element(F&& f) const {
    if (flat.values.dtype() == DType::f64) return f(double{});
    f(float{});  // data<float>() refuses 16-bit types
  }
  Rank& rank_;
};

/// What a run needs beside the weights to go on as if it had never stopped.
struct Rest {
  std::vector<run::ParameterView> tensors;  ///< where their memory is
  run::Metadata facts;                      ///< text by name
};

/// All of it. `steps_done` is the number of the training loop's next step; steps that were not applied count
/// there. The names are the library's, so that its programs can go on with your run: "step" (steps_done),
/// "optimizer.steps" (those applied), and the names that loader.state() gives. Useful:
///   run::state_views(trainer.flat, "m", trainer.m)    // the tensors of a moment, one for each parameter
///   loader.state()                                    // its place in the data, as facts
inline Rest rest_of(const Trainer& trainer, const data::Loader& loader, i64 steps_done) {
  // SOLUTION BEGIN rest_of
  Rest rest;
  rest.tensors = run::state_views(trainer.flat, "m", trainer.m);
  for (const run::ParameterView& view : run::state_views(trainer.flat, "v", trainer.v))
    rest.tensors.push_back(view);
  rest.facts = loader.state();
  rest.facts["step"] = std::to_string(steps_done);
  rest.facts["optimizer.steps"] = std::to_string(trainer.steps);
  return rest;
  // SOLUTION STUB (void)trainer, (void)loader, (void)steps_done;
  // SOLUTION STUB LAB_TODO("two tensors for each parameter; step, optimizer.steps, the place in the data");
  // SOLUTION END
}

/// Puts back what rest_of gave; returns steps_done. The weights are there already. Useful:
///   file.load_state(views)                            // fills the memory of these views from the file
///   run::number_of(file.metadata(), "step", path)     // a fact as i64; a sentence if it is missing
///   loader.restore(file.metadata())
inline i64 put_back(const run::Checkpoint& file, const std::string& path, Trainer& trainer,
                    data::Loader& loader) {
  // SOLUTION BEGIN put_back
  file.load_state(run::state_views(trainer.flat, "m", trainer.m));
  file.load_state(run::state_views(trainer.flat, "v", trainer.v));
  trainer.steps = run::number_of(file.metadata(), "optimizer.steps", path);
  loader.restore(file.metadata());
  return run::number_of(file.metadata(), "step", path);
  // SOLUTION STUB (void)file, (void)path, (void)trainer, (void)loader;
  // SOLUTION STUB LAB_TODO("moments, applied steps and the place in the data; return the number of the step");
  // SOLUTION END
}

/// Writes a checkpoint, whole or not at all.
inline void save(const std::string& path, Gpt& model, const Trainer& trainer, const data::Loader& loader,
                 i64 steps_done) {
  Rest rest = rest_of(trainer, loader, steps_done);
  rest.facts.merge(run::describe(model.config));
  run::save_checkpoint(path, run::weight_views(model), model.config.heads, rest.tensors, rest.facts);
}

/// Fills model, trainer and loader from a checkpoint; returns the number of steps done. UsageError in one
/// sentence if the file does not fit.
inline i64 resume(const std::string& path, Gpt& model, Trainer& trainer, data::Loader& loader) {
  const run::Checkpoint file(path);
  run::expect_same_config(model.config, file.metadata(), path);
  file.load_weights(run::weight_views(model), model.config.heads);
  return put_back(file, path, trainer, loader);
}

}  // namespace shardlings
