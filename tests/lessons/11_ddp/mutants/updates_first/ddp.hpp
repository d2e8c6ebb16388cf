// Updates with its own gradient, and adds up afterwards.
// MUTANT BEGIN end_step
    const double norm = Single::end_step(rate);
    dp_.all_reduce(flat_.grads).wait();
    return norm;
// MUTANT END
