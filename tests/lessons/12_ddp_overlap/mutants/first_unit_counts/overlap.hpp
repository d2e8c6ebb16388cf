// Sends a bucket when the first of its units is complete; the others are still to come.
// MUTANT BEGIN post_buckets
    for (; next_ < buckets_.size() && buckets_[next_].end > begin; ++next_)
      works_.push_back(dp_.all_reduce(flat_.grads.slice(buckets_[next_].begin, buckets_[next_].end)));
// MUTANT END
