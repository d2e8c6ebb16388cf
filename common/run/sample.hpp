#pragma once
// Text from a model: one token at a time, each drawn from the softmax of the last position.
#include <string>

#include "data/tokenizer.hpp"
#include "nn/gpt.hpp"

namespace shardlings::run {

struct SampleOptions {
  i64 tokens = 300;
  double temperature = 0.8;  ///< 0 = always the most likely token
  i64 top_k = 0;             ///< only the k most likely tokens; 0 = all
  std::uint64_t seed = 1;
};

/// The prompt's continuation, without the prompt. An empty prompt starts a new document. The model sees its
/// last T tokens.
std::string sample(Rank& rank, Gpt& model, Strategy& strategy, const data::Tokenizer& tokenizer,
                   const std::string& prompt, const SampleOptions& options);

}  // namespace shardlings::run
