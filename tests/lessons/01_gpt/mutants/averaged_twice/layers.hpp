// Divides by the number of rows although the scale already is 1 / tokens. The loss is tiny, AdamW hides the rest.
// MUTANT BEGIN cross_entropy_forward
  double loss = 0;
  for (i64 i = 0; i < n; ++i) {
    const S* row = logits + i * V;
    S* p = prob + i * V;
    const S top = *std::max_element(row, row + V);
    S sum = 0;
    for (i64 v = 0; v < V; ++v) sum += p[v] = std::exp(row[v] - top);
    for (i64 v = 0; v < V; ++v) p[v] /= sum;
    // log of the sum, not of prob: prob may have rounded to 0
    if (targets[i] >= 0) loss += static_cast<double>(std::log(sum) + (top - row[targets[i]]));
  }
  return loss * scale / static_cast<double>(n);
// MUTANT END
// MUTANT BEGIN cross_entropy_backward
  for (i64 i = 0; i < n; ++i) {
    const S factor = targets[i] < 0 ? S(0) : static_cast<S>(scale / static_cast<double>(n));
    for (i64 v = 0; v < V; ++v) dlogits[i * V + v] = factor * prob[i * V + v];
    if (targets[i] >= 0) dlogits[i * V + targets[i]] -= factor;
  }
// MUTANT END
