// Shuffles with the run's seed alone: nobody told the sampler the epoch.
// MUTANT BEGIN my_samples
  const std::uint64_t key = key_of({epoch.seed});
  std::vector<i64> mine;
  for (i64 place = begin + rank; place < end; place += ranks)
    mine.push_back(data::shuffled(place, epoch.samples, key));
  return mine;
// MUTANT END
