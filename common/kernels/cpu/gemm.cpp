// Matrix products: oneDNN for f32, plain loops for f64 (proofs), 16-bit types through fp32.
#include <dnnl.h>
#include <fmt/format.h>

#include "kernels/cpu/detail.hpp"
#include "kernels/ops.hpp"

namespace shardlings::kernels {

namespace detail {

void raw_gemm(bool ta, bool tb, i64 m, i64 n, i64 k, float alpha, const float* a, i64 lda, const float* b,
              i64 ldb, float beta, float* c, i64 ldc) {
  if (m == 0 || n == 0) return;
  const dnnl_status_t status =
      dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  require(status == dnnl_success, [&] {
    return fmt::format("oneDNN refused a {} x {} x {} product (status {})", m, n, k,
                       static_cast<int>(status));
  });
}

void raw_gemm(bool ta, bool tb, i64 m, i64 n, i64 k, double alpha, const double* a, i64 lda, const double* b,
              i64 ldb, double beta, double* c, i64 ldc) {
  const i64 a_row = ta ? 1 : lda, a_col = ta ? lda : 1;
  const i64 b_row = tb ? 1 : ldb, b_col = tb ? ldb : 1;
#pragma omp parallel for schedule(static) if (m * n * k > kSmall)
  for (i64 i = 0; i < m; ++i) {
    double* row = scratch<double>(0, n);
    std::fill(row, row + n, 0.0);
    for (i64 p = 0; p < k; ++p) {
      const double x = a[i * a_row + p * a_col];
      for (i64 j = 0; j < n; ++j) row[j] += x * b[p * b_row + j * b_col];
    }
    for (i64 j = 0; j < n; ++j) c[i * ldc + j] = alpha * row[j] + (beta == 0 ? 0 : beta * c[i * ldc + j]);
  }
}

namespace {

// A 16-bit matrix as fp32 in a scratch slot; others as they are.
template <class S>
const acc_t<S>* widened(const Tensor& t, std::size_t slot) {
  if constexpr (std::is_same_v<S, acc_t<S>>) {
    return t.data<S>();
  } else {
    const i64 count = t.numel();
    float* wide = scratch<float>(slot, count);
    const S* narrow = t.data<S>();
#pragma omp parallel for simd schedule(static) if (count > kSmall)
    for (i64 i = 0; i < count; ++i) wide[i] = load(narrow[i]);
    return wide;
  }
}

}  // namespace
}  // namespace detail

using namespace detail;

void gemm(bool ta, bool tb, double alpha, const Tensor& a, const Tensor& b, double beta, const Tensor& c) {
  expect_matrix(a, "gemm: a");
  expect_matrix(b, "gemm: b");
  expect_matrix(c, "gemm: c");
  const i64 m = a.dim(ta ? 1 : 0), k = a.dim(ta ? 0 : 1), n = b.dim(tb ? 0 : 1);
  expect_shape(b, tb ? Shape{n, k} : Shape{k, n}, "gemm: b");
  expect_shape(c, {m, n}, "gemm: c");
  expect_dtype(b, a.dtype(), "gemm: b");
  expect_dtype(c, a.dtype(), "gemm: c");
  if (m == 0 || n == 0) return;
  dispatch(a.dtype(), [&](auto s) {
    using S = decltype(s);
    using A = acc_t<S>;
    const A* wide_a = widened<S>(a, 1);
    const A* wide_b = widened<S>(b, 2);
    if constexpr (std::is_same_v<S, A>) {
      raw_gemm(ta, tb, m, n, k, static_cast<A>(alpha), wide_a, a.dim(1), wide_b, b.dim(1),
               static_cast<A>(beta), c.data<S>(), n);
    } else {
      A* product = scratch<A>(3, m * n);
      raw_gemm(ta, tb, m, n, k, static_cast<A>(alpha), wide_a, a.dim(1), wide_b, b.dim(1), A(0), product, n);
      S* out = c.data<S>();
      const A factor = static_cast<A>(beta);
#pragma omp parallel for simd schedule(static) if (m * n > kSmall)
      for (i64 i = 0; i < m * n; ++i)
        out[i] = store<S>(factor == 0 ? product[i] : product[i] + factor * load(out[i]));
    }
  });
}

void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y) {
  expect_matrix(x, "linear: x");
  expect_matrix(w, "linear: w");
  const i64 n = x.dim(0), in = x.dim(1), out = w.dim(0);
  expect_shape(w, {out, in}, "linear: w");
  expect_shape(y, {n, out}, "linear: y");
  if (!bias) return gemm(false, true, 1, x, w, 0, y);
  expect_shape(bias, {out}, "linear: bias");
  // A small result is still in the second-level cache after the product: the bias is added there. A large one
  // would have to come back from memory, so the product is added to rows that hold the bias already.
  const bool small = y.bytes() <= kSecondLevelCache;
  if (small) gemm(false, true, 1, x, w, 0, y);
  dispatch(x.dtype(), [&](auto s) {
    using S = decltype(s);
    const S* from = bias.data<S>();
    S* to = y.data<S>();
#pragma omp parallel for schedule(static) if (n * out > kSmall)
    for (i64 i = 0; i < n; ++i) {
      S* row = to + i * out;
      if (!small) {
        std::copy(from, from + out, row);
        continue;
      }
#pragma omp simd
      for (i64 k = 0; k < out; ++k) row[k] = store<S>(load(row[k]) + load(from[k]));
    }
  });
  if (!small) gemm(false, true, 1, x, w, 1, y);
}

void linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  gemm(false, false, 1, dy, w, 0, dx);
}

void linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw, const Tensor& dbias) {
  gemm(true, false, 1, dy, x, 1, dw);
  if (!dbias) return;
  const i64 n = dy.dim(0), out = dy.dim(1);
  expect_shape(dbias, {out}, "linear: dbias");
  dispatch(dy.dtype(), [&](auto s) {
    using S = decltype(s);
    const S* d = dy.data<S>();
    add_row_sums(n, out, dbias.data<S>(), [=](i64 begin, i64 end, acc_t<S>* sum) {
      for (i64 i = begin; i < end; ++i) {
#pragma omp simd
        for (i64 k = 0; k < out; ++k) sum[k] += load(d[i * out + k]);
      }
    });
  });
}

}  // namespace shardlings::kernels
