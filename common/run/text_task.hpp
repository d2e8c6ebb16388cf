#pragma once
// What a training program learns, and with what: a named model and the bytes of a text, in two parts.
#include <memory>
#include <string>

#include "data/loader.hpp"
#include "nn/gpt.hpp"

namespace shardlings::run {

struct TextTask {
  GptConfig config;  ///< with the tokenizer's vocabulary
  i64 batch = 0;     ///< sequences of a step, over all ranks
  std::unique_ptr<data::Tokenizer> tokenizer;
  data::TokenStream train, validation;
};

/// The model `config` ("char", "baby", …) on the bytes of the corpus at `path`. A batch of 0 is the
/// configuration's own. UsageError when there is no such model, or no text.
TextTask text_task(const std::string& config, const std::string& path, i64 batch, double dropout = 0);

/// UsageError with the numbers when some of `ranks` ranks would get none of `batch` sequences.
void check_ranks_have_work(int ranks, i64 batch);

}  // namespace shardlings::run
