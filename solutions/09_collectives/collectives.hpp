#pragma once
// Shows how collectives are made of messages: a tree that broadcasts, and a ring that sums with every link
// busy all the time. Left out: trees for sums, several rings at once, and whatever depends on the wiring.
#include <algorithm>
#include <vector>

#include "blocks.hpp"
#include "comm/comm.hpp"
#include "messages.hpp"

namespace shardlings {

/// Where the rows of a table lie in memory when rank r owns rows[r] of them: rank 0's rows first, then rank
/// 1's, without gaps. A row has `width` elements.
///
/// Out: one slice for each rank, in elements. An embedding of 262,144 rows and 8,960 columns has more of
///      them than an int can count, though neither number is large.
inline std::vector<Slice> row_blocks(const std::vector<int>& rows, int width) {
  // SOLUTION BEGIN row_blocks
  std::vector<Slice> blocks;
  i64 begin = 0;
  for (const int count : rows) {
    const i64 end = begin + static_cast<i64>(count) * width;
    blocks.push_back({begin, end});
    begin = end;
  }
  return blocks;
  // SOLUTION STUB (void)rows, (void)width;
  // SOLUTION STUB LAB_TODO("say which elements each rank's rows are");
  // SOLUTION END
}

/// x of rank `root` becomes x on every rank, by a binomial tree: in each round, every rank that has it sends
/// it to one that has not, so that their number doubles.
///
/// In:  `x`: same count and type on every rank; full on the root.
/// Out: the same everywhere, after ceil(log2 n) rounds. Each other rank receives it once.
inline void tree_broadcast(const Communicator& comm, const Tensor& x, int root) {
  // SOLUTION BEGIN tree_broadcast
  const int n = comm.size();
  const int me = (comm.rank() - root + n) % n;  // counted from the root
  const auto rank_of = [&](int counted) { return (counted + root) % n; };
  for (int have = 1; have < n; have *= 2) {  // ranks 0 … have - 1 have it
    if (me < have && me + have < n) comm.send(x, rank_of(me + have)).wait();
    if (have <= me && me < 2 * have) comm.recv(x, rank_of(me - have)).wait();
  }
  // SOLUTION STUB (void)comm, (void)x, (void)root;
  // SOLUTION STUB LAB_TODO("in each round, all that have it send it on");
  // SOLUTION END
}

/// Sums over the ranks, and leaves the sum of block r on rank r. The blocks travel around the ring, rank to
/// right neighbour; each rank adds its own part to what passes.
///
/// In:  `x`, one dimension; blocks[r]: the elements of which rank r is to have the sum. Every rank gives the
///      same blocks. They do not overlap, and may have any size, also 0, any order, and gaps between them.
/// Out: part(x, blocks, me) is the sum over all ranks. The other blocks are used up (partial sums). What lies
///      in no block is left as it was.
/// n - 1 messages a rank, one block each. New memory: one block, the largest.
///
/// Useful: send_recv(comm, out, to, in, from), part(x, blocks, r) (r modulo n: -1 is the last), add_into(sum,
/// x), scratch.slice(0, count),
///   Tensor scratch(rank.memory, Category::communication, x.dtype(), {count});
inline void ring_reduce_scatter(Rank& rank, const Communicator& comm, const Tensor& x,
                                const std::vector<Slice>& blocks) {
  // SOLUTION BEGIN ring_reduce_scatter
  const int n = comm.size(), me = comm.rank();
  const int right = (me + 1) % n, left = (me - 1 + n) % n;
  i64 largest = 0;
  for (const Slice& b : blocks) largest = std::max(largest, b.size());
  const Tensor scratch(rank.memory, Category::communication, x.dtype(), {largest});
  for (int step = 1; step < n; ++step) {
    const Tensor leaving = part(x, blocks, me - step);
    const Tensor passing = part(x, blocks, me - step - 1);
    const Tensor arrived = scratch.slice(0, passing.numel());
    send_recv(comm, leaving, right, arrived, left);
    add_into(passing, arrived);
  }
  // SOLUTION STUB (void)rank, (void)comm, (void)x, (void)blocks;
  // SOLUTION STUB LAB_TODO("pass the blocks around the ring, and add to each what is yours");
  // SOLUTION END
}

/// Every rank gets all blocks: block r of `out` becomes rank r's `in`. The blocks travel around the ring.
///
/// In:  `in`: this rank's block, as many elements as blocks[me] has. In place: `in` is part(out, blocks, me)
///      itself (the same memory). Out of place: it is not, and stays as it is. `blocks` as above.
/// Out: all blocks of `out`; gaps are left as they were. n - 1 messages a rank, one block each.
inline void ring_all_gather(const Communicator& comm, const Tensor& in, const Tensor& out,
                            const std::vector<Slice>& blocks) {
  // SOLUTION BEGIN ring_all_gather
  const int n = comm.size(), me = comm.rank();
  const Tensor own = part(out, blocks, me);
  if (in.raw() != own.raw()) own.copy_from(in);
  for (int step = 0; step < n - 1; ++step) {
    const Tensor leaving = part(out, blocks, me - step);
    const Tensor arriving = part(out, blocks, me - step - 1);
    send_recv(comm, leaving, (me + 1) % n, arriving, (me - 1 + n) % n);
  }
  // SOLUTION STUB (void)comm, (void)in, (void)out, (void)blocks;
  // SOLUTION STUB LAB_TODO("pass the blocks around the ring until everybody has all");
  // SOLUTION END
}

/// out = the sum of all ranks' in: a reduce-scatter, and an all-gather of what it left.
///
/// In:  `in` and `out`, one dimension, same count (any, also 0 or fewer than ranks) and type. In place: both
///      are the same memory. Out of place: `in` stays as it is. `sum_type`: what partial sums are kept and
///      sent in. bf16 has 8 significant bits: added rank by rank in bf16, what is small beside the sum so far
///      vanishes.
/// Out: the sum, rounded to the type of `out` once, when it is complete. It is gathered in that type.
/// New memory: one block of sum_type. Sums are made in `out`; only if sum_type is another type, in one new
/// tensor of it, as large as `in`.
///
/// Useful: even_blocks(count, ranks), convert(from, to), to.copy_from(from), a.raw() == b.raw() (the same
/// memory), and your own two.
inline void ring_all_reduce(Rank& rank, const Communicator& comm, const Tensor& in, const Tensor& out,
                            DType sum_type) {
  // SOLUTION BEGIN ring_all_reduce
  const std::vector<Slice> blocks = even_blocks(in.numel(), comm.size());
  const int me = comm.rank();
  const bool same_type = sum_type == out.dtype();
  const Tensor sums = same_type ? out : Tensor(rank.memory, Category::communication, sum_type, in.shape());
  if (in.raw() != sums.raw()) convert(in, sums);
  ring_reduce_scatter(rank, comm, sums, blocks);
  if (!same_type) convert(part(sums, blocks, me), part(out, blocks, me));
  ring_all_gather(comm, part(out, blocks, me), out, blocks);
  // SOLUTION STUB (void)rank, (void)comm, (void)in, (void)out, (void)sum_type;
  // SOLUTION STUB LAB_TODO("reduce-scatter, then all-gather");
  // SOLUTION END
}

}  // namespace shardlings
