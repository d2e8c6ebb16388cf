// A GPT whose layer norm, attention and loss are the plain loops of layers.hpp: checks their gradients,
// trains for a short time on real text, and prints what the formulas predicted beside what was counted. Left
// out: stopping and resuming, validation, sampling; the next lesson has them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/tokenizer.hpp"
#include "optim/gradient_check.hpp"
#include "plain_layers.hpp"
#include "run/flags.hpp"
#include "run/layout.hpp"
#include "run/progress.hpp"
#include "run/report.hpp"
#include "run/run_dir.hpp"
#include "run/table.hpp"
#include "run/train.hpp"

using namespace shardlings;

namespace {

struct Options {
  run::CommonFlags common;
  std::string config = "char", text = "data/sotu";
  i64 batch = 0;
  double lr = 3e-3, dropout = 0;
  bool tied = true, recompute = false, verify = false;
};

/// What a run of one kind of layers leaves.
struct Outcome {
  run::TrainResult result;
  run::RankRecord record;
  i64 parameter_bytes = 0, activation_bytes = 0;
  std::vector<double> losses() const {
    std::vector<double> all;
    for (const run::StepMetrics& m : result.metrics) all.push_back(m.loss.value_or(0));
    return all;
  }
};

/// The largest relative error of all gradients of a tiny model, against central differences in f64.
GradientError check_tiny_model(Rank& rank) {
  GptConfig tiny;
  tiny.layers = tiny.heads = 2;
  tiny.channels = 8;
  tiny.time = 7;
  tiny.vocab = 65;
  tiny.dtype = DType::f64;
  PlainLayers layers;
  Gpt model(tiny, layers);
  Single single(rank, model, AdamConfig{});
  MicroBatch mb;
  mb.batch = 2;
  mb.time = tiny.time;
  for (int i = 0; i < 2 * tiny.time; ++i) {
    mb.tokens.push_back(13 * i % 65);
    mb.targets.push_back(29 * i % 65);
  }
  mb.loss_scale = 1.0 / static_cast<double>(mb.tokens.size());
  return worst(check_gradients(rank, model, single, mb));
}

/// Bytes that one forward pass leaves for backward.
i64 activation_bytes(Rank& rank, Gpt& model, Strategy& strategy, const MicroBatch& mb) {
  const i64 before = rank.memory.now(Category::activations);
  Saved saved(rank, mb, model.config.dtype);
  model.forward({}, saved, strategy);
  return rank.memory.now(Category::activations) - before;
}

/// Trains with these layers; every run sees the same batches and starts from the same weights.
Outcome train(Rank& rank, const GptConfig& config, LayerFactory& layers, const data::TokenStream& text,
              const Options& o, const std::function<void(const run::StepMetrics&)>& on_step) {
  Outcome outcome;
  data::Loader loader(text, {o.batch, config.time, static_cast<std::uint64_t>(o.common.seed)});
  Gpt model(config, layers);
  Single single(rank, model, AdamConfig{});
  outcome.parameter_bytes = rank.memory.now(Category::parameters);
  const data::Batch first = loader.at(0);
  outcome.activation_bytes =
      activation_bytes(rank, model, single, run::micro_batch_of(first, 0, first.counted, true));
  const Schedule schedule{o.lr, o.lr / 10, std::min<i64>(20, o.common.steps / 2), o.common.steps};
  run::TrainOptions options;
  options.steps = o.common.steps;
  options.rate = [&](i64 step) { return schedule.rate(step); };
  options.on_step = on_step;
  outcome.result = run::train({rank, model, single, loader}, options);
  outcome.record = run::record_of(rank);
  return outcome;
}

run::Table compare(const GptConfig& config, const Options& o, const Outcome& outcome,
                   const GradientError& error) {
  run::Table table;
  table.bytes("parameters", parameter_count(config) * size_of(config.dtype), outcome.parameter_bytes);
  table.bytes("activations after forward", plain_activation_bytes(config, o.batch, config.time),
              outcome.activation_bytes);
  table.value("loss at step 0 (ln V)", std::log(static_cast<double>(config.vocab)), outcome.losses().front(),
              "nats", 0.01);
  table.measured("largest gradient error, f64", error.relative, "");
  table.measured("time of a step",
                 1e3 * outcome.result.seconds / static_cast<double>(outcome.losses().size()), "ms");
  return table;
}

/// --verify: the same run with the library's kernels. Returns whether the losses agree.
bool agrees_with_library(const Outcome& yours, const Outcome& library) {
  const std::vector<double> a = yours.losses(), b = library.losses();
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::isfinite(a[i]) ? std::abs(a[i] - b[i]) : HUGE_VAL);
  }
  const double limit = 0.05;  // fp32 sums in another order; AdamW makes them grow from step to step
  fmt::print(
      "library's kernels: {:.1f} ms a step; largest difference in loss over {} steps {:.2g} (at most {})\n",
      1e3 * library.result.seconds / static_cast<double>(b.size()), a.size(), largest, limit);
  return largest <= limit;
}

