// Plain least squares. The longest message decides everything, and alpha is what its error leaves over.
// MUTANT BEGIN fit_link
  double n = 0, b_sum = 0, t_sum = 0, bb = 0, bt = 0;
  for (const Timing& timing : timings) {
    const double b = static_cast<double>(timing.bytes), t = timing.seconds;
    n += 1;
    b_sum += b;
    t_sum += t;
    bb += b * b;
    bt += b * t;
  }
  const double slope = (n * bt - b_sum * t_sum) / (n * bb - b_sum * b_sum);
  link.alpha = (t_sum - slope * b_sum) / n;
  link.bandwidth = 1 / slope;
// MUTANT END
