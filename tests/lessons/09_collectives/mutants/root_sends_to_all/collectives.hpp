// The root sends to one after the other. Values and received bytes are right; the root's link is the only one that works.
// MUTANT BEGIN tree_broadcast
  if (comm.rank() != root) return comm.recv(x, root).wait();
  for (int r = 0; r < comm.size(); ++r) {
    if (r != root) comm.send(x, r).wait();
  }
// MUTANT END
