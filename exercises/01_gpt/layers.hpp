#pragma once
// The three layers of a GPT whose derivatives need thought, forward and backward, as plain loops;
// plain_layers.hpp puts them into the library's model. Left out: speed, and attention that does not store its
// T x T matrix; common/kernels has both.
#include <algorithm>
#include <cmath>

#include "nn/gpt.hpp"

namespace shardlings {

// All functions are templates over the element S: double for proofs, float for training. Arrays are
// row-major. Activations and their gradients (y, prob, dx, dqkv, dlogits, …) are new memory: it holds NaN
// until you write it. Gradients of parameters (dgain, dbias) hold what earlier micro-batches left: add to
// them.

constexpr double kEpsilon = 1e-5;  ///< inside the root: 1 / sqrt(variance + kEpsilon)

/// y[n, C] = (x - mean) * rstd * gain[C] + bias[C], with mean and variance (divided by C) of each row of x[n,
/// C]. Also writes mean[n] and rstd[n] = 1 / sqrt(variance + kEpsilon), which backward gets.
template <class S>
void layer_norm_forward(const S* x, const S* gain, const S* bias, S* y, S* mean, S* rstd, i64 n, i64 C) {
  // YOUR CODE BEGIN layer_norm_forward
  (void)x, (void)gain, (void)bias, (void)y, (void)mean, (void)rstd, (void)n, (void)C;
  LAB_TODO("normalise each row to mean 0 and variance 1, then apply gain and bias");
  // YOUR CODE END
}

/// Given dy[n, C] = dloss/dy: writes dx[n, C], adds to dgain[C] and dbias[C]. With h = (x - mean) * rstd and
/// e = dy * gain, both of one row: dx = rstd * (e - average(e) - h * average(e * h)).
template <class S>
void layer_norm_backward(const S* dy, const S* x, const S* gain, const S* mean, const S* rstd, S* dx,
                         S* dgain, S* dbias, i64 n, i64 C) {
  // YOUR CODE BEGIN layer_norm_backward
  (void)dy, (void)x, (void)gain, (void)mean, (void)rstd, (void)dx, (void)dgain, (void)dbias;
  (void)n, (void)C;
  LAB_TODO("dx of each row; add to dgain and dbias over all rows");
  // YOUR CODE END
}

/// B sequences of T tokens, H heads of D channels. Where things begin:
struct AttentionShape {
  i64 B, T, H, D;
  /// q of token t of sequence b, head h: D numbers, then D of k, then D of v. Columns are (head, q|k|v, D).
  i64 qkv(i64 b, i64 h, i64 t) const { return ((b * T + t) * H + h) * 3 * D; }
  /// D numbers
  i64 y(i64 b, i64 h, i64 t) const { return ((b * T + t) * H + h) * D; }
  /// T weights, one for each token s
  i64 prob(i64 b, i64 h, i64 t) const { return ((b * H + h) * T + t) * T; }
};

/// prob[t, s] = softmax over s <= t of q_t . k_s / sqrt(D), and 0 for s > t;  y_t = sum over s of prob[t, s]
/// v_s. Subtract each row's largest score before exp: scores of 1e4 must not overflow.
template <class S>
void attention_forward(const S* qkv, S* prob, S* y, const AttentionShape& at) {
  // YOUR CODE BEGIN attention_forward
  (void)qkv, (void)prob, (void)y, (void)at;
  LAB_TODO("scores, causal softmax, weighted sum of values");
  // YOUR CODE END
}

/// Given dy: writes dqkv, in the columns of qkv. For each t: dprob_s = dy_t . v_s;
/// dscore_s = prob_s (dprob_s - sum over r of prob_r dprob_r); then q, k and v of each s <= t get their
/// share.
template <class S>
void attention_backward(const S* dy, const S* qkv, const S* prob, S* dqkv, const AttentionShape& at) {
  // YOUR CODE BEGIN attention_backward
  (void)dy, (void)qkv, (void)prob, (void)dqkv, (void)at;
  LAB_TODO("through the weighted sum, the softmax and the scores, back to q, k and v");
  // YOUR CODE END
}

/// prob[n, V] = softmax of each row of logits[n, V] (largest logit subtracted first). Returns scale * the sum
/// of -log prob[target] over the rows whose target is not -1; scale is 1 / (tokens of the whole step), so
/// apply it once. Take the logarithm of the row's sum, not of prob: prob can round to 0, and the loss stays
/// finite.
template <class S>
double cross_entropy_forward(const S* logits, const int* targets, double scale, S* prob, i64 n, i64 V) {
  // YOUR CODE BEGIN cross_entropy_forward
  (void)logits, (void)targets, (void)scale, (void)prob, (void)n, (void)V;
  LAB_TODO("softmax, and the scaled sum of -log prob[target]");
  // YOUR CODE END
}

/// Writes dlogits[n, V], the gradient of what cross_entropy_forward returns. Rows with target -1 get zeros.
template <class S>
void cross_entropy_backward(const S* prob, const int* targets, double scale, S* dlogits, i64 n, i64 V) {
  // YOUR CODE BEGIN cross_entropy_backward
  (void)prob, (void)targets, (void)scale, (void)dlogits, (void)n, (void)V;
  LAB_TODO("the gradient of the loss by each logit");
  // YOUR CODE END
}

}  // namespace shardlings
