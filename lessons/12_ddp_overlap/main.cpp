// Trains the same model twice on N ranks: with one sum of gradients after backward, and with buckets that
// travel during backward. Compares bits, bytes, and the time of a step with what its own trace says it should
// have been. Left out: learning which bucket size is best.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "overlap.hpp"
#include "run/launch.hpp"
#include "run/progress.hpp"
#include "run/report.hpp"
#include "run/run_dir.hpp"
#include "run/schedule_replay.hpp"
#include "run/table.hpp"
#include "run/text_task.hpp"

using namespace shardlings;

namespace {

struct Options {
  run::CommonFlags common;
  std::string config = "char", text = "data/sotu";
  i64 batch = 0, micro_batches = 1;
  double bucket_mb = 0.5, lr = 3e-3, dropout = 0;
  bool overlap = true;

  std::uint64_t seed() const { return static_cast<std::uint64_t>(common.seed); }
  i64 bucket_bytes() const { return static_cast<i64>(bucket_mb * 1048576); }
  Schedule schedule() const { return {lr, lr / 30, std::min<i64>(100, common.steps / 10), common.steps}; }
};

/// This rank's micro-batches of a step, which has batch x micro_batches sequences over all ranks.
std::vector<data::Batch> batches_of(const data::Loader& loader, const run::TextTask& task, const Options& o,
                                    i64 step, const Rank& rank) {
  std::vector<data::Batch> all;
  for (i64 k = 0; k < o.micro_batches; ++k) {
    for (data::Batch& batch :
         my_batches(loader, task.batch, o.seed(), step * o.micro_batches + k, rank.rank(), rank.size())) {
      all.push_back(std::move(batch));
    }
  }
  return all;
}

/// What one of the two runs leaves.
struct Run {
  run::TrainResult result;
  std::vector<run::RankRecord> records;  // rank 0 only
  std::vector<Bucket> buckets;           // one with everything in it: a single sum
  i64 calls = 0;                         // of all_reduce, on this rank
};

Run train(Rank& rank, const run::TextTask& task, const Options& o, bool overlap,
          const std::string& metrics_file) {
  rank.trace.clear();
  rank.memory.reset_peaks();
  Gpt model(task.config);
  AdamConfig adam;
  adam.beta2 = 0.99;
  std::unique_ptr<Ddp> ddp;
  Run run;
  if (overlap) {
    auto bucketed = std::make_unique<OverlappedDdp>(rank, rank.world(), model, adam, o.bucket_bytes());
    run.buckets = bucketed->buckets();
    ddp = std::move(bucketed);
  } else {
    ddp = std::make_unique<Ddp>(rank, rank.world(), model, adam);
    run.buckets = {{0, ddp->flat().size}};
  }
  ddp->share_weights();
  data::Loader loader(task.train, {1, task.config.time, o.seed()});
  std::optional<run::MetricsWriter> metrics;
  if (rank.rank() == 0) metrics.emplace(metrics_file);
  run::Progress progress(o.common.steps, 0, {.quiet = o.common.quiet || rank.rank() != 0, .clock = {}});
  run::TrainOptions options;
  options.steps = options.trace_steps = o.common.steps;
  options.rate = [schedule = o.schedule()](i64 step) { return schedule.rate(step); };
  options.batches = [&](i64 step) { return batches_of(loader, task, o, step, rank); };
  options.step = [&](const std::vector<data::Batch>& batches, i64 step, double rate) {
    return step_over(rank, rank.world(), model, *ddp, batches, step, rate);
  };
  options.on_step = [&](const run::StepMetrics& m) {
    metrics->write(m);
    progress.update(m);
  };
  const i64 calls_before = rank.traffic.calls["all_reduce"];
  run.result = run::train({rank, model, *ddp, loader}, options);
  run.calls = rank.traffic.calls["all_reduce"] - calls_before;
  progress.finish();
  run.records = run::gather_records(rank);
  return run;
}

/// Bytes and bits are judged. Times are shown: this machine may be busy.
void compare(run::Table& table, const run::TextTask& task, const Options& o, const Run& run,
             const std::string& name) {
  const i64 ranks = static_cast<i64>(run.records.size());
  const auto ring = [&](i64 bytes) { return 2 * bytes * (ranks - 1) / ranks; };
  const auto buckets = static_cast<i64>(run.buckets.size()), steps = run.result.steps_done;
  i64 bytes = 2 * ring(16);
  for (const Bucket& b : run.buckets) bytes += ring(4 * (b.end - b.begin));
  table.bytes(name + ": gradients", 4 * parameter_count(task.config),
              run.records.front().peak[static_cast<std::size_t>(Category::gradients)]);
  table.bytes(name + ": sent a step", bytes, *run.result.metrics.front().bytes_sent);
  // A step adds up each bucket, its tokens, its loss, and who wants to stop.
  table.count(name + ": all_reduce", steps * (buckets + (ranks > 1 ? 3 : 2)), run.calls);
  const auto schedules = run::replay_steps(run.records);
  const bool overlapped = buckets > 1;
  const double measured = run::median_of(schedules, &run::StepSchedule::measured);
  if (link_from(o.common.link).none()) {  // a transfer then takes as long as it happens to take
    table.measured(name + ": a step", measured, "ms");
  } else {
    table.value(
        fmt::format("{}: a step, {}", name, overlapped ? "ideal schedule" : "compute + communication"),
        run::median_of(schedules, overlapped ? &run::StepSchedule::ideal : &run::StepSchedule::serial),
        measured, "ms");
  }
  const run::Exposure exposure = run::exposure_of(run.records.front().events);
  const auto a_step = static_cast<double>(steps);
  table.measured(name + ": communication a step", exposure.communication / a_step, "ms");
  table.measured(name + ": of that exposed", exposure.exposed / a_step, "ms");
  table.measured(name + ": exposed share", 100 * exposure.share(), "%");
}

void write_pictures(const run::RunDir& dir, const run::Flags& flags, const run::Table& table,
                    const Run& plain, const std::optional<Run>& overlapped) {
  run::Report report;
  report.title = "ddp_overlap";
  report.config = run::facts_of(flags.values());
  const Run& shown = overlapped ? *overlapped : plain;
  report.subtitle = fmt::format("{} ranks, {} bucket{}", shown.records.size(), shown.buckets.size(),
                                shown.buckets.size() == 1 ? "" : "s");
  run::add_run(report, "one sum", plain.result.metrics);
  if (overlapped) run::add_run(report, "buckets", overlapped->result.metrics);
  report.ranks = shown.records;
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
      folder.emplace("ddp_overlap", o.common.run_dir);
      folder->write_config(flags.values());
      fmt::print(
          "ddp_overlap, {} code: config {}, {} parameters, {} x {} sequences of {} tokens a step\n{}\n\n",
          o.common.impl == "yours" ? "your" : "reference", o.config,
          run::number_text(static_cast<double>(parameter_count(task.config)), true), o.micro_batches,
          task.batch, task.config.time, run::head_text(o.common, rank));
      std::fflush(stdout);
    }
    const auto file = [&](const char* name) { return folder ? folder->file(name) : std::string(); };
    const Run plain =
        train(rank, task, o, false, file(o.overlap ? "metrics_one_sum.jsonl" : "metrics.jsonl"));
    std::optional<Run> overlapped;
    if (o.overlap && !plain.result.interrupted)
      overlapped = train(rank, task, o, true, file("metrics.jsonl"));
    if (!folder || plain.result.interrupted || (overlapped && overlapped->result.interrupted)) return;
    run::Table table;
    compare(table, task, o, plain, "one sum");
    if (overlapped) {
      compare(
          table, task, o, *overlapped,
          fmt::format("{} bucket{}", overlapped->buckets.size(), overlapped->buckets.size() == 1 ? "" : "s"));
      double apart = 0;
      for (std::size_t i = 0; i < plain.result.metrics.size(); ++i) {
        apart =
            std::max(apart, std::abs(*plain.result.metrics[i].loss - *overlapped->result.metrics[i].loss));
      }
      table.value("largest difference of losses", 0, apart, "nats", 0);
    }
    fmt::print("\n{}", table.text());
    write_pictures(*folder, flags, table, plain, overlapped);
    code = table.all_equal() ? 0 : 1;
  });
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  return run::main_guard([&] {
    Options o;
    o.common.ranks = 2;
    o.common.steps = 20;
    o.common.link = "eth1g";
    o.common.checked = false;  // its copies would be measured too
    run::Flags flags("ddp_overlap", "Hide the sum of the gradients behind backward.");
    o.common.add_to(flags, SHARDLINGS_IMPL);
    flags.add_choice("--config", o.config, {"char", "baby"}, "Size of the model");
    flags.add("--text", o.text, "A folder of .txt files, or one file");
    flags.add("--batch", o.batch, "Sequences of a micro-batch, over all ranks; 0 = the config's").at_least(0);
    flags.add("--micro-batches", o.micro_batches, "Micro-batches of a step").at_least(1);
    flags.add("--bucket-mb", o.bucket_mb, "Least size of a bucket; 1 MB = 1,048,576 bytes")
        .at_least(0)
        .at_most(1e6);
    flags.add("--overlap", o.overlap, "Also train with buckets that travel during backward");
    flags.add("--lr", o.lr, "Largest learning rate").at_least(0);
    flags.add("--dropout", o.dropout, "Share of activations that are dropped").at_least(0);
    flags.add_rule([&] {
      if (o.common.steps < 1) fail_usage("--steps 0: give at least 1");
    });
    flags.parse(argc, argv);
    return program(o, flags);
  });
}
