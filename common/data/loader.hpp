#pragma once
// From a stream of tokens to batches. Which tokens a micro-batch has is a pure function of (seed, its global
// number), so that a run can stop and go on, on any number of ranks, without seeing a token twice. Leaves
// out: fetching ahead, mixing of corpora.
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/corpus.hpp"
#include "data/shard.hpp"
#include "data/tokenizer.hpp"

namespace shardlings::data {

/// All documents one after the other, each begun by the separator. Copies share the tokens.
class TokenStream {
 public:
  /// Encodes every document. UsageError for a vocabulary of more than 65536.
  TokenStream(const Corpus& corpus, const Tokenizer& tokenizer);
  /// Shards in the order given, mapped. `separator`: the token that begins a document in them (GPT-2's is
  /// 50256).
  TokenStream(const std::vector<std::string>& shards, int separator);

  i64 size() const { return size_; }  ///< tokens, separators included
  int separator() const { return separator_; }
  i64 text_bytes() const {
    return text_bytes_;
  }  ///< bytes of text behind the tokens; 0 when unknown (shards)
  /// Tokens [begin, begin + count) into out, where after the last token comes the first again.
  void copy(i64 begin, i64 count, int* out) const;

 private:
  void append(std::span<const std::uint16_t> tokens);
  std::vector<std::shared_ptr<const void>> owners_;
  std::vector<std::span<const std::uint16_t>> pieces_;
  std::vector<i64> begins_;  // of each piece in the stream
  i64 size_ = 0, text_bytes_ = 0;
  int separator_ = 0;
};

struct Batch {
  i64 index = 0;                     ///< number of this micro-batch in the whole run, over all ranks, from 0
  i64 batch = 0, time = 0;           ///< B, T
  std::vector<int> tokens, targets;  ///< [B, T]; a target of -1 is not counted in the loss
  std::vector<i64> ids;              ///< [B] epoch * windows + window: names a sample of the run
  i64 counted = 0;                   ///< targets that are not -1
};

struct LoaderConfig {
  i64 batch = 1, time = 1;  ///< B sequences of T tokens in a micro-batch
  std::uint64_t seed = 1;
  i64 rank = 0, ranks = 1;  ///< this rank has the micro-batches rank, rank + ranks, rank + 2 ranks, …
  bool respect_documents =
      false;  ///< targets that belong to another document than their input token become -1
};

/// Training batches without end. An epoch cuts the stream (a ring) into size / T windows of T tokens,
/// beginning at a place of its own, and deals them in an order of its own; micro-batch g has samples g B .. g
/// B + B - 1 of the epochs put one after the other, so each epoch has each window once, whatever B and the
/// number of ranks are.
class Loader {
 public:
  /// UsageError: B or T below 1, T + 1 tokens more than the stream has, rank outside 0 .. ranks - 1.
  Loader(TokenStream stream, const LoaderConfig& config);

  Batch at(i64 index) const;  ///< micro-batch `index` of the run; thread-safe
  Batch next();               ///< this rank's next one
  /// A micro-batch of chosen samples, named as Batch::ids names them: for callers that deal out the epoch
  /// themselves. B is their number, and may be 0.
  Batch samples(i64 index, const std::vector<i64>& ids) const;

  i64 windows() const { return windows_; }  ///< samples in an epoch
  /// Micro-batches of the whole run that are done once every rank has called next() as often as this one: the
  /// number of the first one that is still to come. Counts all ranks, so a run may go on with another number
  /// of them.
  i64 position() const { return position_; }
  i64 epoch() const { return position_ * config_.batch / windows_; }  ///< of the next sample, from 0

  /// The position and all it depends on (batch, time, seed, tokens), for a checkpoint.
  std::map<std::string, std::string> state() const;
  /// Goes on at a saved position. UsageError with both numbers when anything that decides the order of the
  /// data differs.
  void restore(const std::map<std::string, std::string>& state);

 private:
  std::uint64_t key(i64 epoch) const;
  TokenStream stream_;
  LoaderConfig config_;
  i64 windows_ = 0, position_ = 0;
};

/// Every target of a stream exactly once and in order: for validation. The last batch is filled up with
/// targets of -1.
class Sequential {
 public:
  /// UsageError: B or T below 1, or T + 1 tokens more than the stream has.
  Sequential(TokenStream stream, i64 batch, i64 time);
  i64 size() const { return batches_; }
  Batch at(i64 index) const;                          ///< ids are numbers of windows, -1 where there is none
  i64 targets() const { return stream_.size() - 1; }  ///< counted over all batches

 private:
  TokenStream stream_;
  i64 batch_, time_, batches_ = 0;
};

}  // namespace shardlings::data
