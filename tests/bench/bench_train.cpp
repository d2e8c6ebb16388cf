// ./lab bench train: the time of a training step beside the time of its matrix products alone, measured in
// turn in the same run. A ratio of 1.2 says: a fifth more than the products. Leaves out: reading data,
// validation, checked mode.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/random.hpp"
#include "gemm_floor.hpp"
#include "optim/single.hpp"
#include "run/flags.hpp"
#include "run/run_dir.hpp"

using namespace shardlings;

namespace {

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.size() % 2 == 1 ? v[v.size() / 2] : 0.5 * (v[v.size() / 2 - 1] + v[v.size() / 2]);
}

struct Options {
  std::string config = "char", dtype = "f32";
  int threads = 1;
  i64 steps = 0, vocab = 128, batch = 0;
  bool json = false;
};

struct Timing {
  double ms_per_step, gemm_floor_ms, ratio, gflops_floor, first_loss;
  i64 tokens, steps;
  int threads;
};

MicroBatch random_batch(i64 batch, i64 time, i64 vocab) {
  MicroBatch mb;
  mb.batch = batch;
  mb.time = time;
  mb.loss_scale = 1.0 / static_cast<double>(batch * time);
  for (i64 i = 0; i < batch * time + 1; ++i) {
    const int token =
        static_cast<int>(uniform(1, static_cast<std::uint64_t>(i)) * static_cast<double>(vocab));
    if (i < batch * time) mb.tokens.push_back(token);
    if (i > 0) mb.targets.push_back(token);
  }
  return mb;
}

Timing measure(const Options& o) {
  const NamedConfig named = named_config(o.config);
  GptConfig config = named.model;
  const i64 batch = o.batch > 0 ? o.batch : named.batch;
  config.vocab = o.vocab;
  config.dtype = dtype_from(o.dtype);
  // About ten seconds, at least seven pairs.
  const i64 steps = o.steps > 0 ? o.steps : (o.config == "char" ? 150 : 7);
  constexpr i64 kWarmUp = 3;
  Timing t{};
  RunOptions options;
  options.checked = false;
  options.threads = o.threads;
  run_ranks(
      1,
      [&](Rank& rank) {
        rank.trace.recording = false;
        Gpt model(config);
        Single single(rank, model, {});
        bench::GemmFloor floor(config, batch);
        const MicroBatch mb = random_batch(batch, config.time, config.vocab);
        std::vector<double> floors, times, ratios;
        for (i64 k = 0; k < steps + kWarmUp; ++k) {
          const auto start = now_ns();
          floor.run();
          const auto middle = now_ns();
          const StepResult result = train_step(rank, model, single, {mb}, 1e-3);
          const auto end = now_ns();
          if (k == 0) t.first_loss = result.loss;
          if (k < kWarmUp) continue;
          floors.push_back(static_cast<double>(middle - start) / 1e6);
          times.push_back(static_cast<double>(end - middle) / 1e6);
          ratios.push_back(times.back() / floors.back());
        }
        t.ms_per_step = median(times);
        t.gemm_floor_ms = median(floors);
        t.ratio = median(ratios);
        t.gflops_floor = floor.flops() / t.gemm_floor_ms / 1e6;
        t.tokens = batch * config.time;
        t.steps = steps;
        t.threads = rank.threads();
      },
      options);
  return t;
}

}  // namespace

int main(int argc, char** argv) {
  return run::main_guard([&] {
    Options o;
    run::Flags flags("lab bench train", "Times training steps against the floor of their matrix products.");
    flags.add_choice("--config", o.config, {"char", "baby", "gpt2"}, "model size");
    flags.add_choice("--dtype", o.dtype, {"f32", "bf16", "f16"}, "type of parameters and activations");
    flags.add("--threads", o.threads, "compute threads").at_least(1);
    flags.add("--steps", o.steps, "pairs of floor and step; 0 = about ten seconds").at_least(0);
    flags.add("--batch", o.batch, "sequences; 0 = the config's own").at_least(0);
    flags.add("--vocab", o.vocab, "vocabulary").at_least(1);
    flags.add("--json", o.json, "one line of JSON");
    flags.parse(argc, argv);
    const Timing t = measure(o);
    const double tokens_per_s = static_cast<double>(t.tokens) / (t.ms_per_step / 1e3);
    if (o.json) {
      nlohmann::ordered_json line = {{"config", o.config},
                                     {"dtype", o.dtype},
                                     {"threads", t.threads},
                                     {"steps", t.steps},
                                     {"ms_per_step", t.ms_per_step},
                                     {"tokens_per_s", tokens_per_s},
                                     {"gemm_floor_ms", t.gemm_floor_ms},
                                     {"gemm_gflops_per_s", t.gflops_floor},
                                     {"ratio", t.ratio},
                                     {"loss_first_step", t.first_loss}};
      for (const auto& [name, value] : run::host_facts()) line["host"][name] = value;
      fmt::print("{}\n", line.dump());
    } else {
      fmt::print(
          "{} {}, {} threads, {} pairs: {:.2f} ms a step ({:.0f} tokens/s), its matrix products alone {:.2f} "
          "ms "
          "({:.0f} GFLOP/s): ratio {:.3f} (medians)\n",
          o.config, o.dtype, t.threads, t.steps, t.ms_per_step, tokens_per_s, t.gemm_floor_ms, t.gflops_floor,
          t.ratio);
    }
  });
}
