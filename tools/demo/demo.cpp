// ./lab demo: trains a small GPT on the State of the Union addresses until it writes, and leaves a report.
// Ranks share each step's sequences, as the lesson ddp does.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "data/tokenizer.hpp"
#include "ddp.hpp"
#include "run/flags.hpp"
#include "run/launch.hpp"
#include "run/layout.hpp"
#include "run/progress.hpp"
#include "run/report.hpp"
#include "run/sample.hpp"
#include "run/state.hpp"
#include "run/train.hpp"

using namespace shardlings;

namespace {

struct Options {
  std::string config = "char", text = "data/sotu", resume, run_dir;
  i64 steps = 6000, seed = 1, eval_every = 250, checkpoint_every = 1000;
  i64 batch = 0, layers = 0, heads = 0, channels = 0, time = 0;  // 0: the config's own
  int ranks = 0, threads = 0;
  double seconds = 85, lr = 3e-3, dropout = 0;
  bool quiet = false;
};

/// As many ranks as cores, but no more than divide a step's sequences.
int ranks_for(i64 batch) {
  i64 ranks = std::min<i64>(available_cores(), batch);
  while (batch % ranks != 0) --ranks;
  return static_cast<int>(ranks);
}

struct Task {
  GptConfig model;
  i64 batch = 0;  // sequences of a step, over all ranks
  std::unique_ptr<data::Tokenizer> tokenizer = data::byte_tokenizer();
  data::Split text;
  std::optional<data::TokenStream> train, validation;  // ranks share the tokens
  Schedule schedule;
};

Task task_of(const Options& o) {
  const NamedConfig named = named_config(o.config);
  const auto given = [](i64 asked, i64 own) { return asked > 0 ? asked : own; };
  Task task;
  task.model = named.model;
  task.batch = given(o.batch, named.batch);
  task.model.layers = given(o.layers, task.model.layers);
  task.model.heads = given(o.heads, task.model.heads);
  task.model.channels = given(o.channels, task.model.channels);
  task.model.time = given(o.time, task.model.time);
  task.model.dropout = o.dropout;
  task.model.vocab = task.tokenizer->vocab_size();
  check_config(task.model);
  task.schedule = {o.lr, o.lr / 30, std::min<i64>(100, o.steps / 10), o.steps};
  check_schedule(task.schedule);
  task.text = data::split(data::load_corpus(o.text));
  task.train.emplace(task.text.train, *task.tokenizer);
  task.validation.emplace(task.text.validation, *task.tokenizer);
  return task;
}

/// What rank 0 tells: the head, the progress, the end. Other ranks are silent.
void print_head(const Task& task, const Rank& rank) {
  const GptConfig& m = task.model;
  fmt::print("GPT with {} layers, {} heads, {} channels, T {}: {} parameters\n", m.layers, m.heads,
             m.channels, m.time, parameter_count(m));
  fmt::print(
      "text: {} addresses to train on ({:.1f} MB), {} to validate; {} sequences of {} bytes a step\n{}\n",
      task.text.train.documents.size(), static_cast<double>(task.text.train.bytes()) / 1e6,
      task.text.validation.documents.size(), task.batch, m.time,
      run::layout_text(rank.size(), rank.threads(), available_cores()));
  std::fflush(stdout);
}

void write_pictures(const run::RunDir& dir, const run::Flags& flags, const run::TrainResult& result,
                    double loss, const std::vector<run::RankRecord>& records, const std::string& written) {
  run::Report report;
  report.title = "Shardlings demo";
  report.subtitle = fmt::format("{} ranks, {} steps, validation loss {:.3f} nats per byte", records.size(),
                                result.steps_done, loss);
  report.config = run::facts_of(flags.values());
  run::add_run(report, "", result.metrics);
  report.ranks = records;
  report.samples = {{"What it writes after \"Fellow citizens\"", written}};
  run::leave_pictures(dir, report);
}

void train_rank(Rank& rank, const Options& o, const Task& task, const run::Flags& flags,
                const run::RunDir& dir) {
  const bool tells = rank.rank() == 0;
  Gpt model(task.model);
  AdamConfig adam;
  adam.beta2 = 0.99;  // few tokens a step: a longer memory for the squares
  Ddp ddp(rank, rank.world(), model, adam);
  ddp.share_weights();
  const i64 mine = task.batch / rank.size();
  data::Loader loader(*task.train,
                      {mine, task.model.time, static_cast<std::uint64_t>(o.seed), rank.rank(), rank.size()});
  const data::Sequential validation(*task.validation, task.batch, task.model.time);
  const std::string checkpoint = dir.file("checkpoint.safetensors");

  run::TrainOptions options;
  options.steps = o.steps;
  if (!o.resume.empty()) options.first_step = run::resume_run(o.resume, model, ddp, loader);
  options.max_seconds = o.seconds;
  options.rate = [&](i64 step) { return task.schedule.rate(step); };
  options.eval_every = o.eval_every;
  options.checkpoint_every = o.checkpoint_every;
  options.save = [&](i64 done) {
    if (tells) run::save_run(checkpoint, model, ddp, loader, done);
  };
  std::optional<run::MetricsWriter> metrics;
  if (tells) {
    metrics.emplace(dir.file("metrics.jsonl"));
    dir.write_config(flags.values());
    print_head(task, rank);
  }
  run::ProgressOptions style;
  style.quiet = o.quiet || !tells;
  run::Progress progress(o.steps, options.first_step, style);
  options.on_step = [&](const run::StepMetrics& m) {
    metrics->write(m);
    progress.update(m);
  };
  const run::Training training{rank, model, ddp, loader, &validation};
  const run::TrainResult result = run::train(training, options);
  progress.finish();
  if (result.interrupted) {
    if (tells) {
      fmt::print("stopped after step {}; go on with: ./lab demo --ranks {} --resume {}\n", result.steps_done,
                 rank.size(), checkpoint);
    }
    return;
  }
  const std::vector<run::RankRecord> records = run::gather_records(rank);
  const double loss = run::validation_loss(training, 0);
  if (!tells) return;
  fmt::print("\n{} steps in {:.1f} s; validation loss {:.4f} nats per byte (all {} held-out addresses)\n",
             result.steps_done, result.seconds, loss, task.text.validation.documents.size());
  const std::string written =
      "Fellow citizens" + run::sample(rank, model, ddp, *task.tokenizer, "Fellow citizens", {});
  fmt::print("\nIt writes:\n\n{}\n", written);
  write_pictures(dir, flags, result, loss, records, written);
}

void demo(const Options& o, const run::Flags& flags) {
  const Task task = task_of(o);
  const int ranks = o.ranks > 0 ? o.ranks : ranks_for(task.batch);
  if (task.batch % ranks != 0) {
    fail_usage(fmt::format("--ranks {}: a step has {} sequences, which do not divide among {} ranks", ranks,
                           task.batch, ranks));
  }
  RunOptions options;
  options.threads = o.threads;
  options.checked = false;  // this run is for speed; lessons check
  const run::RunDir dir("demo", o.run_dir);
  run_ranks(
      ranks, [&](Rank& rank) { train_rank(rank, o, task, flags, dir); }, options);
}

}  // namespace

