// Cuts each element to the limit: most elements stay as they are, and the direction changes.
// MUTANT BEGIN end_step
    const double norm = gradient_norm();
    if (!std::isfinite(norm)) return norm;
    for (i64 i = 0; i < flat.size; ++i)
      flat.grads.set(i, std::min(config.clip, std::max(-config.clip, flat.grads.get(i))));
    update(rate, 1);
    return norm;
// MUTANT END
