// ./lab bench comm: all_reduce among thread ranks beside the same sum without a library: threads, a barrier,
// a loop. Both in turn in the same run; a time is that of the slowest rank, and the median counts. Checked
// mode is off, and what it costs stands beside.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <nlohmann/json.hpp>
#include <thread>

#include "comm/bandwidth.hpp"
#include "comm/comm.hpp"
#include "run/flags.hpp"
#include "run/run_dir.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace shardlings;

namespace {

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

/// Waits by looking where each rank has a core of its own (0.3 us), by sleeping where ranks share cores: the
/// better of the two in each case.
class Barrier {
 public:
  explicit Barrier(int ranks) : ranks_(ranks), spins_(ranks <= available_cores()), sleeping_(ranks) {}
  void arrive_and_wait() {
    if (!spins_) return sleeping_.arrive_and_wait();
    const int round = round_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) == ranks_ - 1) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    for (int tries = 0; round_.load(std::memory_order_acquire) == round; ++tries) {
      pause();
      if (tries % 2048 == 2047) std::this_thread::yield();
    }
  }

 private:
  int ranks_;
  bool spins_;
  std::atomic<int> arrived_{0}, round_{0};
  std::barrier<> sleeping_;
};

// Elements [begin, end) of the sum over all buffers into all buffers.
template <std::size_t N>
void sum_into_all(const std::vector<float*>& all, i64 begin, i64 end) {
  std::array<float*, N> x;
  for (std::size_t r = 0; r < N; ++r) x[r] = all[r];
#if !defined(__clang__)
#pragma GCC ivdep
#endif
  for (i64 i = begin; i < end; ++i) {
    float sum = x[0][i];
    for (std::size_t r = 1; r < N; ++r) sum += x[r][i];
    for (std::size_t r = 0; r < N; ++r) x[r][i] = sum;
  }
}

/// What a rank's share of an all_reduce costs when nothing is checked, matched, counted or asynchronous.
void plain_all_reduce(Barrier& barrier, const std::vector<float*>& all, int me, i64 count) {
  barrier.arrive_and_wait();
  const auto n = static_cast<i64>(all.size());
  const i64 each = (count / n + 15) / 16 * 16;
  const i64 begin = std::min(me * each, count), end = me == n - 1 ? count : std::min(begin + each, count);
  if (n == 2) sum_into_all<2>(all, begin, end);
  if (n == 4) sum_into_all<4>(all, begin, end);
  barrier.arrive_and_wait();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/// Microseconds, medians of `pairs` pairs.
struct Timing {
  double plain = 0, library = 0;
};

Timing measure(int ranks, i64 bytes, int pairs, bool checked) {
  const i64 count = bytes / 4;
  RunOptions options;
  options.checked = checked;
  options.threads = 1;
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<float*> all(n);
  std::vector<std::vector<double>> begins[2], ends[2];
  for (auto* times : {&begins[0], &begins[1], &ends[0], &ends[1]})
    times->assign(n, std::vector<double>(static_cast<std::size_t>(pairs)));
  Barrier barrier(ranks);
  run_ranks(
      ranks,
      [&](Rank& rank) {
        rank.trace.recording = false;
        const auto me = static_cast<std::size_t>(rank.rank());
        const Tensor x(rank.memory, Category::communication, DType::f32, {count});
        all[me] = x.data<float>();
        x.zero();
        for (int k = -2; k < pairs; ++k) {
          for (int which = 0; which < 2; ++which) {
            barrier.arrive_and_wait();
            const auto begin = now_ns();
            if (which == 0) {
              plain_all_reduce(barrier, all, rank.rank(), count);
            } else {
              rank.world().all_reduce(x).wait();
            }
            if (k < 0) continue;
            begins[which][me][static_cast<std::size_t>(k)] = static_cast<double>(begin);
            ends[which][me][static_cast<std::size_t>(k)] = static_cast<double>(now_ns());
          }
        }
      },
      options);
  Timing t;
  for (int which = 0; which < 2; ++which) {
    std::vector<double> slowest(static_cast<std::size_t>(pairs));
    for (std::size_t k = 0; k < slowest.size(); ++k) {
      for (std::size_t r = 0; r < n; ++r)
        slowest[k] = std::max(slowest[k], 1e-3 * (ends[which][r][k] - begins[which][r][k]));
    }
    (which == 0 ? t.plain : t.library) = median(slowest);
  }
  return t;
}

}  // namespace

int main(int argc, char** argv) {
  return run::main_guard([&] {
    bool json = false;
    int rounds = 0;
    run::Flags flags("bench_comm", "Times all_reduce among thread ranks beside a plain loop with a barrier.");
    flags.add("--json", json, "One line of JSON for each size");
    flags.add("--rounds", rounds, "Pairs of each size; 0 = about a second's worth").at_least(0);
    flags.parse(argc, argv);
    if (!json) {
      fmt::print("{:>5} {:>10} {:>12} {:>12} {:>9} {:>9} {:>7} {:>14}\n", "ranks", "bytes", "plain, us",
                 "library, us", "algbw", "busbw", "speed", "checked, us");
    }
    for (const int ranks : {2, 4}) {
      for (const i64 kib : {64, 1024, 16 * 1024, 64 * 1024}) {
        const i64 bytes = kib * 1024;
        const int pairs = rounds > 0 ? rounds : kib == 64 ? 2001 : kib == 1024 ? 401 : kib < 32768 ? 41 : 15;
        const Timing t = measure(ranks, bytes, pairs, false);
        const double checked = measure(ranks, bytes, std::max(5, pairs / 10), true).library;
        const double algorithm = static_cast<double>(bytes) / t.library * 1e-3;
        const double bus = algorithm * bus_factor("all_reduce", ranks);
        if (json) {
          nlohmann::ordered_json line = {{"operation", "all_reduce"},
                                         {"backend", "threads"},
                                         {"ranks", ranks},
                                         {"bytes", bytes},
                                         {"us", t.library},
                                         {"algbw_gb_s", algorithm},
                                         {"busbw_gb_s", bus},
                                         {"plain_us", t.plain},
                                         {"speed", t.plain / t.library},
                                         {"checked_us", checked}};
          for (const auto& [key, value] : run::host_facts()) line["host"][key] = value;
          fmt::print("{}\n", line.dump());
        } else {
          fmt::print("{:>5} {:>10} {:>12.1f} {:>12.1f} {:>9.2f} {:>9.2f} {:>7.2f} {:>14.1f}\n", ranks, bytes,
                     t.plain, t.library, algorithm, bus, t.plain / t.library, checked);
        }
        std::fflush(stdout);
      }
    }
  });
}
