#include "run/report.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace shardlings::run {

/// report_template.html, put into the library when it is built (see common/CMakeLists.txt).
extern const char* const kReportTemplate;

namespace {

using Json = nlohmann::ordered_json;

// What a browser draws without stuttering. Longer traces are cut to their last whole steps that fit.
constexpr std::size_t kMostEvents = 8000;
constexpr std::size_t kMostSamples = 1000;  // of memory, per rank

struct Window {
  std::int64_t begin, end;
  std::string said;  // empty: everything is drawn
};

/// Chooses what of the timeline is drawn: everything, or the last steps of which all ranks' events fit.
Window window_of(const std::vector<RankRecord>& ranks) {
  Window window{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(), ""};
  std::size_t count = 0;
  std::vector<std::int64_t> begins;  // of all events, and
  std::vector<const Event*> steps;   // of the first rank's steps
  for (const RankRecord& rank : ranks) {
    count += rank.events.size();
    for (const Event& event : rank.events) {
      window.begin = std::min(window.begin, event.begin);
      window.end = std::max(window.end, event.end);
      begins.push_back(event.begin);
      if (&rank == &ranks.front() && is_step(event)) steps.push_back(&event);
    }
  }
  if (count <= kMostEvents) return window;
  std::sort(begins.begin(), begins.end());
  window.begin = begins[count - kMostEvents];
  window.said = fmt::format("the last {} of {} events", kMostEvents, count);
  const auto whole =
      std::find_if(steps.begin(), steps.end(), [&](const Event* e) { return e->begin >= window.begin; });
  if (whole != steps.end()) {
    window.begin = (*whole)->begin;
    window.said = fmt::format("{} to {}, the last that fit, of {} recorded", (*whole)->what,
                              steps.back()->what, steps.size());
  }
  return window;
}

/// What a timeline's block is drawn as.
const char* category_of(const Event& event) {
  if (event.lane == Event::communication) return "communication";
  switch (event.kind) {
    case Event::forward:
      return "forward";
    case Event::backward:
      return "backward";
    case Event::optimizer:
      return "optimizer";
    case Event::wait:
      return "waiting";
    case Event::transfer:
      return "communication";
    default:
      return "other";
  }
}

double milliseconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }

/// Blocks as [row, from ms, to ms, name, category, depth]; rows are the tracks of all ranks, named.
Json timeline_of(const std::vector<RankRecord>& ranks) {
  Json timeline{{"rows", Json::array()}, {"blocks", Json::array()}, {"steps", Json::array()}};
  const Window window = window_of(ranks);
  timeline["window"] = window.said;
  for (const RankRecord& rank : ranks) {
    for (const Event::Lane lane : {Event::compute, Event::communication}) {
      std::vector<const Event*> events;
      for (const Event& event : rank.events) {
        if (event.lane != lane || event.end == event.begin) continue;
        if (event.begin < window.begin || event.end > window.end) continue;
        if (!is_step(event)) {
          events.push_back(&event);
        } else if (&rank == &ranks.front()) {
          timeline["steps"].push_back(
              {milliseconds(event.begin - window.begin), milliseconds(event.end - window.begin), event.what});
        }
      }
      if (events.empty() && lane == Event::communication) continue;
      const std::vector<int> tracks = tracks_of(events, lane == Event::compute);
      const int last = tracks.empty() ? 0 : *std::max_element(tracks.begin(), tracks.end());
      const std::size_t first_row = timeline["rows"].size();
      for (int track = 0; track <= last; ++track) {
        const bool named = track == 0;
        timeline["rows"].push_back(!named                   ? ""
                                   : lane == Event::compute ? fmt::format("rank {}", rank.rank)
                                                            : "network");
      }
      for (std::size_t i = 0; i < events.size(); ++i) {
        const Event& e = *events[i];
        timeline["blocks"].push_back({first_row + static_cast<std::size_t>(tracks[i]),
                                      milliseconds(e.begin - window.begin),
                                      milliseconds(e.end - window.begin), e.what, category_of(e)});
      }
    }
  }
  return timeline;
}

/// Of many samples those with the largest total in each of kMostSamples groups, so that no peak is lost.
std::vector<MemorySample> thinned(const std::vector<MemorySample>& samples) {
  if (samples.size() <= kMostSamples) return samples;
  const auto total = [](const MemorySample& s) {
    i64 sum = 0;
    for (const i64 bytes : s.bytes) sum += bytes;
    return sum;
  };
  std::vector<MemorySample> kept;
  for (std::size_t group = 0; group < kMostSamples; ++group) {
    const auto begin = samples.begin() + static_cast<std::ptrdiff_t>(group * samples.size() / kMostSamples);
    const auto end =
        samples.begin() + static_cast<std::ptrdiff_t>((group + 1) * samples.size() / kMostSamples);
    kept.push_back(
        *std::max_element(begin, end, [&](const auto& a, const auto& b) { return total(a) < total(b); }));
  }
  return kept;
}

Json memory_of(const std::vector<RankRecord>& ranks) {
  Json memory{{"categories", Json::array()}, {"ranks", Json::array()}};
  for (int c = 0; c < kCategories; ++c) memory["categories"].push_back(name_of(static_cast<Category>(c)));
  std::int64_t zero = std::numeric_limits<std::int64_t>::max();
  for (const RankRecord& rank : ranks) {
    if (!rank.memory.empty()) zero = std::min(zero, rank.memory.front().at);
  }
  for (const RankRecord& rank : ranks) {
    Json samples = Json::array();
    for (const MemorySample& s : thinned(rank.memory)) {
      Json sample{milliseconds(s.at - zero)};
      for (const i64 bytes : s.bytes) sample.push_back(bytes);
      samples.push_back(std::move(sample));
    }
    memory["ranks"].push_back({{"rank", rank.rank},
                               {"peak", rank.peak},
                               {"total_peak", rank.total_peak},
                               {"sent", rank.bytes_sent},
                               {"samples", std::move(samples)}});
  }
  return memory;
}

