// Deals blocks: the union is right, but no step has the samples that one rank would have had.
// MUTANT BEGIN my_samples
  const std::uint64_t key = key_of({epoch.seed, static_cast<std::uint64_t>(epoch.number)});
  const i64 n = end - begin;
  std::vector<i64> mine;
  for (i64 place = begin + n * rank / ranks; place < begin + n * (rank + 1) / ranks; ++place)
    mine.push_back(data::shuffled(place, epoch.samples, key));
  return mine;
// MUTANT END
