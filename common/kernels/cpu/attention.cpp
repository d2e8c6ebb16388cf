// Causal attention in blocks of query rows (after FlashAttention, Dao et al. 2022): a block's scores live in
// this thread's scratch, only log sum exp of each row is kept, and backward makes the probabilities again.
#include <limits>

#include "kernels/cpu/detail.hpp"
#include "kernels/ops.hpp"

namespace shardlings::kernels {

using namespace detail;

namespace {

constexpr i64 kQueryBlock = 64;
constexpr double kLog2E = 1.4426950408889634;  // scores are kept in units of ln 2: exp becomes 2^x

struct Sizes {
  i64 batch, time, heads, head_dim, row;  // row = heads * 3 * head_dim
};

Sizes sizes_of(const Tensor& qkv, const Tensor& y, i64 batch, i64 heads, const Tensor& log_sum) {
  expect_matrix(qkv, "attention: qkv");
  require(batch > 0 && heads > 0 && qkv.dim(0) % batch == 0 && qkv.dim(1) % (3 * heads) == 0, [&] {
    return "attention: qkv " + to_string(qkv.shape()) + " does not divide into sequences and heads";
  });
  Sizes z{batch, qkv.dim(0) / batch, heads, qkv.dim(1) / (3 * heads), qkv.dim(1)};
  expect_shape(y, {qkv.dim(0), heads * z.head_dim}, "attention: y");
  expect_shape(log_sum, {batch, heads, z.time}, "attention: log_sum");
  expect_dtype(log_sum, acc_dtype(qkv.dtype()), "attention: log_sum");
  return z;
}

// Rows of one head in acc_t: pointers into the tensor where the types agree, else a widened copy.
template <class S>
struct Rows {
  using A = acc_t<S>;
  const A* at;
  i64 stride;
  Rows(const S* from, i64 rows, i64 row_stride, i64 width, std::size_t slot) {
    if constexpr (std::is_same_v<S, A>) {
      (void)rows, (void)width, (void)slot;
      at = from;
      stride = row_stride;
    } else {
      A* wide = scratch<A>(slot, rows * width);
      for (i64 i = 0; i < rows; ++i) {
        for (i64 k = 0; k < width; ++k) wide[i * width + k] = load(from[i * row_stride + k]);
      }
      at = wide;
      stride = width;
    }
  }
};

template <class A>
A row_max(const A* x, i64 n) {
  A top = x[0];
#pragma omp simd reduction(max : top)
  for (i64 j = 0; j < n; ++j) top = x[j] > top ? x[j] : top;
  return top;
}

constexpr i64 kVector = 16;  // elements; loops over whole vectors need no odd ends and are much faster

// Keys after the query: up to the next whole vector they get a score below all others, beyond it their
// probability is 0 at once. Returns how many elements of the row are still to be worked on.
template <class A>
i64 mask_future(A* row, i64 seen, i64 keys) {
  const i64 width = std::min(keys, (seen + kVector - 1) / kVector * kVector);
  std::fill(row + seen, row + width, -std::numeric_limits<A>::infinity());
  std::fill(row + width, row + keys, A(0));
  return width;
}

template <class S>
void forward_head(const Sizes& z, const S* qkv, S* y, i64 y_row, acc_t<S>* log_sum) {
  using A = acc_t<S>;
  const i64 T = z.time, D = z.head_dim;
  const A scale = A(kLog2E) / std::sqrt(A(D));
  const Rows<S> q(qkv, T, z.row, D, 4), k(qkv + D, T, z.row, D, 5), v(qkv + 2 * D, T, z.row, D, 6);
  A* scores = scratch<A>(7, kQueryBlock * T);
  A* wide_out = scratch<A>(8, kQueryBlock * D);
  for (i64 begin = 0; begin < T; begin += kQueryBlock) {
    const i64 rows = std::min(kQueryBlock, T - begin), keys = begin + rows;
    raw_gemm(false, true, rows, keys, D, scale, q.at + begin * q.stride, q.stride, k.at, k.stride, A(0),
             scores, keys);
    A* inverse = scratch<A>(12, kQueryBlock);
    for (i64 i = 0; i < rows; ++i) {
      A* row = scores + i * keys;
      const i64 width = mask_future(row, begin + i + 1, keys);
      const A top = row_max(row, width);
      A sum = 0;
#pragma omp simd reduction(+ : sum)
      for (i64 j = 0; j < width; ++j) {
        row[j] = fast_exp2(row[j] - top);
        sum += row[j];
      }
      std::fill(row + begin + i + 1, row + width, A(0));  // in the sum they were 2^-126 beside 1: nothing
      inverse[i] = A(1) / sum;
      log_sum[begin + i] = (top + std::log2(sum)) / A(kLog2E);
    }
    // The rows are divided by their sums after the product with v, where they are shorter.
    if constexpr (std::is_same_v<S, A>) {
      A* out = y + begin * y_row;
      raw_gemm(false, false, rows, D, keys, A(1), scores, keys, v.at, v.stride, A(0), out, y_row);
      for (i64 i = 0; i < rows; ++i) {
        const A factor = inverse[i];
#pragma omp simd
        for (i64 d = 0; d < D; ++d) out[i * y_row + d] *= factor;
      }
    } else {
      raw_gemm(false, false, rows, D, keys, A(1), scores, keys, v.at, v.stride, A(0), wide_out, D);
      for (i64 i = 0; i < rows; ++i) {
        for (i64 d = 0; d < D; ++d) y[(begin + i) * y_row + d] = store<S>(wide_out[i * D + d] * inverse[i]);
      }
    }
  }
}

template <class S>
void backward_head(const Sizes& z, const S* qkv, const S* y, const S* dy, i64 y_row, const acc_t<S>* log_sum,
                   S* dqkv) {
  using A = acc_t<S>;
  constexpr bool kDirect = std::is_same_v<S, A>;
  const i64 T = z.time, D = z.head_dim;
  const A scale = A(1) / std::sqrt(A(D));
  const Rows<S> q(qkv, T, z.row, D, 4), k(qkv + D, T, z.row, D, 5), v(qkv + 2 * D, T, z.row, D, 6);
  const Rows<S> out(y, T, y_row, D, 7), dout(dy, T, y_row, D, 8);
  A* prob = scratch<A>(9, kQueryBlock * T);
  A* dprob = scratch<A>(10, kQueryBlock * T);
  A* wide = kDirect ? nullptr : scratch<A>(11, 3 * T * D);
  A *dq, *dk, *dv;
  i64 stride;
  if constexpr (kDirect) {
    dq = dqkv, dk = dqkv + D, dv = dqkv + 2 * D, stride = z.row;
  } else {
    dq = wide, dk = wide + T * D, dv = wide + 2 * T * D, stride = D;
  }
  // The last block sees all keys: it comes first and writes dk and dv, the others add.
  for (i64 begin = (T - 1) / kQueryBlock * kQueryBlock; begin >= 0; begin -= kQueryBlock) {
    const A add = begin + kQueryBlock >= T ? A(0) : A(1);
    const i64 rows = std::min(kQueryBlock, T - begin), keys = begin + rows;
    const A *q0 = q.at + begin * q.stride, *o0 = out.at + begin * out.stride,
            *d0 = dout.at + begin * dout.stride;
    raw_gemm(false, true, rows, keys, D, scale * A(kLog2E), q0, q.stride, k.at, k.stride, A(0), prob, keys);
    raw_gemm(false, true, rows, keys, D, A(1), d0, dout.stride, v.at, v.stride, A(0), dprob, keys);
    for (i64 i = 0; i < rows; ++i) {
      A *p = prob + i * keys, *dp = dprob + i * keys;
      const int width = static_cast<int>(keys), seen = static_cast<int>(begin + i) + 1;
      const A offset = log_sum[begin + i] * A(kLog2E);
      A dot = 0;  // sum_j p_j dp_j = dout . out
#pragma omp simd reduction(+ : dot)
      for (i64 d = 0; d < D; ++d) dot += d0[i * dout.stride + d] * o0[i * out.stride + d];
#pragma omp simd
      for (int j = 0; j < width; ++j) {
        const A e = fast_exp2(p[j] - offset);
        p[j] = j < seen ? e : A(0);
        dp[j] = j < seen ? e * (dp[j] - dot) * scale : A(0);
      }
    }
    raw_gemm(true, false, keys, D, rows, A(1), prob, keys, d0, dout.stride, add, dv, stride);
    raw_gemm(false, false, rows, D, keys, A(1), dprob, keys, k.at, k.stride, A(0), dq + begin * stride,
             stride);
    raw_gemm(true, false, keys, D, rows, A(1), dprob, keys, q0, q.stride, add, dk, stride);
  }
  if constexpr (!kDirect) {
    for (i64 i = 0; i < T; ++i) {
      for (i64 d = 0; d < D; ++d) {
        dqkv[i * z.row + d] = store<S>(dq[i * D + d]);
        dqkv[i * z.row + D + d] = store<S>(dk[i * D + d]);
        dqkv[i * z.row + 2 * D + d] = store<S>(dv[i * D + d]);
      }
    }
  }
}

}  // namespace

void attention_forward(const Tensor& qkv, i64 batch, i64 heads, const Tensor& y, const Tensor& log_sum) {
  const Sizes z = sizes_of(qkv, y, batch, heads, log_sum);
  dispatch(qkv.dtype(), [&](auto s) {
    using S = decltype(s);
    const S* in = qkv.data<S>();
    S* out = y.data<S>();
    auto* sums = log_sum.data<acc_t<S>>();
    const i64 y_row = z.heads * z.head_dim;
#pragma omp parallel for schedule(static)
    for (i64 i = 0; i < z.batch * z.heads; ++i) {
      const i64 b = i / z.heads, h = i % z.heads;
      forward_head(z, in + b * z.time * z.row + h * 3 * z.head_dim, out + b * z.time * y_row + h * z.head_dim,
                   y_row, sums + i * z.time);
    }
  });
}

void attention_backward(const Tensor& dy, const Tensor& qkv, const Tensor& y, const Tensor& log_sum,
                        i64 batch, i64 heads, const Tensor& dqkv) {
  const Sizes z = sizes_of(qkv, y, batch, heads, log_sum);
  expect_shape(dy, y.shape(), "attention: dy");
  expect_shape(dqkv, qkv.shape(), "attention: dqkv");
  dispatch(qkv.dtype(), [&](auto s) {
    using S = decltype(s);
    const S *in = qkv.data<S>(), *out = y.data<S>(), *d = dy.data<S>();
    S* grad = dqkv.data<S>();
    const auto* sums = log_sum.data<acc_t<S>>();
    const i64 y_row = z.heads * z.head_dim;
#pragma omp parallel for schedule(static)
    for (i64 i = 0; i < z.batch * z.heads; ++i) {
      const i64 b = i / z.heads, h = i % z.heads;
      const i64 at = b * z.time * z.row + h * 3 * z.head_dim, at_y = b * z.time * y_row + h * z.head_dim;
      backward_head(z, in + at, out + at_y, d + at_y, y_row, sums + i * z.time, grad + at);
    }
  });
}

}  // namespace shardlings::kernels
