// Waits for the last bucket only: the others are surely done before it.
// MUTANT BEGIN end_step
    post_buckets(0);
    if (!works_.empty()) works_.back().wait();
    works_.clear();
    return update(rate);
// MUTANT END
