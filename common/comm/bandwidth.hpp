#pragma once
// From a measured time to the two bandwidths that nccl-tests prints (doc/PERFORMANCE.md there). The first
// says how fast the caller's data is done; the second what the links carried, so that it can be held against
// the hardware's number whatever the operation and the number of ranks.
#include <string_view>

#include "core/dtype.hpp"

namespace shardlings {

/// Bytes a second: the size of the operation over its time. `bytes` is the size that transfer_seconds takes:
/// all of the tensor of all_reduce, broadcast and send, the large side of reduce_scatter and all_gather, the
/// input of all_to_all. Error when seconds is not above 0.
double algorithm_bandwidth(i64 bytes, double seconds);

/// What algorithm_bandwidth is multiplied with: the bytes that cross each rank's link per byte of size.
/// all_reduce 2 (n-1)/n; reduce_scatter, all_gather, all_to_all (n-1)/n; broadcast and send 1. Error for
/// another operation or fewer than 1 rank.
double bus_factor(std::string_view operation, int ranks);

/// algorithm_bandwidth * bus_factor, bytes a second. 0 for a collective of one rank, which sends nothing.
double bus_bandwidth(std::string_view operation, int ranks, i64 bytes, double seconds);

}  // namespace shardlings
