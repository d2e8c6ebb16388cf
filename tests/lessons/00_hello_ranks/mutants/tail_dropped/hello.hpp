// Every rank gets n / size elements, and the n % size last ones belong to nobody. With 1000 elements on 4 ranks all is
// well; with 1003 the last three never take part again.
// MUTANT BEGIN my_slice
  const i64 share = n / size;
  return {rank * share, (rank + 1) * share};
// MUTANT END
