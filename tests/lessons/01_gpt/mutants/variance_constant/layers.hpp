// Remembers that the mean depends on x, and forgets that the variance does.
// MUTANT BEGIN layer_norm_backward
  for (i64 i = 0; i < n; ++i) {
    const S *row = x + i * C, *drow = dy + i * C;
    S sum = 0;
    for (i64 k = 0; k < C; ++k) {
      const S h = (row[k] - mean[i]) * rstd[i];
      dgain[k] += drow[k] * h;
      dbias[k] += drow[k];
      sum += drow[k] * gain[k];
    }
    for (i64 k = 0; k < C; ++k) {
      dx[i * C + k] = rstd[i] * (drow[k] * gain[k] - sum / S(C));
    }
  }
// MUTANT END
