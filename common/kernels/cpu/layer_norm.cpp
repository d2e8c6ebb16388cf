// Layer norm over the last dimension, forward and backward. Mean and variance are computed again in backward:
// a row is in the first-level cache then, and nothing has to be stored.
#include "kernels/cpu/detail.hpp"
#include "kernels/ops.hpp"

namespace shardlings::kernels {

using namespace detail;

namespace {

constexpr double kEpsilon = 1e-5;

template <class S>
acc_t<S> mean_of(const S* row, i64 width) {
  using A = acc_t<S>;
  A sum = 0;
#pragma omp simd reduction(+ : sum)
  for (i64 k = 0; k < width; ++k) sum += load(row[k]);
  return sum / A(width);
}

// dx of some rows, and what they add to dgain and dbias. Everything in three passes over a row that is in the
// first-level cache; apart from its caller so that the compiler knows that nothing overlaps.
template <class S>
void backward_rows(i64 rows, i64 width, const S* __restrict x, const S* __restrict dy,
                   const S* __restrict gain, S* __restrict dx, acc_t<S>* __restrict dgain,
                   acc_t<S>* __restrict dbias) {
  using A = acc_t<S>;
  for (i64 i = 0; i < rows; ++i, x += width, dy += width, dx += width) {
    const A m = mean_of(x, width);
    A squares = 0, sum = 0, dot = 0;
#pragma omp simd reduction(+ : squares, sum, dot)
    for (i64 k = 0; k < width; ++k) {
      const A centred = load(x[k]) - m, e = load(dy[k]) * load(gain[k]);
      squares += centred * centred;
      sum += e;
      dot += e * centred;
    }
    const A r = A(1) / std::sqrt(squares / A(width) + A(kEpsilon));
    const A mean_e = sum / A(width), mean_dot = dot * r / A(width);
#pragma omp simd
    for (i64 k = 0; k < width; ++k) {
      const A h = (load(x[k]) - m) * r, d = load(dy[k]);
      dx[k] = store<S>(r * (d * load(gain[k]) - mean_e - h * mean_dot));
      dgain[k] += d * h;
      dbias[k] += d;
    }
  }
}

}  // namespace

void layer_norm_forward(const Tensor& x, const Tensor& gain, const Tensor& bias, const Tensor& y) {
  expect_matrix(x, "layer_norm: x");
  const i64 n = x.dim(0), width = x.dim(1);
  expect_shape(y, {n, width}, "layer_norm: y");
  expect_shape(gain, {width}, "layer_norm: gain");
  expect_shape(bias, {width}, "layer_norm: bias");
  dispatch(x.dtype(), [&](auto s) {
    using S = decltype(s);
    using A = acc_t<S>;
    const S *from = x.data<S>(), *g = gain.data<S>(), *b = bias.data<S>();
    S* to = y.data<S>();
#pragma omp parallel for schedule(static) if (n * width > kSmall)
    for (i64 i = 0; i < n; ++i) {
      const S* row = from + i * width;
      S* out = to + i * width;
      const A m = mean_of(row, width);
      A squares = 0;
#pragma omp simd reduction(+ : squares)
      for (i64 k = 0; k < width; ++k) {
        const A centred = load(row[k]) - m;
        squares += centred * centred;
      }
      const A r = A(1) / std::sqrt(squares / A(width) + A(kEpsilon));
#pragma omp simd
      for (i64 k = 0; k < width; ++k) out[k] = store<S>((load(row[k]) - m) * r * load(g[k]) + load(b[k]));
    }
  });
}

void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& gain, const Tensor& dx,
                         const Tensor& dgain, const Tensor& dbias) {
  expect_matrix(x, "layer_norm: x");
  const i64 n = x.dim(0), width = x.dim(1);
  expect_shape(dy, {n, width}, "layer_norm: dy");
  expect_shape(dx, {n, width}, "layer_norm: dx");
  expect_shape(gain, {width}, "layer_norm: gain");
  expect_shape(dgain, {width}, "layer_norm: dgain");
  expect_shape(dbias, {width}, "layer_norm: dbias");
  dispatch(x.dtype(), [&](auto s) {
    using S = decltype(s);
    using A = acc_t<S>;
    const S *from = x.data<S>(), *d = dy.data<S>(), *g = gain.data<S>();
    S* to = dx.data<S>();
    std::vector<A> sums(static_cast<std::size_t>(2 * width));
    add_row_sums(n, 2 * width, sums.data(), [=](i64 begin, i64 end, A* partial) {
      const i64 at = begin * width;
      backward_rows(end - begin, width, from + at, d + at, g, to + at, partial, partial + width);
    });
    S *gg = dgain.data<S>(), *gb = dbias.data<S>();
    for (i64 k = 0; k < width; ++k) {
      gg[k] = store<S>(load(gg[k]) + sums[static_cast<std::size_t>(k)]);
      gb[k] = store<S>(load(gb[k]) + sums[static_cast<std::size_t>(width + k)]);
    }
  });
}

}  // namespace shardlings::kernels
