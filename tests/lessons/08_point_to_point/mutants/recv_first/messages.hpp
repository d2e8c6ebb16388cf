// Receives first, and only then sends what all the others are waiting for.
// MUTANT BEGIN send_recv
  comm.recv(in, from).wait();
  comm.send(out, to).wait();
// MUTANT END
