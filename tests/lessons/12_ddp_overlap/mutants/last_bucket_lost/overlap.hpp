// Closes a bucket when it is full, and forgets the one that never became full: the embedding, and
// so the tied head.
// MUTANT BEGIN cut_buckets
  std::vector<Bucket> buckets;
  i64 end = size;
  for (std::size_t u = offsets.size(); u-- > 0;) {
    if (end - offsets[u] < least) continue;
    if (offsets[u] < end) buckets.push_back({offsets[u], end});
    end = offsets[u];
  }
  return buckets;
// MUTANT END
