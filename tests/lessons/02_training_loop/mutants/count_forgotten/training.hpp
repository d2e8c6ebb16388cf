// Puts the moments back, but not their age: they are corrected as if they were fresh.
// MUTANT BEGIN put_back
  file.load_state(run::state_views(trainer.flat, "m", trainer.m));
  file.load_state(run::state_views(trainer.flat, "v", trainer.v));
  trainer.steps = 0;
  loader.restore(file.metadata());
  return run::number_of(file.metadata(), "step", path);
// MUTANT END
