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
  // SOLUTION BEGIN layer_norm_forward
  for (i64 i = 0; i < n; ++i) {
    const S* row = x + i * C;
    S sum = 0, squares = 0;
    for (i64 k = 0; k < C; ++k) sum += row[k];
    mean[i] = sum / S(C);
    for (i64 k = 0; k < C; ++k) squares += (row[k] - mean[i]) * (row[k] - mean[i]);
    rstd[i] = S(1) / std::sqrt(squares / S(C) + S(kEpsilon));
    for (i64 k = 0; k < C; ++k) y[i * C + k] = (row[k] - mean[i]) * rstd[i] * gain[k] + bias[k];
  }
  // SOLUTION STUB (void)x, (void)gain, (void)bias, (void)y, (void)mean, (void)rstd, (void)n, (void)C;
  // SOLUTION STUB LAB_TODO("normalise each row to mean 0 and variance 1, then apply gain and bias");
  // SOLUTION END
}

/// Given dy[n, C] = dloss/dy: writes dx[n, C], adds to dgain[C] and dbias[C]. With h = (x - mean) * rstd and
/// e = dy * gain, both of one row: dx = rstd * (e - average(e) - h * average(e * h)).
template <class S>
void layer_norm_backward(const S* dy, const S* x, const S* gain, const S* mean, const S* rstd, S* dx,
                         S* dgain, S* dbias, i64 n, i64 C) {
  // SOLUTION BEGIN layer_norm_backward
  for (i64 i = 0; i < n; ++i) {
    const S *row = x + i * C, *drow = dy + i * C;
    S sum = 0, dot = 0;
    for (i64 k = 0; k < C; ++k) {
      const S h = (row[k] - mean[i]) * rstd[i];
      dgain[k] += drow[k] * h;
      dbias[k] += drow[k];
      sum += drow[k] * gain[k];
      dot += drow[k] * gain[k] * h;
    }
    for (i64 k = 0; k < C; ++k) {
      const S h = (row[k] - mean[i]) * rstd[i];
      dx[i * C + k] = rstd[i] * (drow[k] * gain[k] - sum / S(C) - h * dot / S(C));
    }
  }
  // SOLUTION STUB (void)dy, (void)x, (void)gain, (void)mean, (void)rstd, (void)dx, (void)dgain, (void)dbias;
  // SOLUTION STUB (void)n, (void)C;
  // SOLUTION STUB LAB_TODO("dx of each row; add to dgain and dbias over all rows");
  // SOLUTION END
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
  // SOLUTION BEGIN attention_forward
  const i64 D = at.D;
  const S scale = S(1) / std::sqrt(S(D));
  for (i64 b = 0; b < at.B; ++b) {
    for (i64 h = 0; h < at.H; ++h) {
      for (i64 t = 0; t < at.T; ++t) {
        const S* q = qkv + at.qkv(b, h, t);
        S *p = prob + at.prob(b, h, t), *out = y + at.y(b, h, t);
        for (i64 s = 0; s <= t; ++s) {
          const S* k = qkv + at.qkv(b, h, s) + D;
          p[s] = 0;
          for (i64 d = 0; d < D; ++d) p[s] += q[d] * k[d] * scale;
        }
        const S top = *std::max_element(p, p + t + 1);
        S sum = 0;
        for (i64 s = 0; s <= t; ++s) sum += p[s] = std::exp(p[s] - top);
        std::fill(p + t + 1, p + at.T, S(0));
        std::fill(out, out + D, S(0));
        for (i64 s = 0; s <= t; ++s) {
          const S* v = qkv + at.qkv(b, h, s) + 2 * D;
          p[s] /= sum;
          for (i64 d = 0; d < D; ++d) out[d] += p[s] * v[d];
        }
      }
    }
  }
  // SOLUTION STUB (void)qkv, (void)prob, (void)y, (void)at;
  // SOLUTION STUB LAB_TODO("scores, causal softmax, weighted sum of values");
  // SOLUTION END
}

