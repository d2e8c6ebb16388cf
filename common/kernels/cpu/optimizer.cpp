// What the optimizer does to flat memory. Element-wise and without fused multiply-adds, so that any cut of
// the buffers over ranks gives the same bits.
#include <fmt/format.h>

#include <numeric>

#include "kernels/cpu/detail.hpp"
#include "kernels/ops.hpp"

namespace shardlings::kernels {

using namespace detail;

void adamw(const AdamWStep& s, i64 begin, i64 end, const Tensor& value, const Tensor& grad, const Tensor& m,
           const Tensor& v, const Tensor& master) {
  for (const Tensor* t : {&value, &grad, &m, &v}) {
    require(0 <= begin && begin <= end && end <= t->numel(),
            [&] { return fmt::format("adamw: elements [{}, {}) of {}", begin, end, t->numel()); });
  }
  require(s.step >= 1, "adamw: steps are counted from 1");
  dispatch(value.dtype(), [&](auto type) {
    using S = decltype(type);
    using A = acc_t<S>;
    S* w = value.data<S>();
    const S* g = grad.data<S>();
    A *first = m.data<A>(), *second = v.data<A>();
    A* exact = master ? master.data<A>() : nullptr;
    const A b1 = A(s.beta1), b2 = A(s.beta2), eps = A(s.eps), scale = A(s.scale);
    const A shrink = A(1) - A(s.lr * s.decay);
    // lr * (m / c1) / (sqrt(v / c2) + eps), with the bias corrections c1, c2 drawn out of the loop.
    const A rate = A(s.lr / (1 - std::pow(s.beta1, static_cast<double>(s.step))));
    const A root = A(1 / std::sqrt(1 - std::pow(s.beta2, static_cast<double>(s.step))));
    const auto update = [=](A x, A gradient, A& mean, A& square) {
      mean = b1 * mean + (A(1) - b1) * gradient;
      square = b2 * square + (A(1) - b2) * gradient * gradient;
      return x * shrink - rate * mean / (std::sqrt(square) * root + eps);
    };
    // clang-tidy does not look into OpenMP loops and takes these two for equal.
    // NOLINTNEXTLINE(bugprone-branch-clone)
    if (exact != nullptr) {
#pragma omp parallel for simd schedule(static) if (end - begin > kSmall)
      for (i64 i = begin; i < end; ++i) {
        exact[i] = update(exact[i], load(g[i]) * scale, first[i], second[i]);
        w[i] = store<S>(exact[i]);
      }
    } else {
#pragma omp parallel for simd schedule(static) if (end - begin > kSmall)
      for (i64 i = begin; i < end; ++i)
        w[i] = store<S>(update(load(w[i]), load(g[i]) * scale, first[i], second[i]));
    }
  });
}

double sum_squares(const Tensor& x, i64 begin, i64 end) {
  require(0 <= begin && begin <= end && end <= x.numel(),
          [&] { return fmt::format("sum_squares: elements [{}, {}) of {}", begin, end, x.numel()); });
  constexpr i64 kChunk = 64 * 1024;
  const i64 chunks = chunks_of(end - begin, kChunk);
  std::vector<double> partial(static_cast<std::size_t>(chunks));
  dispatch(x.dtype(), [&](auto s) {
    using S = decltype(s);
    const S* p = x.data<S>();
#pragma omp parallel for schedule(static) if (chunks > 1)
    for (i64 c = 0; c < chunks; ++c) {
      const i64 from = begin + c * kChunk, to = std::min(end, from + kChunk);
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (i64 i = from; i < to; ++i) {
        const auto value = static_cast<double>(load(p[i]));
        sum += value * value;
      }
      partial[static_cast<std::size_t>(c)] = sum;
    }
  });
  return std::accumulate(partial.begin(), partial.end(), 0.0);
}

i64 first_not_finite(const Tensor& x) {
  return dispatch(x.dtype(), [&](auto s) -> i64 {
    using S = decltype(s);
    const S* p = x.data<S>();
    for (i64 i = 0; i < x.numel(); ++i) {
      if (!std::isfinite(load(p[i]))) return i;
    }
    return -1;
  });
}

}  // namespace shardlings::kernels
