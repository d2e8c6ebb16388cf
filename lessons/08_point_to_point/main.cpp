// What a message costs: ping-pong over growing sizes, a line through the times, and a long message that is
// passed along a chain of ranks, in few or many pieces. Predicted by two numbers, and measured. --deadlock
// shows what happens when every rank sends first.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "comm/comm.hpp"
#include "messages.hpp"
#include "run/flags.hpp"
#include "run/launch.hpp"
#include "run/metrics.hpp"
#include "run/progress.hpp"
#include "run/report.hpp"
#include "run/run_dir.hpp"
#include "run/table.hpp"
#include "run/timing.hpp"

using namespace shardlings;

namespace {

struct Options {
  run::CommonFlags common;
  int mib = 4;
  std::string sends = "receipt";
  bool deadlock = false;
  i64 bytes() const { return i64{mib} << 20; }
};

constexpr i64 kShiftCount = 1000;  // floats
constexpr std::array kPieces{1, 2, 4, 8, 16, 32, 64};
constexpr int kTrips = 4;

Tensor floats(Rank& rank, i64 count) {
  return Tensor(rank.memory, Category::communication, DType::f32, {count});
}

/// What every rank of the ring does with --deadlock.
void send_first(Rank& rank) {
  const Tensor out = floats(rank, kShiftCount), in = floats(rank, kShiftCount);
  out.zero();
  const Communicator& comm = rank.world();
  const int right = (rank.rank() + 1) % rank.size(), left = (rank.rank() + rank.size() - 1) % rank.size();
  // ANCHOR: deadlock
  comm.send(out, right).wait();
  comm.recv(in, left).wait();
  // ANCHOR_END: deadlock
}

void fill(const Tensor& x, i64 first) {
  for (i64 i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(first + i);
}

i64 count_wrong(const Tensor& x, i64 first) {
  i64 wrong = 0;
  for (i64 i = 0; i < x.numel(); ++i) wrong += x.data<float>()[i] != static_cast<float>(first + i) ? 1 : 0;
  return wrong;
}

/// The ring turned by one, and a long message along the chain, in 1 and in 16 pieces. Returns how many
/// elements came out wrong on this rank.
i64 turn_and_pass(Rank& rank, const Tensor& x) {
  const i64 left = (rank.rank() + rank.size() - 1) % rank.size();
  const Tensor mine = floats(rank, kShiftCount), other = floats(rank, kShiftCount);
  fill(mine, rank.rank() * kShiftCount);
  shift(rank.world(), mine, other, 1);
  i64 wrong = count_wrong(other, left * kShiftCount);
  for (const int pieces : {1, 16}) {
    fill(x, rank.rank() == 0 ? 0 : -x.numel());
    rank.world().barrier();
    {
      const auto span = rank.trace.span(Event::other, fmt::format("pass along, pieces: {}", pieces));
      pass_along(rank, x, pieces);
    }
    wrong += count_wrong(x, 0);
    rank.trace.sample(rank.memory);
  }
  return wrong;
}

/// x goes from rank 0 to the last rank and comes back, kTrips times.
void ping_pong(Rank& rank, const Tensor& x) {
  const Communicator& comm = rank.world();
  const int last = rank.size() - 1;
  for (int k = 0; k < kTrips; ++k) {
    if (rank.rank() == 0) comm.send(x, last).wait();
    if (rank.rank() == last) comm.recv(x, 0).wait();
    if (rank.rank() == last) comm.send(x, 0).wait();
    if (rank.rank() == 0) comm.recv(x, last).wait();
  }
}

/// A time: over x, which is bytes or pieces.
struct Point {
  i64 x = 0;
  double predicted = 0, measured = 0;  // seconds
};
struct Times {
  std::vector<Point> messages, chain;
};

/// `folder` on rank 0, which reports for all.
Times measure(Rank& rank, const Tensor& x, const Options& options, const run::RunDir* folder) {
  rank.trace.recording = false;  // thousands of messages that all look the same
  const Link link = link_from(options.common.link);
  run::ProgressOptions progress_options;
  progress_options.quiet = options.common.quiet || folder == nullptr;
  std::vector<i64> sizes;
  for (i64 size = 1024; size <= options.bytes(); size *= 4) sizes.push_back(size);
  run::Progress progress(static_cast<i64>(sizes.size() + kPieces.size()), 0, progress_options);
  std::optional<run::MetricsWriter> metrics;
  if (folder != nullptr) metrics.emplace(folder->file("metrics.jsonl"));
  run::StepMetrics line;
  const auto time = [&](double share, const std::function<void()>& body) {
    const double seconds =
        run::seconds_of(rank, rank.world(), std::max<i64>(1, options.common.steps), body) * share;
    ++line.step;
    line.ms = seconds * 1e3;
    progress.update(line);
    if (metrics) metrics->write(line);
    return seconds;
  };
  Times times;
  for (const i64 size : sizes) {
    const double measured = time(0.5 / kTrips, [&] { ping_pong(rank, x.slice(0, size / 4)); });
    times.messages.push_back({size, transfer_seconds(link, "send", 2, size), measured});
  }
  for (const int pieces : kPieces) {
    const double measured = time(1, [&] { pass_along(rank, x, pieces); });
    // The last piece leaves rank 0 after `pieces` messages and passes n - 2 more ranks, one message each.
    const double one = transfer_seconds(link, "send", 2, options.bytes() / pieces);
    times.chain.push_back({pieces, (pieces + rank.size() - 2) * one, measured});
  }
  return times;
}

/// Bytes are judged; times are shown: they are this machine's, and it may be busy.
run::Table compare(const Options& options, const Times& times, const std::vector<run::RankRecord>& records,
                   double wrong) {
  run::Table table;
  table.bytes("sent by rank 0: a shift, twice the chain", 4 * kShiftCount + 2 * options.bytes(),
              records.front().bytes_sent.at("send"));
  table.bytes("sent by the last rank: a shift", 4 * kShiftCount, records.back().bytes_sent.at("send"));
  table.count("wrong elements, all ranks", 0, static_cast<i64>(wrong), "");
  const Link link = link_from(options.common.link);
  const auto row = [&](const std::string& name, double predicted, double measured, const char* unit) {
    if (link.none()) return table.measured(name, measured, unit);
    table.value(name, predicted, measured, unit);
  };
  std::vector<Timing> timings;
  for (const Point& p : times.messages) {
    timings.push_back({p.x, p.measured});
    row(fmt::format("message of {} KiB", p.x / 1024), p.predicted * 1e3, p.measured * 1e3, "ms");
  }
  const Link fitted = fit_link(timings);
  row("alpha, fitted", link.alpha * 1e6, fitted.alpha * 1e6, "us");
  row("bandwidth, fitted", link.bandwidth * 1e-9, fitted.bandwidth * 1e-9, "GB/s");
  for (const Point& p : times.chain) {
    row(fmt::format("{} MiB along the chain, pieces: {}", options.mib, p.x), p.predicted * 1e3,
        p.measured * 1e3, "ms");
  }
  return table;
}

run::Figure figure_of(const std::string& title, const char* x_label, const std::vector<Point>& points) {
  run::Figure figure{title, x_label, "ms", {{"measured", {}}, {"predicted", {}, true}}, true, true};
  for (const Point& p : points) {
    figure.curves[0].points.emplace_back(p.x, p.measured * 1e3);
    if (p.predicted > 0) figure.curves[1].points.emplace_back(p.x, p.predicted * 1e3);
  }
  return figure;
}

/// On every rank; rank 0 prints, writes and sets the exit code.
void measure_and_report(Rank& rank, const Options& options, const run::Flags& flags, int& code) {
  std::optional<run::RunDir> folder;
  if (rank.rank() == 0) {
    folder.emplace("point_to_point", options.common.run_dir);
    folder->write_config(flags.values());
  }
  const Tensor x = floats(rank, options.bytes() / 4);
  const i64 mine_wrong = turn_and_pass(rank, x);
  const std::vector<run::RankRecord> records = run::gather_records(rank);
  const std::vector<double> wrong = run::gather_numbers(rank, static_cast<double>(mine_wrong));
  const Times times = measure(rank, x, options, folder ? &*folder : nullptr);
  if (!folder) return;
  const run::Table table = compare(options, times, records, std::accumulate(wrong.begin(), wrong.end(), 0.0));
  run::Report report;
  report.title = "point_to_point";
  report.subtitle = "what a message costs, over link " + options.common.link;
  report.config = run::facts_of(flags.values());
  report.ranks = records;
  report.rows = table.rows();
  report.figures = {figure_of("One message", "bytes", times.messages),
                    figure_of("The longest message along the chain", "pieces", times.chain)};
  fmt::print("\n{}", table.text());
  run::leave_pictures(*folder, report);
  code = table.all_equal() ? 0 : 1;
}

int program(int argc, char** argv) {
  Options options;
  options.common.steps = 5;
  options.common.link = "eth1g";
  options.common.checked = false;  // its copies would be measured too
  run::Flags flags("point_to_point",
                   "Measures what a message costs, and passes a long one along a chain of ranks.");
  options.common.add_to(flags, SHARDLINGS_IMPL);
  flags.add("--mib", options.mib, "MiB of the longest message").at_least(1).at_most(1024);
  flags.add_choice("--sends", options.sends, {"receipt", "buffered"},
                   "When a send is done: received, or on its way");
  flags.add("--deadlock", options.deadlock, "Every rank of a ring sends before it receives");
  flags.add_rule([&] {
    if (options.common.ranks < 2)
      fail_usage("--ranks 1: a message needs somebody to receive it; give at least 2.");
  });
  flags.parse(argc, argv);
  options.common.buffered_send = options.sends == "buffered";

  int code = 0;
  run::launch(options.common, [&](Rank& rank) {
    const bool reports = rank.rank() == 0;
    if (reports) {
      fmt::print("point_to_point, {} code; sends: {}\n{}\n\n",
                 options.common.impl == "yours" ? "your" : "reference", options.sends,
                 run::head_text(options.common, rank));
    }
    if (!options.deadlock) return measure_and_report(rank, options, flags, code);
    if (reports) fmt::print("every rank sends to its right, waits, and then receives from its left ...\n");
    std::fflush(stdout);
    send_first(rank);
    if (reports) fmt::print("done: buffered sends hide it. Try --sends receipt.\n");
  });
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  return run::main_guard([&] { return program(argc, argv); });
}
