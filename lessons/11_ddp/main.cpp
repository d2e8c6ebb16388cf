// Trains a GPT on N ranks that hold the same model and share each step's sequences; compares the first steps
// with one rank that does all of it alone; and shows what the ranks sent, what they hold and how fast they
// are. Left out: hiding communication behind backward.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ddp.hpp"
#include "kernels/ops.hpp"
#include "run/launch.hpp"
#include "run/progress.hpp"
#include "run/report.hpp"
#include "run/run_dir.hpp"
#include "run/table.hpp"
#include "run/text_task.hpp"
#include "run/timing.hpp"

using namespace shardlings;

namespace {

struct Options {
  run::CommonFlags common;
  std::string config = "char", text = "data/sotu";
  i64 batch = 0, eval_batches = 40, verify_steps = 20, speed_steps = 0;
  double lr = 3e-3, clip = 1, dropout = 0;

  std::uint64_t seed() const { return static_cast<std::uint64_t>(common.seed); }
  Schedule schedule() const { return {lr, lr / 30, std::min<i64>(100, common.steps / 10), common.steps}; }
  AdamConfig adam() const {
    AdamConfig a;
    a.beta2 = 0.99;
    a.clip = clip;
    return a;
  }
  data::Loader loader(const run::TextTask& task) const { return {task.train, {1, task.config.time, seed()}}; }
};

/// Rank 0 plays all of them: each one's gradient from zero, then their sum, in rank order. Returns the losses
/// of the first steps. The others meet it after each step, so that none waits for long.
std::vector<double> alone(Rank& rank, const run::TextTask& task, const Options& o) {
  const i64 steps = std::min(o.verify_steps, o.common.steps);
  if (rank.rank() != 0) {
    for (i64 step = 0; step < steps; ++step) rank.world().barrier();
    return {};
  }
  Gpt model(task.config);
  Single single(rank, model, o.adam());
  const data::Loader loader = o.loader(task);
  const Tensor& grads = single.flat().grads;
  const Tensor sum(rank.memory, Category::gradients, grads.dtype(), grads.shape());
  std::vector<double> losses;
  for (i64 step = 0; step < steps; ++step) {
    i64 tokens = 0;
    std::vector<data::Batch> all;
    for (int r = 0; r < rank.size(); ++r) {
      for (data::Batch& batch : my_batches(loader, task.batch, o.seed(), step, r, rank.size())) {
        tokens += batch.counted;
        all.push_back(std::move(batch));
      }
    }
    double loss = 0;
    sum.zero();
    for (const data::Batch& batch : all) {
      single.begin_step();
      loss += run_micro_batch(rank, model, run::micro_batch_of(batch, step, tokens, true), single);
      kernels::add(sum, grads);
    }
    grads.copy_from(sum);
    single.end_step(o.schedule().rate(step));
    losses.push_back(loss);
    rank.world().barrier();
  }
  return losses;
}

/// Tokens per second on the first 1, 2, 4 … of the ranks; the same numbers on all of them.
std::vector<std::pair<int, double>> speeds(Rank& rank, const run::TextTask& task, const Options& o) {
  std::vector<std::pair<int, double>> all;
  std::vector<int> counts;
  for (int n = 1; n < rank.size(); n *= 2) counts.push_back(n);
  counts.push_back(rank.size());
  for (const int n : counts) {
    const Communicator some = rank.world().split(rank.rank() < n ? 0 : -1, rank.rank());
    double seconds = 0;
    if (some) {
      Gpt model(task.config);
      Ddp ddp(rank, some, model, o.adam());
      const auto batches = my_batches(o.loader(task), task.batch, o.seed(), 0, rank.rank(), n);
      seconds = run::seconds_of(rank, some, o.speed_steps,
                                [&] { step_over(rank, some, model, ddp, batches, 0, 0); });
    }
    rank.world().barrier();
    all.emplace_back(n, static_cast<double>(task.batch * task.config.time) / seconds);
  }
  return all;
}

/// What a rank holds after training.
struct Trained {
  run::TrainResult result;
  std::vector<run::RankRecord> records;  // rank 0 only
  double validation = 0;
};

Trained train(Rank& rank, const run::TextTask& task, const Options& o, const run::RunDir* folder) {
  Gpt model(task.config);
  Ddp ddp(rank, rank.world(), model, o.adam());
  ddp.share_weights();
  data::Loader loader = o.loader(task);
  std::optional<run::MetricsWriter> metrics;
  if (folder != nullptr) metrics.emplace(folder->file("metrics.jsonl"));
  run::Progress progress(o.common.steps, 0, {.quiet = o.common.quiet || folder == nullptr, .clock = {}});
  run::TrainOptions options;
  options.steps = o.common.steps;
  options.rate = [schedule = o.schedule()](i64 step) { return schedule.rate(step); };
  options.batches = [&](i64 step) {
    return my_batches(loader, task.batch, o.seed(), step, rank.rank(), rank.size());
  };
  options.step = [&](const std::vector<data::Batch>& batches, i64 step, double rate) {
    return step_over(rank, rank.world(), model, ddp, batches, step, rate);
  };
  options.on_step = [&](const run::StepMetrics& m) {
    metrics->write(m);
    progress.update(m);
  };
  Trained trained;
  trained.result = run::train({rank, model, ddp, loader}, options);
  progress.finish();
  trained.records = run::gather_records(rank);
  // Held-out text: batches dealt out to the ranks, and one mean over all of their tokens.
  const data::Sequential text(task.validation, task.batch, task.config.time);
  const i64 count = o.eval_batches > 0 ? std::min(o.eval_batches, text.size()) : text.size();
  double sum = 0;
  i64 tokens = 0;
  for (const i64 k : my_samples({count, 0, o.seed()}, 0, count, rank.rank(), rank.size())) {
    const data::Batch batch = text.at(k * text.size() / count);
    const MicroBatch mb = run::micro_batch_of(batch, 0, batch.counted, true, /*training=*/false);
    sum += evaluate(rank, model, mb, ddp) * static_cast<double>(batch.counted);
    tokens += batch.counted;
  }
  trained.validation = mean_over(rank, rank.world(), sum, tokens);
  return trained;
}

run::Table compare(const run::TextTask& task, const Trained& trained, const std::vector<double>& losses,
                   const std::vector<std::pair<int, double>>& fast, const Rank& rank) {
  const run::RankRecord& first = trained.records.front();
  const i64 n = parameter_count(task.config), ranks = rank.size();
  const auto peak = [&](Category c) { return first.peak[static_cast<std::size_t>(c)]; };
  const auto ring = [&](i64 bytes) { return 2 * bytes * (ranks - 1) / ranks; };
  run::Table table;
  table.bytes("parameters", 4 * n, peak(Category::parameters));
  table.bytes("gradients", 4 * n, peak(Category::gradients));
  table.bytes("m and v", 8 * n, peak(Category::optimizer));
  table.measured("activations, peak", static_cast<double>(peak(Category::activations)) / 1e6, "MB");
  table.bytes("sent before step 0", ranks == 1 ? 0 : 4 * n, first.bytes_sent.at("broadcast"));
  table.bytes("sent a step: gradients, tokens, loss", ring(4 * n) + 2 * ring(16),
              *trained.result.metrics.front().bytes_sent);
  double apart = 0;
  for (std::size_t i = 0; i < losses.size(); ++i)
    apart = std::max(apart, std::abs(losses[i] - *trained.result.metrics[i].loss));
  if (!losses.empty())
    table.value(fmt::format("steps 1 to {} against one rank, loss", losses.size()), 0, apart, "nats", 0);
  table.measured("loss on held-out text", trained.validation, "nats");
  for (const auto& [count, speed] : fast) {
    const int useful = std::max(1, std::min(count, rank.cores() / rank.threads()));
    table.value(fmt::format("{} rank{}, speed-up", count, count == 1 ? "" : "s"), useful,
                speed / fast.front().second, "");
  }
  return table;
}

void write_pictures(const run::RunDir& dir, const run::Flags& flags, const run::Table& table,
                    const Trained& trained, const std::vector<std::pair<int, double>>& fast) {
  run::Report report;
  report.title = "ddp";
  report.subtitle = fmt::format("{} ranks, {} steps, loss {:.3f} nats per byte", trained.records.size(),
                                trained.result.steps_done, trained.result.loss);
  report.config = run::facts_of(flags.values());
  run::add_run(report, "", trained.result.metrics);
  report.figures = {{"Speed over ranks", "ranks", "tokens/s", {{"measured", {fast.begin(), fast.end()}}}}};
  report.ranks = trained.records;
  report.rows = table.rows();
  run::leave_pictures(dir, report);
}

int program(const Options& o, const run::Flags& flags) {
  check_schedule(o.schedule());
  const run::TextTask task = run::text_task(o.config, o.text, o.batch, o.dropout);
  run::check_ranks_have_work(o.common.ranks, task.batch);
  int code = 0;
  run::launch(o.common, [&](Rank& rank) {
    std::optional<run::RunDir> folder;
    if (rank.rank() == 0) {
      folder.emplace("ddp", o.common.run_dir);
      folder->write_config(flags.values());
      fmt::print(
          "ddp, {} code: config {}, {} parameters, {} sequences of {} tokens a step, over all ranks\n"
          "{}\n\n",
          o.common.impl == "yours" ? "your" : "reference", o.config,
          run::number_text(static_cast<double>(parameter_count(task.config)), true), task.batch,
          task.config.time, run::head_text(o.common, rank));
      std::fflush(stdout);
    }
    const Trained trained = train(rank, task, o, folder ? &*folder : nullptr);
    if (trained.result.interrupted) return;
    rank.trace.recording = false;
    const std::vector<double> losses = alone(rank, task, o);
    const auto fast = speeds(rank, task, o);
    if (!folder) return;
    const run::Table table = compare(task, trained, losses, fast, rank);
    fmt::print("\n{}", table.text());
    write_pictures(*folder, flags, table, trained, fast);
    code = table.all_equal() ? 0 : 1;
  });
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  return run::main_guard([&] {
    Options o;
    o.common.steps = 200;
    o.common.checked = false;  // long runs are for speed; the tests check
    run::Flags flags("ddp", "Train a small GPT on ranks that share each step's sequences.");
    o.common.add_to(flags, SHARDLINGS_IMPL);
    flags.add_choice("--config", o.config, {"char", "baby"}, "Size of the model");
    flags.add("--text", o.text, "A folder of .txt files, or one file");
    flags.add("--batch", o.batch, "Sequences of a step, over all ranks; 0 = the config's").at_least(0);
    flags.add("--lr", o.lr, "Largest learning rate").at_least(0);
    flags.add("--clip", o.clip, "Limit of the gradient's norm; 0 = no clipping").at_least(0);
    flags.add("--dropout", o.dropout, "Share of activations that are dropped").at_least(0);
    flags.add("--eval-batches", o.eval_batches, "Batches of held-out text at the end; 0 = all").at_least(0);
    flags.add("--verify-steps", o.verify_steps, "First steps that one rank repeats alone").at_least(0);
    flags.add("--speed-steps", o.speed_steps, "Steps timed on 1, 2, 4 … ranks; 0 = 10 of char, 1 of baby")
        .at_least(0);
    flags.add_rule([&] {
      if (o.common.steps < 1) fail_usage("--steps 0: give at least 1");
    });
    flags.parse(argc, argv);
    if (o.speed_steps == 0) o.speed_steps = o.config == "char" ? 10 : 1;
    return program(o, flags);
  });
}
