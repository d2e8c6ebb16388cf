// Begins with the own block. All sums are right, and each stands one rank too far.
// MUTANT BEGIN ring_reduce_scatter
  const int n = comm.size(), me = comm.rank();
  const int right = (me + 1) % n, left = (me - 1 + n) % n;
  const auto block = [&](int r) { return part(x, blocks[static_cast<std::size_t>((r + 2 * n) % n)]); };
  i64 largest = 0;
  for (const Slice& b : blocks) largest = std::max(largest, b.size());
  const Tensor scratch(rank.memory, Category::communication, x.dtype(), {largest});
  for (int step = 0; step < n - 1; ++step) {
    const Tensor leaving = block(me - step), passing = block(me - step - 1);
    const Tensor arrived = scratch.slice(0, passing.numel());
    send_recv(comm, leaving, right, arrived, left);
    add_into(passing, arrived);
  }
// MUTANT END
