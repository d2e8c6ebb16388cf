// Loops over elements: addition, conversion, GELU, dropout.
#include "core/random.hpp"
#include "kernels/cpu/detail.hpp"
#include "kernels/ops.hpp"

namespace shardlings::kernels {

using namespace detail;

void add(const Tensor& y, const Tensor& x) {
  expect_shape(x, y.shape(), "add: x");
  const i64 n = y.numel();
  dispatch(y.dtype(), [&](auto s) {
    using S = decltype(s);
    S* to = y.data<S>();
    const S* from = x.data<S>();
#pragma omp parallel for simd schedule(static) if (n > kSmall)
    for (i64 i = 0; i < n; ++i) to[i] = store<S>(load(to[i]) + load(from[i]));
  });
}

void convert(const Tensor& x, const Tensor& y) {
  require(x.numel() == y.numel(), "convert: numbers of elements differ");
  const i64 n = y.numel();
  dispatch(x.dtype(), [&](auto s) {
    dispatch(y.dtype(), [&](auto t) {
      using S = decltype(s);
      using T = decltype(t);
      const S* from = x.data<S>();
      T* to = y.data<T>();
#pragma omp parallel for simd schedule(static) if (n > kSmall)
      for (i64 i = 0; i < n; ++i) to[i] = T(static_cast<acc_t<T>>(load(from[i])));
    });
  });
}

namespace {
constexpr double kGeluScale = 0.7978845608028654;  // sqrt(2 / pi)
constexpr double kGeluCubic = 0.044715;

constexpr double kLog2E = 1.4426950408889634;

// gelu(v) = v * sigmoid(2u) with u = sqrt(2 / pi) (v + 0.044715 v^3), which is v / 2 (1 + tanh u): one power
// of two, one division.
template <class A>
inline A gelu_gate(A v) {
  constexpr A kLinear = A(-2 * kLog2E * kGeluScale), kCubic = A(-2 * kLog2E * kGeluScale * kGeluCubic);
  return A(1) / (A(1) + fast_exp2(v * multiply_add(v * v, kCubic, kLinear)));
}

template <class A>
inline A gelu_slope(A v) {
  const A gate = gelu_gate(v);
  const A inner_slope = multiply_add(v * v, A(6 * kGeluScale * kGeluCubic), A(2 * kGeluScale));
  return multiply_add(v * gate * (A(1) - gate), inner_slope, gate);
}
}  // namespace

void gelu_forward(const Tensor& x, const Tensor& y) {
  expect_shape(y, x.shape(), "gelu: y");
  const i64 n = x.numel();
  dispatch(x.dtype(), [&](auto s) {
    using S = decltype(s);
    using A = acc_t<S>;
    const S* from = x.data<S>();
    S* to = y.data<S>();
#pragma omp parallel for simd schedule(static) if (n > kSmall)
    for (i64 i = 0; i < n; ++i) {
      const A v = load(from[i]);
      to[i] = store<S>(v * gelu_gate(v));
    }
  });
}

void gelu_backward(const Tensor& dy, const Tensor& x, const Tensor& dx) {
  expect_shape(dy, x.shape(), "gelu: dy");
  expect_shape(dx, x.shape(), "gelu: dx");
  const i64 n = x.numel();
  dispatch(x.dtype(), [&](auto s) {
    using S = decltype(s);
    const S* from = x.data<S>();
    const S* d = dy.data<S>();
    S* to = dx.data<S>();
#pragma omp parallel for simd schedule(static) if (n > kSmall)
    for (i64 i = 0; i < n; ++i) {
      to[i] = store<S>(load(d[i]) * gelu_slope(load(from[i])));
    }
  });
}

void dropout(const Tensor& x, double p, std::uint64_t key, i64 first, const Tensor& y) {
  expect_shape(y, x.shape(), "dropout: y");
  require(0 <= p && p < 1, "dropout: p must be at least 0 and below 1");
  const i64 n = x.numel();
  const auto threshold = static_cast<std::uint64_t>(p * 0x1p32);
  dispatch(x.dtype(), [&](auto s) {
    using S = decltype(s);
    using A = acc_t<S>;
    const S* from = x.data<S>();
    S* to = y.data<S>();
    const A factor = static_cast<A>(1 / (1 - p));
    const i64 first_block = first / 4, last_block = (first + n + 3) / 4;
#pragma omp parallel for schedule(static) if (n > kSmall)
    for (i64 block = first_block; block < last_block; ++block) {
      const auto bits = philox(key, static_cast<std::uint64_t>(block));
      for (i64 w = 0; w < 4; ++w) {
        const i64 i = block * 4 + w - first;
        if (i < 0 || i >= n) continue;
        to[i] = store<S>(bits[static_cast<std::size_t>(w)] >= threshold ? load(from[i]) * factor : A(0));
      }
    }
  });
}

}  // namespace shardlings::kernels
