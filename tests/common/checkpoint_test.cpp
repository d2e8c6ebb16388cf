// Checkpoints: GPT-2's layout, bitwise round trip, nothing written to a model that does not fit, nothing lost
// by a crash.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <thread>

#include "core/random.hpp"
#include "data_fixture.hpp"
#include "run/checkpoint.hpp"

namespace shardlings::run {
namespace {

/// Memory for parameters of some layers of a GPT, each filled with its own bits.
class Model {
 public:
  static constexpr i64 kHeads = 2, kChannels = 6;

  explicit Model(std::uint64_t seed, i64 layers = 1, DType dtype = DType::f32) : dtype_(dtype), seed_(seed) {
    add("wte.weight", {5, kChannels});
    add("wpe.weight", {4, kChannels});
    for (i64 layer = 0; layer < layers; ++layer) {
      const std::string h = "h." + std::to_string(layer);
      add(h + ".ln_1.weight", {kChannels});
      add(h + ".ln_1.bias", {kChannels});
      add(h + ".attn.c_attn.weight", {3 * kChannels, kChannels});
      add(h + ".attn.c_attn.bias", {3 * kChannels});
      add(h + ".attn.c_proj.weight", {kChannels, kChannels});
      add(h + ".mlp.c_fc.weight", {4 * kChannels, kChannels});
      add(h + ".mlp.c_proj.weight", {kChannels, 4 * kChannels});
    }
  }
  void add(const std::string& name, const Shape& shape) {
    auto& bytes = memory_[name];
    bytes.resize(static_cast<std::size_t>(numel_of(shape) * size_of(dtype_)));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(random_bits(key_of({seed_, key_of(name)}), i));  // NaNs and all
    }
    views.push_back({name, shape, dtype_, bytes.data()});
  }
  template <class S>
  S* data(const std::string& name) {
    return reinterpret_cast<S*>(memory_.at(name).data());
  }
  void fill(float value) {
    for (auto& [name, bytes] : memory_) {
      std::fill_n(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof value, value);
    }
  }
  bool operator==(const Model& other) const { return memory_ == other.memory_; }
  std::vector<ParameterView> views;

 private:
  DType dtype_;
  std::uint64_t seed_;
  std::map<std::string, std::vector<std::byte>> memory_;
};

std::vector<ParameterView> moments(Model& model) {
  std::vector<ParameterView> state;
  for (const ParameterView& v : model.views)
    state.push_back({"optimizer.m." + v.name, v.shape, v.dtype, v.data});
  return state;
}

class CheckpointTest : public InTempFolder {
 protected:
  std::string path() const { return at("checkpoint.safetensors"); }
  void save(const Model& model, const Metadata& metadata = {}) const {
    save_checkpoint(path(), model.views, Model::kHeads, {}, metadata);
  }
  /// Rewrites the checkpoint as a file of another program: other names, no record of heads, more tensors.
  void rewrite(const std::string& prefix, const std::vector<NamedTensor>& more) const {
    const SafetensorsFile ours(path());
    std::vector<NamedTensor> tensors = more;
    for (const std::string& name : ours.names()) {
      tensors.push_back(ours.find(name));
      tensors.back().name = prefix + name;
    }
    save_safetensors(at("foreign"), tensors, {});
  }
};

TEST_F(CheckpointTest, RoundTripIsBitwise) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    Model saved(1, 2, dtype), m(2, 2, dtype), loaded(3, 2, dtype), loaded_m(4, 2, dtype);
    save_checkpoint(path(), saved.views, Model::kHeads, moments(m), {{"step", "10"}});
    const Checkpoint checkpoint(path());
    EXPECT_TRUE(checkpoint.can_resume());
    EXPECT_EQ(checkpoint.metadata().at("step"), "10");
    checkpoint.load_weights(loaded.views, Model::kHeads);
    checkpoint.load_state(moments(loaded_m));
    EXPECT_TRUE(loaded == saved);
    EXPECT_TRUE(loaded_m == m);
  }
}

