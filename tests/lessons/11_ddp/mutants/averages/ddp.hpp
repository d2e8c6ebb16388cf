// Averages, although the losses were already divided by the tokens of all ranks.
// MUTANT BEGIN end_step
    dp_.all_reduce(flat_.grads, Reduce::average).wait();
    return Single::end_step(rate);
// MUTANT END
