// Collectives made of send and recv, beside the library's: over sizes and numbers of ranks, the time that
// alpha and beta predict, the time measured, and the two bandwidths of nccl-tests. And what bf16 does to a
// sum of 512 ones.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "collectives.hpp"
#include "comm/bandwidth.hpp"
#include "run/flags.hpp"
#include "run/launch.hpp"
#include "run/metrics.hpp"
#include "run/report.hpp"
#include "run/run_dir.hpp"
#include "run/table.hpp"
#include "run/timing.hpp"

using namespace shardlings;

namespace {

struct Options {
  run::CommonFlags common;
  int mib = 4;
  i64 bytes() const { return i64{mib} << 20; }
};

constexpr i64 kOddCount = 100'003;  // floats; no number of ranks divides it

Tensor floats(Rank& rank, i64 count) {
  return Tensor(rank.memory, Category::communication, DType::f32, {count});
}

/// The other way to all_reduce: sums go up the tree that tree_broadcast goes down, so 2 log2 n rounds of the
/// whole tensor. `scratch` is as large as x.
void tree_all_reduce(const Communicator& comm, const Tensor& x, const Tensor& scratch) {
  const int n = comm.size(), me = comm.rank();
  for (int have = static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))) / 2; have >= 1; have /= 2) {
    if (have <= me && me < 2 * have) comm.send(x, me - have).wait();
    if (me < have && me + have < n) {
      comm.recv(scratch, me + have).wait();
      add_into(x, scratch);
    }
  }
  tree_broadcast(comm, x, 0);
}

struct Algorithm {
  std::string name, operation;  // "ring", "all_reduce"
  std::function<void(Rank&, const Communicator&, const Tensor& x, const Tensor& scratch)> run;
  int tree_rounds = 0;  // times log2 n: rounds of the whole tensor; 0: the ring's cost
  std::string title() const { return name + " " + operation; }
};

std::vector<Algorithm> algorithms() {
  const auto blocks = [](const Communicator& comm, const Tensor& x) {
    return even_blocks(x.numel(), comm.size());
  };
  using C = const Communicator&;
  using T = const Tensor&;
  return {
      {"ring", "all_reduce",
       [](Rank& rank, C comm, T x, T) { ring_all_reduce(rank, comm, x, x, DType::f32); }},
      {"tree", "all_reduce", [](Rank&, C comm, T x, T scratch) { tree_all_reduce(comm, x, scratch); }, 2},
      {"library's", "all_reduce", [](Rank&, C comm, T x, T) { comm.all_reduce(x).wait(); }},
      {"ring", "reduce_scatter",
       [=](Rank& rank, C comm, T x, T) { ring_reduce_scatter(rank, comm, x, blocks(comm, x)); }},
      {"ring", "all_gather",
       [=](Rank&, C comm, T x, T) {
         ring_all_gather(comm, part(x, blocks(comm, x), comm.rank()), x, blocks(comm, x));
       }},
      {"tree", "broadcast", [](Rank&, C comm, T x, T) { tree_broadcast(comm, x, 0); }, 1},
  };
}

/// One line of the table, and one point of a figure.
struct Line {
  std::string title, operation;
  int ranks = 0;
  i64 bytes = 0;
  double predicted = 0, measured = 0;  // seconds
};

double predict(const Algorithm& algorithm, const Link& link, int ranks, i64 bytes) {
  if (algorithm.tree_rounds == 0) return transfer_seconds(link, algorithm.operation, ranks, bytes);
  const int rounds = std::bit_width(static_cast<unsigned>(ranks - 1));
  return algorithm.tree_rounds * rounds * transfer_seconds(link, "send", 2, bytes);
}

constexpr char kRow[] = "{:>5} {:>11} {:<22} {:>12} {:>12} {:>11} {:>11}\n";

