#include "core/trace.hpp"

#include <chrono>
#include <utility>

namespace shardlings {

namespace {
constexpr std::size_t kNotRecorded = static_cast<std::size_t>(-1);
}

std::int64_t now_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

const char* name_of(Event::Kind kind) {
  switch (kind) {
    case Event::post:
      return "post";
    case Event::done:
      return "done";
    case Event::forward:
      return "forward";
    case Event::backward:
      return "backward";
    case Event::optimizer:
      return "optimizer";
    case Event::wait:
      return "wait";
    case Event::transfer:
      return "transfer";
    case Event::data:
      return "data";
    case Event::other:
      return "other";
  }
  return "?";
}

Trace::Span::~Span() {
  if (index_ < trace_->events_.size()) trace_->events_[index_].end = now_ns();
}

void Trace::mark(Event::Kind kind, std::string what) {
  if (!recording) return;
  const std::int64_t t = now_ns();
  events_.push_back({kind, std::move(what), t, t, Event::compute});
}

Trace::Span Trace::span(Event::Kind kind, std::string what) {
  if (!recording) return {*this, kNotRecorded};
  mark(kind, std::move(what));
  return {*this, events_.size() - 1};
}

void Trace::add(Event event) {
  if (recording) events_.push_back(std::move(event));
}

void Trace::sample(const MemoryLedger& ledger) {
  if (!recording) return;
  MemorySample s;
  s.at = now_ns();
  for (int c = 0; c < kCategories; ++c)
    s.bytes[static_cast<std::size_t>(c)] = ledger.now(static_cast<Category>(c));
  memory_.push_back(s);
}

void Trace::clear() {
  events_.clear();
  memory_.clear();
}

}  // namespace shardlings
