// A rank with nothing to add returns at once. The others wait for it in the all_reduce: the classic hang.
// MUTANT BEGIN sum_of_squares
  if (mine.numel() == 0) return 0;
  const float* x = mine.data<float>();
  double local = 0;
  for (i64 i = 0; i < mine.numel(); ++i) local += static_cast<double>(x[i]) * x[i];
  Tensor total(rank.memory, Category::communication, DType::f64, {1});
  total.set(0, local);
  rank.world().all_reduce(total).wait();
  return total.get(0);
// MUTANT END
