// The last rank takes what is left over. Nothing is lost, but 7 elements on 8 ranks all land on one of them.
// MUTANT BEGIN my_slice
  const i64 share = n / size;
  const i64 begin = rank * share;
  return {begin, rank == size - 1 ? n : begin + share};
// MUTANT END
