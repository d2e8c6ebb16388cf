// Right up to 2147483647 elements. Then the count wraps, as it did in many a library that grew up with small models.
// MUTANT BEGIN my_slice
  const int count = static_cast<int>(n);
  const int share = count / size;
  const int left_over = count % size;
  const i64 begin = static_cast<i64>(rank) * share + std::min(rank, left_over);
  return {begin, begin + share + (rank < left_over ? 1 : 0)};
// MUTANT END
