// Both tokenizers give back what they were given, byte for byte.
#include "data/tokenizer.hpp"
#include "data_fixture.hpp"

namespace shardlings::data {
namespace {

const std::string kHard =
    "  two  spaces, a tab\t, a line\nand \r\n, \xc3\xa9 \xe2\x80\x94 \xf0\x90\x8c\xb0, \xef\xac\x81, a space "
    "mark "
    "\xe2\x96\x81\xe2\x96\x81, <s> </s> <unk> <0x41>, the end   ";

/// Sentences enough for a small vocabulary, in lines far longer than the 4192 bytes that SentencePiece skips.
Corpus sentences() {
  Corpus corpus;
  for (int d = 0; d < 4; ++d) {
    std::string document;
    for (int i = 0; i < 400; ++i) {
      const std::string n = std::to_string(i * 7 + d);
      document.append("Rank ").append(n).append(" gathers its shard, adds the gradient of micro-batch ");
      document.append(n).append(" and waits for the others. ");
    }
    corpus.documents.push_back(document);
  }
  return corpus;
}

TEST(Tokenizer, BytesGiveBackEveryText) {
  const auto bytes = byte_tokenizer();
  EXPECT_EQ(bytes->vocab_size(), 256);
  EXPECT_EQ(bytes->encode("A\xff"), (std::vector<int>{65, 255}));
  EXPECT_EQ(bytes->decode(bytes->encode(kHard)), kHard);
  std::string all;
  for (int b = 1; b < 256; ++b) all += static_cast<char>(b);
  EXPECT_EQ(bytes->decode(bytes->encode(all)), all);
}

TEST(Tokenizer, BytesKeepZeroForTheSeparator) {
  const auto bytes = byte_tokenizer();
  expect_refused([&] { (void)bytes->encode(std::string("ab\0", 3)); }, "byte 2");
  EXPECT_EQ(bytes->decode(std::vector<int>{97, bytes->separator(), 98}), "a\n\nb");
  EXPECT_THROW((void)bytes->decode(std::vector<int>{256}), Error);
  EXPECT_THROW((void)bytes->decode(std::vector<int>{-1}), Error);
}

class SentencePiece : public InTempFolder {
 protected:
  void SetUp() override {
    InTempFolder::SetUp();
    train_sentencepiece(sentences(), 400, at("bpe.model"));
    tokenizer_ = load_sentencepiece(at("bpe.model"));
  }
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(SentencePiece, GivesBackEveryTextExactly) {
  EXPECT_EQ(tokenizer_->vocab_size(), 400);
  for (const std::string& text : {kHard, std::string(""), std::string(" "), std::string("\n"),
                                  std::string("a"), sentences().documents[1], std::string("\xe2\x96\x81")}) {
    EXPECT_EQ(tokenizer_->decode(tokenizer_->encode(text)), text);
  }
}

TEST_F(SentencePiece, LearnedFromLongLines) {
  // Skipped lines would leave it with single characters, one token each.
  const std::string text = sentences().documents[0];
  EXPECT_LT(tokenizer_->encode(text).size(), text.size() / 3);
}

TEST_F(SentencePiece, NeverEncodesTheSeparator) {
  const std::vector<int> tokens = tokenizer_->encode(kHard);
  for (int token : tokens) EXPECT_NE(token, tokenizer_->separator());
  std::vector<int> two = tokenizer_->encode("one");
  two.push_back(tokenizer_->separator());
  for (int token : tokenizer_->encode("two")) two.push_back(token);
  EXPECT_EQ(tokenizer_->decode(two), "one\n\ntwo");
}

TEST_F(SentencePiece, TrainsTheSameModelAgain) {
  train_sentencepiece(sentences(), 400, at("again.model"));
  EXPECT_EQ(read("again.model"), read("bpe.model"));
}

TEST_F(SentencePiece, RefusesWhatItCannotDo) {
  expect_refused([&] { train_sentencepiece(sentences(), 259, at("x")); }, "259", "too small");
  expect_refused([&] { train_sentencepiece(sentences(), 50000, at("x")); }, "50000 tokens", "bytes of text");
  EXPECT_FALSE(std::filesystem::exists(at("x")));
  write("foreign.model", "this is no model");
  expect_refused([&] { load_sentencepiece(at("foreign.model")); }, "foreign.model (16 bytes)",
                 "not a SentencePiece model");
  write("half.model", read("bpe.model").substr(0, 3000));
  expect_refused([&] { load_sentencepiece(at("half.model")); }, "half.model (3000 bytes)");
  expect_refused([&] { load_sentencepiece(at("none.model")); }, "none.model", "No such file");
  expect_refused([&] { (void)tokenizer_->encode("ab\xff"); }, "byte 2 of 3", "UTF-8");
  EXPECT_THROW((void)tokenizer_->decode(std::vector<int>{400}), Error);
}

}  // namespace
}  // namespace shardlings::data
