// Sends, waits, then receives, as one would say it. While sends are buffered it works for years.
// MUTANT BEGIN send_recv
  comm.send(out, to).wait();
  comm.recv(in, from).wait();
// MUTANT END
