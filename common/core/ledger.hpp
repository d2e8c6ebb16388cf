#pragma once
// The memory ledger of one rank: what is allocated now and at most, by category. Tensors charge it; learner
// code never does. No lock: only its own rank's thread may touch it.
#include <array>
#include <cstddef>
#include <unordered_map>
#include <vector>

#include "core/dtype.hpp"

namespace shardlings {

enum class Category { parameters, gradients, optimizer, activations, communication };
constexpr int kCategories = 5;
const char* name_of(Category c);

class MemoryLedger {
 public:
  MemoryLedger() = default;
  ~MemoryLedger();
  MemoryLedger(const MemoryLedger&) = delete;
  MemoryLedger& operator=(const MemoryLedger&) = delete;

  i64 now(Category c) const { return now_[static_cast<std::size_t>(c)]; }    ///< bytes
  i64 peak(Category c) const { return peak_[static_cast<std::size_t>(c)]; }  ///< bytes
  i64 now() const { return total_; }                                         ///< bytes, all categories
  i64 peak() const { return total_peak_; }                                   ///< largest total, bytes
  void reset_peaks();
  void charge(Category c, i64 bytes);  ///< negative on release

  /// New memory, 64-byte aligned, charged to c. Freed blocks are kept and handed out again for the same size.
  /// Error with the bytes by category when the machine has no more.
  std::byte* allocate(Category c, i64 bytes);
  void release(Category c, std::byte* block, i64 bytes);

  /// Whether new tensors are filled with NaN, so that reading before writing shows (checked mode; costs
  /// bandwidth).
  bool poison_new_memory = true;

 private:
  std::array<i64, kCategories> now_{}, peak_{};
  i64 total_ = 0, total_peak_ = 0;
  std::byte* fresh(i64 bytes);
  std::unordered_map<i64, std::vector<std::byte*>> free_;
  // Memory comes from the system in large pieces of huge pages and is cut here; it goes back when the ledger
  // goes.
  std::vector<std::byte*> pieces_;
  std::byte* cut_ = nullptr;
  i64 left_ = 0;
};

}  // namespace shardlings
