// Ignores the type that partial sums are to have: half the bytes, and what is small beside the sum so far vanishes.
// MUTANT BEGIN ring_all_reduce
  (void)sum_type;
  const std::vector<Slice> blocks = even_blocks(in.numel(), comm.size());
  if (in.raw() != out.raw()) convert(in, out);
  ring_reduce_scatter(rank, comm, out, blocks);
  ring_all_gather(comm, part(out, blocks[static_cast<std::size_t>(comm.rank())]), out, blocks);
// MUTANT END
