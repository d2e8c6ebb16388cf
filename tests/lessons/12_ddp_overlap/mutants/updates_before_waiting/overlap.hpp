// Updates while buckets are on their way, and waits afterwards.
// MUTANT BEGIN end_step
    post_buckets(0);
    const double norm = update(rate);
    for (Work& work : works_) work.wait();
    works_.clear();
    return norm;
// MUTANT END
