// SentencePiece behind our interface: how to train it so that no byte is lost, and the one character that it
// would lose.
#include <fmt/format.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <unordered_map>

#include "core/error.hpp"
#include "data/files.hpp"
#include "data/tokenizer.hpp"

namespace shardlings::data {
namespace {

constexpr std::string_view kSpaceMark =
    "\xe2\x96\x81";                    // U+2581: how SentencePiece writes a space inside its pieces
constexpr i64 kFixedTokens = 256 + 3;  // bytes, and <unk>, <s>, </s>

/// The corpus in pieces that SentencePiece does not skip: it drops lines of more than 4192 bytes, so lines
/// are cut at a space (which goes to the next piece, as pieces begin with their space) or else between
/// characters.
class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const Corpus& corpus) {
    for (const std::string& document : corpus.documents) {
      std::string_view rest = document;
      while (!rest.empty()) {
        const std::size_t end = rest.find('\n');
        add(rest.substr(0, end));
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      }
    }
  }
  bool done() const override { return at_ >= lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return lines_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  void add(std::string_view line) {
    constexpr std::size_t kMost = 4000;
    while (line.size() > kMost) {
      std::size_t cut = line.rfind(' ', kMost);
      if (cut == 0 || cut == std::string_view::npos) {
        cut = kMost;
        while (cut > 1 && (static_cast<unsigned char>(line[cut]) >> 6) == 0x2)
          --cut;  // not inside a character
      }
      lines_.emplace_back(line.substr(0, cut));
      line.remove_prefix(cut);
    }
    if (!line.empty()) lines_.emplace_back(line);
  }
  std::vector<std::string> lines_;
  std::size_t at_ = 0;
};

class SentencePieceTokenizer : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(const std::string& path) : path_(path) {
    const MappedFile file(path);
    const std::string model(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    const auto status = processor_.LoadFromSerializedProto(model);
    if (!status.ok() || processor_.eos_id() < 0) {
      fail_usage(
          fmt::format("{} ({} bytes) is not a SentencePiece model with a separator", path, model.size()));
    }
    // A probe of all that other settings change: spaces at both ends and doubled, a ligature, a rare
    // character, a line end.
    const std::string probe = "  A  \xef\xac\x81 \xf0\x90\x8c\xb0\n\t ";
    if (decode(encode(probe)) != probe) {
      fail_usage(
          fmt::format("{} does not give back every text exactly (trained without byte_fallback, or with "
                      "normalisation): train one with train_sentencepiece",
                      path));
    }
  }

  i64 vocab_size() const override { return processor_.GetPieceSize(); }
  int separator() const override { return processor_.eos_id(); }
  std::string name() const override { return "sentencepiece " + path_; }

  std::vector<int> encode(std::string_view text) const override {
    if (const auto bad = first_invalid_utf8(text)) {
      fail_usage(fmt::format("the text is not UTF-8: byte {} of {}", *bad, text.size()));
    }
    std::vector<int> tokens, part;
    while (!text.empty()) {
      // The space mark itself would come back as a space: it goes as its three bytes.
      const std::size_t mark = text.find(kSpaceMark);
      const std::string_view plain = text.substr(0, mark);
      const auto status = processor_.Encode({plain.data(), plain.size()}, &part);
      require(status.ok(), [&] { return "SentencePiece: " + status.ToString(); });
      tokens.insert(tokens.end(), part.begin(), part.end());
      text.remove_prefix(plain.size());
      if (mark == std::string_view::npos) break;
      for (char c : kSpaceMark) {
        tokens.push_back(processor_.PieceToId(fmt::format("<0x{:02X}>", static_cast<unsigned char>(c))));
      }
      text.remove_prefix(kSpaceMark.size());
    }
    return tokens;
  }

  std::string decode(std::span<const int> tokens) const override {
    std::string text, piece;
    std::vector<int> run;
    const auto flush = [&] {
      const auto status = processor_.Decode(run, &piece);
      require(status.ok(), [&] { return "SentencePiece: " + status.ToString(); });
      text += piece;
      run.clear();
    };
    for (int token : tokens) {
      require(0 <= token && token < vocab_size(),
              [&] { return fmt::format("token {} is outside the vocabulary of {}", token, vocab_size()); });
      if (token != separator()) {
        run.push_back(token);
        continue;
      }
      flush();
      text += "\n\n";
    }
    flush();
    return text;
  }

  static constexpr int kQuiet = 2;  // only errors

 private:
  std::string path_;
  sentencepiece::SentencePieceProcessor processor_;
};

}  // namespace

void train_sentencepiece(const Corpus& corpus, i64 vocab, const std::string& path) {
  if (vocab <= kFixedTokens) {
    fail_usage(
        fmt::format("a SentencePiece vocabulary of {} is too small: {} tokens are taken by the bytes and the "
                    "control tokens",
                    vocab, kFixedTokens));
  }
  const std::unordered_map<std::string, std::string> settings{
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(vocab)},
      {"byte_fallback", "true"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "false"},
      {"minloglevel", std::to_string(SentencePieceTokenizer::kQuiet)}};
  Lines lines(corpus);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &lines, &model);
  if (!status.ok()) {
    fail_usage(fmt::format("SentencePiece cannot make {} tokens from {} bytes of text: {}", vocab,
                           corpus.bytes(), status.ToString()));
  }
  AtomicFile file(path, static_cast<i64>(model.size()));
  file.write(model.data(), model.size());
  file.commit();
}

std::unique_ptr<Tokenizer> load_sentencepiece(const std::string& path) {
  return std::make_unique<SentencePieceTokenizer>(path);
}

}  // namespace shardlings::data
