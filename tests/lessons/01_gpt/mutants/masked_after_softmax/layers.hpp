// Takes the softmax over all T tokens and sets the future's weights to 0 afterwards. The future is still in the
// denominator, where a model can read it.
// MUTANT BEGIN attention_forward
  const i64 D = at.D;
  const S scale = S(1) / std::sqrt(S(D));
  for (i64 b = 0; b < at.B; ++b) {
    for (i64 h = 0; h < at.H; ++h) {
      for (i64 t = 0; t < at.T; ++t) {
        const S* q = qkv + at.qkv(b, h, t);
        S *p = prob + at.prob(b, h, t), *out = y + at.y(b, h, t);
        for (i64 s = 0; s < at.T; ++s) {
          const S* k = qkv + at.qkv(b, h, s) + D;
          p[s] = 0;
          for (i64 d = 0; d < D; ++d) p[s] += q[d] * k[d] * scale;
        }
        const S top = *std::max_element(p, p + at.T);
        S sum = 0;
        for (i64 s = 0; s < at.T; ++s) sum += p[s] = std::exp(p[s] - top);
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
// MUTANT END
