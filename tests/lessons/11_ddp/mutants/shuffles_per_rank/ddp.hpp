// Every rank shuffles with a seed of its own: some samples are taken twice, others never.
// MUTANT BEGIN my_samples
  const std::uint64_t key =
      key_of({epoch.seed + static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(epoch.number)});
  std::vector<i64> mine;
  for (i64 place = begin + rank; place < end; place += ranks)
    mine.push_back(data::shuffled(place, epoch.samples, key));
  return mine;
// MUTANT END
