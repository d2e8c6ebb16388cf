#pragma once
// A model that trains in milliseconds, text for it, and one rank to run on.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "data/tokenizer.hpp"
#include "run/state.hpp"
#include "run/train.hpp"

namespace shardlings {

inline GptConfig tiny_config(DType dtype = DType::f32) {
  GptConfig c;
  c.layers = 1;
  c.heads = 2;
  c.channels = 12;
  c.time = 8;
  c.dropout = 0.1;
  c.dtype = dtype;
  return c;
}

inline data::TokenStream tiny_text(std::uint64_t seed = 0) {
  std::string text;
  for (std::uint64_t i = 0; i < 3000; ++i)
    text += static_cast<char>('a' + random_bits(key_of({key_of("tiny text"), seed}), i) % 26);
  return {data::Corpus{{text}}, *data::byte_tokenizer()};
}

/// What a program holds while it trains.
struct TinyRun {
  explicit TinyRun(Rank& its_rank, const GptConfig& config = tiny_config(), i64 batch = 2)
      : rank(its_rank),
        model(config),
        single(rank, model, {}),
        loader(tiny_text(), {batch, config.time, 3, rank.rank(), rank.size()}) {}
  run::TrainResult train(const run::TrainOptions& options) {
    return run::train({rank, model, single, loader}, options);
  }
  void save(const std::string& path, i64 done) { run::save_run(path, model, single, loader, done); }

  Rank& rank;
  Gpt model;
  Single single;
  data::Loader loader;
};

inline run::TrainOptions tiny_options(i64 steps, i64 first_step = 0) {
  run::TrainOptions options;
  options.steps = steps;
  options.first_step = first_step;
  options.rate = [](i64 step) { return Schedule{1e-2, 1e-3, 4, 20}.rate(step); };
  return options;
}

inline void on_one_rank(const std::function<void(Rank&)>& body, int threads = 1) {
  RunOptions options;
  options.threads = threads;
  run_ranks(1, body, options);
}

inline std::vector<double> elements_of(const Tensor& t) {
  std::vector<double> all;
  for (i64 i = 0; i < t.numel(); ++i) all.push_back(t.get(i));
  return all;
}

inline std::vector<double> losses_of(const run::TrainResult& result) {
  std::vector<double> losses;
  for (const run::StepMetrics& m : result.metrics) losses.push_back(m.loss.value_or(NAN));
  return losses;
}

/// The sentence of the Error that `action` throws; "" and a failure if it throws none.
inline std::string failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "did not fail";
  return "";
}

}  // namespace shardlings
