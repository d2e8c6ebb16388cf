// Every rank trains alone. Each loss curve looks fine.
// MUTANT BEGIN end_step
    return Single::end_step(rate);
// MUTANT END
