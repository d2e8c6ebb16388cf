// Collects everybody's gradients and adds them up here: every bit is right.
// MUTANT BEGIN end_step
    const Tensor all(rank_.memory, Category::gradients, flat_.grads.dtype(), {dp_.size() * flat_.size});
    dp_.all_gather(flat_.grads, all).wait();
    for (i64 i = 0; i < flat_.size; ++i) {
      auto sum = static_cast<float>(all.get(i));
      for (i64 r = 1; r < dp_.size(); ++r) sum += static_cast<float>(all.get(r * flat_.size + i));
      flat_.grads.set(i, sum);
    }
    return Single::end_step(rate);
// MUTANT END
