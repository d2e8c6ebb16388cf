// The mean of the ranks' means: right while all ranks have the same number.
// MUTANT BEGIN mean_over
  const double mine = count > 0 ? sum / static_cast<double>(count) : 0;
  return sums_over(rank, comm, mine, 0).first / comm.size();
// MUTANT END