TEST_F(CheckpointTest, HasTheNamesAndTheLayoutOfGpt2) {
  Model model(1);
  // c_attn: each value says what it is, as which (q, k, v), head, place in the head, input.
  float* weight = model.data<float>("h.0.attn.c_attn.weight");
  float* bias = model.data<float>("h.0.attn.c_attn.bias");
  for (int head = 0; head < 2; ++head) {
    for (int which = 0; which < 3; ++which) {
      for (int d = 0; d < 3; ++d) {
        const int row = (head * 3 + which) * 3 + d;
        const auto meaning = static_cast<float>(1000 * which + 100 * head + 10 * d);
        bias[row] = meaning;
        for (int i = 0; i < 6; ++i) weight[row * 6 + i] = meaning + static_cast<float>(i);
      }
    }
  }
  save(model);
  const SafetensorsFile file(path());
  const NamedTensor w = file.find("h.0.attn.c_attn.weight"), b = file.find("h.0.attn.c_attn.bias");
  EXPECT_EQ(w.shape, (Shape{6, 18}));
  EXPECT_EQ(b.shape, (Shape{18}));
  const auto* theirs = reinterpret_cast<const float*>(w.data);
  for (int i = 0; i < 6; ++i) {
    for (int column = 0; column < 18; ++column) {  // q for all heads, then k, then v
      const int which = column / 6, head = column % 6 / 3, d = column % 3;
      const auto meaning = static_cast<float>(1000 * which + 100 * head + 10 * d);
      EXPECT_EQ(theirs[i * 18 + column], meaning + static_cast<float>(i));
      EXPECT_EQ(reinterpret_cast<const float*>(b.data)[column], meaning);
    }
  }
  // Other linear layers are transposed, tables are not.
  const NamedTensor fc = file.find("h.0.mlp.c_fc.weight"), wte = file.find("wte.weight");
  EXPECT_EQ(fc.shape, (Shape{6, 24}));
  EXPECT_EQ(std::memcmp(fc.data + 4 * 1, model.data<float>("h.0.mlp.c_fc.weight") + 6, 4),
            0);  // [0, 1] is our [1, 0]
  EXPECT_EQ(wte.shape, (Shape{5, 6}));
  EXPECT_EQ(std::memcmp(wte.data, model.data<float>("wte.weight"), 5 * 6 * 4), 0);
}

TEST_F(CheckpointTest, ReadsFilesOfOtherPrograms) {
  Model model(1), loaded(2);
  save(model);
  const std::vector<float> mask(16, 1.0F);
  const SafetensorsFile ours(path());
  NamedTensor head = ours.find("wte.weight");
  head.name = "lm_head.weight";
  rewrite("transformer.", {{"transformer.h.0.attn.bias",
                            DType::f32,
                            {1, 1, 4, 4},
                            reinterpret_cast<const std::byte*>(mask.data())},
                           head});
  const Checkpoint foreign(at("foreign"));
  EXPECT_FALSE(foreign.can_resume());
  foreign.load_weights(loaded.views, Model::kHeads);
  EXPECT_TRUE(loaded == model);
}

TEST_F(CheckpointTest, ReadsAHeadOfItsOwn) {
  Model model(1), loaded(2), tied(3);
  model.add("lm_head.weight", {5, Model::kChannels});
  loaded.add("lm_head.weight", {5, Model::kChannels});
  save(model);
  Checkpoint(path()).load_weights(loaded.views, Model::kHeads);
  EXPECT_TRUE(loaded == model);
  expect_refused([&] { Checkpoint(path()).load_weights(tied.views, Model::kHeads); }, "lm_head.weight",
                 "no place");
  EXPECT_TRUE(tied == Model(3));
}

TEST_F(CheckpointTest, ConvertsTypesOfWeights) {
  Model model(1), half(2, 1, DType::bf16), twice(3, 1, DType::f64);
  model.fill(1.00390625F);  // 1 + 2^-8: halfway between two bf16 values, rounds to the even 1.0
  model.data<float>("h.0.ln_1.bias")[2] = -3.5F;
  save(model);
  Checkpoint(path()).load_weights(half.views, Model::kHeads);
  Checkpoint(path()).load_weights(twice.views, Model::kHeads);
  EXPECT_EQ(static_cast<float>(half.data<bf16>("wte.weight")[7]), 1.0F);
  EXPECT_EQ(static_cast<float>(half.data<bf16>("h.0.ln_1.bias")[2]), -3.5F);
  EXPECT_EQ(twice.data<double>("wte.weight")[7], 1.00390625);
  EXPECT_EQ(twice.data<double>("h.0.ln_1.bias")[2], -3.5);
}

