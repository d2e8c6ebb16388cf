#include <fmt/format.h>

#include "core/error.hpp"
#include "data/tokenizer.hpp"

namespace shardlings::data {
namespace {

class ByteTokenizer : public Tokenizer {
 public:
  i64 vocab_size() const override { return 256; }
  int separator() const override { return 0; }
  std::string name() const override { return "bytes"; }

  std::vector<int> encode(std::string_view text) const override {
    std::vector<int> tokens;
    tokens.reserve(text.size());
    for (char c : text) {
      if (c == '\0') {
        fail_usage(fmt::format(
            "byte {} of the text is zero, which is kept for the separator between documents", tokens.size()));
      }
      tokens.push_back(static_cast<unsigned char>(c));
    }
    return tokens;
  }

  std::string decode(std::span<const int> tokens) const override {
    std::string text;
    text.reserve(tokens.size());
    for (int token : tokens) {
      require(0 <= token && token < 256,
              [&] { return fmt::format("token {} is not a byte (0 .. 255)", token); });
      if (token == separator()) {
        text += "\n\n";
      } else {
        text += static_cast<char>(token);
      }
    }
    return text;
  }
};

}  // namespace

std::unique_ptr<Tokenizer> byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

}  // namespace shardlings::data
