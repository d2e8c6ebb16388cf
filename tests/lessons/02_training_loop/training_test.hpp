#pragma once
// What the tests of this lesson share: a model small enough to be trained in milliseconds, text for it, and
// flat arrays of parameters that belong to no model.
#include <fmt/format.h>

#include "core/random.hpp"
#include "lesson_test.hpp"
#include "training.hpp"

namespace shardlings::training_test {

inline GptConfig small_config(DType dtype = DType::f32) {
  GptConfig c;
  c.layers = 1;
  c.heads = 2;
  c.channels = 12;
  c.time = 8;
  c.vocab = 256;
  c.dropout = 0.1;
  c.dtype = dtype;
  return c;
}

inline data::TokenStream small_text() {
  std::string text;
  for (std::uint64_t i = 0; i < 3000; ++i)
    text += static_cast<char>('a' + random_bits(key_of("training text"), i) % 26);
  return {data::Corpus{{text}}, *data::byte_tokenizer()};
}

/// A model, its trainer and its place in the text: what one program holds.
struct Program {
  explicit Program(Rank& its_rank, const GptConfig& config = small_config(), const AdamConfig& adam = {})
      : rank(its_rank),
        model(config),
        trainer(rank, model, adam),
        loader(small_text(), {2, config.time, 7}) {}

  /// Sets every gradient to factor * a standard normal number that depends on parameter, element and step.
  void make_gradients(double factor, std::uint64_t step = 0) {
    for (i64 i = 0; i < trainer.flat.size; ++i) {
      trainer.flat.grads.set(
          i, factor * normal(key_of({key_of("gradients"), step}), static_cast<std::uint64_t>(i)));
    }
  }
  Rank& rank;
  Gpt model;
  Trainer trainer;
  data::Loader loader;
};

/// Flat arrays for parameters of these sizes, one after the other, with a gap of 3 before the first and after
/// the last that belongs to none.
template <class S>
struct Flat {
  explicit Flat(const std::vector<i64>& sizes, const std::vector<bool>& decay) : parameters(sizes.size()) {
    i64 n = 3;
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      parameters[p].decay = decay[p];
      segments.push_back({n, n + sizes[p], &parameters[p]});
      n += sizes[p];
    }
    for (std::vector<S>* x : {&w, &g, &m, &v}) x->assign(static_cast<std::size_t>(n) + 3, S(0));
  }
  Flat(const Flat&) = delete;
  void update(const AdamConfig& config, double rate, double scale = 1) {
    adamw(w.data(), g.data(), m.data(), v.data(), steps, segments, config, rate, scale);
  }
  std::vector<Parameter> parameters;
  std::vector<Segment> segments;
  std::vector<S> w, g, m, v;
  i64 steps = 0;
};

template <class S>
std::vector<double> doubles(const std::vector<S>& x) {
  return {x.begin(), x.end()};
}

inline void on_one_rank(const std::function<void(Rank&)>& body) { lesson::run_on(1, body); }

}  // namespace shardlings::training_test
