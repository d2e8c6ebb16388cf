#include "comm/threads/move.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace shardlings::comm_detail {

namespace {

void copy(std::byte* to, const std::byte* from, i64 bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, static_cast<std::size_t>(bytes));
}

template <class S>
using Sum = std::conditional_t<std::is_same_v<S, std::int32_t>, i64, acc_t<S>>;

// a and b, or NaN if either is: an overflow somewhere must stay visible.
template <class A>
A larger(A a, A b) {
  if constexpr (std::is_floating_point_v<A>) {
    if (std::isnan(b)) return b;
  }
  return a < b ? b : a;
}

// sum[i] = reduction over members of element begin + i, in rank order.
template <class S>
void reduce_block(const std::vector<Member>& members, Reduce how, i64 begin, i64 count,
                  Sum<S>* __restrict__ sum) {
  using A = Sum<S>;
  const auto row = [&](std::size_t r) { return reinterpret_cast<const S*>(members[r].in) + begin; };
  const S* first = row(0);
  if (members.size() == 1) {
    for (i64 i = 0; i < count; ++i) sum[i] = static_cast<A>(first[i]);
    return;
  }
  const S* second = row(1);
  if (how == Reduce::max) {
    for (i64 i = 0; i < count; ++i) sum[i] = larger(static_cast<A>(first[i]), static_cast<A>(second[i]));
  } else {
    for (i64 i = 0; i < count; ++i) sum[i] = static_cast<A>(first[i]) + static_cast<A>(second[i]);
  }
  for (std::size_t r = 2; r < members.size(); ++r) {
    const S* next = row(r);
    if (how == Reduce::max) {
      for (i64 i = 0; i < count; ++i) sum[i] = larger(sum[i], static_cast<A>(next[i]));
    } else {
      for (i64 i = 0; i < count; ++i) sum[i] += static_cast<A>(next[i]);
    }
  }
  if (how == Reduce::average) {
    const auto n = static_cast<A>(members.size());
    for (i64 i = 0; i < count; ++i) sum[i] /= n;
  }
}

// Elements [begin, end) of the reduction into each of `outs`, which point at element `begin`.
template <class S>
void reduce_range(const std::vector<Member>& members, i64 begin, i64 end,
                  const std::vector<std::byte*>& outs) {
  constexpr i64 kBlock = 2048;  // accumulators that stay in the first-level cache
  std::array<Sum<S>, kBlock> sum;
  const Reduce how = members[0].call->how;
  for (i64 b = begin; b < end; b += kBlock) {
    const i64 count = std::min(kBlock, end - b);
    reduce_block<S>(members, how, b, count, sum.data());
    for (std::byte* bytes : outs) {
      S* __restrict__ out = reinterpret_cast<S*>(bytes) + (b - begin);
      for (i64 i = 0; i < count; ++i) out[i] = static_cast<S>(sum[static_cast<std::size_t>(i)]);
    }
  }
}

void reduce(const std::vector<Member>& members, i64 begin, i64 end, const std::vector<std::byte*>& outs) {
  const DType dtype = members[0].call->in.dtype;
  if (dtype == DType::i32) return reduce_range<std::int32_t>(members, begin, end, outs);
  dispatch(dtype, [&](auto s) { reduce_range<decltype(s)>(members, begin, end, outs); });
}

// The same for the sum over few members into all their outputs, in one pass: the accumulator stays in a
// register. Outputs may be the inputs, element for element, but overlap in no other way: hence ivdep.
template <class S, std::size_t N>
void sum_in_one_pass(const std::vector<Member>& members, i64 begin, i64 end) {
  std::array<const S*, N> in;
  std::array<S*, N> out;
  for (std::size_t r = 0; r < N; ++r) {
    in[r] = reinterpret_cast<const S*>(members[r].in);
    out[r] = reinterpret_cast<S*>(members[r].out);
  }
#pragma GCC ivdep
  for (i64 i = begin; i < end; ++i) {
    auto sum = static_cast<acc_t<S>>(in[0][i]);
    for (std::size_t r = 1; r < N; ++r) sum += static_cast<acc_t<S>>(in[r][i]);
    const S rounded(sum);
    for (std::size_t r = 0; r < N; ++r) out[r][i] = rounded;
  }
}

void all_reduce_part(const std::vector<Member>& members, i64 part) {
  const Buffer& x = members[0].call->in;
  constexpr i64 kLine = 32;  // elements: at least a cache line, so that no two parts write the same one
  const i64 n = static_cast<i64>(members.size());
  const i64 each = (x.count / n + kLine) / kLine * kLine;
  const i64 begin = std::min(part * each, x.count), end = std::min(begin + each, x.count);
  if (begin == end) return;
  if (members[0].call->how == Reduce::sum && x.dtype != DType::i32 && 2 <= n && n <= 4) {
    return dispatch(x.dtype, [&](auto s) {
      using S = decltype(s);
      if (n == 2) sum_in_one_pass<S, 2>(members, begin, end);
      if (n == 3) sum_in_one_pass<S, 3>(members, begin, end);
      if (n == 4) sum_in_one_pass<S, 4>(members, begin, end);
    });
  }
  std::vector<std::byte*> outs;
  outs.reserve(members.size());
  for (const Member& m : members) outs.push_back(m.out + begin * size_of(x.dtype));
  reduce(members, begin, end, outs);
}

}  // namespace

void move_part(const std::vector<Member>& members, int part) {
  const auto p = static_cast<std::size_t>(part);
  const Member& mine = members[p];
  const Call& call = *mine.call;
  switch (call.kind) {
    case Kind::all_reduce:
      return all_reduce_part(members, part);
    case Kind::reduce_scatter: {
      const i64 begin = part * call.out.count;
      if (call.out.count > 0) reduce(members, begin, begin + call.out.count, {mine.out});
      return;
    }
    case Kind::all_gather:
    case Kind::split: {
      std::byte* to = mine.out;
      for (const Member& m : members) {
        copy(to, m.in, m.call->in.bytes());
        to += m.call->in.bytes();
      }
      return;
    }
    case Kind::all_to_all: {
      const i64 bytes = call.in.bytes() / static_cast<i64>(members.size());
      for (std::size_t r = 0; r < members.size(); ++r) {
        copy(mine.out + static_cast<i64>(r) * bytes, members[r].in + part * bytes, bytes);
      }
      return;
    }
    case Kind::broadcast:
      if (part != call.peer)
        copy(mine.out, members[static_cast<std::size_t>(call.peer)].in, call.out.bytes());
      return;
    case Kind::recv:
      return copy(mine.out, members[0].in, call.out.bytes());  // members: sender, receiver
    case Kind::send:
    case Kind::barrier:
      return;
  }
}

}  // namespace shardlings::comm_detail
