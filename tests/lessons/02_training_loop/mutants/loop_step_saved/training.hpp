// Saves the loop's step as the number of applied steps: the same, until a step is skipped.
// MUTANT BEGIN rest_of
  Rest rest;
  rest.tensors = run::state_views(trainer.flat, "m", trainer.m);
  for (const run::ParameterView& view : run::state_views(trainer.flat, "v", trainer.v))
    rest.tensors.push_back(view);
  rest.facts = loader.state();
  rest.facts["step"] = std::to_string(steps_done);
  rest.facts["optimizer.steps"] = std::to_string(steps_done);
  return rest;
// MUTANT END
