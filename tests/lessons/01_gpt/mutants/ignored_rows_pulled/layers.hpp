// Rows with target -1 are not counted in the loss, but their probabilities flow back all the same.
// MUTANT BEGIN cross_entropy_backward
  for (i64 i = 0; i < n; ++i) {
    const S factor = static_cast<S>(scale);
    for (i64 v = 0; v < V; ++v) dlogits[i * V + v] = factor * prob[i * V + v];
    if (targets[i] >= 0) dlogits[i * V + targets[i]] -= factor;
  }
// MUTANT END
