// Divides by C - 1, as torch.var does unless told otherwise. torch.nn.LayerNorm divides by C.
// MUTANT BEGIN layer_norm_forward
  for (i64 i = 0; i < n; ++i) {
    const S* row = x + i * C;
    S sum = 0, squares = 0;
    for (i64 k = 0; k < C; ++k) sum += row[k];
    mean[i] = sum / S(C);
    for (i64 k = 0; k < C; ++k) squares += (row[k] - mean[i]) * (row[k] - mean[i]);
    rstd[i] = S(1) / std::sqrt(squares / S(C - 1) + S(kEpsilon));
    for (i64 k = 0; k < C; ++k) y[i * C + k] = (row[k] - mean[i]) * rstd[i] * gain[k] + bias[k];
  }
// MUTANT END
