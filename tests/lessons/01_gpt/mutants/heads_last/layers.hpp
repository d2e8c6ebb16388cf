// Reads the columns as (q|k|v, head, D), the order of GPT-2's own files. Forward and backward agree with each other,
// finite differences are perfect, the model trains as well: but it is another model, and loaded weights are shuffled.
// MUTANT BEGIN attention_forward
  const i64 D = at.D;
  const S scale = S(1) / std::sqrt(S(D));
  for (i64 b = 0; b < at.B; ++b) {
    for (i64 h = 0; h < at.H; ++h) {
      for (i64 t = 0; t < at.T; ++t) {
        const S* q = qkv + at.qkv(b, 0, t) + h * D;
        S *p = prob + at.prob(b, h, t), *out = y + at.y(b, h, t);
        for (i64 s = 0; s <= t; ++s) {
          const S* k = qkv + at.qkv(b, 0, s) + (at.H + h) * D;
          p[s] = 0;
          for (i64 d = 0; d < D; ++d) p[s] += q[d] * k[d] * scale;
        }
        const S top = *std::max_element(p, p + t + 1);
        S sum = 0;
        for (i64 s = 0; s <= t; ++s) sum += p[s] = std::exp(p[s] - top);
        std::fill(p + t + 1, p + at.T, S(0));
        std::fill(out, out + D, S(0));
        for (i64 s = 0; s <= t; ++s) {
          const S* v = qkv + at.qkv(b, 0, s) + (2 * at.H + h) * D;
          p[s] /= sum;
          for (i64 d = 0; d < D; ++d) out[d] += p[s] * v[d];
        }
      }
    }
  }
// MUTANT END
// MUTANT BEGIN attention_backward
  const i64 D = at.D;
  const S scale = S(1) / std::sqrt(S(D));
  std::fill(dqkv, dqkv + at.B * at.T * at.H * 3 * D, S(0));
  for (i64 b = 0; b < at.B; ++b) {
    for (i64 h = 0; h < at.H; ++h) {
      for (i64 t = 0; t < at.T; ++t) {
        const S *q = qkv + at.qkv(b, 0, t) + h * D, *p = prob + at.prob(b, h, t), *dout = dy + at.y(b, h, t);
        S* dq = dqkv + at.qkv(b, 0, t) + h * D;
        const auto dprob = [&](i64 s) {
          const S* v = qkv + at.qkv(b, 0, s) + (2 * at.H + h) * D;
          S dot = 0;
          for (i64 d = 0; d < D; ++d) dot += dout[d] * v[d];
          return dot;
        };
        S row = 0;
        for (i64 s = 0; s <= t; ++s) row += p[s] * dprob(s);
        for (i64 s = 0; s <= t; ++s) {
          const S* k = qkv + at.qkv(b, 0, s) + (at.H + h) * D;
          S *dk = dqkv + at.qkv(b, 0, s) + (at.H + h) * D, *dv = dk + at.H * D;
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
// MUTANT END
