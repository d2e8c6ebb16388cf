#pragma once
// The link between ranks that a run pretends to have: a message of b bytes takes alpha + b / bandwidth
// (Hockney 1994). Leaves out contention between groups and what several ranks send to one.
#include <string>
#include <string_view>

#include "core/dtype.hpp"

namespace shardlings {

struct Link {
  std::string name = "none";
  double alpha = 0;      ///< seconds a message
  double bandwidth = 0;  ///< bytes a second in each direction; 0: no limit
  std::string source;    ///< where the two numbers come from
  bool none() const { return alpha == 0 && bandwidth == 0; }
};

/// From "none", "nvlink4", "pcie4", "ib-ndr", "eth10g", "eth1g", or "alpha_us,GBps" such as "50,0.125" (GB =
/// 1e9 bytes). UsageError that names the choices otherwise.
Link link_from(std::string_view text);
/// "eth1g: 50 us + bytes / 0.125 GB/s (…source…)", for the head of a run.
std::string to_string(const Link& link);

/// Seconds that `operation` ("all_reduce", "send", …) takes over the link by the ring cost model. `bytes` is
/// the size nccl-tests uses: the whole tensor of all_reduce, broadcast and send, the large side of
/// reduce_scatter and all_gather, the input of all_to_all. n - 1 steps (all_reduce 2 (n - 1)) of one n-th
/// each; broadcast is pipelined; a barrier takes ceil(log2 n) messages without content. Error for an
/// operation it does not know.
double transfer_seconds(const Link& link, std::string_view operation, int ranks, i64 bytes);

}  // namespace shardlings
