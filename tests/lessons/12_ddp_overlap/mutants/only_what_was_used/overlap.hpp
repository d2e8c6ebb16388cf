// Leaves out a bucket whose gradients are all zero: the ranks disagree on what is added up.
// MUTANT BEGIN post_buckets
    for (; next_ < buckets_.size() && buckets_[next_].begin >= begin; ++next_) {
      const Tensor bucket = flat_.grads.slice(buckets_[next_].begin, buckets_[next_].end);
      bool used = false;
      for (i64 i = 0; i < bucket.numel() && !used; ++i) used = bucket.get(i) != 0;
      if (used) works_.push_back(dp_.all_reduce(bucket));
    }
// MUTANT END
