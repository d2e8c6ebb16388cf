#pragma once
// What the tests of this lesson share: a model and a text small enough for milliseconds, micro-batches whose
// tokens differ per rank, and one rank that adds up the ranks' gradients one after the other: the reference.
#include <fmt/format.h>

#include "ddp.hpp"
#include "kernels/ops.hpp"
#include "lesson_test.hpp"
#include "small_model.hpp"

namespace shardlings::ddp_test {

inline GptConfig small_config(DType dtype = DType::f32) { return lesson::small_model(2, dtype); }
using lesson::small_batch;

/// Ranks have different numbers of counted tokens: 5, 1, 2, 3, 4, 5, …
inline i64 counted_on(i64 rank) { return rank == 0 ? 5 : (rank - 1) % 5 + 1; }

/// The micro-batches of one step, by rank; those of one rank accumulate.
using StepData = std::vector<std::vector<data::Batch>>;

/// One micro-batch for each of `ranks` ranks.
inline StepData one_each(i64 step, int ranks) {
  StepData data;
  for (int r = 0; r < ranks; ++r) data.push_back({small_batch(step * ranks + r, counted_on(r))});
  return data;
}

/// What a run shows: one entry a step, and the weights at the end.
struct Seen {
  std::vector<double> losses, norms, weights;
};

constexpr double kRate = 1e-2;

/// lesson::run_on, where ranks that do not call the same things are the fault to be found: says so in the
/// words of the lesson, and then what the library saw.
inline void run_on_saying(const std::string& hint, int ranks, const std::function<void(Rank&)>& body) {
  try {
    lesson::run_on(ranks, body);
  } catch (const Todo&) {
    throw;
  } catch (const Error& error) {
    ADD_FAILURE() << hint << "\n" << error.what();
  }
}

/// How the norm of a first step probably came to be wrong.
inline std::string norm_hint(double got, double want, int ranks) {
  const double ratio = got / want, n = ranks;
  if (ranks > 1 && std::abs(ratio - n) < 1e-3 * n)
    return fmt::format(". The first is {} times too large: added up twice?", ranks);
  if (ranks > 1 && std::abs(ratio * n - 1) < 1e-3) {
    return fmt::format(
        ". The first is {} times too small: averaged, although the losses were divided by the tokens of all "
        "ranks before backward?",
        ranks);
  }
  return ratio < 0.99 ? ". The first is too small: were all ranks' gradients in it?" : "";
}

/// One rank that plays all of them: it makes the gradient of each rank's micro-batches from zero, and adds
/// these up in rank order. This is the order in which the library's all_reduce adds.
struct Reference {
  explicit Reference(Rank& its_rank, const GptConfig& config = small_config(), const AdamConfig& adam = {})
      : rank(its_rank), model(config), single(rank, model, adam) {}

  void step(const StepData& data, i64 step, double rate = kRate) {
    i64 tokens = 0;
    for (const auto& batches : data) {
      for (const data::Batch& batch : batches) tokens += batch.counted;
    }
    const Tensor& grads = single.flat().grads;
    Tensor sum(rank.memory, Category::gradients, grads.dtype(), grads.shape());
    double loss = 0;
    for (std::size_t r = 0; r < data.size(); ++r) {
      grads.zero();
      double mine = 0;
      for (const data::Batch& batch : data[r])
        mine += run_micro_batch(rank, model, run::micro_batch_of(batch, step, tokens, true), single);
      loss += mine;
      if (r == 0)
        sum.copy_from(grads);
      else
        kernels::add(sum, grads);
    }
    grads.copy_from(sum);
    seen.losses.push_back(loss);
    seen.norms.push_back(single.end_step(rate));
  }

  Rank& rank;
  Gpt model;
  Single single;
  Seen seen;
};

inline Seen one_rank(const std::vector<StepData>& steps, const AdamConfig& adam = {}) {
  Seen seen;
  lesson::run_on(1, [&](Rank& rank) {
    Reference reference(rank, small_config(), adam);
    for (std::size_t s = 0; s < steps.size(); ++s) reference.step(steps[s], static_cast<i64>(s));
    seen = reference.seen;
    seen.weights = lesson::values_of(reference.single.flat().values);
  });
  return seen;
}

/// The same with a rank for each entry of a step, and your code.
inline std::vector<Seen> all_ranks(int ranks, const std::vector<StepData>& steps, const AdamConfig& adam = {},
                                   const std::string& hint = "the ranks did not call the same things") {
  std::vector<Seen> all(static_cast<std::size_t>(ranks));
  run_on_saying(hint, ranks, [&](Rank& rank) {
    Gpt model(small_config());
    Ddp ddp(rank, rank.world(), model, adam);
    Seen seen;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const run::GlobalStep result =
          step_over(rank, rank.world(), model, ddp, steps[s][static_cast<std::size_t>(rank.rank())],
                    static_cast<i64>(s), kRate);
      seen.losses.push_back(result.loss);
      seen.norms.push_back(result.norm);
    }
    seen.weights = lesson::values_of(ddp.flat().values);
    all[static_cast<std::size_t>(rank.rank())] = seen;
  });
  return all;
}

}  // namespace shardlings::ddp_test
