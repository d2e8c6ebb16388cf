#pragma once
// What the CPU kernels share: shape checks, chunked loops, fast exp, raw matrix products.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

#include "core/tensor.hpp"

namespace shardlings::kernels::detail {

/// Throws Error naming the operand, its shape and the expected one.
void expect_shape(const Tensor& t, const Shape& shape, std::string_view what);
void expect_dtype(const Tensor& t, DType dtype, std::string_view what);
/// Rows of a 2-dimensional tensor; Error otherwise.
void expect_matrix(const Tensor& t, std::string_view what);

/// acc_t's dtype for a value type: f64 for f64, else f32.
inline DType acc_dtype(DType t) { return t == DType::f64 ? DType::f64 : DType::f32; }

constexpr i64 kRowChunk = 64;               // rows that one partial sum covers
constexpr i64 kSmall = 16 * 1024;           // below this many elements a loop is not worth a second thread
constexpr i64 kSecondLevelCache = 2 << 20;  // bytes; about what one core has
inline i64 chunks_of(i64 n, i64 chunk) { return (n + chunk - 1) / chunk; }

template <class S>
inline acc_t<S> load(S x) {
  return static_cast<acc_t<S>>(x);
}
template <class S>
inline S store(acc_t<S> x) {
  return S(x);
}

// a * b + c in one rounding where the machine has it; the loops that use it compare with a tolerance.
inline float multiply_add(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

inline double multiply_add(double a, double b, double c) { return a * b + c; }

/// 2^x for x in [-126, 126], other x taken as the nearest of these, to one unit in the last place, in a form
/// that compilers vectorise. Formulas that can carry the factor log2(e) themselves call this instead of
/// fast_exp.
inline float fast_exp2(float x) {
  const float clamped = x < -126.0F ? -126.0F : (x > 126.0F ? 126.0F : x);
  const float shifted = clamped + 12582912.0F;  // 1.5 * 2^23: rounds to an integer
  const float r = clamped - (shifted - 12582912.0F);
  float p = 1.5403530e-4F;  // ln(2)^k / k!
  p = multiply_add(p, r, 1.3333558e-3F);
  p = multiply_add(p, r, 9.6181291e-3F);
  p = multiply_add(p, r, 5.5504109e-2F);
  p = multiply_add(p, r, 2.4022651e-1F);
  p = multiply_add(p, r, 6.9314718e-1F);
  p = multiply_add(p, r, 1.0F);
  const auto power = std::bit_cast<float>((std::bit_cast<std::int32_t>(shifted) << 23) + 0x3f800000);
  return p * power;  // a product keeps a NaN, adding to the exponent would not
}
inline double fast_exp2(double x) { return std::exp2(x); }

/// exp with a relative error of (2 + |x|) 2^-24; 0 below -87, also for -infinity.
inline float fast_exp(float x) { return x < -87.0F ? 0.0F : fast_exp2(x * 1.44269504F); }
inline double fast_exp(double x) { return std::exp(x); }

/// Row-major c = alpha op(a) op(b) + beta c on raw memory. Single-threaded inside a parallel region.
void raw_gemm(bool ta, bool tb, i64 m, i64 n, i64 k, float alpha, const float* a, i64 lda, const float* b,
              i64 ldb, float beta, float* c, i64 ldc);
void raw_gemm(bool ta, bool tb, i64 m, i64 n, i64 k, double alpha, const double* a, i64 lda, const double* b,
              i64 ldb, double beta, double* c, i64 ldc);

/// Memory of this thread that is kept between calls. Its contents are not.
template <class A>
A* scratch(std::size_t slot, i64 count) {
  thread_local std::vector<std::vector<A>> slots;
  if (slots.size() <= slot) slots.resize(slot + 1);
  if (static_cast<i64>(slots[slot].size()) < count) slots[slot].resize(static_cast<std::size_t>(count));
  return slots[slot].data();
}

/// For each column c of [n, width]: out[c] += sum over rows of part(row)[c], where `rows(begin, end,
/// partial)` adds rows to a zeroed partial sum. Chunks of kRowChunk rows, added in order: the same result for
/// any number of threads.
template <class S, class Rows>
void add_row_sums(i64 n, i64 width, S* out, Rows rows) {
  using A = acc_t<S>;
  const i64 chunks = chunks_of(n, kRowChunk);
  std::vector<A> partial(static_cast<std::size_t>(chunks * width));
  A* const sums = partial.data();
#pragma omp parallel for schedule(static) if (n * width > kSmall)
  for (i64 c = 0; c < chunks; ++c) rows(c * kRowChunk, std::min(n, (c + 1) * kRowChunk), sums + c * width);
  for (i64 c = 1; c < chunks; ++c) {
    const A* row = sums + c * width;
#pragma omp simd
    for (i64 k = 0; k < width; ++k) sums[k] += row[k];
  }
  if (chunks == 0) return;
  for (i64 k = 0; k < width; ++k) out[k] = store<S>(load(out[k]) + sums[k]);
}

}  // namespace shardlings::kernels::detail
