// Sums in `in` and copies the result to `out`. In place nobody can tell.
// MUTANT BEGIN ring_all_reduce
  const std::vector<Slice> blocks = even_blocks(in.numel(), comm.size());
  const Slice mine = blocks[static_cast<std::size_t>(comm.rank())];
  const bool same_type = sum_type == in.dtype();
  const Tensor sums = same_type ? in : Tensor(rank.memory, Category::communication, sum_type, in.shape());
  if (!same_type) convert(in, sums);
  ring_reduce_scatter(rank, comm, sums, blocks);
  convert(part(sums, mine), part(out, mine));
  ring_all_gather(comm, part(out, mine), out, blocks);
// MUTANT END
