// Waits for each bucket where it is posted: backward stands still meanwhile.
// MUTANT BEGIN post_buckets
    for (; next_ < buckets_.size() && buckets_[next_].begin >= begin; ++next_)
      dp_.all_reduce(flat_.grads.slice(buckets_[next_].begin, buckets_[next_].end)).wait();
// MUTANT END