void print(const Line& line) {
  const auto text = [](double value) { return value > 0 ? run::number_text(value, false) : std::string(); };
  const double algorithm = algorithm_bandwidth(line.bytes, line.measured);
  fmt::print(kRow, line.ranks, run::number_text(static_cast<double>(line.bytes), true), line.title,
             text(line.predicted * 1e3), text(line.measured * 1e3), text(algorithm * 1e-9),
             text(algorithm * bus_factor(line.operation, line.ranks) * 1e-9));
  std::fflush(stdout);
}

/// All algorithms on the first 2, 4, 8, … ranks and on all, over sizes. `folder` on rank 0, which prints.
std::vector<Line> measure(Rank& rank, const Options& options, const run::RunDir* folder) {
  rank.trace.recording = false;  // thousands of messages that all look the same
  const Link link = link_from(options.common.link);
  std::optional<run::MetricsWriter> metrics;
  if (folder != nullptr) {
    metrics.emplace(folder->file("metrics.jsonl"));
    if (!options.common.quiet)
      fmt::print(kRow, "ranks", "bytes", "", "predicted ms", "measured ms", "algbw GB/s", "busbw GB/s");
  }
  const Tensor buffer = floats(rank, options.bytes() / 4), scratch = floats(rank, options.bytes() / 4);
  std::vector<Line> lines;
  for (int ranks = 2; ranks / 2 < rank.size(); ranks *= 2) {
    const int n = std::min(ranks, rank.size());
    const Communicator comm = rank.world().split(rank.rank() < n ? 0 : -1, rank.rank());
    for (i64 bytes = 1024; comm && bytes <= options.bytes(); bytes *= 16) {
      for (const Algorithm& algorithm : algorithms()) {
        const Tensor x = buffer.slice(0, bytes / 4), room = scratch.slice(0, bytes / 4);
        x.zero();  // sums of zeros stay finite, however often they are summed
        Line line{algorithm.title(), algorithm.operation, n, bytes, predict(algorithm, link, n, bytes), 0};
        line.measured = run::seconds_of(rank, comm, std::max<i64>(1, options.common.steps),
                                        [&] { algorithm.run(rank, comm, x, room); });
        lines.push_back(line);
        if (!metrics) continue;
        if (!options.common.quiet) print(line);
        run::StepMetrics step;
        step.step = static_cast<i64>(lines.size());
        step.ms = line.measured * 1e3;
        metrics->write(step);
      }
    }
  }
  return lines;
}

/// 512 times 1 into a sum of this type, one after the other: what a ring of 512 ranks does to an element.
double sum_of_ones(Rank& rank, DType type) {
  const Tensor sum(rank.memory, Category::communication, type, {1}),
      one(rank.memory, Category::communication, type, {1});
  sum.zero();
  one.set(0, 1);
  for (int r = 0; r < 512; ++r) add_into(sum, one);
  return sum.get(0);
}

/// One all_reduce by hand and one by the library, with the trace on: all that must be equal, in a table.
run::Table check(Rank& rank) {
  const Tensor x = floats(rank, kOddCount), same = floats(rank, kOddCount);
  for (i64 i = 0; i < kOddCount; ++i) x.set(i, static_cast<double>((rank.rank() + 1) * (i % 1000)));
  same.copy_from(x);
  rank.world().barrier();
  const i64 bytes = rank.traffic.bytes["send"], calls = rank.traffic.calls["send"],
            before = rank.memory.now();
  rank.memory.reset_peaks();
  ring_all_reduce(rank, rank.world(), x, x, DType::f32);
  const i64 sent = rank.traffic.bytes["send"] - bytes, scratch = rank.memory.peak() - before;
  rank.world().all_reduce(same).wait();
  double wrong = 0;
  for (i64 i = 0; i < kOddCount; ++i) wrong += x.get(i) != same.get(i) ? 1 : 0;
  const std::vector<double> all_wrong = run::gather_numbers(rank, wrong);
  const std::vector<Slice> blocks = even_blocks(kOddCount, rank.size());
  const i64 kept = blocks[0].size() + blocks[1].size();
  run::Table table;
  table.bytes("ring all_reduce: sent by rank 0", 4 * (2 * kOddCount - kept), sent);
  table.count("ring all_reduce: its messages", 2 * (rank.size() - 1), rank.traffic.calls["send"] - calls, "");
  table.bytes("ring all_reduce: its scratch", 4 * blocks[0].size(), scratch);
  table.count("elements unlike the library's, all ranks", 0,
              static_cast<i64>(std::accumulate(all_wrong.begin(), all_wrong.end(), 0.0)), "");
  table.count("512 ones, partial sums in f32", 512, static_cast<i64>(sum_of_ones(rank, DType::f32)), "");
  table.count("512 ones, partial sums in bf16", 256, static_cast<i64>(sum_of_ones(rank, DType::bf16)), "");
  return table;
}

