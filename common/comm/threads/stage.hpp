#pragma once
// Checked mode. Between post and wait, transfers work on copies: the caller's output holds NaN, and whatever
// the caller writes meanwhile is found by comparing when it waits. So the misuse shows without luck, fast
// link or slow.
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/call.hpp"

namespace shardlings::comm_detail {

/// Copies that come back for the next operation of the same size: fresh memory costs several times what
/// copying into it does. Used by all ranks; lives as long as a Stage that took from it.
class StagePool : public std::enable_shared_from_this<StagePool> {
 public:
  struct Return {
    std::shared_ptr<StagePool> pool;
    i64 bytes = 0;
    void operator()(std::byte* memory) const;
  };
  using Piece = std::unique_ptr<std::byte[], Return>;
  Piece take(i64 bytes);

 private:
  static constexpr i64 kKept = i64{256} << 20;  // bytes that lie idle at most
  std::mutex mutex_;
  std::map<i64, std::vector<std::unique_ptr<std::byte[]>>> idle_;  // by size
  i64 idle_bytes_ = 0;
};

/// Where one rank's input is read and its output written: the caller's memory, or copies in checked mode.
class Stage {
 public:
  /// Nothing staged: reads and writes the caller's memory.
  static Stage direct(const Call& call);
  /// Copies the input, for a send that is done at once.
  static Stage letter(const Call& call, StagePool& pool);
  /// Copies the input, gives the output a copy of its own and fills the caller's with NaN.
  static Stage checked(const Call& call, StagePool& pool);

  std::byte* in() const { return in_; }
  std::byte* out() const { return out_; }
  /// On the caller's thread, when the operation is done: "" or what the caller did to its buffers. Then
  /// delivers the output and lets go of the copies.
  std::string finish(const Call& call);

 private:
  std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
  bool checked_ = false;
  StagePool::Piece own_in_, own_out_;
};

}  // namespace shardlings::comm_detail
