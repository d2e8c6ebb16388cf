// N ranks, N times the rate: somebody's rule of thumb, behind the schedule's back.
// MUTANT BEGIN step_over
  double counted = 0;
  for (const data::Batch& batch : batches) counted += static_cast<double>(batch.counted);
  const i64 tokens = static_cast<i64>(sums_over(rank, comm, counted, 0).first);
  std::vector<MicroBatch> micro_batches;
  for (const data::Batch& batch : batches)
    micro_batches.push_back(run::micro_batch_of(batch, step, tokens, &batch == &batches.back()));
  const StepResult mine = train_step(rank, model, strategy, micro_batches, rate * comm.size());
  return {sums_over(rank, comm, mine.loss, 0).first, mine.norm, tokens};
// MUTANT END
