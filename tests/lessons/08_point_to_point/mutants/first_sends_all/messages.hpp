// Rank 0 sends to everybody itself. Every value is right; its link carries all there is, and the others' nothing.
// MUTANT BEGIN pass_along
  const Communicator& comm = rank.world();
  const int me = comm.rank();
  std::vector<Work> works;
  for (int p = 0; p < pieces; ++p) {
    const Slice s = my_slice(x.numel(), p, pieces);
    const Tensor part = x.slice(s.begin, s.end);
    if (me > 0) works.push_back(comm.recv(part, 0));
    for (int to = 1; me == 0 && to < comm.size(); ++to) works.push_back(comm.send(part, to));
  }
  for (Work& work : works) work.wait();
// MUTANT END
