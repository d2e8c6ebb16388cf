#pragma once
// Ranks and communicators. Every operation is asynchronous: it is posted and returns a Work;
// `comm.all_reduce(x).wait()` is the blocking form. Backends (threads today) stand behind these types.
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/ledger.hpp"
#include "core/tensor.hpp"
#include "core/trace.hpp"

namespace shardlings {

enum class Reduce { sum, average, max };

/// Bytes this rank sent and calls it made, by operation, in the ring cost model (bytes on the wire per rank).
struct TrafficLedger {
  std::map<std::string, i64> bytes, calls;
  i64 total() const;
};

/// How ranks are started and watched.
struct RunOptions {
  std::chrono::milliseconds deadline{30000};  ///< backstop only: a deadlock among threads is recognised exactly
  bool checked = true;         ///< new memory and outputs hold NaN until written; inputs are checksummed
  bool buffered_send = true;   ///< false: a send is done when it is received, as NCCL's. Tests run both.
  int threads = 0;             ///< compute threads per rank; 0 = max(1, cores / ranks)
};

class Rank;
class Communicator;
namespace comm_detail {
struct Group;
struct Operation;
struct World;
}  // namespace comm_detail

/// One operation under way. Must be waited for; one that is dropped fails the run. Move-only.
class [[nodiscard]] Work {
 public:
  Work() = default;  ///< nothing under way; wait() does nothing
  Work(Work&& other) noexcept;
  Work& operator=(Work&& other) noexcept;
  ~Work();
  /// Blocks until the operation is done; throws the failure of the run, on every rank with the cause.
  void wait();
  explicit operator bool() const { return operation_ != nullptr; }

 private:
  friend class Communicator;
  Rank* rank_ = nullptr;
  std::shared_ptr<comm_detail::Operation> operation_;
  std::string what_;
  std::vector<Tensor> keep_;  // buffers live until wait(), and are released by the owner's thread
};

/// A group of ranks. A cheap handle, held by value. A default one is "no group".
class Communicator {
 public:
  explicit operator bool() const { return group_ != nullptr; }
  int rank() const { return me_; }  ///< in this group
  int size() const;
  const std::string& name() const;

  /// x becomes the sum (average, maximum) over the group. In place; adds in rank order in fp32 (f64 for f64).
  Work all_reduce(Tensor x, Reduce how = Reduce::sum) const;
  /// out = piece rank() of the reduction of in; in has size() times as many elements. out may be that piece of in.
  Work reduce_scatter(Tensor in, Tensor out, Reduce how = Reduce::sum) const;
  /// out = all ranks' in, in rank order. in may be this rank's piece of out.
  Work all_gather(Tensor in, Tensor out) const;
  /// The same with counts[r] elements from rank r.
  Work all_gather(Tensor in, Tensor out, const std::vector<i64>& counts) const;
  /// Piece r of in goes to rank r; piece r of out came from rank r.
  Work all_to_all(Tensor in, Tensor out) const;
  Work broadcast(Tensor x, int root) const;
  /// Messages between two ranks arrive in order; the tag is compared, not searched for.
  Work send(Tensor x, int to, int tag = 0) const;
  Work recv(Tensor x, int from, int tag = 0) const;
  void barrier() const;
  /// Ranks of the same color form a group, ordered by key, then by rank. Collective.
  Communicator split(int color, int key) const;

 private:
  friend class Rank;
  friend struct comm_detail::World;
  friend struct RankLauncher;
  Work post(const std::string& op, Tensor in, Tensor out, int peer, Reduce how, i64 ring_bytes, int tag = 0, const std::vector<i64>& counts = {}) const;
  Rank* owner_ = nullptr;
  std::shared_ptr<comm_detail::Group> group_;
  int me_ = 0;
};

/// One rank: handed to every function that needs it. No globals.
class Rank {
 public:
  Rank() = default;
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  int rank() const { return rank_; }
  int size() const { return size_; }
  int threads() const { return threads_; }  ///< compute threads of this rank
  Communicator& world() { return world_; }
  MemoryLedger memory;
  TrafficLedger traffic;
  Trace trace;

 private:
  friend class Communicator;
  friend class Work;
  friend struct comm_detail::World;
  friend struct RankLauncher;
  int rank_ = 0, size_ = 1, threads_ = 1;
  Communicator world_;
  comm_detail::World* backend_ = nullptr;
};

/// max(1, cores / ranks): what RunOptions::threads = 0 means. Cores as the scheduler grants them to this process.
int default_threads(int ranks);
int available_cores();

/// Runs body once per rank, each on a thread of its own; rethrows the failure that was the cause, not the first
/// one joined. `ranks` must be at least 1 (UsageError).
void run_ranks(int ranks, const std::function<void(Rank&)>& body, const RunOptions& options = {});

}  // namespace shardlings
