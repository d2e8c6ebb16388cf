// Takes mean and rstd for constants. Each dx is plausible, the loss even falls; but the gradient is another one.
// MUTANT BEGIN layer_norm_backward
  for (i64 i = 0; i < n; ++i) {
    const S *row = x + i * C, *drow = dy + i * C;
    for (i64 k = 0; k < C; ++k) {
      const S h = (row[k] - mean[i]) * rstd[i];
      dgain[k] += drow[k] * h;
      dbias[k] += drow[k];
    }
    for (i64 k = 0; k < C; ++k) {
      dx[i * C + k] = rstd[i] * drow[k] * gain[k];
    }
  }
// MUTANT END
