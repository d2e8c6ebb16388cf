// Scales the scores by 1 / sqrt(D) in forward and forgets it in backward: dq and dk are sqrt(D) times too large.
// MUTANT BEGIN attention_backward
  const i64 D = at.D;
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
          const S dscore = p[s] * (dprob(s) - row);
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
