#pragma once
// Everything this project calls MPI for, and nothing else does: short notes, large transfers, and the few
// blocking calls of start and end. Notes and transfers travel on communicators of their own.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.hpp"

namespace shardlings::comm_detail {

/// One large piece of memory on its way.
struct Transfer {
  int pieces_left = 0;  ///< MPI counts in int: what is larger goes in pieces
  bool done() const { return pieces_left == 0; }
};

struct Note {
  int from = 0;
  std::string text;
};

/// One per process, for all its life: MPI starts and ends once. Not more than one thread at a time may call
/// in. Everything throws Error with MPI's own words when MPI fails.
class Port {
 public:
  Port();
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  int rank() const { return rank_; }
  int size() const { return size_; }
  int tags() const { return tags_; }  ///< tags of transfers are 0 … tags - 1

  /// Notes from one rank arrive in order. Neither call blocks.
  void tell(int to, std::string note);
  std::optional<Note> hear();
  /// Transfers between two ranks with the same tag fit together in order. The memory must live until done.
  std::shared_ptr<Transfer> send(const std::byte* from, i64 bytes, int to, int tag);
  std::shared_ptr<Transfer> receive(std::byte* to, i64 bytes, int from, int tag);
  /// Moves what is under way; true if a transfer ended.
  bool progress();

  /// Blocking and collective: the texts of all ranks, on every rank.
  std::vector<std::string> gather(const std::string& mine);
  void barrier();
  /// Ends all processes of the job at once.
  [[noreturn]] void abort(int code);

  i64 piece_bytes = i64{1} << 30;  ///< tests make it small

 private:
  struct Requests;
  std::unique_ptr<Requests> requests_;
  int rank_ = 0, size_ = 1, tags_ = 0;
};

}  // namespace shardlings::comm_detail
