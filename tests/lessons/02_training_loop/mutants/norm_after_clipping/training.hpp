// Reports the norm of the clipped gradient, which is never above the limit: an exploding run looks calm.
// MUTANT BEGIN end_step
    const double norm = gradient_norm();
    if (!std::isfinite(norm)) return norm;
    update(rate, clip_scale(norm, config.clip));
    return norm * clip_scale(norm, config.clip);
// MUTANT END
