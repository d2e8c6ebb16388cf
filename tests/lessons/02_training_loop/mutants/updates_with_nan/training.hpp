// Does not ask whether the norm is finite: one NaN is in all weights after the step.
// MUTANT BEGIN end_step
    const double norm = gradient_norm();
    update(rate, clip_scale(norm, config.clip));
    return norm;
// MUTANT END
