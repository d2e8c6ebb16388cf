// Reads the result between the call and wait(). When all ranks happen to be fast it is even right.
// MUTANT BEGIN sum_of_squares
  const float* x = mine.data<float>();
  double local = 0;
  for (i64 i = 0; i < mine.numel(); ++i) local += static_cast<double>(x[i]) * x[i];
  Tensor total(rank.memory, Category::communication, DType::f64, {1});
  total.set(0, local);
  Work work = rank.world().all_reduce(total);
  const double sum = total.get(0);
  work.wait();
  return sum;
// MUTANT END
