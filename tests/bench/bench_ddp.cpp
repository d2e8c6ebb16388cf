// ./lab bench ddp: a step of N ranks with one thread each (buckets that travel during backward) beside a step
// of one rank with N threads, the same sequences in both, in turn. A ratio of 1.03 says: the ranks cost three
// percent. Leaves out: reading data, validation, checked mode, links.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/random.hpp"
#include "overlap.hpp"
#include "run/flags.hpp"
#include "run/run_dir.hpp"

using namespace shardlings;

namespace {

struct Options {
  std::string config = "char";
  int ranks = 2;
  i64 rounds = 5, steps = 0, batch = 0;
  double bucket_mb = 1;
  bool overlap = true, json = false;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.size() % 2 == 1 ? v[v.size() / 2] : 0.5 * (v[v.size() / 2 - 1] + v[v.size() / 2]);
}

/// Sequences rank, rank + ranks, … of a step of `batch` random ones.
data::Batch share_of(const GptConfig& config, i64 batch, int rank, int ranks) {
  data::Batch mine{rank, 0, config.time, {}, {}, {}, 0};
  for (i64 sequence = rank; sequence < batch; sequence += ranks, ++mine.batch) {
    for (i64 t = 0; t <= config.time; ++t) {
      const auto token = static_cast<int>(
          uniform(key_of({1, static_cast<std::uint64_t>(sequence)}), static_cast<std::uint64_t>(t)) *
          static_cast<double>(config.vocab));
      if (t < config.time) mine.tokens.push_back(token);
      if (t > 0) mine.targets.push_back(token);
    }
  }
  mine.counted = mine.batch * config.time;
  return mine;
}

/// Appends the milliseconds of some steps, as rank 0 sees them; returns the last loss.
double measure(const Options& o, const GptConfig& config, i64 batch, int ranks, int threads,
               std::vector<double>& times) {
  constexpr i64 kWarmUp = 2;
  RunOptions options;
  options.checked = false;
  options.threads = threads;
  double loss = 0;
  run_ranks(
      ranks,
      [&](Rank& rank) {
        rank.trace.recording = false;
        Gpt model(config);
        std::unique_ptr<Single> strategy;
        if (ranks == 1)
          strategy = std::make_unique<Single>(rank, model, AdamConfig());
        else if (o.overlap)
          strategy = std::make_unique<OverlappedDdp>(rank, rank.world(), model, AdamConfig(),
                                                     static_cast<i64>(o.bucket_mb * 1048576));
        else
          strategy = std::make_unique<Ddp>(rank, rank.world(), model, AdamConfig());
        const std::vector<data::Batch> batches{share_of(config, batch, rank.rank(), ranks)};
        const MicroBatch whole = run::micro_batch_of(batches[0], 0, batches[0].counted, true);
        for (i64 k = 0; k < o.steps + kWarmUp; ++k) {
          const auto start = now_ns();
          const double seen = ranks == 1
                                  ? train_step(rank, model, *strategy, {whole}, 1e-3).loss
                                  : step_over(rank, rank.world(), model, *strategy, batches, k, 1e-3).loss;
          if (rank.rank() != 0) continue;
          if (k >= kWarmUp) times.push_back(static_cast<double>(now_ns() - start) / 1e6);
          loss = seen;
        }
      },
      options);
  return loss;
}

}  // namespace

int main(int argc, char** argv) {
  return run::main_guard([&] {
    Options o;
    run::Flags flags("lab bench ddp", "Times steps of N ranks against one rank with N threads.");
    flags.add_choice("--config", o.config, {"char", "baby"}, "model size");
    flags.add("--ranks", o.ranks, "ranks, of one thread each").at_least(2);
    flags.add("--rounds", o.rounds, "how often each side has its turn").at_least(1);
    flags.add("--steps", o.steps, "steps in a turn; 0 = 40 of char, 3 of baby").at_least(0);
    flags.add("--batch", o.batch, "sequences of a step, over all ranks; 0 = the config's own").at_least(0);
    flags.add("--bucket-mb", o.bucket_mb, "least size of a bucket").at_least(0).at_most(1e6);
    flags.add("--overlap", o.overlap, "buckets during backward; else one sum after it");
    flags.add("--json", o.json, "one line of JSON");
    flags.parse(argc, argv);
    const NamedConfig named = named_config(o.config);
    const i64 batch = o.batch > 0 ? o.batch : named.batch;
    if (o.steps == 0) o.steps = o.config == "char" ? 40 : 3;
    std::vector<double> one, many, ratios;
    double loss_one = 0, loss_many = 0;
    for (i64 round = 0; round < o.rounds; ++round) {
      std::vector<double> a, b;
      loss_one = measure(o, named.model, batch, 1, o.ranks, a);
      loss_many = measure(o, named.model, batch, o.ranks, 1, b);
      ratios.push_back(median(b) / median(a));
      one.insert(one.end(), a.begin(), a.end());
      many.insert(many.end(), b.begin(), b.end());
    }
    if (o.json) {
      nlohmann::ordered_json line = {
          {"config", o.config},      {"ranks", o.ranks},           {"sequences", batch},
          {"overlap", o.overlap},    {"one_rank_ms", median(one)}, {"ranks_ms", median(many)},
          {"ratio", median(ratios)}, {"loss_one_rank", loss_one},  {"loss_ranks", loss_many}};
      for (const auto& [name, value] : run::host_facts()) line["host"][name] = value;
      fmt::print("{}\n", line.dump());
    } else {
      fmt::print(
          "{}, {} sequences a step: one rank x {} threads {:.2f} ms, {} ranks x 1 thread {:.2f} ms: "
          "ratio {:.3f} (medians of {} turns)\n",
          o.config, batch, o.ranks, median(one), o.ranks, median(many), median(ratios), o.rounds);
    }
  });
}
