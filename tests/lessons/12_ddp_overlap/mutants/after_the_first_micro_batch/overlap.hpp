// Sends as soon as a unit has a gradient: later micro-batches add to what is on its way.
// MUTANT BEGIN after_backward
    (void)micro_batch;
    post_buckets(flat_.offset[unit.index]);
// MUTANT END
