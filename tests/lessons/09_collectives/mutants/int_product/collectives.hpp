// Multiplies two ints, as they come. Right until a table has more than 2147483647 elements; then places wrap.
// MUTANT BEGIN row_blocks
  std::vector<Slice> blocks;
  i64 begin = 0;
  for (const int count : rows) {
    const auto elements = static_cast<int>(static_cast<unsigned>(count) * static_cast<unsigned>(width));
    blocks.push_back({begin, begin + elements});
    begin += elements;
  }
  return blocks;
// MUTANT END
