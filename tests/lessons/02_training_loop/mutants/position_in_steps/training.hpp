// Saves the place in the data in steps: right while a step has one micro-batch.
// MUTANT BEGIN rest_of
  Rest rest;
  rest.tensors = run::state_views(trainer.flat, "m", trainer.m);
  for (const run::ParameterView& view : run::state_views(trainer.flat, "v", trainer.v))
    rest.tensors.push_back(view);
  rest.facts = loader.state();
  rest.facts["data.position"] = std::to_string(steps_done);
  rest.facts["step"] = std::to_string(steps_done);
  rest.facts["optimizer.steps"] = std::to_string(trainer.steps);
  return rest;
// MUTANT END
