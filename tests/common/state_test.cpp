// Checkpoints of whole runs: what goes on is the same to the bit, and what does not fit is refused by name.
#include <cmath>

#include "data_fixture.hpp"
#include "train_fixture.hpp"

namespace shardlings {
namespace {

class StateTest : public InTempFolder {
 protected:
  std::string path() const { return at("checkpoint.safetensors"); }
  /// A checkpoint after five steps of a tiny run.
  void make_checkpoint(const GptConfig& config = tiny_config()) const {
    on_one_rank([&](Rank& rank) {
      TinyRun t(rank, config);
      t.train(tiny_options(5));
      t.save(path(), 5);
    });
  }
  /// The sentence with which a run with this configuration refuses the file.
  std::string refusal_of(const GptConfig& config, i64 batch = 2) const {
    std::string sentence;
    on_one_rank([&](Rank& rank) {
      TinyRun t(rank, config, batch);
      const std::vector<double> before = elements_of(t.single.flat().values);
      sentence = refusal([&] { run::resume_run(path(), t.model, t.single, t.loader); });
      EXPECT_TRUE(elements_of(t.single.flat().values) == before) << "weights changed by a refused file";
    });
    return sentence;
  }
};

void expect_has(const std::string& sentence, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(sentence.find(part), std::string::npos) << "\"" << part << "\" is missing in: " << sentence;
}

// Case C24. Rejects: whatever is not saved or not put back. Types with a master copy too.
TEST_F(StateTest, ResumedRunHasTheSameBits) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    on_one_rank([&](Rank& rank) {
      const GptConfig config = tiny_config(dtype);
      TinyRun straight(rank, config), first(rank, config), second(rank, config);
      const std::vector<double> losses = losses_of(straight.train(tiny_options(20)));
      first.train(tiny_options(10));
      first.save(path(), 10);
      second.train(tiny_options(3));  // what was there before must not matter
      ASSERT_EQ(run::resume_run(path(), second.model, second.single, second.loader), 10);
      const std::vector<double> rest = losses_of(second.train(tiny_options(20, 10)));
      EXPECT_TRUE(rest == std::vector<double>(losses.begin() + 10, losses.end())) << name_of(dtype);
      EXPECT_TRUE(elements_of(second.single.flat().values) == elements_of(straight.single.flat().values));
    });
  }
}

// Rejects: a conversion to GPT-2's layout and back that is no permutation; loading that touches a moment.
TEST_F(StateTest, WeightsComeBackBitwise) {
  for (const bool tied : {true, false}) {
    on_one_rank([&](Rank& rank) {
      GptConfig config = tiny_config();
      config.tied = tied;
      TinyRun t(rank, config), other(rank, config);
      t.train(tiny_options(2));
      t.save(path(), 2);
      run::load_model(path(), other.model);
      EXPECT_TRUE(elements_of(other.single.flat().values) == elements_of(t.single.flat().values));
      EXPECT_EQ(other.single.adam().steps(), 0);
    });
  }
}

TEST_F(StateTest, RefusesAnotherConfigurationByNameAndNumbers) {
  make_checkpoint();
  GptConfig c = tiny_config();
  c.layers = 2;
  expect_has(refusal_of(c), {path(), "model.layers = 1", "2"});
  c = tiny_config();
  c.channels = 24;
  expect_has(refusal_of(c), {"model.channels = 12", "24"});
  c = tiny_config();
  c.heads = 3;
  expect_has(refusal_of(c), {"model.heads = 2", "3"});
  c = tiny_config();
  c.dropout = 0.2;
  expect_has(refusal_of(c), {"model.dropout = 0.1", "0.2"});
  c = tiny_config();
  c.tied = false;
  expect_has(refusal_of(c), {"model.tied = true", "false"});
  expect_has(refusal_of(tiny_config(DType::f64)), {"model.dtype = f32", "f64"});
  expect_has(refusal_of(tiny_config(), 3), {"data.batch", "2", "3"});
}

TEST_F(StateTest, RefusesDamagedFiles) {
  make_checkpoint();
  const std::string whole = read("checkpoint.safetensors");
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{500}, whole.size() - 1}) {
    write("checkpoint.safetensors", whole.substr(0, size));
    expect_has(refusal_of(tiny_config()), {path()});
  }
  std::string flipped = whole;
  flipped[whole.size() - 100] = static_cast<char>(flipped[whole.size() - 100] ^ 1);
  write("checkpoint.safetensors", flipped);
  expect_has(refusal_of(tiny_config()), {path()});
  std::filesystem::remove(path());
  expect_has(refusal_of(tiny_config()), {path()});
}

// Rejects: going on from weights alone as if moments were zero.
TEST_F(StateTest, RefusesWeightsOnly) {
  on_one_rank([&](Rank& rank) {
    TinyRun t(rank);
    run::save_checkpoint(path(), run::weight_views(t.model), t.model.config.heads, {}, {});
    run::load_model(path(), t.model);
  });
  expect_has(refusal_of(tiny_config()), {path(), "weights", "cannot be resumed, only loaded"});
}

TEST_F(StateTest, NumbersOfAFile) {
  const run::Metadata facts = {
      {"good", "12"}, {"word", "ten"}, {"sign", "-3"}, {"none", ""}, {"long", "99999999999999999999"}};
  EXPECT_EQ(run::number_of(facts, "good", "file"), 12);
  for (const char* key : {"word", "sign", "none", "long"})
    expect_refused([&] { run::number_of(facts, key, "file"); }, "file", key, facts.at(key));
  expect_refused([&] { run::number_of(facts, "step", "file"); }, "file", "\"step\" is missing");
}

// Rejects: sums that depend on how many threads there are by more than rounding.
TEST(State, ThreadsDoNotChangeTheLoss) {
  double losses[2] = {};
  for (const int threads : {1, 2}) {
    on_one_rank(
        [&](Rank& rank) {
          GptConfig config = tiny_config();
          config.channels = 32;
          config.time = 16;
          TinyRun t(rank, config, 4);
          run::TrainOptions options = tiny_options(100);
          options.rate = [](i64) { return 1e-3; };
          losses[threads - 1] = t.train(options).loss;
        },
        threads);
  }
  EXPECT_NEAR(losses[0], losses[1], 1e-4);
}

// Rejects: initial weights that are too large, a head that is too sure.
TEST(State, FirstLossIsLogV) {
  on_one_rank([](Rank& rank) {
    for (const bool tied : {true, false}) {
      GptConfig config = named_config("char").model;
      config.tied = tied;
      TinyRun t(rank, config, 4);
      const double wanted = std::log(static_cast<double>(config.vocab));
      EXPECT_NEAR(t.train(tiny_options(1)).loss, wanted, 0.01 * wanted) << (tied ? "tied" : "untied");
    }
  });
}

}  // namespace
}  // namespace shardlings
