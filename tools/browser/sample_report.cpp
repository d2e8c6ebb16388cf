// Writes reports of made-up runs into a folder: everything that a page can show (four ranks with overlapping
// transfers, memory, several runs, a mismatch, text that is no UTF-8), one long run, and one that has nothing
// to show.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/random.hpp"
#include "run/report.hpp"

using namespace shardlings;

namespace {

constexpr int kLayers = 4;
constexpr std::int64_t kUs = 1000;

/// Lays events one behind the other, with a little noise, as a data-parallel step with overlapped buckets
/// would.
class FakeRank {
 public:
  explicit FakeRank(int number) { record_.rank = number; }

  void step(i64 number) {
    const std::int64_t begin = now_;
    const std::size_t at = record_.events.size();
    record_.events.push_back({Event::other, run::step_name(number), begin, begin, Event::compute});
    span(Event::data, "batch", 60);
    for (int l = 0; l < kLayers; ++l) {
      span(Event::forward, "block " + std::to_string(l), 400);
      sample(l + 1);
    }
    std::int64_t network = now_;
    for (int l = kLayers - 1; l >= 0; --l) {
      span(Event::backward, "block " + std::to_string(l), 800);
      sample(l);
      network = std::max(network, now_) + 40 * kUs;
      const std::int64_t end = network + 620 * kUs;
      // A bucket starts while the one before is still under way: two tracks.
      record_.events.push_back({Event::transfer, "all_reduce(bucket " + std::to_string(l) + ")",
                                network - (l == 1 ? 200 * kUs : 0), end, Event::communication});
      record_.bytes_sent["all_reduce"] += 594432;
      network = end;
    }
    record_.events.push_back({Event::wait, "all_reduce(bucket 0)", now_, network, Event::compute});
    now_ = network;
    span(Event::optimizer, "AdamW", 350);
    record_.events[at].end = now_;
    now_ += 30 * kUs;
  }

  run::RankRecord finished() {
    record_.peak = {3170816, 3170816, 6341632, 4 * 1310720, 792576};
    record_.total_peak = 3170816 + 3170816 + 6341632 + 4 * 1310720;
    return record_;
  }

 private:
  void span(Event::Kind kind, const std::string& what, int us) {
    const double noise = 1 + 0.15 * uniform(key_of({7, static_cast<std::uint64_t>(record_.rank)}), drawn_++);
    const auto end = now_ + static_cast<std::int64_t>(us * noise) * kUs;
    record_.events.push_back({kind, what, now_, end, Event::compute});
    now_ = end;
  }
  void sample(int live_blocks) {
    record_.memory.push_back({now_, {3170816, 3170816, 6341632, live_blocks * 1310720L, 792576}});
  }

  run::RankRecord record_;
  std::int64_t now_ = 1'000'000'000;
  std::uint64_t drawn_ = 0;
};

std::vector<run::StepMetrics> training(int steps, double speed) {
  std::vector<run::StepMetrics> all;
  for (int i = 1; i <= steps; ++i) {
    run::StepMetrics m;
    m.step = i;
    m.loss = 1.6 + 2.55 * std::exp(-i * speed / steps) + 0.05 * normal(11, static_cast<std::uint64_t>(i));
    if (i % (steps / 12) == 0) m.val_loss = 1.63 + 2.5 * std::exp(-i * speed / steps);
    all.push_back(m);
  }
  return all;
}

run::Report base(const std::string& title, int ranks, int steps) {
  run::Report report;
  report.title = title;
  report.subtitle = std::to_string(ranks) + " ranks on threads, config char, 600 steps on State of the Union";
  report.config =
      run::facts_of({{"ranks", "4"}, {"steps", "600"}, {"lr", "0.001"}, {"config", "char"}, {"run-dir", ""}});
  for (int r = 0; r < ranks; ++r) {
    FakeRank rank(r);
    for (i64 s = 1; s <= steps; ++s) rank.step(s);
    report.ranks.push_back(rank.finished());
  }
  return report;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "Usage: sample_report FOLDER (it must exist)\n");
    return 2;
  }
  const std::string folder = argv[1];

  run::Report full = base("Data parallelism: everybody has everything", 4, 3);
  run::add_run(full, "1 rank", training(600, 5));
  run::add_run(full, "4 ranks", training(600, 7));
  run::Table table;
  table.bytes("parameters per rank", 3170816, 3170816);
  table.bytes("optimizer per rank", 6341632, 6341632);
  table.bytes("sent per rank and step", 4756224, 4756288);
  table.count("all_reduce calls per step", 4, 4);
  table.value("step time", 9.8, 10.4, "ms", 0.1);
  table.measured("tokens per second", 61234.5, "tokens/s");
  full.rows = table.rows();
  full.samples.push_back({"What the model writes",
                          "The </script> of the <b>Congress</b> & the people, \xff\xfe of the United "
                          "States\nhave been made in the last session.\n"});
  full.figures.push_back({"Speed-up",
                          "ranks",
                          "times one rank",
                          {{"measured", {{1, 1}, {2, 1.9}, {4, 3.5}, {8, 6.1}}},
                           {"ideal", {{1, 1}, {2, 2}, {4, 4}, {8, 8}}, true}},
                          true,
                          true});
  run::Figure norm{"Gradient norm", "step", "before clipping", {{"norm", {}}}};
  for (int i = 1; i <= 600; ++i) norm.curves[0].points.emplace_back(i, 0.4 + 2 * std::exp(-i / 80.0));
  full.figures.push_back(norm);
  bool charts = run::write_report(folder + "/full.html", full);
  run::write_trace_json(folder + "/trace.json", full.ranks);

  run::Report longer = base("A long run", 8, 300);  // too many events to draw them all
  run::add_run(longer, "", training(6000, 6));
  charts = run::write_report(folder + "/long.html", longer) && charts;

  run::Report nothing;
  nothing.title = "Nothing to show";
  run::write_report(folder + "/nothing.html", nothing);

  setenv("SHARDLINGS_DATA", "/nowhere", 1);  // as on a machine where nothing was fetched
  run::write_report(folder + "/tables.html", full);
  return charts ? 0 : 1;
}
