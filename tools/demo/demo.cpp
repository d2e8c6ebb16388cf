// ./lab demo: trains a small GPT on the State of the Union addresses until it writes, and leaves a report.
#include <fmt/format.h>

#include "data/tokenizer.hpp"
#include "run/flags.hpp"
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
  int threads = 0;
  double seconds = 85, lr = 3e-3, dropout = 0;
  bool quiet = false;
};

void demo(const Options& o, const run::Flags& flags) {
  const NamedConfig named = named_config(o.config);
  GptConfig model_config = named.model;
  const auto given = [](i64 asked, i64 own) { return asked > 0 ? asked : own; };
  const i64 batch = given(o.batch, named.batch);
  model_config.layers = given(o.layers, model_config.layers);
  model_config.heads = given(o.heads, model_config.heads);
  model_config.channels = given(o.channels, model_config.channels);
  model_config.time = given(o.time, model_config.time);
  model_config.dropout = o.dropout;
  const auto tokenizer = data::byte_tokenizer();
  model_config.vocab = tokenizer->vocab_size();
  check_config(model_config);
  const Schedule schedule{o.lr, o.lr / 30, std::min<i64>(100, o.steps / 10), o.steps};
  check_schedule(schedule);
  const data::Split text = data::split(data::load_corpus(o.text));
  const data::TokenStream train_stream(text.train, *tokenizer),
      validation_stream(text.validation, *tokenizer);
  data::Loader loader(train_stream, {batch, model_config.time, static_cast<std::uint64_t>(o.seed)});
  const data::Sequential validation(validation_stream, batch, model_config.time);

  RunOptions ranks;
  ranks.threads = o.threads;
  ranks.checked = false;  // this run is for speed; lessons check
  const run::RunDir dir("demo", o.run_dir);
  const std::string checkpoint = dir.file("checkpoint.safetensors");
  run_ranks(
      1,
      [&](Rank& rank) {
        Gpt model(model_config);
        AdamConfig adam;
        adam.beta2 = 0.99;  // few tokens a step: a longer memory for the squares
        Single single(rank, model, adam);
        run::TrainOptions options;
        options.steps = o.steps;
        if (!o.resume.empty()) options.first_step = run::resume_run(o.resume, model, single, loader);
        options.max_seconds = o.seconds;
        options.rate = [&](i64 step) { return schedule.rate(step); };
        options.eval_every = o.eval_every;
        options.checkpoint_every = o.checkpoint_every;
        options.save = [&](i64 done) { run::save_run(checkpoint, model, single, loader, done); };
        run::MetricsWriter metrics(dir.file("metrics.jsonl"));
        dir.write_config(flags.values());
        fmt::print("GPT with {} layers, {} heads, {} channels, T {}: {} parameters\n", model_config.layers,
                   model_config.heads, model_config.channels, model_config.time,
                   parameter_count(model_config));
        fmt::print(
            "text: {} addresses to train on ({:.1f} MB), {} to validate; batch {} x {} bytes; 1 rank x {} "
            "threads\n",
            text.train.documents.size(), static_cast<double>(text.train.bytes()) / 1e6,
            text.validation.documents.size(), batch, model_config.time, rank.threads());
        std::fflush(stdout);
        run::ProgressOptions style;
        style.quiet = o.quiet;
        run::Progress progress(o.steps, options.first_step, style);
        options.on_step = [&](const run::StepMetrics& m) {
          metrics.write(m);
          progress.update(m);
        };
        const run::Training training{rank, model, single, loader, &validation};
        const run::TrainResult result = run::train(training, options);
        progress.finish();
        if (result.interrupted) {
          fmt::print("stopped after step {}; go on with: ./lab demo --resume {}\n", result.steps_done,
                     checkpoint);
          return;
        }
        const double loss = run::validation_loss(training, 0);
        fmt::print(
            "\n{} steps in {:.1f} s; validation loss {:.4f} nats per byte (all {} held-out addresses)\n",
            result.steps_done, result.seconds, loss, text.validation.documents.size());
        const std::string written = run::sample(rank, model, single, *tokenizer, "Fellow citizens", {});
        fmt::print("\nIt writes:\n\nFellow citizens{}\n\n", written);
        run::Report report;
        report.title = "Shardlings demo";
        report.subtitle =
            fmt::format("{} steps, validation loss {:.3f} nats per byte", result.steps_done, loss);
        report.config = run::facts_of(flags.values());
        run::add_run(report, "", result.metrics);
        report.ranks = {run::record_of(rank)};
        report.samples = {{"What it writes after \"Fellow citizens\"", "Fellow citizens" + written}};
        run::write_trace_json(dir.file("trace.json"), report.ranks);
        run::write_report(dir.file("report.html"), report);
      },
      ranks);
  fmt::print("{}\n", dir.file("report.html"));
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
    flags.add("--threads", o.threads, "compute threads; 0 = one per core").at_least(0);
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
