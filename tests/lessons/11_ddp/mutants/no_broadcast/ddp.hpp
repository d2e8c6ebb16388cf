// All ranks have the same seed, so they begin alike: until one day they have not.
// MUTANT BEGIN share_weights
    // Nothing to do: the seed is the same everywhere.
    (void)dp_;
// MUTANT END
