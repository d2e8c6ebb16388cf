// Four ranks, one vector: each rank makes and squares its own slice, and one all_reduce puts the sums
// together. Shows what every later program does too: flags, ranks, a progress line, predicted | measured, a
// trace, a report.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <optional>
#include <thread>
#include <vector>

#include "comm/comm.hpp"
#include "hello.hpp"
#include "run/flags.hpp"
#include "run/launch.hpp"
#include "run/metrics.hpp"
#include "run/progress.hpp"
#include "run/report.hpp"
#include "run/run_dir.hpp"
#include "run/table.hpp"

using namespace shardlings;

namespace {

struct Options {
  run::CommonFlags common;
  i64 elements = 20'000'003;  // a number that no number of ranks divides
  double late_ms = 0;
};

constexpr i64 kPeriod = 1000;

/// Element i of the vector: 0, 1, …, 999, and again. Its squares add up to a formula, so we know what must
/// come out.
float element(i64 i) { return static_cast<float>(i % kPeriod); }

/// 0² + 1² + … + (k-1)² = (k-1) k (2k-1) / 6, for the whole periods and for what is left.
i64 predicted_sum(i64 n) {
  const auto squares_below = [](i64 k) { return (k - 1) * k * (2 * k - 1) / 6; };
  return n / kPeriod * squares_below(kPeriod) + squares_below(n % kPeriod);
}

/// One step: every rank squares its slice, and all add up.
double step(Rank& rank, const Tensor& mine, const Options& options, i64 number) {
  const auto whole_step = rank.trace.span(Event::other, run::step_name(number));
  if (rank.rank() == 0 && options.late_ms > 0) {
    const auto late = rank.trace.span(Event::other, "late on purpose");
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options.late_ms));
  }
  const auto squares = rank.trace.span(Event::forward, "sum of squares");
  return sum_of_squares(rank, mine);
}

/// All steps; returns the sum. `folder` on rank 0, which reports for all: a progress line, and one line a
/// step in metrics.jsonl.
double run_one_rank(Rank& rank, const Options& options, const run::RunDir* folder) {
  Tensor mine;
  {
    const auto filling = rank.trace.span(Event::data, "make my slice");
    const Slice slice = my_slice(options.elements, rank.rank(), rank.size());
    mine = Tensor(rank.memory, Category::activations, DType::f32, {slice.size()});
    float* x = mine.data<float>();
    for (i64 i = 0; i < slice.size(); ++i) x[i] = element(slice.begin + i);
  }
  rank.trace.sample(rank.memory);

  run::ProgressOptions progress_options;
  progress_options.quiet = options.common.quiet || folder == nullptr;
  run::Progress progress(options.common.steps, 0, progress_options);
  std::optional<run::MetricsWriter> metrics;
  if (folder != nullptr) metrics.emplace(folder->file("metrics.jsonl"));

  double sum = 0;
  for (i64 number = 1; number <= options.common.steps; ++number) {
    const std::int64_t begin = now_ns();
    const i64 sent_before = rank.traffic.total();
    sum = step(rank, mine, options, number);
    rank.trace.sample(rank.memory);
    run::StepMetrics line;
    line.step = number;
    line.ms = static_cast<double>(now_ns() - begin) * 1e-6;
    line.bytes_sent = rank.traffic.total() - sent_before;
    line.peak = run::peaks_of(rank.memory);
    progress.update(line);
    if (metrics) metrics->write(line);
  }
  progress.finish();
  return sum;
}

/// What the formulas of the lesson's page say, beside what the library counted on rank 0.
run::Table compare(const Options& options, double sum, const run::RankRecord& first) {
  const i64 ranks = options.common.ranks;
  const i64 most = (options.elements + ranks - 1) / ranks;  // rank 0 has one of the larger slices
  const i64 steps = options.common.steps;
  const auto peak = [&](Category c) { return first.peak[static_cast<std::size_t>(c)]; };
  const auto sent = first.bytes_sent.find("all_reduce");
  run::Table table;
  table.bytes("vector on one rank", 4 * most, peak(Category::activations));
  table.bytes("communication memory on one rank", 8, peak(Category::communication));
  table.bytes("sent by one rank", steps * (2 * 8 * (ranks - 1) / ranks),
              sent == first.bytes_sent.end() ? 0 : sent->second);
  table.count("sum of squares", predicted_sum(options.elements), std::llround(sum), "");
  return table;
}

void write_pictures(const run::RunDir& folder, const run::Flags& flags, const run::Table& table,
                    const std::vector<run::RankRecord>& records) {
  run::Report report;
  report.title = "hello_ranks";
  report.subtitle = fmt::format("{} ranks square their slices and add up", records.size());
  report.config = run::facts_of(flags.values());
  report.ranks = records;
  report.rows = table.rows();
  run::leave_pictures(folder, report);
}

int program(int argc, char** argv) {
  Options options;
  options.common.steps = 20;
  run::Flags flags("hello_ranks", "Ranks square the slices of one vector and add up.");
  options.common.add_to(flags, SHARDLINGS_IMPL);
  flags.add("--elements", options.elements, "Elements of the vector, over all ranks").at_least(1);
  flags.add("--late-ms", options.late_ms, "Milliseconds that rank 0 sleeps in every step").at_least(0);
  flags.add_rule([&] {
    if (options.common.steps < 1)
      fail_usage("--steps 0: with no step there is nothing to add up; give at least 1.");
  });
  flags.parse(argc, argv);

  int code = 0;
  run::launch(options.common, [&](Rank& rank) {
    const bool reports = rank.rank() == 0;
    std::optional<run::RunDir> folder;
    if (reports) {
      folder.emplace("hello_ranks", options.common.run_dir);
      folder->write_config(flags.values());
      fmt::print("hello_ranks, {} code: {} elements\n{}\n\n",
                 options.common.impl == "yours" ? "your" : "reference",
                 run::number_text(options.elements, true), run::head_text(options.common, rank));
    }
    const double sum = run_one_rank(rank, options, folder ? &*folder : nullptr);
    const std::vector<run::RankRecord> records = run::gather_records(rank);
    if (!reports) return;
    const run::Table table = compare(options, sum, records.front());
    fmt::print("\n{}", table.text());
    write_pictures(*folder, flags, table, records);
    code = table.all_equal() ? 0 : 1;
  });
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  return run::main_guard([&] { return program(argc, argv); });
}
