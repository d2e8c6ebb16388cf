// The library's own model: gradients against central differences, recomputation, accumulation, initial
// values, the numbers of parameters that GPT-2 is known for, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/random.hpp"
#include "lesson_test.hpp"
#include "optim/gradient_check.hpp"

namespace shardlings {
namespace {

GptConfig small_config() {
  GptConfig c;
  c.layers = 2;
  c.heads = 2;
  c.channels = 8;
  c.time = 9;  // more positions than the batches below use
  c.vocab = 65;
  c.dtype = DType::f64;
  return c;
}

/// Sequences [first, first + batch) of an endless text without sense; every fifth target is not counted.
MicroBatch sequences(i64 first, i64 batch, i64 time, i64 vocab) {
  MicroBatch mb;
  mb.index = first;
  mb.batch = batch;
  mb.time = time;
  for (i64 i = first * time; i < (first + batch) * time; ++i) {
    const auto draw = [&](std::uint64_t stream) {
      return static_cast<int>(random_bits(stream, static_cast<std::uint64_t>(i)) %
                              static_cast<std::uint64_t>(vocab));
    };
    mb.tokens.push_back(draw(1));
    mb.targets.push_back(i % 5 == 4 ? -1 : draw(2));
  }
  return mb;
}

i64 counted(const MicroBatch& mb) {
  return std::count_if(mb.targets.begin(), mb.targets.end(), [](int t) { return t >= 0; });
}

/// A model on one rank, with random weights larger than GPT-2's first ones, so that no gradient is almost
/// zero.
struct Trainer {
  Trainer(Rank& its_rank, const GptConfig& config)
      : rank(its_rank), model(config), single(rank, model, AdamConfig{}) {
    for (Parameter* p : model.parameters()) {
      for (i64 i = 0; i < p->numel(); ++i) {
        p->value.set(i, p->mean + 0.3 * normal(key_of("lively " + p->name), static_cast<std::uint64_t>(i)));
      }
    }
  }
  /// Losses and gradients of some micro-batches, added up.
  double accumulate(const std::vector<MicroBatch>& micro_batches) {
    single.begin_step();
    double loss = 0;
    for (const MicroBatch& mb : micro_batches) loss += run_micro_batch(rank, model, mb, single);
    return loss;
  }
  std::vector<double> gradients() { return lesson::values_of(single.flat().grads); }
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

// Rejects: any backward that is not the derivative of its forward; a tied table that gets only one of its two
// gradients; a dropout mask drawn anew in backward or in recomputation; rows beyond a power of two left out.
TEST(Nn, EveryGradientEqualsDifferences) {
  on_one_rank([](Rank& rank) {
    for (const bool tied : {true, false}) {
      for (const double dropout : {0.0, 0.1}) {
        for (const bool recompute : {false, true}) {
          GptConfig c = small_config();
          c.tied = tied;
          c.dropout = dropout;
          c.recompute = recompute;
          Trainer trainer(rank, c);
          MicroBatch mb = sequences(0, 3, 7, c.vocab);
          mb.loss_scale = 1 / static_cast<double>(counted(mb));
          const GradientError error = worst(check_gradients(rank, trainer.model, trainer.single, mb));
          EXPECT_LE(error.relative, 1e-6) << (tied ? "tied" : "untied") << ", dropout " << dropout
                                          << ", recompute " << recompute << ": " << to_string(error);
        }
      }
    }
  });
}

// Rejects: a check that finds nothing. The gradient of one element is wrong here, and it must say which
// parameter.
TEST(Nn, GradientCheckFindsAWrongGradient) {
  struct Spoiled : Single {
    using Single::Single;
    void after_backward(Unit& unit, const MicroBatch&) override {
      if (unit.name == "block1") unit.params.back().grad.set(0, unit.params.back().grad.get(0) + 0.01);
    }
  };
  on_one_rank([](Rank& rank) {
    GptConfig c = small_config();
    Gpt model(c);
    Spoiled strategy(rank, model, AdamConfig{});
    MicroBatch mb = sequences(0, 2, 5, c.vocab);
    mb.loss_scale = 0.1;
    const GradientError error = worst(check_gradients(rank, model, strategy, mb, 8));
    EXPECT_GT(error.relative, 1e-3);
    EXPECT_EQ(error.parameter->name, "h.1.mlp.c_proj.bias") << to_string(error);
    Gpt narrow(named_config("char").model);
    EXPECT_THROW(check_gradients(rank, narrow, strategy, mb), Error) << "f32 must be refused";
  });
}

// Rejects: recomputation that draws another mask, or adds in another order (case C12).
TEST(Nn, RecomputationChangesNoBit) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    on_one_rank([dtype](Rank& rank) {
      std::vector<double> losses[2], gradients[2];
      for (const bool recompute : {false, true}) {
        GptConfig c = small_config();
        c.dtype = dtype;
        c.dropout = 0.1;
        c.recompute = recompute;
        Trainer trainer(rank, c);
        MicroBatch mb = sequences(0, 3, 7, c.vocab);
        mb.loss_scale = 1 / static_cast<double>(counted(mb));
        losses[recompute] = {trainer.accumulate({mb})};
        gradients[recompute] = trainer.gradients();
      }
      EXPECT_TRUE(lesson::same(losses[1], losses[0]));
      EXPECT_TRUE(lesson::same(gradients[1], gradients[0]));
    });
  }
}

// Rejects: gradients overwritten by the second micro-batch, a loss scaled by the micro-batch and not by the
// step (their counts of tokens differ).
TEST(Nn, FourMicroBatchesEqualOneBatch) {
  on_one_rank([](Rank& rank) {
    const GptConfig c = small_config();
    Trainer trainer(rank, c);
    std::vector<MicroBatch> four;
    for (i64 k = 0; k < 4; ++k) four.push_back(sequences(2 * k, 2, 7, c.vocab));
    MicroBatch whole = sequences(0, 8, 7, c.vocab);
    whole.loss_scale = 1 / static_cast<double>(counted(whole));
    std::set<i64> counts;
    for (MicroBatch& mb : four) mb.loss_scale = whole.loss_scale, counts.insert(counted(mb));
    ASSERT_GT(counts.size(), 1U) << "the micro-batches should have different numbers of counted tokens";
    const double loss = trainer.accumulate({whole});
    const std::vector<double> gradients = trainer.gradients();
    EXPECT_NEAR(trainer.accumulate(four), loss, 1e-12);
    EXPECT_TRUE(lesson::close_to(trainer.gradients(), gradients, 1e-12));
  });
}

// Rejects: initial values that depend on which units (or on how many) a rank builds, or on the order.
TEST(Nn, InitialValuesDoNotDependOnTheUnitsBuilt) {
  const GptConfig c = small_config();
  LayerFactory layers;
  Gpt whole(c);
  for (const std::vector<i64>& which : {std::vector<i64>{0}, {1}, {2, 3}, {0, 3}, {3}}) {
    Gpt some(c, layers, which);
    for (const Parameter* p : some.parameters()) {
      const auto all = whole.parameters();
      const auto same =
          std::find_if(all.begin(), all.end(), [&](const Parameter* q) { return q->name == p->name; });
      ASSERT_NE(same, all.end()) << p->name;
      ASSERT_EQ(p->shape, (*same)->shape) << p->name;
      for (i64 i = 0; i < p->numel(); ++i) {
        ASSERT_EQ(p->initial(i), (*same)->initial(i)) << p->name << ", element " << i;
      }
    }
  }
}

// Rejects: a table cut in rows or columns that draws other numbers than the whole one.
TEST(Nn, InitialValuesOfAPartAreThoseOfTheWhole) {
  Parameter whole;
  whole.name = "w";
  whole.shape = whole.full = {6, 10};
  whole.start = {0, 0};
  whole.stddev = 0.02;
  Parameter part = whole;
  part.shape = {2, 5};
  part.start = {3, 5};
  for (i64 row = 0; row < 2; ++row) {
    for (i64 column = 0; column < 5; ++column) {
      EXPECT_EQ(part.initial(row * 5 + column), whole.initial((3 + row) * 10 + 5 + column));
    }
  }
}

i64 declared_parameters(const GptConfig& c) {
  Gpt model(c);
  i64 sum = 0;
  for (const Parameter* p : model.parameters()) sum += p->numel();
  return sum;
}

// Case C41. Rejects: tied and untied mixed up, a vocabulary padded in silence, biases forgotten.
TEST(Nn, ParameterCountsOfGpt2) {
  const std::pair<std::pair<i64, bool>, i64> cases[] = {{{50257, true}, 124'439'808},
                                                        {{50304, true}, 124'475'904},
                                                        {{50257, false}, 163'037'184},
                                                        {{50304, false}, 163'109'376}};
  for (const auto& [model, count] : cases) {
    GptConfig c = named_config("gpt2").model;
    c.vocab = model.first;
    c.tied = model.second;
    EXPECT_EQ(parameter_count(c), count) << "vocabulary " << c.vocab << (c.tied ? ", tied" : ", untied");
    EXPECT_EQ(declared_parameters(c), count) << "sum over the declared parameters";
  }
  for (const char* name : {"char", "baby"}) {
    for (const bool tied : {true, false}) {
      GptConfig c = named_config(name).model;
      c.tied = tied;
      EXPECT_EQ(declared_parameters(c), parameter_count(c)) << name;
    }
  }
}

std::string refusal(const std::function<void(GptConfig&)>& change) {
  GptConfig c;
  change(c);
  try {
    check_config(c);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(accepted)";
}

// Rejects: an impossible model that is built, or refused without its numbers.
TEST(Nn, ImpossibleConfigurationsAreRefused) {
  const auto says = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const std::string heads = refusal([](GptConfig& c) { c.heads = 3; });
  EXPECT_TRUE(says(heads, "3 heads do not divide 128 channels")) << heads;
  const std::string layers = refusal([](GptConfig& c) { c.layers = 0; });
  EXPECT_TRUE(says(layers, "layers is 0, it must be at least 1")) << layers;
  const std::string vocab = refusal([](GptConfig& c) { c.vocab = -5; });
  EXPECT_TRUE(says(vocab, "vocab is -5")) << vocab;
  for (const double dropout : {1.0, -0.1, std::numeric_limits<double>::quiet_NaN()}) {
    const std::string text = refusal([=](GptConfig& c) { c.dropout = dropout; });
    EXPECT_TRUE(says(text, "must be at least 0 and below 1")) << text;
  }
  EXPECT_EQ(refusal([](GptConfig&) {}), "(accepted)");
  GptConfig impossible;
  impossible.heads = 5;
  EXPECT_THROW(Gpt{impossible}, UsageError) << "building a model must check, too";
  EXPECT_THROW(named_config("gpt3"), UsageError);
}

// Case C32: places in a table of 262144 x 8960. The last element of row 239674 has offset 2147487999, which
// an int does not hold. Rejects: 32-bit arithmetic in shapes, counts and the index of an initial value.
TEST(Nn, OffsetsBeyondThirtyTwoBits) {
  const i64 rows = 262144, columns = 8960, row = 239674;
  const i64 last = row * columns + columns - 1;
  EXPECT_EQ(last, 2'147'487'999);
  EXPECT_EQ(numel_of({rows, columns}), 2'348'810'240);
  GptConfig c;
  c.vocab = rows;
  c.channels = columns;
  c.heads = 70;
  EXPECT_EQ(parameter_count(c), 12 * c.layers * columns * columns + 13 * c.layers * columns +
                                    (rows + c.time) * columns + 2 * columns);
  Parameter table;
  table.name = "wte.weight";
  table.shape = table.full = {rows, columns};
  table.start = {0, 0};
  table.stddev = 0.02;
  EXPECT_EQ(table.numel(), rows * columns);
  // The same element, seen as the last of a part that is one row: its index there is small.
  Parameter one_row = table;
  one_row.shape = {1, columns};
  one_row.start = {row, 0};
  EXPECT_EQ(table.initial(last), one_row.initial(columns - 1));
  EXPECT_EQ(table.initial(last),
            0.02 * normal(key_of("wte.weight"), static_cast<std::uint64_t>(2'147'487'999)));
  EXPECT_NE(table.initial(last), table.initial(last - (i64{1} << 31))) << "the index wrapped";
}

}  // namespace
}  // namespace shardlings
