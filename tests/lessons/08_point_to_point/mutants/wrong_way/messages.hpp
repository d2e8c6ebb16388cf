// Turns the ring to the left. With one or two ranks nobody can tell.
// MUTANT BEGIN shift
  const int n = comm.size(), me = comm.rank();
  const int step = (places % n + n) % n;
  send_recv(comm, mine, (me - step + n) % n, out, (me + step) % n);
// MUTANT END
