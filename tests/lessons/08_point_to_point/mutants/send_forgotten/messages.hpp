// Waits for what it needs, and forgets that somebody still has to read what it sent.
// MUTANT BEGIN send_recv
  Work arriving = comm.recv(in, from);
  Work leaving = comm.send(out, to);
  arriving.wait();
// MUTANT END
