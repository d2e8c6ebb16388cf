// Takes % for the remainder that mathematicians know. In C++, -1 % 4 is -1.
// MUTANT BEGIN shift
  const int n = comm.size(), me = comm.rank();
  send_recv(comm, mine, (me + places) % n, out, (me - places) % n);
// MUTANT END
