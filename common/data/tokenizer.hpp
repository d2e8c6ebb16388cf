#pragma once
// Text to token numbers and back. Bytes need nothing and are the default; SentencePiece BPE makes texts three
// to four times shorter.
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/corpus.hpp"

namespace shardlings::data {

/// decode(encode(text)) == text for every text without zero bytes. Thread-safe: nothing changes after
/// construction.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual i64 vocab_size() const = 0;  ///< tokens are 0 .. vocab_size() - 1
  /// The token that begins every document in a stream; encode never makes it, and decode shows it as an empty
  /// line.
  virtual int separator() const = 0;
  virtual std::vector<int> encode(std::string_view text) const = 0;
  virtual std::string decode(
      std::span<const int> tokens) const = 0;  ///< Error for a token outside the vocabulary
  virtual std::string name() const = 0;        ///< for config.json and messages
};

/// One token a byte, 256 of them; the separator is byte 0, which text does not have. encode: UsageError for a
/// zero byte.
std::unique_ptr<Tokenizer> byte_tokenizer();

/// Trains SentencePiece BPE with `vocab` tokens and writes the model to `path` (whole or not at all). The
/// settings keep every byte: no normalisation, no trimming of spaces, no leading space, unknown characters as
/// bytes. UsageError when the text has too few pairs for the vocabulary, or `vocab` has no room for the 256
/// bytes and 3 control tokens.
void train_sentencepiece(const Corpus& corpus, i64 vocab, const std::string& path);

/// A model written by train_sentencepiece; its separator is </s>. UsageError for a missing or foreign file,
/// and for a model with other settings, since it would not give the text back. encode: UsageError for text
/// that is not UTF-8.
std::unique_ptr<Tokenizer> load_sentencepiece(const std::string& path);

}  // namespace shardlings::data