Json curves_of(const std::vector<Curve>& curves) {
  Json all = Json::array();
  for (const Curve& curve : curves) {
    Json points = Json::array();
    for (const auto& [x, y] : curve.points) {
      points.push_back({x, std::isfinite(y) ? Json(y) : Json(nullptr)});
    }
    all.push_back({{"name", curve.name}, {"dashed", curve.dashed}, {"points", std::move(points)}});
  }
  return all;
}

Json rows_of(const std::vector<TableRow>& rows) {
  Json all = Json::array();
  for (const TableRow& row : rows) {
    const auto verdict = row.verdict();
    all.push_back({{"name", row.name},
                   {"predicted", row.predicted ? number_text(*row.predicted, row.whole) : ""},
                   {"measured", number_text(row.measured, row.whole)},
                   {"unit", row.unit},
                   {"verdict", verdict == TableRow::Verdict::equal       ? "equal"
                               : verdict == TableRow::Verdict::different ? "different"
                                                                         : ""}});
  }
  return all;
}

Json to_json(const Report& report) {
  Json page{{"title", report.title}, {"subtitle", report.subtitle}};
  page["config"] = Json::array();
  for (const auto& [label, value] : report.config) page["config"].push_back({label, value});
  page["loss"] = curves_of(report.curves);
  page["figures"] = Json::array();
  for (const Figure& figure : report.figures) {
    page["figures"].push_back({{"title", figure.title},
                               {"x", figure.x_label},
                               {"y", figure.y_label},
                               {"log_x", figure.log_x},
                               {"log_y", figure.log_y},
                               {"curves", curves_of(figure.curves)}});
  }
  page["timeline"] = timeline_of(report.ranks);
  page["memory"] = memory_of(report.ranks);
  page["exposure"] = Json::array();
  for (const RankRecord& rank : report.ranks) {
    const Exposure e = exposure_of(rank.events);
    page["exposure"].push_back({{"rank", rank.rank},
                                {"communication", e.communication},
                                {"exposed", e.exposed},
                                {"computing", e.computing},
                                {"total", e.total}});
  }
  page["rows"] = rows_of(report.rows);
  page["samples"] = Json::array();
  for (const Sample& sample : report.samples) {
    page["samples"].push_back({{"title", sample.title}, {"text", sample.text}});
  }
  return page;
}

std::string echarts() {
  const char* const elsewhere = std::getenv("SHARDLINGS_DATA");
  const std::string folder = elsewhere ? elsewhere : SHARDLINGS_DATA_DIR;
  std::ifstream file(folder + "/echarts/echarts.min.js", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Puts `text` where the template says `mark`.
void fill(std::string& page, const std::string& mark, const std::string& text) {
  const auto at = page.find(mark);
  require(at != std::string::npos, [&] { return fmt::format("The report's template lacks {}.", mark); });
  page.replace(at, mark.size(), text);
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::string html_safe(const std::string& text) { return replaced(replaced(text, "&", "&amp;"), "<", "&lt;"); }

}  // namespace

void add_run(Report& report, const std::string& run, const std::vector<StepMetrics>& metrics) {
  const std::string prefix = run.empty() ? "" : run + ": ";
  Curve train{prefix + "train", {}}, validation{prefix + "validation", {}, true};
  for (const StepMetrics& m : metrics) {
    if (m.loss) train.points.emplace_back(static_cast<double>(m.step), *m.loss);
    if (m.val_loss) validation.points.emplace_back(static_cast<double>(m.step), *m.val_loss);
  }
  if (!train.points.empty()) report.curves.push_back(std::move(train));
  if (!validation.points.empty()) report.curves.push_back(std::move(validation));
}

Facts facts_of(const std::map<std::string, std::string>& flags) {
  Facts facts;
  for (const auto& [name, value] : flags) facts.emplace_back("--" + name, value);
  for (auto& fact : host_facts()) facts.push_back(std::move(fact));
  return facts;
}

bool write_report(const std::string& path, const Report& report) {
  const std::string charts = echarts();
  std::string page = kReportTemplate;
  // The model may write bytes that are no UTF-8: they are replaced, not refused.
  const std::string data = to_json(report).dump(-1, ' ', false, Json::error_handler_t::replace);
  // No "</script>" may stand in a script, whatever a run or a model wrote. The marks are filled from the last
  // to the first, so that a filled-in text is never searched.
  fill(page, "/*DATA*/", replaced(data, "<", "\\u003c"));
  fill(page, "/*ECHARTS*/", replaced(charts, "</", "<\\/"));
  fill(page, "<!--TITLE-->", html_safe(report.title));
  std::ofstream file(path, std::ios::binary);
  file << page << std::flush;
  require(file.good(), [&] { return fmt::format("{} cannot be written.", path); });
  return !charts.empty();
}

void leave_pictures(const RunDir& folder, const Report& report) {
  const std::string trace = folder.file("trace.json"), page = folder.file("report.html");
  write_trace_json(trace, report.ranks);
  write_report(page, report);
  fmt::print("\ntrace   {}   (open it in https://ui.perfetto.dev)\nreport  {}\n", trace, page);
}

}  // namespace shardlings::run
