#pragma once
// What the exercise works with: which part of a buffer belongs to which rank, and sums of tensors. Given.
#include <vector>

#include "core/tensor.hpp"
#include "hello.hpp"

namespace shardlings {

/// One block a rank, in rank order: n elements shared out as evenly as possible.
inline std::vector<Slice> even_blocks(i64 n, int ranks) {
  std::vector<Slice> blocks;
  blocks.reserve(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) blocks.push_back(my_slice(n, r, ranks));
  return blocks;
}

/// The elements of x in `block`; shares x's memory. x has one dimension.
inline Tensor part(const Tensor& x, const Slice& block) { return x.slice(block.begin, block.end); }

/// Rank r's block of x. Ranks are counted around the ring: -1 is the last one, blocks.size() is rank 0 again.
inline Tensor part(const Tensor& x, const std::vector<Slice>& blocks, int r) {
  const int n = static_cast<int>(blocks.size());
  return part(x, blocks[static_cast<std::size_t>((r % n + n) % n)]);
}

/// to[i] = from[i], rounded to the type of `to`. Both have the same number of elements, and may be the same.
inline void convert(const Tensor& from, const Tensor& to) {
  require(from.numel() == to.numel(), "convert: two tensors of different sizes");
  dispatch(from.dtype(), [&](auto f) {
    dispatch(to.dtype(), [&](auto t) {
      using From = decltype(f);
      using To = decltype(t);
      const From* x = from.data<From>();
      To* y = to.data<To>();
      for (i64 i = 0; i < to.numel(); ++i)
        y[i] = static_cast<To>(static_cast<acc_t<To>>(static_cast<acc_t<From>>(x[i])));
    });
  });
}

/// sum[i] += x[i], added in fp32 (f64 for f64), rounded to the type of the tensors when it is stored.
inline void add_into(const Tensor& sum, const Tensor& x) {
  require(sum.numel() == x.numel(), "add_into: two tensors of different sizes");
  dispatch(sum.dtype(), [&](auto s) {
    using S = decltype(s);
    S* a = sum.data<S>();
    const S* b = x.data<S>();
    for (i64 i = 0; i < sum.numel(); ++i)
      a[i] = static_cast<S>(static_cast<acc_t<S>>(a[i]) + static_cast<acc_t<S>>(b[i]));
  });
}

}  // namespace shardlings
