#include "run/trace_json.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "comm/comm.hpp"
#include "core/error.hpp"

namespace shardlings::run {

namespace {

using Json = nlohmann::ordered_json;
using Span = std::pair<std::int64_t, std::int64_t>;

constexpr std::string_view kStep = "step ";

/// Sorted, without overlaps.
std::vector<Span> united(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end());
  std::vector<Span> all;
  for (const Span& span : spans) {
    if (!all.empty() && span.first <= all.back().second)
      all.back().second = std::max(all.back().second, span.second);
    else
      all.push_back(span);
  }
  return all;
}

/// What is in a and not in b; both united.
std::vector<Span> without(const std::vector<Span>& a, const std::vector<Span>& b) {
  std::vector<Span> rest;
  auto cut = b.begin();
  for (auto [begin, end] : a) {
    while (cut != b.end() && cut->second <= begin) ++cut;
    for (auto c = cut; c != b.end() && c->first < end; ++c) {
      if (c->first > begin) rest.emplace_back(begin, c->first);
      begin = std::max(begin, c->second);
    }
    if (begin < end) rest.emplace_back(begin, end);
  }
  return rest;
}

double milliseconds(const std::vector<Span>& spans) {
  std::int64_t ns = 0;
  for (const auto& [begin, end] : spans) ns += end - begin;
  return static_cast<double>(ns) * 1e-6;
}

std::int64_t first_moment(const std::vector<RankRecord>& ranks) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const RankRecord& rank : ranks) {
    for (const Event& event : rank.events) first = std::min(first, event.begin);
    for (const MemorySample& sample : rank.memory) first = std::min(first, sample.at);
  }
  return first;
}

Json named(const char* what, int pid, int tid, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}};
}

/// One lane of one rank; its tracks become threads `first_tid`, `first_tid` + 1, …
void add_lane(Json& out, const RankRecord& rank, Event::Lane lane, int first_tid, std::int64_t zero) {
  std::vector<const Event*> events;
  for (const Event& event : rank.events) {
    if (event.lane == lane) events.push_back(&event);
  }
  if (events.empty()) return;
  const std::vector<int> tracks = tracks_of(events, lane == Event::compute);
  const int last = *std::max_element(tracks.begin(), tracks.end());
  const std::string name = lane == Event::compute ? "computing" : "communication";
  for (int track = 0; track <= last; ++track) {
    const int tid = first_tid + track;
    out.push_back(
        named("thread_name", rank.rank, tid, track == 0 ? name : fmt::format("{} {}", name, track + 1)));
    out.push_back({{"ph", "M"},
                   {"name", "thread_sort_index"},
                   {"pid", rank.rank},
                   {"tid", tid},
                   {"args", {{"sort_index", lane == Event::compute ? track : 1000 + track}}}});
  }
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = *events[i];
    Json entry{{"name", event.what},
               {"cat", name_of(event.kind)},
               {"pid", rank.rank},
               {"tid", first_tid + tracks[i]},
               {"ts", static_cast<double>(event.begin - zero) * 1e-3}};
    if (event.end > event.begin) {
      entry["ph"] = "X";
      entry["dur"] = static_cast<double>(event.end - event.begin) * 1e-3;
    } else {
      entry["ph"] = "i";
      entry["s"] = "t";
    }
    out.push_back(std::move(entry));
  }
}

}  // namespace

RankRecord record_of(const Rank& rank) {
  RankRecord record;
  record.rank = rank.rank();
  record.events = rank.trace.events();
  record.memory = rank.trace.memory();
  for (int c = 0; c < kCategories; ++c) {
    record.peak[static_cast<std::size_t>(c)] = rank.memory.peak(static_cast<Category>(c));
  }
  record.total_peak = rank.memory.peak();
  record.bytes_sent = rank.traffic.bytes;
  return record;
}

std::string step_name(i64 step) { return fmt::format("{}{}", kStep, step); }
bool is_step(const Event& event) { return event.kind == Event::other && event.what.rfind(kStep, 0) == 0; }

std::vector<int> tracks_of(const std::vector<const Event*>& lane, bool nested) {
  // In order of beginning, the longer first: a span then comes after those that enclose it.
  std::vector<std::size_t> order(lane.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return lane[a]->begin != lane[b]->begin ? lane[a]->begin < lane[b]->begin : lane[a]->end > lane[b]->end;
  });
  std::vector<int> tracks(lane.size(), 0);
  std::vector<std::vector<std::int64_t>>
      open;  // by track: the ends of the spans that are open, innermost last
  for (const std::size_t i : order) {
    const Event& event = *lane[i];
    if (event.end == event.begin) continue;  // a mark overlaps nothing
    for (std::size_t track = 0;; ++track) {
      if (track == open.size()) open.emplace_back();
      auto& ends = open[track];
      while (!ends.empty() && ends.back() <= event.begin) ends.pop_back();
      if (!ends.empty() && !(nested && event.end <= ends.back())) continue;
      ends.push_back(event.end);
      tracks[i] = static_cast<int>(track);
      break;
    }
  }
  return tracks;
}

Exposure exposure_of(const std::vector<Event>& events) {
  std::vector<Span> transfers, computing, waiting;
  Span all{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (const Event& event : events) {
    all.first = std::min(all.first, event.begin);
    all.second = std::max(all.second, event.end);
    if (event.end == event.begin) continue;
    const Span span{event.begin, event.end};
    if (event.lane == Event::communication) {
      transfers.push_back(span);
      continue;
    }
    switch (event.kind) {
      case Event::forward:
      case Event::backward:
      case Event::optimizer:
      case Event::data:
        computing.push_back(span);
        break;
      case Event::wait:
        waiting.push_back(span);
        break;
      default:
        break;
    }
  }
  if (events.empty()) return {};
  const auto sent = united(transfers);
  const auto computed = without(united(computing), united(waiting));
  return {milliseconds(sent), milliseconds(without(sent, computed)), milliseconds(computed),
          milliseconds({all})};
}

void write_trace_json(const std::string& path, const std::vector<RankRecord>& ranks) {
  const std::int64_t zero = first_moment(ranks);
  Json out = Json::array();
  for (const RankRecord& rank : ranks) {
    out.push_back(named("process_name", rank.rank, 0, fmt::format("rank {}", rank.rank)));
    out.push_back({{"ph", "M"},
                   {"name", "process_sort_index"},
                   {"pid", rank.rank},
                   {"args", {{"sort_index", rank.rank}}}});
    add_lane(out, rank, Event::compute, 0, zero);
    add_lane(out, rank, Event::communication, 100, zero);
    for (const MemorySample& sample : rank.memory) {
      Json counter{{"name", "memory (bytes)"},
                   {"ph", "C"},
                   {"pid", rank.rank},
                   {"ts", static_cast<double>(sample.at - zero) * 1e-3}};
      for (int c = 0; c < kCategories; ++c) {
        counter["args"][name_of(static_cast<Category>(c))] = sample.bytes[static_cast<std::size_t>(c)];
      }
      out.push_back(std::move(counter));
    }
  }
  std::ofstream file(path);
  // One event a line: a trace can be looked at, and compared, with the tools for text.
  file << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  const char* separator = "\n";
  for (const Json& entry : out) {
    file << separator << entry.dump(-1, ' ', false, Json::error_handler_t::replace);
    separator = ",\n";
  }
  file << "\n]}\n" << std::flush;
  require(file.good(), [&] { return fmt::format("{} cannot be written.", path); });
}

}  // namespace shardlings::run
