// Each rank sends to the next. Right for one long message in many pieces; here the last rank waits n - 1 rounds.
// MUTANT BEGIN tree_broadcast
  const int n = comm.size();
  const int me = (comm.rank() - root + n) % n;
  if (me > 0) comm.recv(x, (comm.rank() - 1 + n) % n).wait();
  if (me < n - 1) comm.send(x, (comm.rank() + 1) % n).wait();
// MUTANT END
