#pragma once
// Shows what every collective is made of: one rank sends, another receives. What can go wrong with just two
// calls, how a long message is passed along while it still arrives, and what a message costs. Left out: sums
// and all patterns with more than one partner at a time. They come with `collectives`.
#include <vector>

#include "comm/comm.hpp"
#include "hello.hpp"

namespace shardlings {

/// Sends `out` to rank `to` and receives `in` from rank `from`: two directions, one call (MPI_Sendrecv).
///
/// All ranks call it at the same time, each with partners of its own: a pair that swaps, a ring, a rank that
/// talks to itself (to == from == comm.rank()). It must come to an end whatever the pattern, with both kinds
/// of send: buffered (done as soon as the message is on its way) and ending on receipt (done when the partner
/// has received it, as in NCCL and, for long messages, in MPI).
///
/// In:  `out` and `in`: different memory, any number of elements each, also 0.
/// Out: when it returns, `in` may be read and `out` may be written.
///
/// Useful:
///   Work work = comm.send(out, to);      // posts the message: on its way, perhaps not received
///   Work work = comm.recv(in, from);     // posts the receive: in tests, `in` is NaN until wait()
///   work.wait();                         // blocks until it is done. Each Work is waited for exactly once.
inline void send_recv(const Communicator& comm, const Tensor& out, int to, const Tensor& in, int from) {
  // SOLUTION BEGIN send_recv
  Work arriving = comm.recv(in, from);
  Work leaving = comm.send(out, to);
  arriving.wait();
  leaving.wait();
  // SOLUTION STUB (void)comm, (void)out, (void)to, (void)in, (void)from;
  // SOLUTION STUB LAB_TODO("send and receive so that nobody waits for ever");
  // SOLUTION END
}

/// Turns the ring: each rank's `mine` goes `places` ranks to the right, so `out` becomes what the rank
/// `places` to the left holds. After the last rank comes rank 0 again.
///
/// In:  `places` of any size and sign: -1 is one to the left, comm.size() once around, to oneself.
/// Out: one message from each rank, straight to where it has to go. Call send_recv.
inline void shift(const Communicator& comm, const Tensor& mine, const Tensor& out, int places) {
  // SOLUTION BEGIN shift
  const int n = comm.size(), me = comm.rank();
  const int step = (places % n + n) % n;  // 0 <= step < n: in C++, -1 % n is -1
  send_recv(comm, mine, (me + step) % n, out, (me - step + n) % n);
  // SOLUTION STUB (void)comm, (void)mine, (void)out, (void)places;
  // SOLUTION STUB LAB_TODO("find both partners, and send and receive");
  // SOLUTION END
}

/// Passes x from rank 0 along the chain 0, 1, 2, …, so that all ranks have it: each rank receives from the
/// one before and sends to the one after. In pieces, so that rank 2 receives the beginning while rank 1 still
/// receives the rest.
///
/// In:  `x`, one dimension, the same number of elements on every rank, full on rank 0. pieces >= 1, perhaps
///      more than there are elements: then some pieces are empty, and are sent all the same.
/// Out: x is the same everywhere. No new memory: pieces arrive where they belong.
/// A piece goes on as soon as it is there, and while it does, the next one may already arrive.
///
/// Useful:
///   const Communicator& comm = rank.world();
///   const Slice s = my_slice(x.numel(), p, pieces);     // piece p: elements [s.begin, s.end)
///   const Tensor part = x.slice(s.begin, s.end);        // shares x's memory: receive right into it
///   std::vector<Work> works;  works.push_back(comm.recv(part, from));  works[p].wait();
inline void pass_along(Rank& rank, const Tensor& x, int pieces) {
  // SOLUTION BEGIN pass_along
  const Communicator& comm = rank.world();
  const int me = comm.rank();
  const bool first = me == 0, last = me == comm.size() - 1;
  std::vector<Tensor> parts;
  for (int p = 0; p < pieces; ++p) {
    const Slice s = my_slice(x.numel(), p, pieces);
    parts.push_back(x.slice(s.begin, s.end));
  }
  std::vector<Work> arriving, leaving;
  if (!first) {
    for (const Tensor& part : parts) arriving.push_back(comm.recv(part, me - 1));
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (!first) arriving[p].wait();
    if (!last) leaving.push_back(comm.send(parts[p], me + 1));
  }
  for (Work& work : leaving) work.wait();
  // SOLUTION STUB (void)rank, (void)x, (void)pieces;
  // SOLUTION STUB LAB_TODO("receive each piece from the left and send it on to the right");
  // SOLUTION END
}

/// One measurement: a message of `bytes` took `seconds`, one way.
struct Timing {
  i64 bytes = 0;
  double seconds = 0;
};

/// The link that explains the measurements best: seconds = alpha + bytes / bandwidth (Hockney 1994).
///
/// In:  timings of at least two different sizes, from a few bytes to many megabytes.
/// Out: alpha in seconds and bandwidth in bytes a second, for which the sum of the squares of the *relative*
///      errors (predicted - measured) / measured is smallest. Relative: else a hundredth of a long message's
///      time counts more than all of a short one's, and alpha is lost in it.
///
/// With w = 1 / seconds², least squares gives for the slope and the beginning of the line t = alpha + slope b
///   slope = (Σw Σwbt - Σwb Σwt) / (Σw Σwbb - Σwb Σwb)        alpha = (Σwt - slope Σwb) / Σw
inline Link fit_link(const std::vector<Timing>& timings) {
  Link link;
  link.name = "fitted";
  link.source = "measured";
  // SOLUTION BEGIN fit_link
  double w_sum = 0, wb = 0, wt = 0, wbb = 0, wbt = 0;
  for (const Timing& timing : timings) {
    const double b = static_cast<double>(timing.bytes), t = timing.seconds, w = 1 / (t * t);
    w_sum += w;
    wb += w * b;
    wt += w * t;
    wbb += w * b * b;
    wbt += w * b * t;
  }
  const double slope = (w_sum * wbt - wb * wt) / (w_sum * wbb - wb * wb);
  link.alpha = (wt - slope * wb) / w_sum;
  link.bandwidth = 1 / slope;
  // SOLUTION STUB (void)timings;
  // SOLUTION STUB LAB_TODO("find alpha and bandwidth from the measurements");
  // SOLUTION END
  return link;
}

}  // namespace shardlings
