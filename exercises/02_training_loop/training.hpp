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
  // YOUR CODE BEGIN learning_rate
  (void)s, (void)step;
  LAB_TODO("a line up to max, then half a cosine down to min; never 0 at the first step");
  // YOUR CODE END
}

/// sqrt(g_0^2 + … + g_(n-1)^2). Squares and sums in double: the square of a float above 1.8e19 is no float.
template <class S>
double global_norm(const S* g, i64 n) {
  // YOUR CODE BEGIN global_norm
  (void)g, (void)n;
  LAB_TODO("the length of the whole gradient, taken as one vector");
  // YOUR CODE END
}

/// What the gradient is multiplied by, so that its norm is at most `limit`. A limit of 0 means no clipping.
inline double clip_scale(double norm, double limit) {
  // YOUR CODE BEGIN clip_scale
  (void)norm, (void)limit;
  LAB_TODO("1, unless the norm is above the limit");
  // YOUR CODE END
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
  // YOUR CODE BEGIN adamw
  (void)w, (void)g, (void)m, (void)v, (void)steps, (void)segments, (void)c, (void)rate;
  (void)scale;
  LAB_TODO("count the step, update both moments, correct their bias, decay, move the weight");
  // YOUR CODE END
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
    // YOUR CODE BEGIN end_step
    (void)rate;
    LAB_TODO("the norm first, then one update with the clipped gradient");
    // YOUR CODE END
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
  // YOUR CODE BEGIN rest_of
  (void)trainer, (void)loader, (void)steps_done;
  LAB_TODO("two tensors for each parameter; step, optimizer.steps, the place in the data");
  // YOUR CODE END
}

/// Puts back what rest_of gave; returns steps_done. The weights are there already. Useful:
///   file.load_state(views)                            // fills the memory of these views from the file
///   run::number_of(file.metadata(), "step", path)     // a fact as i64; a sentence if it is missing
///   loader.restore(file.metadata())
inline i64 put_back(const run::Checkpoint& file, const std::string& path, Trainer& trainer,
                    data::Loader& loader) {
  // YOUR CODE BEGIN put_back
  (void)file, (void)path, (void)trainer, (void)loader;
  LAB_TODO("moments, applied steps and the place in the data; return the number of the step");
  // YOUR CODE END
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
