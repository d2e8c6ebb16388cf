#include "run/sample.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.hpp"

namespace shardlings::run {

namespace {

int draw(std::vector<double> logits, const SampleOptions& o, i64 position) {
  const auto best = std::max_element(logits.begin(), logits.end());
  if (o.temperature <= 0) return static_cast<int>(best - logits.begin());
  double floor = -INFINITY;
  if (o.top_k > 0 && o.top_k < static_cast<i64>(logits.size())) {
    std::vector<double> sorted = logits;
    std::nth_element(sorted.begin(), sorted.begin() + (o.top_k - 1), sorted.end(), std::greater<>());
    floor = sorted[static_cast<std::size_t>(o.top_k - 1)];
  }
  const double top = *best;
  for (double& l : logits) l = l < floor ? 0 : std::exp((l - top) / o.temperature);
  double left = uniform(key_of({o.seed, 0x5a11}), static_cast<std::uint64_t>(position)) *
                std::accumulate(logits.begin(), logits.end(), 0.0);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    left -= logits[i];
    if (left < 0 && logits[i] > 0) return static_cast<int>(i);
  }
  return static_cast<int>(best - logits.begin());
}

}  // namespace

std::string sample(Rank& rank, Gpt& model, Strategy& strategy, const data::Tokenizer& tokenizer,
                   const std::string& prompt, const SampleOptions& options) {
  std::vector<int> tokens = {tokenizer.separator()};
  for (int t : tokenizer.encode(prompt)) tokens.push_back(t);
  const std::size_t start = tokens.size();
  const i64 vocab = model.config.vocab;
  for (i64 k = 0; k < options.tokens; ++k) {
    const auto seen = std::min<i64>(static_cast<i64>(tokens.size()), model.config.time);
    MicroBatch mb;
    mb.batch = 1;
    mb.time = seen;
    mb.training = false;
    mb.tokens.assign(tokens.end() - seen, tokens.end());
    const Tensor logits = model.logits(rank, mb, strategy);
    std::vector<double> last(static_cast<std::size_t>(vocab));
    for (i64 v = 0; v < vocab; ++v) last[static_cast<std::size_t>(v)] = logits.get((seen - 1) * vocab + v);
    tokens.push_back(draw(std::move(last), options, k));
  }
  return tokenizer.decode(std::span(tokens).subspan(start));
}

}  // namespace shardlings::run
