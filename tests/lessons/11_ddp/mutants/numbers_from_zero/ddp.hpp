// Numbers the micro-batches of a step on each rank from 0: all ranks draw the same masks.
// MUTANT BEGIN step_over
  double counted = 0;
  for (const data::Batch& batch : batches) counted += static_cast<double>(batch.counted);
  const i64 tokens = static_cast<i64>(sums_over(rank, comm, counted, 0).first);
  std::vector<MicroBatch> micro_batches;
  for (const data::Batch& batch : batches)
    micro_batches.push_back(run::micro_batch_of(batch, step, tokens, &batch == &batches.back()));
  for (std::size_t k = 0; k < micro_batches.size(); ++k) micro_batches[k].index = static_cast<i64>(k);
  const StepResult mine = train_step(rank, model, strategy, micro_batches, rate);
  return {sums_over(rank, comm, mine.loss, 0).first, mine.norm, tokens};
// MUTANT END
