// Clips its own gradient by its own norm, then adds up.
// MUTANT BEGIN end_step
    const double norm = std::sqrt(sum_squares(flat_.grads, flat_.segments));
    const double factor = clip_factor(norm, adam_.config.clip);
    for (i64 i = 0; i < flat_.size; ++i) flat_.grads.set(i, factor * flat_.grads.get(i));
    dp_.all_reduce(flat_.grads).wait();
    return Single::end_step(rate);
// MUTANT END
