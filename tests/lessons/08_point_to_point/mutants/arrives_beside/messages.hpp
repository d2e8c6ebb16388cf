// Receives each piece into memory of its own and copies it to its place. Every value is right; the memory for x doubles.
// MUTANT BEGIN pass_along
  const Communicator& comm = rank.world();
  const int me = comm.rank();
  const bool first = me == 0, last = me == comm.size() - 1;
  std::vector<Tensor> parts, landing;
  std::vector<Work> arriving, leaving;
  for (int p = 0; p < pieces; ++p) {
    const Slice s = my_slice(x.numel(), p, pieces);
    parts.push_back(x.slice(s.begin, s.end));
    if (first) continue;
    landing.emplace_back(rank.memory, Category::communication, x.dtype(), Shape{s.size()});
    arriving.push_back(comm.recv(landing.back(), me - 1));
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (!first) {
      arriving[p].wait();
      parts[p].copy_from(landing[p]);
    }
    if (!last) leaving.push_back(comm.send(parts[p], me + 1));
  }
  for (Work& work : leaving) work.wait();
// MUTANT END
