#include "data/shuffle.hpp"

#include <bit>

#include "core/random.hpp"

namespace shardlings::data {

i64 shuffled(i64 i, i64 n, std::uint64_t key) {
  require(0 <= i && i < n, "shuffled: element outside the permutation");
  const int half = (std::bit_width(static_cast<std::uint64_t>(n - 1)) + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  constexpr std::uint64_t kRounds = 6;
  auto at = static_cast<std::uint64_t>(i);
  do {
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const std::uint64_t left = at >> half, right = at & mask;
      at = (right << half) | (left ^ (philox(key, (round << 32) | right)[0] & mask));
    }
  } while (at >= static_cast<std::uint64_t>(n));
  return static_cast<i64>(at);
}

}  // namespace shardlings::data
