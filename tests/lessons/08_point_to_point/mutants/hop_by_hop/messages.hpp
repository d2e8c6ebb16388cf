// Goes one place at a time. Every value is right, and everything is carried once for each place.
// MUTANT BEGIN shift
  const int n = comm.size(), me = comm.rank();
  const int steps = (places % n + n) % n;
  MemoryLedger passing;
  const Tensor here(passing, Category::communication, mine.dtype(), mine.shape());
  out.copy_from(mine);
  for (int k = 0; k < steps; ++k) {
    here.copy_from(out);
    send_recv(comm, here, (me + 1) % n, out, (me - 1 + n) % n);
  }
// MUTANT END
