// Sets the gradient of the gain to this micro-batch's sum in place of adding it. Right as long as a step has one
// micro-batch.
// MUTANT BEGIN layer_norm_backward
  std::fill(dgain, dgain + C, S(0));
  for (i64 i = 0; i < n; ++i) {
    const S *row = x + i * C, *drow = dy + i * C;
    S sum = 0, dot = 0;
    for (i64 k = 0; k < C; ++k) {
      const S h = (row[k] - mean[i]) * rstd[i];
      dgain[k] += drow[k] * h;
      dbias[k] += drow[k];
      sum += drow[k] * gain[k];
      dot += drow[k] * gain[k] * h;
    }
    for (i64 k = 0; k < C; ++k) {
      const S h = (row[k] - mean[i]) * rstd[i];
      dx[i * C + k] = rstd[i] * (drow[k] * gain[k] - sum / S(C) - h * dot / S(C));
    }
  }
// MUTANT END
