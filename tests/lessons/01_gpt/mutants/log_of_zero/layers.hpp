// Takes the logarithm of the probability, which has rounded to 0 for an unlikely target: the loss is infinite.
// MUTANT BEGIN cross_entropy_forward
  double loss = 0;
  for (i64 i = 0; i < n; ++i) {
    const S* row = logits + i * V;
    S* p = prob + i * V;
    const S top = *std::max_element(row, row + V);
    S sum = 0;
    for (i64 v = 0; v < V; ++v) sum += p[v] = std::exp(row[v] - top);
    for (i64 v = 0; v < V; ++v) p[v] /= sum;
    if (targets[i] >= 0) loss -= static_cast<double>(std::log(p[targets[i]]));
  }
  return loss * scale;
// MUTANT END
