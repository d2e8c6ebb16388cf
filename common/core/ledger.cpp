#include "core/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace shardlings {

namespace {
constexpr std::align_val_t kAlignment{64};
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
  for (auto& [bytes, blocks] : free_) {
    for (std::byte* block : blocks) ::operator delete(block, kAlignment);
  }
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
      block = static_cast<std::byte*>(
          ::operator new(static_cast<std::size_t>(std::max<i64>(bytes, 1)), kAlignment));
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
    ::operator delete(block, kAlignment);
}

}  // namespace shardlings
