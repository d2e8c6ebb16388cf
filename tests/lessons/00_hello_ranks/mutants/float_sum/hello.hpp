// Squares and adds in float. The first seven digits are right.
// MUTANT BEGIN sum_of_squares
  const float* x = mine.data<float>();
  float local = 0;
  for (i64 i = 0; i < mine.numel(); ++i) local += x[i] * x[i];
  Tensor total(rank.memory, Category::communication, DType::f64, {1});
  total.set(0, static_cast<double>(local));
  rank.world().all_reduce(total).wait();
  return total.get(0);
// MUTANT END
