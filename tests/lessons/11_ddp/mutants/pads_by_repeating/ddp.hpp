// Pads shares to the same length by beginning again at the front, as a distributed sampler does by
// default.
// MUTANT BEGIN my_samples
  const std::uint64_t key = key_of({epoch.seed, static_cast<std::uint64_t>(epoch.number)});
  const i64 n = end - begin, each = (n + ranks - 1) / ranks;
  std::vector<i64> mine;
  for (i64 k = 0; k < each; ++k)
    mine.push_back(data::shuffled(begin + (rank + k * ranks) % n, epoch.samples, key));
  return mine;
// MUTANT END
