#pragma once
// Times of what several ranks do together.
#include <functional>

#include "comm/comm.hpp"

namespace shardlings::run {

/// Seconds from a common start until `body` is over on all ranks of `comm`: the median of `rounds` (at least
/// 1) after one round that warms up. The same number on every rank. Collective; one barrier and one
/// all_reduce a round, outside of the time.
double seconds_of(Rank& rank, const Communicator& comm, i64 rounds, const std::function<void()>& body);

}  // namespace shardlings::run
