#pragma once
// A model that is trained in milliseconds, and micro-batches for it whose tokens follow from their number:
// what the tests of data-parallel lessons share.
#include "core/random.hpp"
#include "data/loader.hpp"
#include "nn/gpt.hpp"

namespace shardlings::lesson {

/// T 5, 17 tokens, dropout 0.1: every kind of parameter, and random numbers.
inline GptConfig small_model(i64 layers, DType dtype = DType::f32, bool tied = true) {
  GptConfig c;
  c.layers = layers;
  c.heads = 2;
  c.channels = 12;
  c.time = 5;
  c.vocab = 17;
  c.dropout = 0.1;
  c.dtype = dtype;
  c.tied = tied;
  return c;
}

/// A micro-batch of one sequence for small_model; number `index` of the run decides its tokens. Of its five
/// targets the first `counted` count.
inline data::Batch small_batch(i64 index, i64 counted) {
  const GptConfig config = small_model(1);
  data::Batch batch{index, 1, config.time, {}, {}, {index}, counted};
  for (i64 t = 0; t < batch.time; ++t) {
    const auto draw = [&](std::uint64_t key) {
      return static_cast<int>(
          random_bits(key_of({key, static_cast<std::uint64_t>(index)}), static_cast<std::uint64_t>(t)) %
          static_cast<std::uint64_t>(config.vocab));
    };
    batch.tokens.push_back(draw(1));
    batch.targets.push_back(t < counted ? draw(2) : -1);
  }
  return batch;
}

}  // namespace shardlings::lesson