/// Over bytes, on all ranks, all that do an all_reduce; predictions dashed.
run::Figure figure_of(const std::vector<Line>& lines, const std::string& title, const char* y_label,
                      const std::function<double(const Line&, double)>& y) {
  run::Figure figure{title, "bytes", y_label, {}, true};
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.operation != "all_reduce") continue;
    run::Curve measured{algorithm.title(), {}}, predicted{algorithm.title() + ", predicted", {}, true};
    for (const Line& line : lines) {
      if (line.title != algorithm.title() || line.ranks != lines.back().ranks) continue;
      measured.points.emplace_back(line.bytes, y(line, line.measured));
      if (line.predicted > 0) predicted.points.emplace_back(line.bytes, y(line, line.predicted));
    }
    figure.curves.push_back(measured);
    if (algorithm.name != "library's" && !predicted.points.empty()) figure.curves.push_back(predicted);
  }
  return figure;
}

int program(int argc, char** argv) {
  Options options;
  options.common.steps = 5;
  options.common.link = "eth1g";
  options.common.checked = false;        // its copies would be measured too
  options.common.buffered_send = false;  // as NCCL's
  run::Flags flags("collectives", "Measures collectives made of send and recv beside the library's.");
  options.common.add_to(flags, SHARDLINGS_IMPL);
  flags.add("--mib", options.mib, "MiB of the largest tensor").at_least(1).at_most(1024);
  flags.add_rule([&] {
    if (options.common.ranks < 2) fail_usage("--ranks 1: nothing to communicate; give at least 2.");
  });
  flags.parse(argc, argv);

  int code = 0;
  run::launch(options.common, [&](Rank& rank) {
    std::optional<run::RunDir> folder;
    if (rank.rank() == 0) {
      folder.emplace("collectives", options.common.run_dir);
      folder->write_config(flags.values());
      fmt::print("collectives, {} code\n{}\n\n", options.common.impl == "yours" ? "your" : "reference",
                 run::head_text(options.common, rank));
    }
    const run::Table table = check(rank);
    const std::vector<run::RankRecord> records = run::gather_records(rank);
    const std::vector<Line> lines = measure(rank, options, folder ? &*folder : nullptr);
    if (!folder) return;
    run::Report report;
    report.title = "collectives";
    report.subtitle = fmt::format("{} ranks, over link {}", rank.size(), options.common.link);
    report.config = run::facts_of(flags.values());
    report.ranks = records;
    report.rows = table.rows();
    report.figures = {
        figure_of(lines, "All-reduce: time", "ms", [](const Line&, double s) { return s * 1e3; }),
        figure_of(lines, "All-reduce: bus bandwidth", "MB/s", [](const Line& line, double s) {
          return 1e-6 * bus_bandwidth(line.operation, line.ranks, line.bytes, s);
        })};
    report.figures.front().log_y = true;
    fmt::print("\n{}", table.text());
    run::leave_pictures(*folder, report);
    code = table.all_equal() ? 0 : 1;
  });
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  return run::main_guard([&] { return program(argc, argv); });
}
