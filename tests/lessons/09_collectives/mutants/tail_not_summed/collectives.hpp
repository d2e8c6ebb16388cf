// count / n elements a block: the tail belongs to nobody. 64 elements are fine, 1003 are not.
// MUTANT BEGIN ring_all_reduce
  std::vector<Slice> blocks;
  const i64 each = in.numel() / comm.size();
  for (i64 r = 0; r < comm.size(); ++r) blocks.push_back({r * each, (r + 1) * each});
  const Slice mine = blocks[static_cast<std::size_t>(comm.rank())];
  const bool same_type = sum_type == out.dtype();
  const Tensor sums = same_type ? out : Tensor(rank.memory, Category::communication, sum_type, in.shape());
  if (in.raw() != sums.raw()) convert(in, sums);
  ring_reduce_scatter(rank, comm, sums, blocks);
  if (!same_type) convert(part(sums, mine), part(out, mine));
  ring_all_gather(comm, part(out, mine), out, blocks);
// MUTANT END
