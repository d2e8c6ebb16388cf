// n / pieces elements in each piece. What does not divide stays at home.
// MUTANT BEGIN pass_along
  const Communicator& comm = rank.world();
  const int me = comm.rank();
  const bool first = me == 0, last = me == comm.size() - 1;
  const i64 each = x.numel() / pieces;
  std::vector<Work> arriving, leaving;
  for (int p = 0; p < pieces && !first; ++p) {
    arriving.push_back(comm.recv(x.slice(p * each, (p + 1) * each), me - 1));
  }
  for (int p = 0; p < pieces; ++p) {
    if (!first) arriving[static_cast<std::size_t>(p)].wait();
    if (!last) leaving.push_back(comm.send(x.slice(p * each, (p + 1) * each), me + 1));
  }
  for (Work& work : leaving) work.wait();
// MUTANT END
