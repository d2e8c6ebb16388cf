// Rounds at the very end: the second half carries fp32 that becomes bf16 on arrival. Every value is right.
// MUTANT BEGIN ring_all_reduce
  const std::vector<Slice> blocks = even_blocks(in.numel(), comm.size());
  const Slice mine = blocks[static_cast<std::size_t>(comm.rank())];
  const bool same_type = sum_type == out.dtype();
  const Tensor sums = same_type ? out : Tensor(rank.memory, Category::communication, sum_type, in.shape());
  if (in.raw() != sums.raw()) convert(in, sums);
  ring_reduce_scatter(rank, comm, sums, blocks);
  ring_all_gather(comm, part(sums, mine), sums, blocks);
  if (!same_type) convert(sums, out);
// MUTANT END
