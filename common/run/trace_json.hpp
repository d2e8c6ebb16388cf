#pragma once
// What a run's ranks did, taken along when their Rank is gone: for trace.json (Chrome's format; open it in
// Perfetto) and for the report. Also how much communication no computing covered.
#include <array>
#include <map>
#include <string>
#include <vector>

#include "core/trace.hpp"

namespace shardlings {
class Rank;
}

namespace shardlings::run {

/// A copy of one rank's trace and ledgers.
struct RankRecord {
  int rank = 0;
  std::vector<Event> events;
  std::vector<MemorySample> memory;
  std::array<i64, kCategories> peak{};    ///< bytes by category, each at its own moment
  i64 total_peak = 0;                     ///< bytes, largest total at one moment
  std::map<std::string, i64> bytes_sent;  ///< by operation
};
RankRecord record_of(const Rank& rank);

/// A span of this name marks a whole step: `auto step = rank.trace.span(Event::other, step_name(12));`. The
/// report uses them to choose its window; they count neither as computing nor as waiting.
std::string step_name(i64 step);
bool is_step(const Event& event);

/// For each event of one lane the track on which it is drawn, so that spans on one track never overlap, but
/// for spans inside others when `nested` (a program's own calls nest; transfers under way at the same time do
/// not).
std::vector<int> tracks_of(const std::vector<const Event*>& lane, bool nested);

/// How much of a rank's communication was not hidden behind its computing. All in milliseconds.
struct Exposure {
  double communication = 0;  ///< some transfer was under way
  double exposed = 0;        ///< of that, while this rank computed nothing (it waited, or was between calls)
  double computing = 0;      ///< in forward, backward, optimizer, data spans, without waits inside them
  double total = 0;          ///< from the first event to the last
  double share() const { return communication > 0 ? exposed / communication : 0; }
};
Exposure exposure_of(const std::vector<Event>& events);

/// Chrome trace: a process for each rank, thread 0 computing, threads 1… communication, a memory counter.
/// Microseconds from the first event of all ranks. Error when the file cannot be written.
void write_trace_json(const std::string& path, const std::vector<RankRecord>& ranks);

}  // namespace shardlings::run