TEST_F(CheckpointTest, RefusesWhatDoesNotFitAndTouchesNothing) {
  Model one(1, 1), two(2, 2);
  save(one);
  expect_refused([&] { Checkpoint(path()).load_weights(two.views, Model::kHeads); }, path(),
                 "no h.1.ln_1.weight");
  EXPECT_TRUE(two == Model(2, 2));
  save(two);
  expect_refused([&] { Checkpoint(path()).load_weights(one.views, Model::kHeads); }, path(), "h.1.",
                 "no place");
  expect_refused([&] { Checkpoint(path()).load_weights(two.views, 3); }, "2 heads", "this one has 3");
  Model other(3, 2);
  other.views.back().shape = {12, 12};
  expect_refused([&] { Checkpoint(path()).load_weights(other.views, Model::kHeads); },
                 "h.1.mlp.c_proj.weight", "[24, 6]", "[12, 12] is expected");
  EXPECT_TRUE(one == Model(1, 1));
  EXPECT_TRUE(other == Model(3, 2));
}

TEST_F(CheckpointTest, RefusesToResumeFromWeightsAlone) {
  Model model(1), m(2), other(3, 1, DType::f64);
  save(model);
  EXPECT_FALSE(Checkpoint(path()).can_resume());
  expect_refused([&] { Checkpoint(path()).load_state(moments(m)); }, path(), "cannot be resumed from",
                 "optimizer.m.wte.weight");
  save_checkpoint(path(), model.views, Model::kHeads, moments(m), {});
  expect_refused([&] { Checkpoint(path()).load_state(moments(other)); }, "is f32 [5, 6]",
                 "f64 [5, 6] is expected");
  EXPECT_TRUE(m == Model(2));
}

TEST_F(CheckpointTest, KeepsTheOneBefore) {
  EXPECT_EQ(previous_checkpoint("runs/x/checkpoint.safetensors"), "runs/x/checkpoint.previous.safetensors");
  const Model model(1);
  for (int step = 1; step <= 3; ++step) save(model, {{"step", std::to_string(step)}});
  EXPECT_EQ(Checkpoint(path()).metadata().at("step"), "3");
  EXPECT_EQ(Checkpoint(previous_checkpoint(path())).metadata().at("step"), "2");
  // Damage is reported with the way out, and never pushes out the good one.
  std::string bytes = read("checkpoint.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write("checkpoint.safetensors", bytes);
  expect_refused([&] { Checkpoint c(path()); }, path(), "is damaged", previous_checkpoint(path()));
  save(model, {{"step", "4"}});
  EXPECT_EQ(Checkpoint(path()).metadata().at("step"), "4");
  EXPECT_EQ(Checkpoint(previous_checkpoint(path())).metadata().at("step"), "2");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2)
      << "something was left behind";
}

TEST_F(CheckpointTest, SurvivesKillAtAnyMoment) {
  Model model(1), loaded(2);
  model.add("lm_head.weight", {20000, Model::kChannels});
  loaded.add("lm_head.weight", {20000, Model::kChannels});
  model.fill(0);
  const auto begin = std::chrono::steady_clock::now();
  save_checkpoint(path(), model.views, Model::kHeads, moments(model), {{"step", "0"}});
  const auto one_save = std::chrono::steady_clock::now() - begin;
  int step = 0, interrupted = 0;
  for (std::uint64_t round = 0; round < 20; ++round) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int s = step + 1;; ++s) {
        model.fill(static_cast<float>(s));
        save_checkpoint(path(), model.views, Model::kHeads, moments(model), {{"step", std::to_string(s)}});
        if (::write(ready[1], "", 1) != 1) ::_exit(1);
      }
    }
    ::close(ready[1]);
    char first_save_done = 0;
    ASSERT_EQ(::read(ready[0], &first_save_done, 1), 1);
    std::this_thread::sleep_for(3 * one_save * uniform(99, round));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ::close(ready[0]);

    interrupted += std::filesystem::exists(path() + ".tmp") ? 1 : 0;
    const Checkpoint checkpoint(path());  // complete, or this throws
    const int found = std::stoi(checkpoint.metadata().at("step"));
    EXPECT_GT(found, step) << "the save that was done before the kill is gone";
    step = found;
    checkpoint.load_weights(loaded.views, Model::kHeads);
    model.fill(static_cast<float>(step));
    EXPECT_TRUE(loaded == model) << "old and new are mixed";
    checkpoint.load_state(moments(loaded));
    EXPECT_TRUE(loaded == model) << "old and new are mixed";
  }
  EXPECT_GT(interrupted, 0) << "no save was hit: the test proved nothing";
  EXPECT_NO_THROW(Checkpoint(previous_checkpoint(path())));
}

}  // namespace
}  // namespace shardlings::run
