#pragma once
// Checked mode. Between post and wait, transfers work on copies: the caller's output holds NaN, and whatever
// the caller writes meanwhile is found by comparing when it waits. So the misuse shows without luck, fast
// link or slow.
#include <memory>
#include <string>

#include "comm/call.hpp"

namespace shardlings::comm_detail {

/// Where one rank's input is read and its output written: the caller's memory, or copies in checked mode.
class Stage {
 public:
  /// Nothing staged: reads and writes the caller's memory.
  static Stage direct(const Call& call);
  /// Copies the input, for a send that is done at once.
  static Stage letter(const Call& call);
  /// Copies the input, gives the output a copy of its own and fills the caller's with NaN.
  static Stage checked(const Call& call);

  std::byte* in() const { return in_; }
  std::byte* out() const { return out_; }
  /// On the caller's thread, when the operation is done: "" or what the caller did to its buffers. Then
  /// delivers the output and lets go of the copies.
  std::string finish(const Call& call);

 private:
  std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
  bool checked_ = false;
  std::unique_ptr<std::byte[]> own_in_, own_out_;
};

}  // namespace shardlings::comm_detail
