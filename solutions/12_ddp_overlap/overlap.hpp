#pragma once
// DDP whose sums travel while backward still computes: gradients are cut into buckets, and each bucket is
// sent as soon as backward is done with it. Left out: buckets that are learnt from the first step, and
// gradients that share memory with the buckets of a network card.
#include "ddp.hpp"

namespace shardlings {

/// Elements [begin, end) of the flat gradients, which travel together.
struct Bucket {
  i64 begin = 0, end = 0;
};

/// Cuts the flat gradients into buckets of whole units, in the order in which backward finishes them: it goes
/// from the last unit to the first. Unit u is the elements [offsets[u], offsets[u + 1]), the last one ends at
/// `size`. A bucket takes unit after unit until it holds at least `least` elements; what is left when the
/// units end is a bucket too. So every element is in exactly one bucket, and the cut depends on nothing that
/// could differ between ranks.
inline std::vector<Bucket> cut_buckets(const std::vector<i64>& offsets, i64 size, i64 least) {
  // SOLUTION BEGIN cut_buckets
  std::vector<Bucket> buckets;
  i64 end = size;
  for (std::size_t u = offsets.size(); u-- > 0;) {
    if (end - offsets[u] < least && u > 0) continue;
    if (offsets[u] < end) buckets.push_back({offsets[u], end});
    end = offsets[u];
  }
  return buckets;
  // SOLUTION STUB (void)offsets, (void)size, (void)least;
  // SOLUTION STUB LAB_TODO("from the last unit to the first; close a bucket when it is full, and at the end");
  // SOLUTION END
}

class OverlappedDdp : public Ddp {
 public:
  /// Buckets of at least `bucket_bytes` bytes, the last one excepted.
  OverlappedDdp(Rank& rank, Communicator dp, Gpt& model, const AdamConfig& config, i64 bucket_bytes)
      : Ddp(rank, std::move(dp), model, config),
        buckets_(cut_buckets(flat_.offset, flat_.size, bucket_bytes / size_of(flat_.grads.dtype()))) {}

  void begin_step() override {
    Ddp::begin_step();  // gradients become zero
    next_ = 0;
  }

  /// Called when backward of `unit` is over for one micro-batch. The gradients of all units from it to the
  /// last have then everything that this micro-batch adds to them. (The table of a tied head is the
  /// embedding's: unit 0, the last to come.) A unit that a micro-batch skips is never announced: those before
  /// it are. micro_batch.last says that no further one follows in this step. Useful:
  ///   flat_.offset[unit.index]   // where the unit's gradients begin
  ///   post_buckets(begin)        // below
  void after_backward(Unit& unit, const MicroBatch& micro_batch) override {
    // SOLUTION BEGIN after_backward
    if (micro_batch.last) post_buckets(flat_.offset[unit.index]);
    // SOLUTION STUB (void)unit, (void)micro_batch;
    // SOLUTION STUB LAB_TODO("post what will not change any more in this step");
    // SOLUTION END
  }

  /// Posts the sums of all buckets that lie in the elements from `begin` on and were not posted in this step,
  /// in their order, and does not wait. Useful:
  ///   buckets_, next_            // all buckets; how many were posted in this step
  ///   flat_.grads.slice(b, e)    // elements [b, e), the same memory
  ///   works_                     // what is on its way: works_.push_back(dp_.all_reduce(…))
  /// It is empty again after end_step.
  void post_buckets(i64 begin) {
    // SOLUTION BEGIN post_buckets
    for (; next_ < buckets_.size() && buckets_[next_].begin >= begin; ++next_)
      works_.push_back(dp_.all_reduce(flat_.grads.slice(buckets_[next_].begin, buckets_[next_].end)));
    // SOLUTION STUB (void)begin, (void)next_;
    // SOLUTION STUB LAB_TODO("one all_reduce for each bucket that is complete; keep the Works");
    // SOLUTION END
  }

  /// Backward is over on this rank, or never began: it may have had no data. Makes the gradients those of the
  /// whole step, then does what one rank does: update(rate) clips, updates, and returns the norm.
  double end_step(double rate) override {
    // SOLUTION BEGIN end_step
    post_buckets(0);
    for (Work& work : works_) work.wait();
    works_.clear();
    return update(rate);
    // SOLUTION STUB (void)rate;
    // SOLUTION STUB LAB_TODO("flush; wait for everything that is on its way; then update");
    // SOLUTION END
  }

  const std::vector<Bucket>& buckets() const { return buckets_; }

 protected:
  std::vector<Bucket> buckets_;
  std::size_t next_ = 0;
  std::vector<Work> works_;
};

}  // namespace shardlings
