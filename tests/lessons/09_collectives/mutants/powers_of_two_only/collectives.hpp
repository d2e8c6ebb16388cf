// Doubles and does not look whether the partner exists. Perfect on 2, 4 and 8 ranks.
// MUTANT BEGIN tree_broadcast
  const int n = comm.size();
  const int me = (comm.rank() - root + n) % n;
  const auto rank_of = [&](int counted) { return (counted + root) % n; };
  for (int have = 1; have < n; have *= 2) {
    if (me < have) comm.send(x, rank_of(me + have)).wait();
    if (have <= me && me < 2 * have) comm.recv(x, rank_of(me - have)).wait();
  }
// MUTANT END
