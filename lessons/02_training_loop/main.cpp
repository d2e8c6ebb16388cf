// Trains a GPT on real text with the code of training.hpp until it writes; saves, stops on Ctrl-C, goes on
// with
// --resume, and with --verify proves that going on gives the same bits. Left out: many ranks, mixed
// precision.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "data/tokenizer.hpp"
#include "run/flags.hpp"
#include "run/layout.hpp"
#include "run/progress.hpp"
#include "run/report.hpp"
#include "run/run_dir.hpp"
#include "run/sample.hpp"
#include "run/table.hpp"
#include "run/train.hpp"
#include "training.hpp"

using namespace shardlings;

namespace {

struct Options {
  run::CommonFlags common;
  std::string config = "char", text = "data/sotu", resume;
  i64 batch = 0, micro_batches = 1, warmup = -1, eval_every = 250, eval_batches = 40, checkpoint_every = 500;
  i64 tokens = 300;
  double lr = 3e-3, clip = 1, dropout = 0;
  bool verify = false;

  Schedule schedule() const {
    return {lr, lr / 30, warmup < 0 ? std::min<i64>(100, common.steps / 10) : warmup, common.steps};
  }
  AdamConfig adam() const {
    AdamConfig a;
    a.beta2 = 0.99;  // few tokens a step: a longer memory for the squares
    a.clip = clip;
    return a;
  }
};

/// The text, and the model that is to learn it.
struct Task {
  GptConfig config;
  i64 batch = 0;
  std::unique_ptr<data::Tokenizer> tokenizer;
  data::TokenStream train, validation;
};

Task task_of(const Options& o) {
  auto [config, batch] = named_config(o.config);
  if (o.batch > 0) batch = o.batch;
  auto tokenizer = data::byte_tokenizer();
  config.vocab = tokenizer->vocab_size();
  config.dropout = o.dropout;
  check_config(config);
  const data::Split text = data::split(data::load_corpus(o.text));
  data::TokenStream train(text.train, *tokenizer), validation(text.validation, *tokenizer);
  return {config, batch, std::move(tokenizer), std::move(train), std::move(validation)};
}

/// What one program holds: everything that a checkpoint must be able to fill.
struct Program {
  Program(Rank& rank, const Task& task, const Options& o)
      : model(task.config),
        trainer(rank, model, o.adam()),
        loader(task.train, {task.batch, task.config.time, static_cast<std::uint64_t>(o.common.seed)}) {}
  Gpt model;
  Trainer trainer;
  data::Loader loader;
};

run::TrainOptions train_options(const Options& o, i64 first_step) {
  run::TrainOptions options;
  options.steps = o.common.steps;
  options.first_step = first_step;
  options.micro_batches = o.micro_batches;
  options.rate = [schedule = o.schedule()](i64 step) { return learning_rate(schedule, step); };
  return options;
}

/// What formulas say beside what the library counted.
run::Table compare(const Options& o, const Program& p, i64 first_step, const run::TrainResult& result,
                   const run::RankRecord& record) {
  const i64 n = parameter_count(p.model.config);
  const auto peak = [&](Category c) { return record.peak[static_cast<std::size_t>(c)]; };
  run::Table table;
  table.bytes("parameters", 4 * n, peak(Category::parameters));
  table.bytes("gradients", 4 * n, peak(Category::gradients));
  table.bytes("m and v", 8 * n, peak(Category::optimizer));
  table.measured("activations, peak", static_cast<double>(peak(Category::activations)) / 1e6, "MB");
  table.count("micro-batches read", o.micro_batches * result.steps_done, p.loader.position(), "");
  if (first_step == 0) {
    table.value("loss at step 0 (ln V)", std::log(static_cast<double>(p.model.config.vocab)),
                *result.metrics.front().loss, "nats", 0.01);
  }
  const Schedule schedule = o.schedule();
  const i64 last = result.steps_done - 1;
  for (const i64 step : {i64{0}, schedule.warmup, schedule.steps / 2, last}) {
    if (step < first_step || step > last) continue;
    const double measured = *result.metrics[static_cast<std::size_t>(step - first_step)].lr;
    table.value(fmt::format("learning rate of step {}", step), schedule.rate(step), measured, "", 1e-9);
  }
  table.measured("time of a step", 1e3 * result.seconds / static_cast<double>(result.metrics.size()), "ms");
  return table;
}

/// A new program goes on from the checkpoint of the middle. Adds the largest differences to the table.
void verify(Rank& rank, const Task& task, const Options& o, const std::string& halfway,
            const Program& straight, const run::TrainResult& result, run::Table& table) {
  Program p(rank, task, o);
  const i64 step = resume(halfway, p.model, p.trainer, p.loader);
  const run::TrainResult again = run::train({rank, p.model, p.trainer, p.loader}, train_options(o, step));
  if (again.interrupted) return;
  double losses = 0, weights = 0;
  const std::size_t behind = result.metrics.size() - again.metrics.size();
  for (std::size_t i = 0; i < again.metrics.size(); ++i)
    losses = std::max(losses, std::abs(*again.metrics[i].loss - *result.metrics[behind + i].loss));
  for (i64 i = 0; i < p.trainer.flat.size; ++i)
    weights = std::max(weights, std::abs(p.trainer.flat.values.get(i) - straight.trainer.flat.values.get(i)));
  table.value(fmt::format("stopped at {}: difference of losses", step), 0, losses, "nats", 0);
  table.value(fmt::format("stopped at {}: difference of weights", step), 0, weights, "", 0);
}

void write_pictures(const run::RunDir& dir, const run::Flags& flags, const run::Table& table,
                    const run::TrainResult& result, const run::RankRecord& record,
                    const run::Sample& sample) {
  run::Report report;
  report.title = "training_loop";
  report.subtitle = fmt::format("{} steps, loss {:.3f} nats per byte", result.steps_done, result.loss);
  report.config = run::facts_of(flags.values());
  run::add_run(report, "", result.metrics);
  run::Curve rates{"learning rate", {}}, norms{"norm before clipping", {}};
  for (const run::StepMetrics& m : result.metrics) {
    rates.points.emplace_back(m.step, *m.lr);
    norms.points.emplace_back(m.step, *m.norm);
  }
  report.figures = {{"Learning rate", "step", "rate", {rates}},
                    {"Norm of the gradient", "step", "norm", {norms}, false, true}};
  report.ranks = {record};
  report.rows = table.rows();
  report.samples = {sample};
  run::leave_pictures(dir, report);
}

int train_and_show(Rank& rank, const Task& task, const Options& o, const run::Flags& flags,
                   const run::RunDir& dir) {
  Program p(rank, task, o);
  const i64 first_step = o.resume.empty() ? 0 : resume(o.resume, p.model, p.trainer, p.loader);
  if (first_step >= o.common.steps)
    fail_usage(fmt::format("{} has done {} steps; --steps must be larger", o.resume, first_step));
  const std::string latest = dir.file("checkpoint.safetensors"), middle = dir.file("middle.safetensors");
  const data::Sequential validation(task.validation, task.batch, task.config.time);
  const run::Training training{rank, p.model, p.trainer, p.loader, &validation};
  run::MetricsWriter metrics(dir.file("metrics.jsonl"), first_step > 0);
  run::Progress progress(o.common.steps, first_step, {.quiet = o.common.quiet, .clock = {}});
  run::TrainOptions options = train_options(o, first_step);
  options.eval_every = o.eval_every;
  options.eval_batches = o.eval_batches;
  options.checkpoint_every = o.checkpoint_every;
  options.save = [&](i64 done) { save(latest, p.model, p.trainer, p.loader, done); };
  options.on_step = [&](const run::StepMetrics& m) {
    metrics.write(m);
    progress.update(m);
    if (o.verify && m.step == o.common.steps / 2) save(middle, p.model, p.trainer, p.loader, m.step);
  };
  const run::TrainResult result = run::train(training, options);
  progress.finish();
  if (result.interrupted) {
    fmt::print("stopped after step {}; go on with --resume {}\n", result.steps_done, latest);
    return 0;
  }
  const double loss = run::validation_loss(training, o.eval_batches);
  const run::RankRecord record = run::record_of(rank);
  run::Table table = compare(o, p, first_step, result, record);
  if (o.verify) verify(rank, task, o, middle, p, result, table);
  fmt::print("\n{}", table.text());
  const std::string start = "Fellow citizens";
  const std::string written =
      start + run::sample(rank, p.model, p.trainer, *task.tokenizer, start, {.tokens = o.tokens});
  fmt::print("\nvalidation loss {:.4f} nats per byte. It writes:\n\n{}\n", loss, written);
  write_pictures(dir, flags, table, result, record, {"What it writes", written});
  return table.all_equal() ? 0 : 1;
}

int program(const Options& o, const run::Flags& flags) {
  check_schedule(o.schedule());
  const Task task = task_of(o);
  const run::RunDir dir("training_loop", o.common.run_dir);
  dir.write_config(flags.values());
  fmt::print("training_loop, {} code: {} layers, {} heads, {} channels, T {}, batch {} x {}, {} parameters\n",
             o.common.impl == "yours" ? "your" : "reference", task.config.layers, task.config.heads,
             task.config.channels, task.config.time, o.micro_batches, task.batch,
             run::number_text(static_cast<double>(parameter_count(task.config)), true));
  RunOptions options;
  options.threads = o.common.threads;
  options.checked = false;  // long runs are for speed; the tests check
  int code = 0;
  run_ranks(
      1,
      [&](Rank& rank) {
        fmt::print("{}\n\n", run::layout_text(1, rank.threads(), available_cores()));
        std::fflush(stdout);
        code = train_and_show(rank, task, o, flags, dir);
      },
      options);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  return run::main_guard([&] {
    Options o;
    o.common.ranks = 1;
    o.common.steps = 1500;
    run::Flags flags("training_loop",
                     "Train a small GPT until it writes; stop, and resume to the same bits.");
    o.common.add_to(flags, SHARDLINGS_IMPL);
    flags.add_choice("--config", o.config, {"char", "baby", "gpt2"}, "Size of the model");
    flags.add("--text", o.text, "A folder of .txt files, or one file");
    flags.add("--batch", o.batch, "Sequences of a micro-batch; 0 = the config's").at_least(0);
    flags.add("--micro-batches", o.micro_batches, "Micro-batches of a step").at_least(1);
    flags.add("--lr", o.lr, "Largest learning rate").at_least(0);
    flags.add("--warmup", o.warmup, "Steps of warm-up; -1 = 100, or a tenth of a short run").at_least(-1);
    flags.add("--clip", o.clip, "Limit of the gradient's norm; 0 = no clipping").at_least(0);
    flags.add("--dropout", o.dropout, "Share of activations that are dropped").at_least(0);
    flags.add("--eval-every", o.eval_every, "Steps between validations; 0 = only at the end").at_least(0);
    flags.add("--eval-batches", o.eval_batches, "Batches of held-out text then; 0 = all").at_least(0);
    flags.add("--checkpoint-every", o.checkpoint_every, "Steps between checkpoints").at_least(0);
    flags.add("--tokens", o.tokens, "Bytes that it writes at the end").at_least(0);
    flags.add("--resume", o.resume, "A checkpoint to go on from");
    flags.add("--verify", o.verify, "Also go on from the middle in a new program, and compare: 0");
    flags.add_rule([&] {
      if (o.common.ranks != 1)
        fail_usage(fmt::format("--ranks {}: one rank here; many come with the lesson ddp", o.common.ranks));
      if (o.common.steps < 1) fail_usage("--steps 0: give at least 1");
      if (o.verify && (!o.resume.empty() || o.common.steps < 2))
        fail_usage("--verify stops a run in its middle: it needs at least 2 steps and no --resume");
    });
    flags.parse(argc, argv);
    return program(o, flags);
  });
}
