// Receives a piece, sends it on, receives the next. While it sends, nothing arrives: half of each link is idle.
// MUTANT BEGIN pass_along
  const Communicator& comm = rank.world();
  const int me = comm.rank();
  const bool first = me == 0, last = me == comm.size() - 1;
  for (int p = 0; p < pieces; ++p) {
    const Slice s = my_slice(x.numel(), p, pieces);
    const Tensor part = x.slice(s.begin, s.end);
    if (!first) comm.recv(part, me - 1).wait();
    if (!last) comm.send(part, me + 1).wait();
  }
// MUTANT END