/// Given dy: writes dqkv, in the columns of qkv. For each t: dprob_s = dy_t . v_s;
/// dscore_s = prob_s (dprob_s - sum over r of prob_r dprob_r); then q, k and v of each s <= t get their
/// share.
template <class S>
void attention_backward(const S* dy, const S* qkv, const S* prob, S* dqkv, const AttentionShape& at) {
  // SOLUTION BEGIN attention_backward
  const i64 D = at.D;
  const S scale = S(1) / std::sqrt(S(D));
  std::fill(dqkv, dqkv + at.B * at.T * at.H * 3 * D, S(0));
  for (i64 b = 0; b < at.B; ++b) {
    for (i64 h = 0; h < at.H; ++h) {
      for (i64 t = 0; t < at.T; ++t) {
        const S *q = qkv + at.qkv(b, h, t), *p = prob + at.prob(b, h, t), *dout = dy + at.y(b, h, t);
        S* dq = dqkv + at.qkv(b, h, t);
        const auto dprob = [&](i64 s) {
          const S* v = qkv + at.qkv(b, h, s) + 2 * D;
          S dot = 0;
          for (i64 d = 0; d < D; ++d) dot += dout[d] * v[d];
          return dot;
        };
        S row = 0;
        for (i64 s = 0; s <= t; ++s) row += p[s] * dprob(s);
        for (i64 s = 0; s <= t; ++s) {
          const S* k = qkv + at.qkv(b, h, s) + D;
          S *dk = dqkv + at.qkv(b, h, s) + D, *dv = dk + D;
          const S dscore = p[s] * (dprob(s) - row) * scale;
          for (i64 d = 0; d < D; ++d) {
            dq[d] += dscore * k[d];
            dk[d] += dscore * q[d];
            dv[d] += p[s] * dout[d];
          }
        }
      }
    }
  }
  // SOLUTION STUB (void)dy, (void)qkv, (void)prob, (void)dqkv, (void)at;
  // SOLUTION STUB LAB_TODO("through the weighted sum, the softmax and the scores, back to q, k and v");
  // SOLUTION END
}

/// prob[n, V] = softmax of each row of logits[n, V] (largest logit subtracted first). Returns scale * the sum
/// of -log prob[target] over the rows whose target is not -1; scale is 1 / (tokens of the whole step), so
/// apply it once. Take the logarithm of the row's sum, not of prob: prob can round to 0, and the loss stays
/// finite.
template <class S>
double cross_entropy_forward(const S* logits, const int* targets, double scale, S* prob, i64 n, i64 V) {
  // SOLUTION BEGIN cross_entropy_forward
  double loss = 0;
  for (i64 i = 0; i < n; ++i) {
    const S* row = logits + i * V;
    S* p = prob + i * V;
    const S top = *std::max_element(row, row + V);
    S sum = 0;
    for (i64 v = 0; v < V; ++v) sum += p[v] = std::exp(row[v] - top);
    for (i64 v = 0; v < V; ++v) p[v] /= sum;
    if (targets[i] >= 0) loss += static_cast<double>(std::log(sum) + (top - row[targets[i]]));
  }
  return loss * scale;
  // SOLUTION STUB (void)logits, (void)targets, (void)scale, (void)prob, (void)n, (void)V;
  // SOLUTION STUB LAB_TODO("softmax, and the scaled sum of -log prob[target]");
  // SOLUTION END
}

/// Writes dlogits[n, V], the gradient of what cross_entropy_forward returns. Rows with target -1 get zeros.
template <class S>
void cross_entropy_backward(const S* prob, const int* targets, double scale, S* dlogits, i64 n, i64 V) {
  // SOLUTION BEGIN cross_entropy_backward
  for (i64 i = 0; i < n; ++i) {
    const S factor = targets[i] < 0 ? S(0) : static_cast<S>(scale);
    for (i64 v = 0; v < V; ++v) dlogits[i * V + v] = factor * prob[i * V + v];
    if (targets[i] >= 0) dlogits[i * V + targets[i]] -= factor;
  }
  // SOLUTION STUB (void)prob, (void)targets, (void)scale, (void)dlogits, (void)n, (void)V;
  // SOLUTION STUB LAB_TODO("the gradient of the loss by each logit");
  // SOLUTION END
}

}  // namespace shardlings
