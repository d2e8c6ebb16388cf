// Sends its own block to every other rank. The same number of messages, and the same bytes while blocks are equal; on a
// real ring of cables most of them travel far.
// MUTANT BEGIN ring_all_gather
  const int n = comm.size(), me = comm.rank();
  const auto block = [&](int r) { return part(out, blocks[static_cast<std::size_t>(r % n)]); };
  if (in.raw() != block(me).raw()) block(me).copy_from(in);
  for (int far = 1; far < n; ++far) {
    send_recv(comm, block(me), (me + far) % n, block(me - far + n), (me - far + n) % n);
  }
// MUTANT END
