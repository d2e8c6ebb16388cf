// Waits until all has arrived, and then sends it on, neatly, in pieces. Values and bytes are right; the pieces gain nothing.
// MUTANT BEGIN pass_along
  const Communicator& comm = rank.world();
  const int me = comm.rank();
  const bool first = me == 0, last = me == comm.size() - 1;
  std::vector<Tensor> parts;
  for (int p = 0; p < pieces; ++p) {
    const Slice s = my_slice(x.numel(), p, pieces);
    parts.push_back(x.slice(s.begin, s.end));
  }
  std::vector<Work> arriving, leaving;
  if (!first) {
    for (const Tensor& part : parts) arriving.push_back(comm.recv(part, me - 1));
  }
  for (Work& work : arriving) work.wait();
  if (!last) {
    for (const Tensor& part : parts) leaving.push_back(comm.send(part, me + 1));
  }
  for (Work& work : leaving) work.wait();
// MUTANT END
