// Does not put the place in the data back: the run sees again what it has seen.
// MUTANT BEGIN put_back
  file.load_state(run::state_views(trainer.flat, "m", trainer.m));
  file.load_state(run::state_views(trainer.flat, "v", trainer.v));
  trainer.steps = run::number_of(file.metadata(), "optimizer.steps", path);
  (void)loader;
  return run::number_of(file.metadata(), "step", path);
// MUTANT END
