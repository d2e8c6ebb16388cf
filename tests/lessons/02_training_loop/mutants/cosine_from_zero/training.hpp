// Measures the cosine from step 0: the rate drops at the moment the warm-up ends.
// MUTANT BEGIN learning_rate
  const auto part = [](i64 a, i64 b) { return static_cast<double>(a) / static_cast<double>(b); };
  if (step < s.warmup) return s.max * part(step + 1, s.warmup + 1);
  if (step >= s.steps) return s.min;
  const double p = part(step, s.steps);
  return s.min + (s.max - s.min) * (1 + std::cos(std::numbers::pi * p)) / 2;
// MUTANT END
