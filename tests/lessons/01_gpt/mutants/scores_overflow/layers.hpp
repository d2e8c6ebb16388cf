// exp of the scores as they are. Right until a score passes 88 in float, which a long training reaches.
// MUTANT BEGIN attention_forward
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
        S sum = 0;
        for (i64 s = 0; s <= t; ++s) sum += p[s] = std::exp(p[s]);
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
