// Continues with everything but the schedule, which warms up again.
// MUTANT BEGIN put_back
  file.load_state(run::state_views(trainer.flat, "m", trainer.m));
  file.load_state(run::state_views(trainer.flat, "v", trainer.v));
  trainer.steps = run::number_of(file.metadata(), "optimizer.steps", path);
  loader.restore(file.metadata());
  return 0;
// MUTANT END
