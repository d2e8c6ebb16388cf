#include "run/text_task.hpp"

#include <fmt/format.h>

namespace shardlings::run {

TextTask text_task(const std::string& config, const std::string& path, i64 batch, double dropout) {
  auto [model, own_batch] = named_config(config);
  auto tokenizer = data::byte_tokenizer();
  model.vocab = tokenizer->vocab_size();
  model.dropout = dropout;
  check_config(model);
  const data::Split text = data::split(data::load_corpus(path));
  data::TokenStream train(text.train, *tokenizer), validation(text.validation, *tokenizer);
  return {model, batch > 0 ? batch : own_batch, std::move(tokenizer), std::move(train),
          std::move(validation)};
}

void check_ranks_have_work(int ranks, i64 batch) {
  if (ranks <= batch) return;
  fail_usage(fmt::format(
      "--ranks {} with {} sequence{} a step: {} of the ranks would have nothing to do; use at most {}, or a "
      "larger --batch",
      ranks, batch, batch == 1 ? "" : "s", ranks - batch, batch));
}

}  // namespace shardlings::run
