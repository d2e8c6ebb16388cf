// Squares and sums in the gradient's own type: right for small models and small gradients.
// MUTANT BEGIN global_norm
  S sum = 0;
  for (i64 i = 0; i < n; ++i) sum += g[i] * g[i];
  return static_cast<double>(std::sqrt(sum));
// MUTANT END
