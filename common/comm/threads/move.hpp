#pragma once
// What the operations do to memory: the sums and copies, in parts that any thread may take, in any order.
#include "comm/call.hpp"

namespace shardlings::comm_detail {

/// One member's call with the memory to work on (the caller's, or a copy: stage.hpp).
struct Member {
  const Call* call = nullptr;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
};

/// Part `part` of members.size() of a collective. Parts read no memory that another part writes. Reductions
/// add in rank order in fp32 (f64 for f64, 64-bit integers for i32) and round once, so that the result does
/// not depend on who does which part.
void move_part(const std::vector<Member>& members, int part);

}  // namespace shardlings::comm_detail
