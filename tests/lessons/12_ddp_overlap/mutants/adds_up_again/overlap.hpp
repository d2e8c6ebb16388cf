// Ends the step as plain DDP does: everything is added up once more.
// MUTANT BEGIN end_step
    post_buckets(0);
    for (Work& work : works_) work.wait();
    works_.clear();
    return Ddp::end_step(rate);
// MUTANT END
