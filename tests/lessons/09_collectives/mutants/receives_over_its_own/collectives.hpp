// Receives right into its own block, and so loses what it had to add.
// MUTANT BEGIN ring_reduce_scatter
  (void)rank;
  const int n = comm.size(), me = comm.rank();
  const int right = (me + 1) % n, left = (me - 1 + n) % n;
  const auto block = [&](int r) { return part(x, blocks[static_cast<std::size_t>((r + 2 * n) % n)]); };
  for (int step = 1; step < n; ++step) send_recv(comm, block(me - step), right, block(me - step - 1), left);
// MUTANT END
