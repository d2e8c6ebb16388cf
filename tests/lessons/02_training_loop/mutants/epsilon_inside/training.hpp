// sqrt(v + eps) in place of sqrt(v) + eps: weights with small gradients hardly move.
// MUTANT BEGIN adamw
  ++steps;
  const auto t = static_cast<double>(steps);
  const S b1 = S(c.beta1), b2 = S(c.beta2);
  const S correct1 = S(1 - std::pow(c.beta1, t)), correct2 = S(1 - std::pow(c.beta2, t));
  for (const Segment& segment : segments) {
    const S keep = S(1 - (segment.decay() ? rate * c.decay : 0));
    for (i64 i = segment.begin; i < segment.end; ++i) {
      const S gradient = S(scale) * g[i];
      m[i] = b1 * m[i] + (1 - b1) * gradient;
      v[i] = b2 * v[i] + (1 - b2) * gradient * gradient;
      w[i] = keep * w[i] - S(rate) * (m[i] / correct1) / std::sqrt(v[i] / correct2 + S(c.eps));
    }
  }
// MUTANT END
