// Cuts from the first unit to the last, as the model is written: the first bucket is complete when
// backward is over.
// MUTANT BEGIN cut_buckets
  std::vector<Bucket> buckets;
  i64 begin = 0;
  for (std::size_t u = 0; u < offsets.size(); ++u) {
    const i64 end = u + 1 < offsets.size() ? offsets[u + 1] : size;
    if (end - begin < least && end < size) continue;
    if (begin < end) buckets.push_back({begin, end});
    begin = end;
  }
  return buckets;
// MUTANT END
