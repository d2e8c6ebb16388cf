// Forgets that the other ranks have something to add. On one rank it is perfect.
// MUTANT BEGIN sum_of_squares
  (void)rank;
  const float* x = mine.data<float>();
  double local = 0;
  for (i64 i = 0; i < mine.numel(); ++i) local += static_cast<double>(x[i]) * x[i];
  return local;
// MUTANT END
