// Receives into a copy of the whole buffer, because then the same places can be used. Every value is right.
// MUTANT BEGIN ring_reduce_scatter
  const int n = comm.size(), me = comm.rank();
  const int right = (me + 1) % n, left = (me - 1 + n) % n;
  const auto at = [&](int r) { return blocks[static_cast<std::size_t>((r + 2 * n) % n)]; };
  const Tensor scratch(rank.memory, Category::communication, x.dtype(), x.shape());
  for (int step = 1; step < n; ++step) {
    send_recv(comm, part(x, at(me - step)), right, part(scratch, at(me - step - 1)), left);
    add_into(part(x, at(me - step - 1)), part(scratch, at(me - step - 1)));
  }
// MUTANT END
