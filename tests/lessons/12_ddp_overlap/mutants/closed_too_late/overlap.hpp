// Closes a bucket when it holds more than enough, not when it holds enough.
// MUTANT BEGIN cut_buckets
  std::vector<Bucket> buckets;
  i64 end = size;
  for (std::size_t u = offsets.size(); u-- > 0;) {
    if (end - offsets[u] <= least && u > 0) continue;
    if (offsets[u] < end) buckets.push_back({offsets[u], end});
    end = offsets[u];
  }
  return buckets;
// MUTANT END
