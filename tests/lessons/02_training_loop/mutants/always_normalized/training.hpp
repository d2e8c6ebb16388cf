// Brings every gradient to the limit, small ones too: near the end of training, noise takes steps of full
// size.
// MUTANT BEGIN clip_scale
  return limit > 0 ? limit / norm : 1;
// MUTANT END
