// Rank r begins at r times its own count. Right while all ranks have the same number of rows.
// MUTANT BEGIN row_blocks
  std::vector<Slice> blocks;
  i64 r = 0;
  for (const int count : rows) {
    const i64 each = static_cast<i64>(count) * width;
    blocks.push_back({r * each, (r + 1) * each});
    ++r;
  }
  return blocks;
// MUTANT END
