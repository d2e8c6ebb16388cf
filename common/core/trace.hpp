#pragma once
// What one rank did, in its own program order and on one clock for all ranks: marks (an instant) and spans
// (from, to). Tests ask it for order, the report draws it. The rank's own thread writes the compute lane;
// communication spans are handed over by Work::wait, on the rank's own thread too. So there is no lock.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/ledger.hpp"

namespace shardlings {

/// Nanoseconds of the steady clock.
std::int64_t now_ns();

struct Event {
  enum Kind { post, done, forward, backward, optimizer, wait, transfer, data, other };
  enum Lane { compute, communication };
  Kind kind = other;
  std::string what;        ///< "all_reduce(64 f32) on world #3", or a unit's name
  std::int64_t begin = 0;  ///< now_ns()
  std::int64_t end = 0;    ///< equal to begin for a mark
  Lane lane = compute;
};
const char* name_of(Event::Kind kind);

/// Bytes by category at one moment; the report draws memory over time from these.
struct MemorySample {
  std::int64_t at = 0;
  std::array<i64, kCategories> bytes{};
};

class Trace {
 public:
  /// Ends its span when it goes out of scope.
  class Span {
   public:
    Span(Trace& trace, std::size_t index) : trace_(&trace), index_(index) {}
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    Trace* trace_;
    std::size_t index_;
  };

  void mark(Event::Kind kind, std::string what);
  [[nodiscard]] Span span(Event::Kind kind, std::string what);
  void add(Event event);                    ///< a span measured elsewhere
  void sample(const MemoryLedger& ledger);  ///< remembers the bytes by category now
  void clear();

  const std::vector<Event>& events() const { return events_; }
  const std::vector<MemorySample>& memory() const { return memory_; }
  /// Long runs keep only what is asked for: while paused, nothing is recorded.
  bool recording = true;

 private:
  std::vector<Event> events_;
  std::vector<MemorySample> memory_;
};

}  // namespace shardlings
