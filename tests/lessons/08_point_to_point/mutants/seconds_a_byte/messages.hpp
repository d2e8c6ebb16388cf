// Takes the slope for the bandwidth. It is seconds a byte, not bytes a second.
// MUTANT BEGIN fit_link
  double w_sum = 0, wb = 0, wt = 0, wbb = 0, wbt = 0;
  for (const Timing& timing : timings) {
    const double b = static_cast<double>(timing.bytes), t = timing.seconds, w = 1 / (t * t);
    w_sum += w;
    wb += w * b;
    wt += w * t;
    wbb += w * b * b;
    wbt += w * b * t;
  }
  link.bandwidth = (w_sum * wbt - wb * wt) / (w_sum * wbb - wb * wb);
  link.alpha = (wt - link.bandwidth * wb) / w_sum;
// MUTANT END
