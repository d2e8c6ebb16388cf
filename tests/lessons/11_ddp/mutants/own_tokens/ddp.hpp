// Each rank divides by its own tokens, and the ranks' gradients are averaged.
// MUTANT BEGIN step_over
  double counted = 0;
  for (const data::Batch& batch : batches) counted += static_cast<double>(batch.counted);
  // The average over N ranks is a sum of N-th parts.
  const i64 tokens = static_cast<i64>(counted) * comm.size();
  std::vector<MicroBatch> micro_batches;
  for (const data::Batch& batch : batches)
    micro_batches.push_back(run::micro_batch_of(batch, step, tokens, &batch == &batches.back()));
  const StepResult mine = train_step(rank, model, strategy, micro_batches, rate);
  return {sums_over(rank, comm, mine.loss, 0).first, mine.norm, tokens};
// MUTANT END
