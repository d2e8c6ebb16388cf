// Puts the weights back and starts with fresh moments.
// MUTANT BEGIN put_back
  trainer.m.zero();
  trainer.v.zero();
  trainer.steps = run::number_of(file.metadata(), "optimizer.steps", path);
  loader.restore(file.metadata());
  return run::number_of(file.metadata(), "step", path);
// MUTANT END
