#include "run/train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/ops.hpp"
#include "run/interrupt.hpp"
#include "run/trace_json.hpp"

namespace shardlings::run {

namespace {

double seconds_since(std::int64_t start) { return static_cast<double>(now_ns() - start) / 1e9; }

// The sum (or maximum) of a few numbers over all ranks; nothing to do for one.
std::vector<double> over_ranks(Rank& rank, std::vector<double> values, Reduce how) {
  if (rank.size() == 1) return values;
  const Tensor t(rank.memory, Category::communication, DType::f64, {static_cast<i64>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) t.set(static_cast<i64>(i), values[i]);
  rank.world().all_reduce(t, how).wait();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = t.get(static_cast<i64>(i));
  return values;
}

std::vector<data::Batch> next_batches(const Training& t, const TrainOptions& options, i64 step) {
  const auto span = t.rank.trace.span(Event::data, "next batches");
  if (options.batches) return options.batches(step);
  std::vector<data::Batch> batches;
  for (i64 k = 0; k < options.micro_batches; ++k) batches.push_back(t.loader.next());
  return batches;
}

GlobalStep do_step(const Training& t, const std::vector<data::Batch>& batches, i64 step, double rate) {
  double counted = 0;
  for (const data::Batch& batch : batches) counted += static_cast<double>(batch.counted);
  const i64 tokens = static_cast<i64>(over_ranks(t.rank, {counted}, Reduce::sum)[0]);
  std::vector<MicroBatch> micro_batches;
  micro_batches.reserve(batches.size());
  for (const data::Batch& batch : batches)
    micro_batches.push_back(micro_batch_of(batch, step, tokens, &batch == &batches.back()));
  const StepResult result = train_step(t.rank, t.model, t.strategy, micro_batches, rate);
  return {over_ranks(t.rank, {result.loss}, Reduce::sum)[0], result.norm, tokens};
}

[[noreturn]] void stop_on_bad_numbers(const Training& t, i64 step, const GlobalStep& result,
                                      const std::vector<data::Batch>& batches) {
  std::string where;
  if (batches.empty()) {
    where = first_bad_value(t.model);
  } else {
    const MicroBatch mb = micro_batch_of(batches.front(), step, result.tokens, batches.size() == 1);
    where = first_bad_tensor(t.rank, t.model, t.strategy, mb);
  }
  if (where.empty()) where = "no single tensor: a sum overflowed";
  const auto shown = [](double x) { return std::isnan(x) ? std::abs(x) : x; };  // "nan", never "-nan"
  fail(fmt::format(
      "step {}: loss {}, gradient norm {}; the first bad tensor is {}. The weights of step {} are untouched; "
      "try a smaller learning rate or clipping",
      step, shown(result.loss), shown(result.norm), where, step));
}

}  // namespace

MicroBatch micro_batch_of(const data::Batch& batch, i64 step, i64 counted, bool last, bool training) {
  MicroBatch mb;
  mb.index = batch.index;
  mb.step = step;
  mb.batch = batch.batch;
  mb.time = batch.time;
  mb.tokens = batch.tokens;
  mb.targets = batch.targets;
  mb.last = last;
  mb.loss_scale = counted > 0 ? 1.0 / static_cast<double>(counted) : 0;
  mb.training = training;
  return mb;
}

std::string first_bad_tensor(Rank& rank, Gpt& model, Strategy& strategy, const MicroBatch& micro_batch) {
  if (std::string bad = first_bad_value(model); !bad.empty()) return bad;
  Saved saved(rank, micro_batch, model.config.dtype);
  Tensor x;
  for (std::size_t u = 0; u < model.units.size(); ++u) {
    x = model.forward(x, saved, strategy, u, u + 1);
    if (!x) continue;  // the head has only a loss
    if (const i64 i = kernels::first_not_finite(x); i >= 0) {
      return fmt::format("the output of {}, element {} is {}", model.units[u]->name, i, x.get(i));
    }
  }
  if (!std::isfinite(saved.loss)) return fmt::format("the loss itself, {}", saved.loss);
  return first_bad_gradient(model);
}

namespace {
// The mean loss over the validation text, or nothing when Ctrl-C came and `may_stop`: all ranks leave alike.
std::optional<double> validate(const Training& t, i64 batches, bool may_stop) {
  require(t.validation != nullptr, "validation_loss: there is no validation text");
  const i64 all = t.validation->size();
  const i64 count = batches <= 0 ? all : std::min(batches, all);
  double sum = 0, counted = 0;
  for (i64 first = 0; first < count; first += t.rank.size()) {  // each rank one of the next batches
    if (may_stop && over_ranks(t.rank, {InterruptGuard::requested() ? 1.0 : 0.0}, Reduce::max)[0] > 0)
      return {};
    // A rank for which none is left repeats the last one and does not count it: a strategy may need all
    // ranks.
    const i64 k = std::min(first + t.rank.rank(), count - 1);
    const bool counts = first + t.rank.rank() < count;
    const data::Batch batch = t.validation->at(k * all / count);
    const MicroBatch mb = micro_batch_of(batch, 0, batch.counted, true, /*training=*/false);
    const double loss = evaluate(t.rank, t.model, mb, t.strategy);
    if (!counts) continue;
    sum += loss * static_cast<double>(batch.counted);
    counted += static_cast<double>(batch.counted);
  }
  const auto total = over_ranks(t.rank, {sum, counted}, Reduce::sum);
  return total[0] / total[1];
}
}  // namespace

double validation_loss(const Training& t, i64 batches) { return *validate(t, batches, false); }

TrainResult train(const Training& t, const TrainOptions& options) {
  require(static_cast<bool>(options.rate), "train: options.rate is not set");
  TrainResult result;
  result.steps_done = options.first_step;
  const InterruptGuard guard;
  Trace& trace = t.rank.trace;
  i64 saved_at = -1;
  for (i64 step = options.first_step; step < options.steps; ++step) {
    const std::int64_t start = now_ns();
    // Set anew in each step: validation pauses the trace.
    trace.recording =
        step < options.first_step + options.trace_steps || step >= options.steps - options.trace_steps;
    StepMetrics m;
    GlobalStep stepped;
    const i64 sent_before = t.rank.traffic.total();
    {
      const auto span = trace.span(Event::other, step_name(step));
      const std::vector<data::Batch> batches = next_batches(t, options, step);
      m.lr = options.rate(step);
      stepped = options.step ? options.step(batches, step, *m.lr) : do_step(t, batches, step, *m.lr);
      if (!std::isfinite(stepped.loss) || !std::isfinite(stepped.norm)) {
        stop_on_bad_numbers(t, step, stepped, batches);
      }
      m.step = step + 1;
      m.loss = stepped.loss;
      m.norm = stepped.norm;
      m.ms = seconds_since(start) * 1e3;
      m.tokens_per_s = static_cast<double>(stepped.tokens) / (*m.ms / 1e3);
      m.bytes_sent = t.rank.traffic.total() - sent_before;
      m.peak = peaks_of(t.rank.memory);
    }
    result.steps_done = step + 1;
    result.loss = stepped.loss;
    result.seconds += *m.ms / 1e3;
    // All ranks must leave after the same step: any rank's wish is everybody's.
    const double time_up = options.max_seconds > 0 && result.seconds >= options.max_seconds ? 1 : 0;
    const auto stop = over_ranks(t.rank, {InterruptGuard::requested() ? 1.0 : 0.0, time_up}, Reduce::max);
    bool last = step + 1 == options.steps || stop[0] > 0 || stop[1] > 0;
    result.interrupted = stop[0] > 0;
    if (t.validation != nullptr && options.eval_every > 0 && !result.interrupted &&
        ((step + 1) % options.eval_every == 0 || last)) {
      trace.recording = false;
      m.val_loss = validate(t, options.eval_batches, true);
      if (!m.val_loss) last = result.interrupted = true;
    }
    if (t.rank.rank() == 0 && options.on_step) options.on_step(m);
    result.metrics.push_back(m);
    if (options.save &&
        (last || (options.checkpoint_every > 0 && (step + 1) % options.checkpoint_every == 0))) {
      options.save(step + 1);
      saved_at = step + 1;
    }
    if (last) break;
  }
  trace.recording = true;
  require(!options.save || saved_at == result.steps_done || result.metrics.empty(),
          "train: the last state was not saved");
  return result;
}

}  // namespace shardlings::run
