// Clips each parameter by its own norm: the gradient no longer points where it did.
// MUTANT BEGIN end_step
    const double norm = gradient_norm();
    if (!std::isfinite(norm)) return norm;
    for (const Segment& s : flat.segments) {
      const auto norm_of = [&](auto element) {
        return global_norm(flat.grads.data<decltype(element)>() + s.begin, s.end - s.begin);
      };
      const double own = flat.grads.dtype() == DType::f64 ? norm_of(double{}) : norm_of(float{});
      const double factor = clip_scale(own, config.clip);
      for (i64 i = s.begin; i < s.end; ++i) flat.grads.set(i, factor * flat.grads.get(i));
    }
    update(rate, 1);
    return norm;
// MUTANT END
