// Sampling: what is drawn is a function of model, prompt and seed, and only likely tokens are drawn.
#include "run/sample.hpp"

#include <algorithm>

#include "train_fixture.hpp"

namespace shardlings {
namespace {

/// Remembers what it is asked to decode, so that tests see tokens and not text.
class Recorder : public data::Tokenizer {
 public:
  i64 vocab_size() const override { return 256; }
  int separator() const override { return 0; }
  std::vector<int> encode(std::string_view text) const override { return {text.begin(), text.end()}; }
  std::string decode(std::span<const int> tokens) const override {
    drawn.assign(tokens.begin(), tokens.end());
    return "";
  }
  std::string name() const override { return "recorder"; }
  mutable std::vector<int> drawn;
};

/// A model that has seen some text, so that its tokens are not all equally likely.
struct Writer {
  explicit Writer(Rank& rank) : run(rank) { run.train(tiny_options(20)); }
  std::vector<int> write(const std::string& prompt, const run::SampleOptions& options) {
    run::sample(run.rank, run.model, run.single, recorder, prompt, options);
    return recorder.drawn;
  }
  /// Logits of the token that comes after these, of which the model sees the last T.
  std::vector<double> logits_after(const std::vector<int>& tokens) {
    MicroBatch mb;
    mb.batch = 1;
    mb.time = std::min<i64>(static_cast<i64>(tokens.size()), run.model.config.time);
    mb.training = false;
    mb.tokens.assign(tokens.end() - mb.time, tokens.end());
    std::vector<double> all = elements_of(run.model.logits(run.rank, mb, run.single));
    return {all.end() - run.model.config.vocab, all.end()};
  }
  TinyRun run;
  Recorder recorder;
};

// Rejects: chance at temperature 0, a wrong row of the logits, a prompt that does not begin a document.
TEST(Sample, TemperatureZeroTakesTheMostLikely) {
  on_one_rank([](Rank& rank) {
    Writer writer(rank);
    const std::vector<int> drawn = writer.write("abc", {20, 0, 0, 1});
    EXPECT_EQ(drawn, writer.write("abc", {20, 0, 0, 2})) << "the seed must not matter";
    std::vector<int> tokens = {0, 'a', 'b', 'c'};
    for (const int token : drawn) {
      const std::vector<double> logits = writer.logits_after(tokens);
      EXPECT_EQ(token, std::max_element(logits.begin(), logits.end()) - logits.begin());
      tokens.push_back(token);
    }
  });
}

// Rejects: a cut at a wrong rank (k - 1, k + 1), and a cut that always leaves one.
TEST(Sample, TopKDrawsFromTheKMostLikely) {
  on_one_rank([](Rank& rank) {
    Writer writer(rank);
    EXPECT_EQ(writer.write("abc", {20, 1.0, 1, 1}), writer.write("abc", {20, 0, 0, 1})) << "k = 1 is greedy";
    for (const i64 k : {2, 5}) {
      std::vector<int> tokens = {0};
      std::vector<i64> ranks_seen(static_cast<std::size_t>(k));
      for (const int token : writer.write("", {200, 5.0, k, 3})) {
        const std::vector<double> logits = writer.logits_after(tokens);
        const double own = logits[static_cast<std::size_t>(token)];
        const i64 better = std::count_if(logits.begin(), logits.end(), [&](double l) { return l > own; });
        ASSERT_LT(better, k);
        ++ranks_seen[static_cast<std::size_t>(better)];
        tokens.push_back(token);
      }
      for (const i64 seen : ranks_seen) EXPECT_GT(seen, 0) << "k = " << k << ": one of the k is never drawn";
    }
  });
}

// Rejects: draws that depend on anything but the seed, and a temperature that is not used.
TEST(Sample, SeedAndTemperatureDecide) {
  on_one_rank([](Rank& rank) {
    Writer writer(rank);
    const std::vector<int> drawn = writer.write("abc", {40, 1.0, 0, 1});
    EXPECT_EQ(drawn, writer.write("abc", {40, 1.0, 0, 1}));
    EXPECT_NE(drawn, writer.write("abc", {40, 1.0, 0, 2}));
    EXPECT_EQ(drawn.size(), 40U);
    EXPECT_TRUE(writer.write("abc", {0, 1.0, 0, 1}).empty());
    EXPECT_EQ(writer.write("abc", {40, 1e-9, 0, 7}), writer.write("abc", {40, 0, 0, 1}))
        << "almost no temperature is none";
    // The text is of 26 letters: hot draws leave them more often than cool ones.
    const auto foreign = [&](double temperature) {
      const std::vector<int> tokens = writer.write("abc", {400, temperature, 0, 5});
      return std::count_if(tokens.begin(), tokens.end(), [](int t) { return t < 'a' || t > 'z'; });
    };
    EXPECT_GT(foreign(100), foreign(0.5) + 100);
  });
}

// Rejects: a window that is not moved along, or does not end at the last token.
TEST(Sample, SeesTheLastTTokens) {
  on_one_rank([](Rank& rank) {
    Writer writer(rank);
    for (Parameter* p : writer.run.model.parameters()) {  // weights so large that every token matters
      for (i64 i = 0; i < p->numel(); ++i)
        p->value.set(i, p->mean + 0.5 * normal(key_of(p->name), static_cast<std::uint64_t>(i)));
    }
    EXPECT_EQ(writer.write("xxxxabcdefgh", {30, 1.0, 0, 1}), writer.write("yyabcdefgh", {30, 1.0, 0, 1}))
        << "T is 8: what stands before the last 8 must not matter";
    EXPECT_NE(writer.write("abcdefgh", {30, 1.0, 0, 1}), writer.write("abcdefgx", {30, 1.0, 0, 1}));
  });
}

}  // namespace
}  // namespace shardlings
