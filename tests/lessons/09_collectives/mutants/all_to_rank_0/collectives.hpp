// Everybody sends to rank 0, which adds up and broadcasts. Right, and rank 0 does what all should share.
// MUTANT BEGIN ring_all_reduce
  const bool same_type = sum_type == out.dtype();
  const Tensor sums = same_type ? out : Tensor(rank.memory, Category::communication, sum_type, in.shape());
  if (in.raw() != sums.raw()) convert(in, sums);
  if (comm.rank() != 0) {
    comm.send(sums, 0).wait();
  } else {
    const Tensor arrived(rank.memory, Category::communication, sum_type, in.shape());
    for (int r = 1; r < comm.size(); ++r) {
      comm.recv(arrived, r).wait();
      add_into(sums, arrived);
    }
  }
  if (!same_type && comm.rank() == 0) convert(sums, out);
  tree_broadcast(comm, out, 0);
// MUTANT END
