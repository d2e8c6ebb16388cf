// Averages where a sum is wanted: the result is as many times too small as there are ranks.
// MUTANT BEGIN sum_of_squares
  const float* x = mine.data<float>();
  double local = 0;
  for (i64 i = 0; i < mine.numel(); ++i) local += static_cast<double>(x[i]) * x[i];
  Tensor total(rank.memory, Category::communication, DType::f64, {1});
  total.set(0, local);
  rank.world().all_reduce(total, Reduce::average).wait();
  return total.get(0);
// MUTANT END
