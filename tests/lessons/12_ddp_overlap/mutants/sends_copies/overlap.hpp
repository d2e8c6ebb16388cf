// Copies each bucket to a buffer of its own, adds up there, and copies back.
// MUTANT BEGIN post_buckets
    for (; next_ < buckets_.size() && buckets_[next_].begin >= begin; ++next_) {
      const Tensor bucket = flat_.grads.slice(buckets_[next_].begin, buckets_[next_].end);
      const Tensor copy(rank_.memory, Category::gradients, bucket.dtype(), bucket.shape());
      copy.copy_from(bucket);
      dp_.all_reduce(copy).wait();
      bucket.copy_from(copy);
    }
// MUTANT END
