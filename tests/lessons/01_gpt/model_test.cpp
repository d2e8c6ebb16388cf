// The whole model with the learner's layers: gradients, equality with the library's kernels, memory,
// robustness.
#include <fmt/format.h>

#include "gpt_test.hpp"
#include "optim/gradient_check.hpp"
#include "plain_layers.hpp"

namespace shardlings {
namespace {

constexpr const char* kAdvice =
    "\n  Do the tests of the single layers pass? Then look at what differs here: several heads, several "
    "rows.";

GptConfig small_config() {
  GptConfig c;
  c.layers = 2;
  c.heads = 2;
  c.channels = 8;
  c.time = 9;
  c.vocab = 65;
  c.dtype = DType::f64;
  return c;
}

/// Text without sense; every fifth target is not counted.
MicroBatch some_batch(i64 batch, i64 time, i64 vocab, i64 index = 0) {
  MicroBatch mb;
  mb.index = index;
  mb.batch = batch;
  mb.time = time;
  i64 counted = 0;
  for (i64 i = 0; i < batch * time; ++i) {
    const auto draw = [&](std::uint64_t stream) {
      return static_cast<int>(
          random_bits(key_of({stream, static_cast<std::uint64_t>(index)}), static_cast<std::uint64_t>(i)) %
          static_cast<std::uint64_t>(vocab));
    };
    mb.tokens.push_back(draw(1));
    mb.targets.push_back(i % 5 == 4 ? -1 : draw(2));
    counted += mb.targets.back() >= 0 ? 1 : 0;
  }
  mb.loss_scale = 1 / static_cast<double>(counted);
  return mb;
}

/// A model with these layers, on one rank. `lively`: larger random weights than GPT-2 starts from, so that no
/// gradient is almost zero.
struct Trainer {
  Trainer(Rank& its_rank, const GptConfig& config, LayerFactory& layers, bool lively = true)
      : rank(its_rank), model(config, layers), single(rank, model, AdamConfig{}) {
    if (!lively) return;
    for (Parameter* p : model.parameters()) {
      for (i64 i = 0; i < p->numel(); ++i) {
        p->value.set(i, p->mean + 0.3 * normal(key_of("lively " + p->name), static_cast<std::uint64_t>(i)));
      }
    }
  }
  double gradients_of(const MicroBatch& mb) {
    single.begin_step();
    return run_micro_batch(rank, model, mb, single);
  }
  Rank& rank;
  Gpt model;
  Single single;
};

/// One thread: with these sizes a second one costs more than it helps, most of all on a busy machine.
void on_one_rank(const std::function<void(Rank&)>& body) {
  RunOptions options = lesson::test_options();
  options.threads = 1;
  lesson::run_on(1, body, options);
}

std::string name_of(const GptConfig& c) {
  return fmt::format("{}, dropout {}, recompute {}", c.tied ? "tied" : "untied", c.dropout,
                     c.recompute ? "on" : "off");
}

// Value. Rejects: whatever a layer's own test cannot see. Dropout is redrawn from its key, so that a
// difference of two losses has one mask.
TEST(Model, EveryGradientEqualsDifferences) {
  on_one_rank([](Rank& rank) {
    for (int variant = 0; variant < 4; ++variant) {
      GptConfig c = small_config();
      c.tied = variant % 2 == 0;
      c.dropout = variant < 2 ? 0 : 0.1;
      c.recompute = variant == 1 || variant == 2;
      PlainLayers plain;
      Trainer trainer(rank, c, plain);
      const GradientError worst_error =
          worst(check_gradients(rank, trainer.model, trainer.single, some_batch(3, 7, c.vocab)));
      EXPECT_LE(worst_error.relative, 1e-6) << name_of(c) << ": " << to_string(worst_error) << kAdvice;
    }
  });
}

void expect_the_library_agrees(Rank& rank, const GptConfig& c, const MicroBatch& mb, double tolerance) {
  PlainLayers plain;
  LayerFactory library;
  Trainer yours(rank, c, plain), reference(rank, c, library);
  const double loss = yours.gradients_of(mb), wanted = reference.gradients_of(mb);
  EXPECT_LE(std::abs(loss - wanted), tolerance * wanted)
      << fmt::format("loss {}, with the library's kernels {}", loss, wanted) << kAdvice;
  const auto mine = yours.model.parameters(), theirs = reference.model.parameters();
  for (std::size_t i = mine.size();
       i-- > 0;) {  // as backward goes: the first one that differs is nearest to the fault
    const auto same =
        lesson::close_to(lesson::values_of(mine[i]->grad), lesson::values_of(theirs[i]->grad), tolerance);
    EXPECT_TRUE(same) << "in the gradient of " << mine[i]->name << ", against the library's kernels"
                      << kAdvice;
    if (!same) return;
  }
}

// Value. Rejects: columns read in another order: such a model trains as well, but it is another model.
TEST(Model, EqualsTheLibraryInDouble) {
  on_one_rank([](Rank& rank) {
    GptConfig c = small_config();
    for (const bool tied : {true, false}) {
      c.tied = tied;
      expect_the_library_agrees(rank, c, some_batch(3, 7, c.vocab), 1e-12);
    }
  });
}

// Value. Rejects: a function that works in double only, sums of ever smaller numbers.
TEST(Model, EqualsTheLibraryInFloat) {
  on_one_rank([](Rank& rank) {
    GptConfig c = small_config();
    c.dtype = DType::f32;
    c.dropout = 0.1;
    expect_the_library_agrees(rank, c, some_batch(4, 9, c.vocab), 1e-4);
  });
}

// Robustness: one token, one sequence, one head, one channel a head.
TEST(Model, SmallestShapes) {
  on_one_rank([](Rank& rank) {
    GptConfig c = small_config();
    expect_the_library_agrees(rank, c, some_batch(1, 1, c.vocab), 1e-12);
    expect_the_library_agrees(rank, c, some_batch(5, 1, c.vocab), 1e-12);
    c.heads = 1;
    expect_the_library_agrees(rank, c, some_batch(1, 9, c.vocab), 1e-12);
    c.heads = c.channels;
    expect_the_library_agrees(rank, c, some_batch(2, 3, c.vocab), 1e-12);
  });
}

// Memory. Rejects: tensors kept that backward does not need, and a formula that forgets one. The number for
// config char is the page's.
TEST(Model, ActivationBytesEqualTheFormula) {
  const auto bytes_after_forward = [](Rank& rank, const GptConfig& c, i64 batch, i64 time) {
    PlainLayers plain;
    Trainer trainer(rank, c, plain, false);
    const MicroBatch mb = some_batch(batch, time, c.vocab);
    Saved saved(rank, mb, c.dtype);
    trainer.model.forward({}, saved, trainer.single);
    return rank.memory.now(Category::activations);
  };
  on_one_rank([&](Rank& rank) {
    for (int variant = 0; variant < 4; ++variant) {
      GptConfig c = small_config();
      c.dropout = variant % 2 == 0 ? 0 : 0.1;
      c.recompute = variant >= 2;
      EXPECT_TRUE(lesson::equals_formula(bytes_after_forward(rank, c, 3, 7), plain_activation_bytes(c, 3, 7),
                                         "bytes of activations"))
          << name_of(c);
    }
    const auto [model, batch] = named_config("char");
    EXPECT_TRUE(lesson::equals_formula(bytes_after_forward(rank, model, batch, model.time), 29'939'712,
                                       "bytes of activations of config char"));
  });
}

// Value. Rejects: a loss that is no mean over tokens, probabilities that do not add up.
TEST(Model, FirstLossIsLogV) {
  on_one_rank([](Rank& rank) {
    for (const bool tied : {true, false}) {
      GptConfig c = named_config("char").model;
      c.tied = tied;
      PlainLayers plain;
      Trainer trainer(rank, c, plain, false);
      MicroBatch mb = some_batch(6, c.time, c.vocab);
      mb.training = false;
      const double loss = evaluate(rank, trainer.model, mb, trainer.single), wanted = std::log(c.vocab);
      EXPECT_NEAR(loss, wanted, 0.01 * wanted)
          << "an untrained model knows nothing and pays ln V = ln 256 = 5.545";
    }
  });
}

// Robustness. Rejects: scratch memory that is shared by the ranks (a static variable): ranks are threads.
TEST(Model, RanksDoNotDisturbOneAnother) {
  GptConfig c = small_config();
  c.dtype = DType::f32;
  RunOptions options = lesson::test_options();
  options.threads = 1;
  const auto train_on = [&](Rank& rank, int data) {
    PlainLayers plain;
    Trainer trainer(rank, c, plain);
    double loss = 0;
    for (i64 step = 0; step < 5; ++step) {
      loss = train_step(rank, trainer.model, trainer.single, {some_batch(2, 7, c.vocab, data)}, 1e-3).loss;
    }
    return loss;
  };
  std::vector<double> alone;  // each rank's data, on a rank of its own
  for (int data = 0; data < 8; ++data) {
    alone.push_back(lesson::on_each_rank<double>(
        1, [&](Rank& rank) { return train_on(rank, data); }, options)[0]);
  }
  for (const int ranks : lesson::kRankCounts) {
    const auto same_data = lesson::on_each_rank<double>(
        ranks, [&](Rank& rank) { return train_on(rank, 0); }, options);
    EXPECT_TRUE(lesson::same(same_data, std::vector<double>(static_cast<std::size_t>(ranks), alone[0])))
        << "the loss after 5 steps, of " << ranks << " ranks with the same data";
    const auto own_data = lesson::on_each_rank<double>(
        ranks, [&](Rank& rank) { return train_on(rank, rank.rank()); }, options);
    EXPECT_TRUE(lesson::same(own_data, {alone.begin(), alone.begin() + ranks}))
        << "the loss after 5 steps, of " << ranks
        << " ranks with data of their own. Is some memory shared by them?";
  }
}

}  // namespace
}  // namespace shardlings
