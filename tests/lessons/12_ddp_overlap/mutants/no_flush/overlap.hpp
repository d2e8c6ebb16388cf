// Waits for what was posted. A rank without data posted nothing.
// MUTANT BEGIN end_step
    for (Work& work : works_) work.wait();
    works_.clear();
    return update(rate);
// MUTANT END
