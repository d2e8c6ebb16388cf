// A chain is not a ring: here the last rank sends on to rank 0, which does not listen. Buffered, nobody notices.
// MUTANT BEGIN pass_along
  const Communicator& comm = rank.world();
  const int me = comm.rank(), n = comm.size();
  std::vector<Tensor> parts;
  for (int p = 0; p < pieces; ++p) {
    const Slice s = my_slice(x.numel(), p, pieces);
    parts.push_back(x.slice(s.begin, s.end));
  }
  std::vector<Work> arriving, leaving;
  if (me > 0) {
    for (const Tensor& part : parts) arriving.push_back(comm.recv(part, me - 1));
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (me > 0) arriving[p].wait();
    leaving.push_back(comm.send(parts[p], (me + 1) % n));
  }
  for (Work& work : leaving) work.wait();
// MUTANT END
