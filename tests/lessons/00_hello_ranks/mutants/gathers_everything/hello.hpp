// Collects the whole vector on every rank and adds there. Every value is right, on any number of ranks; only memory
// and traffic show that nothing was gained by having ranks at all.
// MUTANT BEGIN sum_of_squares
  std::vector<i64> counts;
  for (int r = 0; r < rank.size(); ++r) {
    Tensor count(rank.memory, Category::communication, DType::f64, {1});
    count.set(0, r == rank.rank() ? static_cast<double>(mine.numel()) : 0.0);
    rank.world().all_reduce(count).wait();
    counts.push_back(static_cast<i64>(count.get(0)));
  }
  i64 n = 0;
  for (i64 count : counts) n += count;
  Tensor all(rank.memory, Category::communication, DType::f32, {n});
  rank.world().all_gather(mine, all, counts).wait();
  double sum = 0;
  for (i64 i = 0; i < n; ++i) sum += all.get(i) * all.get(i);
  return sum;
// MUTANT END
