#pragma once
// What stands behind Communicator and Work: threads (threads/world.hpp), processes (mpi/world.hpp), GPUs
// later. Communicator checks and counts a call and gives it its sequence number; a backend matches and
// performs it.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "comm/call.hpp"

namespace shardlings::comm_detail {

/// The failure of the run, as every rank meets it: somebody else's fault. run_ranks rethrows the cause
/// instead.
class RunFailed : public Error {
 public:
  using Error::Error;
};

/// One rank's share of an operation under way. Backends derive from it.
struct Operation {
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual ~Operation() = default;
  Call call;
  std::string text;        ///< describe(call), built only when the trace records
  std::int64_t begin = 0;  ///< of the transfer, now_ns(); valid once done
  std::int64_t end = 0;
  std::atomic<bool> done{false};
};

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;
  /// Starts the caller's share; never blocks for another rank. Throws RunFailed.
  virtual std::shared_ptr<Operation> post(Rank& rank, const Call& call) = 0;
  /// Blocks until operation.done; afterwards nobody but the caller touches its buffers. Throws RunFailed, and
  /// then nobody does either.
  virtual void wait(Rank& rank, Operation& operation) = 0;
  /// The caller let go of an operation without waiting for it: fails the run, and returns when nobody touches
  /// the buffers any more.
  virtual void drop(Rank& rank, Operation& operation) noexcept = 0;
  /// The group that members agreed on in the split numbered `sequence` of `parent`: one object for all of
  /// them.
  virtual std::shared_ptr<Group> group(const Group& parent, i64 sequence, int color, std::string name,
                                       std::vector<int> members) = 0;
};

}  // namespace shardlings::comm_detail
