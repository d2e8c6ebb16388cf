#include "data/loader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/random.hpp"
#include "data/shuffle.hpp"

namespace shardlings::data {
namespace {

void check_sizes(i64 batch, i64 time, i64 tokens) {
  if (batch < 1) fail_usage(fmt::format("batch {}: at least 1 sequence is needed", batch));
  if (time < 1) fail_usage(fmt::format("sequence length T {}: at least 1 token is needed", time));
  if (time + 1 > tokens) {
    fail_usage(fmt::format(
        "sequence length T {} is longer than the text allows: {} tokens are needed and it has {}; use a "
        "smaller T or more text",
        time, time + 1, tokens));
  }
}

/// Appends a row: T tokens from `begin`, and the ones that follow each of them as targets. Targets beyond the
/// first `counted` of the row become -1, and with respect_documents those that begin another document.
void add_row(Batch& batch, const TokenStream& stream, i64 begin, i64 counted, bool respect_documents) {
  std::vector<int> row(static_cast<std::size_t>(batch.time) + 1);
  stream.copy(begin, batch.time + 1, row.data());
  batch.tokens.insert(batch.tokens.end(), row.begin(), row.end() - 1);
  for (i64 t = 0; t < batch.time; ++t) {
    const int target = row[static_cast<std::size_t>(t) + 1];
    const bool other_document = target == stream.separator() || (begin + t + 1) % stream.size() == 0;
    const bool counts = t < counted && !(respect_documents && other_document);
    batch.targets.push_back(counts ? target : -1);
    batch.counted += counts ? 1 : 0;
  }
}

}  // namespace

TokenStream::TokenStream(const Corpus& corpus, const Tokenizer& tokenizer)
    : text_bytes_(corpus.bytes()), separator_(tokenizer.separator()) {
  if (tokenizer.vocab_size() > 65536) {
    fail_usage(fmt::format("a vocabulary of {} does not fit into 16-bit tokens (at most 65536)",
                           tokenizer.vocab_size()));
  }
  auto tokens = std::make_shared<std::vector<std::uint16_t>>();
  for (const std::string& document : corpus.documents) {
    tokens->push_back(static_cast<std::uint16_t>(separator_));
    for (int token : tokenizer.encode(document)) tokens->push_back(static_cast<std::uint16_t>(token));
  }
  append(*tokens);
  owners_.push_back(std::move(tokens));
}

TokenStream::TokenStream(const std::vector<std::string>& shards, int separator) : separator_(separator) {
  for (const std::string& path : shards) {
    auto shard = std::make_shared<TokenShard>(path);
    append(shard->tokens());
    owners_.push_back(std::move(shard));
  }
}

void TokenStream::append(std::span<const std::uint16_t> tokens) {
  begins_.push_back(size_);
  pieces_.push_back(tokens);
  size_ += static_cast<i64>(tokens.size());
}

void TokenStream::copy(i64 begin, i64 count, int* out) const {
  require(size_ > 0 || count == 0, "copy from a token stream without tokens");
  i64 at = begin;
  while (count > 0) {
    at %= size_;
    const auto piece =
        static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), at) - begins_.begin() - 1);
    const auto from = static_cast<std::size_t>(at - begins_[piece]);
    const auto n = std::min(count, static_cast<i64>(pieces_[piece].size() - from));
    out = std::copy_n(pieces_[piece].begin() + static_cast<std::ptrdiff_t>(from), n, out);
    at += n;
    count -= n;
  }
}

Loader::Loader(TokenStream stream, const LoaderConfig& config) : stream_(std::move(stream)), config_(config) {
  check_sizes(config.batch, config.time, stream_.size());
  if (config.ranks < 1 || config.rank < 0 || config.rank >= config.ranks) {
    fail_usage(fmt::format("loader for rank {} of {}: ranks go from 0 to {}", config.rank, config.ranks,
                           config.ranks - 1));
  }
  windows_ = stream_.size() / config.time;
}

std::uint64_t Loader::key(i64 epoch) const {
  return key_of({key_of("loader"), config_.seed, static_cast<std::uint64_t>(epoch)});
}

Batch Loader::at(i64 index) const {
  require(index >= 0, [&] { return fmt::format("micro-batch {} does not exist", index); });
  std::vector<i64> ids;
  for (i64 sample = index * config_.batch; sample < (index + 1) * config_.batch; ++sample) {
    const i64 epoch = sample / windows_;
    ids.push_back(epoch * windows_ + shuffled(sample % windows_, windows_, key(epoch)));
  }
  return samples(index, ids);
}

Batch Loader::samples(i64 index, const std::vector<i64>& ids) const {
  Batch batch{index, static_cast<i64>(ids.size()), config_.time, {}, {}, ids, 0};
  for (const i64 id : ids) {
    require(id >= 0, [&] { return fmt::format("sample {} does not exist", id); });
    const auto shift = static_cast<i64>(random_bits(key_of({key(id / windows_), 1}), 0) %
                                        static_cast<std::uint64_t>(config_.time));
    add_row(batch, stream_, shift + id % windows_ * config_.time, config_.time, config_.respect_documents);
  }
  return batch;
}

Batch Loader::next() {
  Batch batch = at(position_ + config_.rank);
  position_ += config_.ranks;
  return batch;
}

std::map<std::string, std::string> Loader::state() const {
  return {{"data.position", std::to_string(position_)},
          {"data.batch", std::to_string(config_.batch)},
          {"data.time", std::to_string(config_.time)},
          {"data.seed", std::to_string(config_.seed)},
          {"data.tokens", std::to_string(stream_.size())}};
}

void Loader::restore(const std::map<std::string, std::string>& state) {
  for (const auto& [name, ours] : this->state()) {
    const auto found = state.find(name);
    if (found == state.end())
      fail_usage(fmt::format("cannot go on with the data: the checkpoint does not say {}", name));
    if (name == "data.position" || found->second == ours) continue;
    fail_usage(fmt::format("cannot go on with the same data: {} was {} when it was saved and is {} now", name,
                           found->second, ours));
  }
  const std::string& position = state.at("data.position");
  if (position.empty() || position.size() > 18 ||
      position.find_first_not_of("0123456789") != std::string::npos) {
    fail_usage(fmt::format("cannot go on with the data: position \"{}\" is not a number", position));
  }
  position_ = std::stoll(position);
}

Sequential::Sequential(TokenStream stream, i64 batch, i64 time)
    : stream_(std::move(stream)), batch_(batch), time_(time) {
  check_sizes(batch, time, stream_.size());
  batches_ = (targets() + batch * time - 1) / (batch * time);
}

Batch Sequential::at(i64 index) const {
  require(0 <= index && index < batches_, [&] { return fmt::format("batch {} of {}", index, batches_); });
  Batch batch{index, batch_, time_, {}, {}, {}, 0};
  for (i64 b = 0; b < batch_; ++b) {
    const i64 window = index * batch_ + b;
    const i64 counted = std::clamp<i64>(targets() - window * time_, 0, time_);
    batch.ids.push_back(counted > 0 ? window : -1);
    add_row(batch, stream_, window * time_, counted, false);
  }
  return batch;
}

}  // namespace shardlings::data
