// Builds the tree for root 0, whoever the root is.
// MUTANT BEGIN tree_broadcast
  (void)root;
  const int n = comm.size(), me = comm.rank();
  for (int have = 1; have < n; have *= 2) {
    if (me < have && me + have < n) comm.send(x, me + have).wait();
    if (have <= me && me < 2 * have) comm.recv(x, me - have).wait();
  }
// MUTANT END
