// n / ranks samples for every rank, so that all have the same number; what is left is nobody's.
// MUTANT BEGIN my_samples
  const std::uint64_t key = key_of({epoch.seed, static_cast<std::uint64_t>(epoch.number)});
  std::vector<i64> mine;
  for (i64 k = 0; k < (end - begin) / ranks; ++k)
    mine.push_back(data::shuffled(begin + rank + k * ranks, epoch.samples, key));
  return mine;
// MUTANT END
