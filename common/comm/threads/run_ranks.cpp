// Starts the ranks, and ends them: the one entry to the threads backend.
#include <fmt/format.h>
#include <sched.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>

#include "comm/launcher.hpp"
#include "comm/threads/world.hpp"

namespace shardlings {

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int default_threads(int ranks) { return std::max(1, available_cores() / std::max(1, ranks)); }

void run_ranks(int ranks, const std::function<void(Rank&)>& body, const RunOptions& options) {
  if (ranks < 1) fail_usage(fmt::format("{} ranks: at least 1 is needed", ranks));
  if (options.threads < 0)
    fail_usage(fmt::format("{} threads per rank: 0 (automatic) or more", options.threads));
  const int threads = options.threads > 0 ? options.threads : default_threads(ranks);

  std::vector<std::unique_ptr<Rank>> all;
  std::vector<Rank*> pointers;
  for (int r = 0; r < ranks; ++r) {
    all.push_back(std::make_unique<Rank>());
    RankLauncher::place(*all.back(), r, ranks, threads, available_cores());
    all.back()->memory.poison_new_memory = options.checked;
    pointers.push_back(all.back().get());
  }
  comm_detail::World world(pointers, options);
  std::vector<std::thread> running;
  for (Rank* rank : pointers) {
    RankLauncher::connect(*rank, world, world.everyone());
    running.emplace_back([&world, &body, rank] {
#ifdef _OPENMP
      omp_set_num_threads(rank->threads());  // holds for the calling thread only
#endif
      std::exception_ptr error;
      try {
        body(*rank);
      } catch (...) {
        error = std::current_exception();
      }
      world.finished(rank->rank(), error);
    });
  }
  for (std::thread& t : running) t.join();
  world.rethrow();
}

}  // namespace shardlings