int main(int argc, char** argv) {
  return run::main_guard([&] {
    Options o;
    run::Flags flags("lab demo",
                     "Train a character-level GPT on the State of the Union addresses, on this machine.");
    flags.add_choice("--config", o.config, {"char", "baby", "gpt2"}, "model size");
    flags.add("--text", o.text, "a folder of .txt files, or one file");
    flags.add("--steps", o.steps, "optimizer steps").at_least(1);
    flags.add("--seconds", o.seconds, "stop training after this time; 0 = no limit").at_least(0);
    const std::pair<const char*, i64*> sizes[] = {{"--batch", &o.batch},
                                                  {"--layers", &o.layers},
                                                  {"--heads", &o.heads},
                                                  {"--channels", &o.channels},
                                                  {"--time", &o.time}};
    for (const auto& [name, size] : sizes) {
      flags.add(name, *size, fmt::format("{} instead of the config's own", name + 2)).at_least(1);
    }
    flags.add("--lr", o.lr, "learning rate").at_least(0);
    flags.add("--dropout", o.dropout, "share of activations dropped");
    flags.add("--ranks", o.ranks, "ranks that share a step's sequences; 0 = as many as cores").at_least(0);
    flags.add("--threads", o.threads, "compute threads of a rank; 0 = cores / ranks").at_least(0);
    flags.add("--seed", o.seed, "order of the text");
    flags.add("--eval-every", o.eval_every, "steps between validations; 0 = only at the end").at_least(0);
    flags.add("--checkpoint-every", o.checkpoint_every, "steps between checkpoints").at_least(0);
    flags.add("--resume", o.resume, "a checkpoint to go on from");
    flags.add("--run-dir", o.run_dir, "where to leave results; empty = runs/demo-<time>");
    flags.add("--quiet", o.quiet, "no progress line");
    flags.parse(argc, argv);
    demo(o, flags);
  });
}
