#pragma once
// A permutation without memory: where element i goes is a pure function of the key, so any rank can ask for
// any place.
#include <cstdint>

#include "core/dtype.hpp"

namespace shardlings::data {

/// The place of element i (0 <= i < n) in permutation `key` of n elements. A Feistel network over the next
/// even power of two (Luby, Rackoff 1988), walked until it lands below n (Black, Rogaway 2002); at most about
/// 4 steps on average.
i64 shuffled(i64 i, i64 n, std::uint64_t key);

}  // namespace shardlings::data
