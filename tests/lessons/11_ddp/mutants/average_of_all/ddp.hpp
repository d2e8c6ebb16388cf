// Makes all ranks alike by averaging: alike they are, and nobody's model.
// MUTANT BEGIN share_weights
    dp_.all_reduce(flat_.values, Reduce::average).wait();
    if (adam_.master()) dp_.all_reduce(adam_.master(), Reduce::average).wait();
// MUTANT END
