#include "run/timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace shardlings::run {

double seconds_of(Rank& rank, const Communicator& comm, i64 rounds, const std::function<void()>& body) {
  require(rounds >= 1, [&] { return fmt::format("seconds_of: {} rounds; at least 1 is needed", rounds); });
  std::vector<double> seconds;
  const Tensor slowest(rank.memory, Category::communication, DType::f64, {1});
  for (i64 k = -1; k < rounds; ++k) {
    comm.barrier();
    const std::int64_t begin = now_ns();
    body();
    slowest.set(0, 1e-9 * static_cast<double>(now_ns() - begin));
    comm.all_reduce(slowest, Reduce::max).wait();
    if (k >= 0) seconds.push_back(slowest.get(0));
  }
  std::nth_element(seconds.begin(), seconds.begin() + rounds / 2, seconds.end());
  return seconds[static_cast<std::size_t>(rounds / 2)];
}

}  // namespace shardlings::run
