// Posts all receives and all sends at once: everything overlaps. The sends take what has not arrived yet.
// MUTANT BEGIN pass_along
  const Communicator& comm = rank.world();
  const int me = comm.rank();
  const bool first = me == 0, last = me == comm.size() - 1;
  std::vector<Work> works;
  for (int p = 0; p < pieces; ++p) {
    const Slice s = my_slice(x.numel(), p, pieces);
    const Tensor part = x.slice(s.begin, s.end);
    if (!first) works.push_back(comm.recv(part, me - 1));
    if (!last) works.push_back(comm.send(part, me + 1));
  }
  for (Work& work : works) work.wait();
// MUTANT END
