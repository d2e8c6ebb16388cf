#include "comm/bandwidth.hpp"

#include <fmt/format.h>

namespace shardlings {

double algorithm_bandwidth(i64 bytes, double seconds) {
  require(seconds > 0,
          [&] { return fmt::format("algorithm_bandwidth: {} seconds; a time above 0 is needed", seconds); });
  return static_cast<double>(bytes) / seconds;
}

double bus_factor(std::string_view operation, int ranks) {
  require(ranks >= 1, [&] { return fmt::format("bus_factor: {} ranks; at least 1 is needed", ranks); });
  const double share = static_cast<double>(ranks - 1) / ranks;
  if (operation == "all_reduce") return 2 * share;
  if (operation == "reduce_scatter" || operation == "all_gather" || operation == "all_to_all") return share;
  if (operation == "broadcast") return ranks == 1 ? 0 : 1;
  if (operation == "send") return 1;
  fail(fmt::format("bus_factor: no operation '{}'", operation));
}

double bus_bandwidth(std::string_view operation, int ranks, i64 bytes, double seconds) {
  return algorithm_bandwidth(bytes, seconds) * bus_factor(operation, ranks);
}

}  // namespace shardlings
