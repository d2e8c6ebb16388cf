// Never copies `in` to its place: right in place, and only there.
// MUTANT BEGIN ring_all_gather
  (void)in;
  const int n = comm.size(), me = comm.rank();
  const auto block = [&](int r) { return part(out, blocks[static_cast<std::size_t>((r + n) % n)]); };
  for (int step = 0; step < n - 1; ++step) {
    send_recv(comm, block(me - step), (me + 1) % n, block(me - step - 1), (me - 1 + n) % n);
  }
// MUTANT END