void write_pictures(const run::RunDir& dir, const run::Flags& flags, const run::Table& table,
                    const Outcome& yours, const Outcome* library) {
  run::Report report;
  report.title = "gpt";
  report.subtitle =
      fmt::format("{} steps, loss {:.3f} nats per byte", yours.result.steps_done, yours.result.loss);
  report.config = run::facts_of(flags.values());
  run::add_run(report, library != nullptr ? "plain loops" : "", yours.result.metrics);
  if (library != nullptr) run::add_run(report, "library's kernels", library->result.metrics);
  report.ranks = {yours.record};
  report.rows = table.rows();
  run::leave_pictures(dir, report);
}

int program(Options& o, const run::Flags& flags) {
  const NamedConfig named = named_config(o.config);
  GptConfig config = named.model;
  if (o.batch == 0) o.batch = named.batch;
  const auto tokenizer = data::byte_tokenizer();
  config.vocab = tokenizer->vocab_size();
  config.dropout = o.dropout;
  config.tied = o.tied;
  config.recompute = o.recompute;
  check_config(config);
  const data::TokenStream text(data::split(data::load_corpus(o.text)).train, *tokenizer);
  const run::RunDir dir("gpt", o.common.run_dir);
  dir.write_config(flags.values());
  fmt::print("gpt, {} code: {} layers, {} heads, {} channels, T {}, batch {}, {} parameters\n", o.common.impl,
             config.layers, config.heads, config.channels, config.time, o.batch,
             run::number_text(static_cast<double>(parameter_count(config)), true));
  fmt::print("text: {} bytes of {}\n", run::number_text(static_cast<double>(text.text_bytes()), true),
             o.text);

  RunOptions options;
  options.threads = o.common.threads;
  int code = 0;
  run_ranks(
      1,
      [&](Rank& rank) {
        fmt::print("{}\n\n", run::layout_text(1, rank.threads(), available_cores()));
        std::fflush(stdout);
        const GradientError error = check_tiny_model(rank);
        if (!(error.relative < 1e-6)) fmt::print("a gradient is wrong: {}\n", to_string(error));
        rank.trace.clear();

        PlainLayers plain;
        run::MetricsWriter metrics(dir.file("metrics.jsonl"));
        run::ProgressOptions style;
        style.quiet = o.common.quiet;
        run::Progress progress(o.common.steps, 0, style);
        const Outcome yours = train(rank, config, plain, text, o, [&](const run::StepMetrics& m) {
          metrics.write(m);
          progress.update(m);
        });
        progress.finish();
        const run::Table table = compare(config, o, yours, error);
        fmt::print("\n{}", table.text());
        code = table.all_equal() && error.relative < 1e-6 ? 0 : 1;

        if (o.verify && !yours.result.interrupted) {
          rank.trace.recording = false;
          LayerFactory library;
          const Outcome reference = train(rank, config, library, text, o, nullptr);
          if (!agrees_with_library(yours, reference)) code = 1;
          write_pictures(dir, flags, table, yours, &reference);
        } else {
          write_pictures(dir, flags, table, yours, nullptr);
        }
      },
      options);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  return run::main_guard([&] {
    Options o;
    o.common.ranks = 1;
    o.common.steps = 200;
    o.common.threads = 1;  // the plain loops are serial; more threads would wait most of the time
    run::Flags flags("gpt", "Train a small GPT with layers written as plain loops.");
    o.common.add_to(flags, SHARDLINGS_IMPL);
    flags.add_choice("--config", o.config, {"char", "baby", "gpt2"}, "Size of the model");
    flags.add("--text", o.text, "A folder of .txt files, or one file");
    flags.add("--batch", o.batch, "Sequences a step; 0 = the config's").at_least(0);
    flags.add("--lr", o.lr, "Largest learning rate").above(0);
    flags.add("--dropout", o.dropout, "Share of activations that are dropped").at_least(0);
    flags.add("--tied", o.tied, "The head uses the embedding's matrix");
    flags.add("--recompute", o.recompute,
              "Keep only each block's input, and compute the rest again in backward");
    flags.add("--verify", o.verify, "Also train with the library's kernels, and compare the losses");
    flags.add_rule([&] {
      if (o.common.ranks != 1) {
        fail_usage(
            fmt::format("--ranks {}: this lesson trains on one rank; many ranks come with the lesson ddp",
                        o.common.ranks));
      }
    });
    flags.parse(argc, argv);
    return program(o, flags);
  });
}
