#pragma once
// Ranks and communicators. Every operation is asynchronous: it is posted and returns a Work;
// `comm.all_reduce(x).wait()` is the blocking form. Ranks are threads (run_ranks, below) or MPI processes
// (mpi/session.hpp), with the same results bit for bit: backend.hpp.
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/link.hpp"
#include "core/ledger.hpp"
#include "core/tensor.hpp"
#include "core/trace.hpp"

namespace shardlings {

enum class Reduce { sum, average, max };

/// Bytes this rank sent and calls it made, in the ring cost model (Patarasuk and Yuan 2009), n = ranks of the
/// group: all_reduce 2 (n-1)/n of the tensor (rounded down to whole bytes); reduce_scatter and all_gather the
/// total without one piece, which is (n-1)/n of it when pieces are equal; all_to_all (n-1)/n of in; broadcast
/// the tensor, except for the last rank of the chain, root - 1, which sends nothing; send the tensor; recv,
/// barrier and split nothing.
struct TrafficLedger {
  std::map<std::string, i64> bytes, calls;              ///< by operation, e.g. "all_reduce", over all groups
  std::map<std::string, i64> group_bytes, group_calls;  ///< by operation and group, e.g. "all_reduce@world"
  i64 total() const;                                    ///< bytes over all operations
};

/// How ranks are started and watched.
struct RunOptions {
  std::chrono::milliseconds deadline{
      30000};                 ///< backstop only: a deadlock among threads is recognised exactly
  bool checked = true;        ///< new memory and outputs hold NaN until written; inputs are checksummed
  bool buffered_send = true;  ///< false: a send is done when it is received, as NCCL's. Tests run both.
  int threads = 0;            ///< compute threads per rank; 0 = max(1, cores / ranks)
  bool check_calls = true;    ///< processes: compare calls before data moves. Threads always do.
  Link link;                  ///< threads: what a transfer takes; none: as fast as memory allows
};

class Rank;
class Communicator;
namespace comm_detail {
class Backend;
struct Call;
struct Group;
struct Operation;
}  // namespace comm_detail

/// One operation under way. Must be waited for; one that is dropped fails the run. Move-only. Until wait()
/// returns, the caller may read the input, and must neither write it nor touch the output (checked mode
/// reports both).
class [[nodiscard]] Work {
 public:
  Work() = default;  ///< nothing under way; wait() does nothing
  Work(Work&& other) noexcept;
  Work& operator=(Work&& other) noexcept;  ///< the Work held before is dropped
  ~Work();
  /// Blocks until the operation is done; throws the failure of the run, on every rank with the cause.
  void wait();
  explicit operator bool() const { return operation_ != nullptr; }

 private:
  friend class Communicator;
  Rank* rank_ = nullptr;
  std::shared_ptr<comm_detail::Operation> operation_;
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
  /// out = piece rank() of the reduction of in; in has size() times as many elements. out may be that piece
  /// of in.
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
  /// Ranks of the same color form a group, ordered by key, then by rank; a negative color joins none and gets
  /// a default communicator. Collective. The group is called `name`, or after its parent and color
  /// ("world/1").
  Communicator split(int color, int key, const std::string& name = "") const;

 private:
  friend struct RankLauncher;
  Work post(comm_detail::Call call, std::vector<Tensor> keep) const;
  void check_rank(const char* operation, const char* role, int rank) const;
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
  int cores() const { return cores_; }      ///< that all ranks together have
  Communicator& world() { return world_; }
  MemoryLedger memory;
  TrafficLedger traffic;
  Trace trace;

 private:
  friend class Communicator;
  friend class Work;
  friend struct RankLauncher;
  int rank_ = 0, size_ = 1, threads_ = 1, cores_ = 1;
  Communicator world_;
  comm_detail::Backend* backend_ = nullptr;
};

/// max(1, cores / ranks): what RunOptions::threads = 0 means. Cores as the scheduler grants them to this
/// process.
int default_threads(int ranks);
int available_cores();

/// Runs body once per rank, each on a thread of its own with rank.threads() OpenMP threads. When a rank
/// fails, all stop, and the failure that was the cause is rethrown, not the first one joined: a rank's own
/// exception as it is, a misuse of communicators as an Error with the table `rank | doing | since | last
/// completed`. `ranks` must be at least 1 (UsageError).
void run_ranks(int ranks, const std::function<void(Rank&)>& body, const RunOptions& options = {});

}  // namespace shardlings
