// Posts the sum, and updates while it is on its way.
// MUTANT BEGIN end_step
    Work sum = dp_.all_reduce(flat_.grads);
    const double norm = Single::end_step(rate);
    sum.wait();
    return norm;
// MUTANT END
