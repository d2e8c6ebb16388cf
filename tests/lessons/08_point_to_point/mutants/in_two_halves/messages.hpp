// Sends two halves, in the hope that they overlap. Every value is right; one message became two, so alpha is paid twice.
// MUTANT BEGIN send_recv
  const i64 half_in = in.numel() / 2, half_out = out.numel() / 2;
  Work first = comm.recv(in.slice(0, half_in), from), second = comm.recv(in.slice(half_in, in.numel()), from);
  Work one = comm.send(out.slice(0, half_out), to), two = comm.send(out.slice(half_out, out.numel()), to);
  first.wait();
  second.wait();
  one.wait();
  two.wait();
// MUTANT END
