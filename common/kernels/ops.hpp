#pragma once
// Every operation of the model on tensors, whatever computes it. Shapes: n rows (B * T tokens), C channels, V
// vocabulary, H heads, D channels of a head. All kernels take f32, bf16, f16 and f64 and keep sums in acc_t
// (fp32, f64 for f64); all check their shapes and throw Error with the numbers. Gradient kernels *add* to
// parameter gradients, and finish the micro-batch's own sum before they add it. Sums over rows are cut into
// fixed chunks, so that results depend on the number of threads only through the matrix products.
#include <vector>

#include "core/tensor.hpp"

namespace shardlings::kernels {

/// Row-major c[m, n] = alpha * op(a) op(b) + beta * c, op = transpose where asked. With beta 0 c is not read.
/// Leading dimensions are the numbers of columns. f32 by oneDNN, f64 by loops, 16-bit through fp32.
void gemm(bool transpose_a, bool transpose_b, double alpha, const Tensor& a, const Tensor& b, double beta,
          const Tensor& c);

/// y[n, out] = x[n, in] w[out, in]^T + bias[out]; bias may be an empty tensor.
void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y);
/// dx[n, in] = dy[n, out] w[out, in]
void linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx);
/// dw[out, in] += dy[n, out]^T x[n, in]; dbias[out] += column sums of dy, unless dbias is empty.
void linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw, const Tensor& dbias);

/// y += x
void add(const Tensor& y, const Tensor& x);
/// y = x, rounded to y's type.
void convert(const Tensor& x, const Tensor& y);

/// y = (x - mean) / sqrt(variance + 1e-5) * gain + bias, over the last dimension of x[n, C].
void layer_norm_forward(const Tensor& x, const Tensor& gain, const Tensor& bias, const Tensor& y);
void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& gain, const Tensor& dx,
                         const Tensor& dgain, const Tensor& dbias);

/// GELU in its tanh form (Hendrycks and Gimpel 2016), as GPT-2 has it.
void gelu_forward(const Tensor& x, const Tensor& y);
void gelu_backward(const Tensor& dy, const Tensor& x, const Tensor& dx);

/// y = x / (1 - p) where random_bits(key, first + i) >= p * 2^32, else 0. Its own backward: redraw the same
/// mask.
void dropout(const Tensor& x, double p, std::uint64_t key, i64 first, const Tensor& y);

/// Causal attention of B sequences. qkv[n, H*3*D] has columns ordered (head, q|k|v, D), so that a row slice
/// of its weight is whole heads; y[n, H*D]. log_sum[B, H, T] in acc_t keeps log sum exp of each row: the T x
/// T matrix is never stored.
void attention_forward(const Tensor& qkv, i64 batch, i64 heads, const Tensor& y, const Tensor& log_sum);
void attention_backward(const Tensor& dy, const Tensor& qkv, const Tensor& y, const Tensor& log_sum,
                        i64 batch, i64 heads, const Tensor& dqkv);

/// y[n, C] = wte[token] + wpe[row % time + first_position]. Tokens outside the table: Error with the number.
void embedding_forward(const std::vector<int>& tokens, i64 time, i64 first_position, const Tensor& wte,
                       const Tensor& wpe, const Tensor& y);
void embedding_backward(const std::vector<int>& tokens, i64 time, i64 first_position, const Tensor& dy,
                        const Tensor& dwte, const Tensor& dwpe);

/// Sum over rows of scale * -log softmax(logits[n, V])[target]; dlogits = its gradient. A target of -1 counts
/// nothing.
double cross_entropy(const Tensor& logits, const std::vector<int>& targets, double scale,
                     const Tensor& dlogits);

/// One AdamW step (Loshchilov and Hutter 2019) on elements [begin, end) of flat tensors. m and v are acc_t of
/// the value's type; master, unless empty, is the fp32 copy that 16-bit values are rounded from. step counts
/// from 1.
struct AdamWStep {
  double lr, beta1, beta2, eps, decay;
  i64 step;
  double scale;  ///< the gradient is multiplied by it first: clipping
};
void adamw(const AdamWStep& s, i64 begin, i64 end, const Tensor& value, const Tensor& grad, const Tensor& m,
           const Tensor& v, const Tensor& master);

/// Sum of squares of elements [begin, end), in double.
double sum_squares(const Tensor& x, i64 begin, i64 end);
/// Index of the first element that is NaN or infinite, or -1.
i64 first_not_finite(const Tensor& x);

}  // namespace shardlings::kernels
