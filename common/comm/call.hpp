#pragma once
// What a rank asks of a communicator, as plain data: enough to compare it with the other ranks' calls, to
// count it, and to put it into a sentence.
#include <string>
#include <vector>

#include "comm/comm.hpp"

namespace shardlings::comm_detail {

enum class Kind { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, send, recv, barrier, split };
constexpr int kKinds = 9;
const char* name_of(Kind kind);

/// Memory of the caller. A pointer, not a Tensor: the caller's Work keeps the memory alive and releases it on
/// the caller's thread, so that a rank's memory ledger does not depend on the timing of transfers.
struct Buffer {
  std::byte* data = nullptr;
  i64 count = 0;  ///< elements
  DType dtype = DType::f32;
  i64 bytes() const { return count * size_of(dtype); }
  std::byte* end() const { return data + bytes(); }
  bool contains(const Buffer& b) const { return data <= b.data && b.end() <= end(); }
  bool overlaps(const Buffer& b) const { return data < b.end() && b.data < end(); }
};

/// Who belongs together. Backends derive from it.
struct Group {
  virtual ~Group() = default;
  std::string name;
  std::vector<int> members;  ///< world ranks, in the order of the group
  std::vector<i64> next;     ///< number of each member's next collective; only that member touches it
  std::string keys[kKinds], group_keys[kKinds];  ///< of the traffic ledger
  Group(std::string group_name, std::vector<int> ranks);
  int size() const { return static_cast<int>(members.size()); }
};

/// One rank's call. In and out are the same memory where the operation works in place.
struct Call {
  Kind kind = Kind::barrier;
  Buffer in, out;
  Reduce how = Reduce::sum;
  int peer = -1;  ///< root of a broadcast, other side of a message: a rank of the group
  int tag = 0;
  std::vector<i64> counts;  ///< elements from each rank, where an all_gather has unequal ones
  Group* group = nullptr;
  int me = 0;         ///< rank of the caller in the group
  i64 sequence = -1;  ///< number among this group's collectives; messages have none
  bool message() const { return kind == Kind::send || kind == Kind::recv; }
};

std::string signature(const Call& call);  ///< "all_reduce(64 f32)"
std::string describe(const Call& call);   ///< "all_reduce(64 f32) on world #3"
/// Whether two ranks' calls of one collective fit together: all but the memory.
bool fits(const Call& a, const Call& b);
/// Bytes the caller sends in the ring cost model: see TrafficLedger.
i64 ring_bytes(const Call& call);
/// The size that nccl-tests states for the call: see transfer_seconds.
i64 total_bytes(const Call& call);

}  // namespace shardlings::comm_detail
