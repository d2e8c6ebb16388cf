// Slices of ceil(n / size): covers everything, but 5 elements on 4 ranks make 2, 2, 1 and 0. PyTorch's torch.chunk
// cuts like this.
// MUTANT BEGIN my_slice
  const i64 share = (n + size - 1) / size;
  const i64 begin = std::min(n, rank * share);
  return {begin, std::min(n, begin + share)};
// MUTANT END
