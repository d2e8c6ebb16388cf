#include "core/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace shardlings {

namespace {
constexpr i64 kHugePageBytes = 2 << 20;
constexpr std::align_val_t kHugePage{kHugePageBytes}, kCacheLine{64};
// Under sanitizers a block must really be freed, or use after free would go unseen.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kReuse = false;
#else
constexpr bool kReuse = true;
#endif

std::string out_of_memory(const MemoryLedger& ledger, Category c, i64 bytes) {
  std::string text =
      fmt::format("out of memory: {} bytes of {} were asked for; this rank holds", bytes, name_of(c));
  for (int k = 0; k < kCategories; ++k) {
    const auto category = static_cast<Category>(k);
    text += fmt::format("{} {} of {}", k == 0 ? "" : ",", ledger.now(category), name_of(category));
  }
  return text;
}
}  // namespace

const char* name_of(Category c) {
  switch (c) {
    case Category::parameters:
      return "parameters";
    case Category::gradients:
      return "gradients";
    case Category::optimizer:
      return "optimizer";
    case Category::activations:
      return "activations";
    case Category::communication:
      return "communication";
  }
  return "?";
}

MemoryLedger::~MemoryLedger() {
  for (std::byte* piece : pieces_) ::operator delete(piece, kHugePage);
}

std::byte* MemoryLedger::fresh(i64 bytes) {
  const i64 size = (std::max<i64>(bytes, 1) + 63) / 64 * 64;
  if (!kReuse) return static_cast<std::byte*>(::operator new(static_cast<std::size_t>(size), kCacheLine));
  if (size > left_) {
    // Pieces double, so that a small model takes little and a large one is in few pieces.
    const i64 grown = i64{4} << 20 << std::min<std::size_t>(pieces_.size(), 4);
    const i64 piece = (std::max(size, grown) + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
    auto* memory = static_cast<std::byte*>(::operator new(static_cast<std::size_t>(piece), kHugePage));
    pieces_.push_back(memory);
#ifdef MADV_HUGEPAGE
    madvise(memory, static_cast<std::size_t>(piece),
            MADV_HUGEPAGE);  // a wish: without it the same, a little slower
#endif
    if (piece - size < left_) return memory;  // what is left of the piece before is worth more
    cut_ = memory;
    left_ = piece;
  }
  std::byte* block = cut_;
  cut_ += size;
  left_ -= size;
  return block;
}

void MemoryLedger::reset_peaks() {
  peak_ = now_;
  total_peak_ = total_;
}

void MemoryLedger::charge(Category c, i64 bytes) {
  const auto at = static_cast<std::size_t>(c);
  now_[at] += bytes;
  total_ += bytes;
  peak_[at] = std::max(peak_[at], now_[at]);
  total_peak_ = std::max(total_peak_, total_);
}

std::byte* MemoryLedger::allocate(Category c, i64 bytes) {
  charge(c, bytes);
  std::byte* block = nullptr;
  if (auto found = free_.find(bytes); found != free_.end() && !found->second.empty()) {
    block = found->second.back();
    found->second.pop_back();
  } else {
    try {
      block = fresh(bytes);
    } catch (const std::bad_alloc&) {
      charge(c, -bytes);
      fail(out_of_memory(*this, c, bytes));
    }
  }
  if (poison_new_memory) std::memset(block, 0xff, static_cast<std::size_t>(bytes));
  return block;
}

void MemoryLedger::release(Category c, std::byte* block, i64 bytes) {
  charge(c, -bytes);
  if (kReuse)
    free_[bytes].push_back(block);
  else
    ::operator delete(block, kCacheLine);
}

}  // namespace shardlings
