// What the loader promises: right targets, every sample once an epoch, the same on any number of ranks, exact
// resume.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "data/loader.hpp"
#include "data_fixture.hpp"

namespace shardlings::data {
namespace {

/// A vocabulary that makes tokens out of places: each document is "begin,count" and becomes begin .. begin +
/// count - 1.
class Places : public Tokenizer {
 public:
  i64 vocab_size() const override { return 65536; }
  int separator() const override { return 65535; }
  std::string name() const override { return "places"; }
  std::string decode(std::span<const int>) const override { return ""; }
  std::vector<int> encode(std::string_view text) const override {
    const std::string s(text);
    std::vector<int> tokens(static_cast<std::size_t>(std::stoi(s.substr(s.find(',') + 1))));
    std::iota(tokens.begin(), tokens.end(), std::stoi(s));
    return tokens;
  }
};

/// Documents of `length` tokens behind a separator; every other token is the number of its place in the
/// stream.
TokenStream stream_of(i64 documents, i64 length) {
  Corpus corpus;
  for (i64 d = 0; d < documents; ++d) {
    corpus.documents.push_back(std::to_string(d * (length + 1) + 1) + "," + std::to_string(length));
  }
  return {corpus, Places()};
}
constexpr int kSeparator = 65535;

std::vector<int> contents(const TokenStream& stream) {
  std::vector<int> all(static_cast<std::size_t>(stream.size()));
  stream.copy(0, stream.size(), all.data());
  return all;
}

/// Ids of `count` calls of next().
std::vector<i64> next_ids(Loader& loader, i64 count) {
  std::vector<i64> ids;
  for (i64 i = 0; i < count; ++i) {
    const Batch batch = loader.next();
    ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
  }
  return ids;
}

using TokenStreamTest = InTempFolder;

TEST_F(TokenStreamTest, BeginsEveryDocumentWithTheSeparator) {
  const TokenStream stream(Corpus{{"ab", "c"}}, *byte_tokenizer());
  EXPECT_EQ(contents(stream), (std::vector<int>{0, 'a', 'b', 0, 'c'}));
  EXPECT_EQ(stream.text_bytes(), 3);
}

TEST_F(TokenStreamTest, RunsOverShardsAndAroundTheEnd) {
  write_shard(at("1.bin"), std::vector<std::uint16_t>{9, 1, 2});
  write_shard(at("2.bin"), {});
  write_shard(at("3.bin"), std::vector<std::uint16_t>{3, 65000});
  const TokenStream stream({at("1.bin"), at("2.bin"), at("3.bin")}, 9);
  std::vector<int> out(9);
  stream.copy(2, 9, out.data());
  EXPECT_EQ(out, (std::vector<int>{2, 3, 65000, 9, 1, 2, 3, 65000, 9}));
}

TEST_F(TokenStreamTest, RefusesTokensThatDoNotFit) {
  class Huge : public Places {
    i64 vocab_size() const override { return 65537; }
  };
  expect_refused([] { TokenStream(Corpus{{"0,1"}}, Huge()); }, "65537", "65536");
}

TEST(Loader, TargetsAreTheNextTokens) {
  const TokenStream stream = stream_of(7, 10);
  const std::vector<int> all = contents(stream);
  const Loader loader(stream, {.batch = 3, .time = 8, .seed = 5});
  for (i64 index = 0; index < 20; ++index) {
    const Batch batch = loader.at(index);
    EXPECT_EQ(batch.index, index);
    EXPECT_EQ(batch.counted, 24);
    ASSERT_EQ(batch.tokens.size(), 24U);
    ASSERT_EQ(batch.targets.size(), 24U);
    for (std::size_t row = 0; row < 3; ++row) {
      // Places are unique but for separators: find one and follow the stream from there, around its end.
      std::size_t place = 0;
      for (std::size_t t = 0; t < 8; ++t) {
        const int token = batch.tokens[row * 8 + t];
        if (token != kSeparator) place = (static_cast<std::size_t>(token) + all.size() - t) % all.size();
      }
      for (std::size_t t = 0; t < 8; ++t) {
        EXPECT_EQ(batch.tokens[row * 8 + t], all[(place + t) % all.size()]);
        EXPECT_EQ(batch.targets[row * 8 + t], all[(place + t + 1) % all.size()]);
      }
    }
  }
}

// Rejects: chosen samples that are not those which at() names, and a micro-batch without samples that is
// refused.
TEST(Loader, GivesChosenSamples) {
  const Loader loader(stream_of(7, 10), {.batch = 3, .time = 8, .seed = 5});
  for (const i64 index : {i64{0}, 2 * loader.windows()}) {
    const Batch whole = loader.at(index);
    const Batch two = loader.samples(17, {whole.ids[2], whole.ids[0]});
    EXPECT_EQ(two.index, 17);
    EXPECT_EQ(two.batch, 2);
    EXPECT_EQ(two.counted, 16);
    for (std::size_t t = 0; t < 8; ++t) {
      EXPECT_EQ(two.tokens[t], whole.tokens[16 + t]);
      EXPECT_EQ(two.targets[8 + t], whole.targets[t]);
    }
  }
  EXPECT_EQ(loader.samples(0, {}).counted, 0);
  EXPECT_THROW((void)loader.samples(0, {-1}), Error);
}

TEST(Loader, RespectsDocumentsWhenAsked) {
  const Loader plain(stream_of(7, 10), {.batch = 2, .time = 16, .seed = 3});
  const Loader masked(stream_of(7, 10), {.batch = 2, .time = 16, .seed = 3, .respect_documents = true});
  i64 masks = 0;
  for (i64 index = 0; index < 10; ++index) {
    const Batch a = plain.at(index), b = masked.at(index);
    EXPECT_EQ(a.tokens, b.tokens);
    i64 counted = 0;
    for (std::size_t i = 0; i < a.targets.size(); ++i) {
      const bool crosses = a.targets[i] == kSeparator;
      EXPECT_EQ(b.targets[i], crosses ? -1 : a.targets[i]);
      counted += crosses ? 0 : 1;
      masks += crosses ? 1 : 0;
    }
    EXPECT_EQ(b.counted, counted);
  }
  EXPECT_GT(masks, 10);
}

TEST(Loader, DealsEachWindowOnceAnEpochInAnotherOrder) {
  // 22 samples, 2 ranks, 3 epochs: an order that does not depend on the epoch would repeat itself.
  std::vector<std::vector<i64>> orders;
  std::vector<Loader> loaders;
  for (i64 rank = 0; rank < 2; ++rank) {
    loaders.emplace_back(stream_of(8, 10),
                         LoaderConfig{.batch = 1, .time = 4, .seed = 9, .rank = rank, .ranks = 2});
  }
  ASSERT_EQ(loaders[0].windows(), 22);
  for (i64 epoch = 0; epoch < 3; ++epoch) {
    std::vector<i64> order;
    for (i64 i = 0; i < 11; ++i) {
      EXPECT_EQ(loaders[0].epoch(), epoch);
      for (Loader& loader : loaders) order.push_back(loader.next().ids[0] - epoch * 22);
    }
    EXPECT_EQ((std::set<i64>(order.begin(), order.end()).size()), 22U);
    EXPECT_EQ(*std::min_element(order.begin(), order.end()), 0);
    EXPECT_EQ(*std::max_element(order.begin(), order.end()), 21);
    orders.push_back(order);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
  EXPECT_NE(orders[0], orders[2]);
  Loader again(stream_of(8, 10), {.batch = 1, .time = 4, .seed = 9});
  EXPECT_EQ(next_ids(again, 22), orders[0]);  // repeatable, and the same on one rank
  Loader other(stream_of(8, 10), {.batch = 1, .time = 4, .seed = 10});
  EXPECT_NE(next_ids(other, 22), orders[0]);
}

TEST(Loader, CoversTheTokensOfAnEpochOnce) {
  // 88 tokens in 22 windows of 4: whatever the shift is, each place is an input exactly once.
  const Loader loader(stream_of(8, 10), {.batch = 2, .time = 4, .seed = 4});
  std::map<int, int> seen;
  for (i64 index = 0; index < 11; ++index) {
    for (int token : loader.at(index).tokens) ++seen[token];
  }
  EXPECT_EQ(seen.size(), 81U);
  for (const auto& [token, times] : seen) EXPECT_EQ(times, token == kSeparator ? 8 : 1);
}

TEST(Loader, CutsEpochsAtDifferentPlaces) {
  const Loader loader(stream_of(8, 10), {.batch = 22, .time = 4, .seed = 4});
  std::set<int> first_rows;
  for (i64 epoch = 0; epoch < 40; ++epoch) {
    const Batch batch = loader.at(epoch);
    for (std::size_t row = 0; row < 22; ++row) {
      if (batch.tokens[row * 4] != kSeparator) first_rows.insert(batch.tokens[row * 4] % 4);
    }
  }
  EXPECT_EQ(first_rows.size(), 4U);  // always the same cut would give one
}

TEST(Loader, GlobalBatchesDoNotDependOnTheNumberOfRanks) {
  Loader one(stream_of(8, 10), {.batch = 3, .time = 4, .seed = 2});
  std::vector<Loader> three;
  for (i64 rank = 0; rank < 3; ++rank) {
    three.emplace_back(stream_of(8, 10),
                       LoaderConfig{.batch = 3, .time = 4, .seed = 2, .rank = rank, .ranks = 3});
  }
  for (i64 i = 0; i < 12; ++i) {
    Loader& loader = three[static_cast<std::size_t>(i % 3)];
    const Batch expected = one.next(), actual = loader.next();
    EXPECT_EQ(actual.index, i);
    EXPECT_EQ(actual.ids, expected.ids);
    EXPECT_EQ(actual.tokens, expected.tokens);
  }
  for (const Loader& loader : three) EXPECT_EQ(loader.position(), one.position());
}

TEST(Loader, ResumesAtTheNextMicroBatch) {
  // 10 steps of 4 micro-batches; 2 samples each, so that epochs of 22 end inside steps.
  const LoaderConfig config{.batch = 2, .time = 4, .seed = 6};
  Loader whole(stream_of(8, 10), config), before(stream_of(8, 10), config), after(stream_of(8, 10), config);
  const std::vector<i64> expected = next_ids(whole, 80);
  std::vector<i64> actual = next_ids(before, 40);
  after.restore(before.state());
  EXPECT_EQ(after.position(), 40);
  const Batch first = after.next();  // number 41
  EXPECT_EQ(first.index, 40);
  actual.insert(actual.end(), first.ids.begin(), first.ids.end());
  const std::vector<i64> rest = next_ids(after, 39);
  actual.insert(actual.end(), rest.begin(), rest.end());
  EXPECT_EQ(actual, expected);
  EXPECT_EQ((std::set<i64>(actual.begin(), actual.end()).size()), actual.size()) << "an id was repeated";
  EXPECT_EQ(*std::max_element(actual.begin(), actual.end()) / 22, 7);  // 160 samples: epochs 0 .. 7
}

TEST(Loader, ResumesOnAnotherNumberOfRanks) {
  std::vector<Loader> two;
  for (i64 rank = 0; rank < 2; ++rank) {
    two.emplace_back(stream_of(8, 10), LoaderConfig{.batch = 1, .time = 4, .rank = rank, .ranks = 2});
    (void)next_ids(two.back(), 3);
  }
  Loader one(stream_of(8, 10), {.batch = 1, .time = 4});
  one.restore(two[1].state());
  EXPECT_EQ(one.next().index, 6);
}

TEST(Loader, RefusesToGoOnWithOtherData) {
  Loader saved(stream_of(8, 10), {.batch = 2, .time = 4, .seed = 6});
  (void)saved.next();
  const auto state = saved.state();
  Loader batch(stream_of(8, 10), {.batch = 3, .time = 4, .seed = 6});
  expect_refused([&] { batch.restore(state); }, "data.batch was 2", "is 3 now");
  Loader time(stream_of(8, 10), {.batch = 2, .time = 5, .seed = 6});
  expect_refused([&] { time.restore(state); }, "data.time was 4", "is 5 now");
  Loader seed(stream_of(8, 10), {.batch = 2, .time = 4, .seed = 7});
  expect_refused([&] { seed.restore(state); }, "data.seed was 6", "is 7 now");
  Loader text(stream_of(8, 11), {.batch = 2, .time = 4, .seed = 6});
  expect_refused([&] { text.restore(state); }, "data.tokens was 88", "is 96 now");
  auto without = state;
  without.erase("data.position");
  expect_refused([&] { saved.restore(without); }, "data.position");
  auto nonsense = state;
  nonsense["data.position"] = "4x";
  expect_refused([&] { saved.restore(nonsense); }, "\"4x\"");
  EXPECT_EQ(batch.position(), 0);
  EXPECT_EQ(saved.position(), 1);
}

TEST(Loader, RefusesImpossibleSizesWithNumbers) {
  const TokenStream stream = stream_of(1, 9);  // 10 tokens
  expect_refused([&] { Loader(stream, {.batch = 0, .time = 4}); }, "batch 0");
  expect_refused([&] { Loader(stream, {.batch = 1, .time = 0}); }, "T 0");
  expect_refused([&] { Loader(stream, {.batch = 1, .time = 10}); }, "T 10", "11 tokens", "it has 10");
  expect_refused([&] { Loader(stream, {.batch = 1, .time = 1, .rank = 2, .ranks = 2}); }, "rank 2 of 2");
  expect_refused([&] { Sequential(stream, 0, 4); }, "batch 0");
  expect_refused([&] { Sequential(stream, 1, 10); }, "T 10", "11 tokens", "it has 10");
  EXPECT_EQ(Loader(stream, {.batch = 1, .time = 9}).windows(), 1);
  EXPECT_THROW((void)Loader(stream, {.batch = 1, .time = 9}).at(-1), Error);
}

TEST(Sequential, CountsEveryTargetOnce) {
  for (i64 batch : {1, 2, 3}) {
    for (i64 time : {1, 4, 7, 87}) {
      const TokenStream stream = stream_of(8, 10);  // 88 tokens
      const std::vector<int> all = contents(stream);
      const Sequential validation(stream, batch, time);
      std::vector<int> targets;
      i64 counted = 0, windows = 0;
      for (i64 i = 0; i < validation.size(); ++i) {
        const Batch b = validation.at(i);
        EXPECT_EQ(static_cast<i64>(b.tokens.size()), batch * time);
        for (std::size_t k = 0; k < b.targets.size(); ++k) {
          if (b.targets[k] == -1) continue;
          EXPECT_EQ(b.tokens[k], all[targets.size()]);
          targets.push_back(b.targets[k]);
        }
        counted += b.counted;
        for (i64 id : b.ids) windows += id == -1 ? 0 : 1;
      }
      EXPECT_EQ(targets, std::vector<int>(all.begin() + 1, all.end()));
      EXPECT_EQ(counted, validation.targets());
      EXPECT_EQ(windows, (87 + time - 1) / time);
      EXPECT_GT(validation.at(validation.size() - 1).counted, 0);  // no empty batch at the end
    }
  }
}

}  // namespace
}  // namespace shardlings::data
