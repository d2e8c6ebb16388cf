#pragma once
// One process as one rank: MPI's start and end, and runs in between. The entry to the MPI backend.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/comm.hpp"

namespace shardlings {

namespace comm_detail {
class Port;
}

/// MPI from its first to its last call: at most one in the life of a process. Throws Error if MPI cannot
/// start.
class MpiSession {
 public:
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  int rank() const;
  int size() const;
  /// All ranks' texts, on every rank. Blocks until all have called; no deadline watches over it.
  std::vector<std::string> gather(const std::string& mine);
  /// Returns when all ranks are here.
  void barrier();
  /// Runs body as this process' rank, with the other processes; all must call run. Returns or throws when the
  /// bodies of all ranks are over. On failure it throws on every rank: on the rank that was the cause its own
  /// exception, elsewhere the same sentence if that was a UsageError or a Todo, or else an Error with the
  /// cause and the table. If a body does not end after a failure, the report goes to stderr and MPI_Abort
  /// ends the job. options.link must be none; options.threads = 0 divides this machine's cores by its ranks.
  void run(const std::function<void(Rank&)>& body, const RunOptions& options = {});
  /// Transfers of more bytes go in pieces of so many, since MPI counts in int. For tests.
  void set_piece_bytes(i64 bytes);

 private:
  std::unique_ptr<comm_detail::Port> port_;
  int runs_ = 0;
  int cores_here_ = 1, ranks_here_ = 1;  // of this machine
  int cores_ = 1;                        // of all machines
};

}  // namespace shardlings
