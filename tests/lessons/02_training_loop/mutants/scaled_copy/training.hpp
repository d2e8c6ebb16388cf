// Scales a copy of the gradients: all values are right, and the peak has 4 bytes more for each parameter.
// MUTANT BEGIN end_step
    const double norm = gradient_norm();
    if (!std::isfinite(norm)) return norm;
    const Tensor original = flat.grads;
    flat.grads = Tensor(rank_.memory, Category::gradients, original.dtype(), original.shape());
    const double factor = clip_scale(norm, config.clip);
    for (i64 i = 0; i < flat.size; ++i) flat.grads.set(i, factor * original.get(i));
    update(rate, 1);
    flat.grads = original;
    return norm;
// MUTANT END
