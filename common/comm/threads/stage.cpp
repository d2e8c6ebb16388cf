#include "comm/threads/stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace shardlings::comm_detail {

namespace {

// The parts of the output that hold NaN while the operation is under way: all of it, without the input where
// that is a piece of the output (the caller may read its input).
std::array<std::pair<std::byte*, std::byte*>, 2> poisoned(const Call& call) {
  const Buffer &in = call.in, &out = call.out;
  const bool keeps_in = call.kind == Kind::all_gather && in.count > 0 && out.contains(in);
  if (!keeps_in) return {{{out.data, out.end()}, {out.end(), out.end()}}};
  return {{{out.data, in.data}, {in.end(), out.end()}}};
}

constexpr int kNan = 0xff;  // every element type with all bits set is NaN (i32: -1)

// The first byte of [begin, end) that is not kNan, or end. memcmp of the range with itself, one byte on, is
// fast.
const std::byte* first_not_nan(const std::byte* begin, const std::byte* end) {
  if (begin == end) return end;
  const auto size = static_cast<std::size_t>(end - begin);
  if (*begin == std::byte{kNan} && std::memcmp(begin, begin + 1, size - 1) == 0) return end;
  return std::find_if(begin, end, [](std::byte b) { return b != std::byte{kNan}; });
}

// The first byte of [begin, end) that differs from the copy, or end.
const std::byte* first_changed(const std::byte* begin, const std::byte* end, const std::byte* copy) {
  if (begin == end || std::memcmp(begin, copy, static_cast<std::size_t>(end - begin)) == 0) return end;
  return std::mismatch(begin, end, copy).first;
}

}  // namespace

Stage Stage::direct(const Call& call) {
  Stage s;
  s.in_ = call.in.data;
  s.out_ = call.out.data;
  return s;
}

StagePool::Piece StagePool::take(i64 bytes) {
  {
    const std::lock_guard lock(mutex_);
    auto& same = idle_[bytes];
    if (!same.empty()) {
      Piece piece(same.back().release(), {shared_from_this(), bytes});
      same.pop_back();
      idle_bytes_ -= bytes;
      return piece;
    }
  }
  return {new std::byte[static_cast<std::size_t>(bytes)], {shared_from_this(), bytes}};
}

void StagePool::Return::operator()(std::byte* memory) const {
  std::unique_ptr<std::byte[]> owned(memory);
  const std::lock_guard lock(pool->mutex_);
  if (pool->idle_bytes_ + bytes > kKept) return;
  pool->idle_[bytes].push_back(std::move(owned));
  pool->idle_bytes_ += bytes;
}

Stage Stage::letter(const Call& call, StagePool& pool) {
  Stage s;
  s.own_in_ = pool.take(call.in.bytes());
  if (call.in.count > 0)
    std::memcpy(s.own_in_.get(), call.in.data, static_cast<std::size_t>(call.in.bytes()));
  s.in_ = s.own_in_.get();
  return s;
}

Stage Stage::checked(const Call& call, StagePool& pool) {
  Stage s = letter(call, pool);
  s.checked_ = true;
  const bool in_place = call.in.count > 0 && call.in.data == call.out.data && call.in.count == call.out.count;
  if (!in_place) {
    s.own_out_ = pool.take(call.out.bytes());
  }
  s.out_ = in_place ? s.in_ : s.own_out_.get();
  for (const auto& [begin, end] : poisoned(call)) {
    if (begin != end) std::memset(begin, kNan, static_cast<std::size_t>(end - begin));
  }
  return s;
}

std::string Stage::finish(const Call& call) {
  if (!checked_) return {};
  const Buffer &in = call.in, &out = call.out;
  const auto element = [](const Buffer& b, const std::byte* at) { return (at - b.data) / size_of(b.dtype); };
  for (const auto& [begin, end] : poisoned(call)) {
    const std::byte* changed = first_not_nan(begin, end);
    if (changed != end) return fmt::format("wrote element {} of the output of", element(out, changed));
  }
  // The input where it is not poisoned as output: before and after the output, or all of it.
  const std::byte *first = in.data, *hole = in.end(), *hole_end = in.end();
  if (in.overlaps(out) && call.kind != Kind::all_gather) hole = out.data, hole_end = out.end();
  const auto compare = [&](const std::byte* begin, const std::byte* end) {
    return first_changed(begin, end, in_ + (begin - first));
  };
  const std::byte* changed = compare(first, hole);
  if (changed == hole) changed = hole_end < in.end() ? compare(hole_end, in.end()) : in.end();
  if (changed != in.end()) return fmt::format("wrote element {} of the input of", element(in, changed));
  if (out.count > 0) std::memcpy(out.data, out_, static_cast<std::size_t>(out.bytes()));
  if (call.kind == Kind::send) return {};  // done before its copy is received
  own_in_.reset();
  own_out_.reset();
  return {};
}

}  // namespace shardlings::comm_detail
