// Sums in a copy and copies back, to be on the safe side. Every value is right; the memory for x doubles.
// MUTANT BEGIN ring_all_reduce
  const std::vector<Slice> blocks = even_blocks(in.numel(), comm.size());
  const Slice mine = blocks[static_cast<std::size_t>(comm.rank())];
  const Tensor sums(rank.memory, Category::communication, sum_type, in.shape());
  convert(in, sums);
  ring_reduce_scatter(rank, comm, sums, blocks);
  convert(part(sums, mine), part(out, mine));
  ring_all_gather(comm, part(out, mine), out, blocks);
// MUTANT END
