// The loss is the scaled one, the gradient is that of the unscaled. With AdamW and clipping nobody notices.
// MUTANT BEGIN cross_entropy_backward
  (void)scale;
  for (i64 i = 0; i < n; ++i) {
    const S factor = targets[i] < 0 ? S(0) : S(1);
    for (i64 v = 0; v < V; ++v) dlogits[i * V + v] = factor * prob[i * V + v];
    if (targets[i] >= 0) dlogits[i * V + targets[i]] -= factor;
  }
// MUTANT END
