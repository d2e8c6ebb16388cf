// Sends the whole buffer around the ring, n - 1 times, and adds all of it. Values are right; n times the bytes.
// MUTANT BEGIN ring_reduce_scatter
  const int n = comm.size(), me = comm.rank();
  const auto whole = [&] { return Tensor(rank.memory, Category::communication, x.dtype(), x.shape()); };
  Tensor leaving = whole(), arrived = whole();
  leaving.copy_from(x);
  for (int step = 1; step < n; ++step) {
    send_recv(comm, leaving, (me + 1) % n, arrived, (me - 1 + n) % n);
    for (const Slice& b : blocks) add_into(part(x, b), part(arrived, b));
    std::swap(leaving, arrived);
  }
// MUTANT END
