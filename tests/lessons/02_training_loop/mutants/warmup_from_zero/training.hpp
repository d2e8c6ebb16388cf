// Starts the line at 0: all of the first step's work is thrown away, and no curve shows it.
// MUTANT BEGIN learning_rate
  const auto part = [](i64 a, i64 b) { return static_cast<double>(a) / static_cast<double>(b); };
  if (step < s.warmup) return s.max * part(step, s.warmup);
  if (step >= s.steps) return s.min;
  const double p = part(step - s.warmup, s.steps - s.warmup);
  return s.min + (s.max - s.min) * (1 + std::cos(std::numbers::pi * p)) / 2;
// MUTANT END
