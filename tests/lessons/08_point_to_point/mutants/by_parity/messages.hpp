// Even ranks send first, odd ranks receive first: the classic cure. It cures neighbours, and nobody else.
// MUTANT BEGIN send_recv
  if (comm.rank() % 2 == 0) {
    comm.send(out, to).wait();
    comm.recv(in, from).wait();
  } else {
    comm.recv(in, from).wait();
    comm.send(out, to).wait();
  }
// MUTANT END
