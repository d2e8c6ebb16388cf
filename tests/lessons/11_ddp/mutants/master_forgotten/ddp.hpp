// Sends the 16-bit parameters; the fp32 master copies stay what each rank drew.
// MUTANT BEGIN share_weights
    dp_.broadcast(flat_.values, 0).wait();
// MUTANT END
