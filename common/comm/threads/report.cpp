// What went wrong, in one sentence and one table. Everything here runs under the lock of the world.
#include <fmt/format.h>

#include <algorithm>

#include "comm/threads/world.hpp"

namespace shardlings::comm_detail {

namespace {

bool waits(const Slot& s) { return s.inside != nullptr && !s.inside->done; }

// World ranks whose calls the exchange still lacks. A message lacks one side; a ticket knows the other by its
// peer.
std::vector<int> missing(const Ticket& ticket) {
  const Call& call = ticket.call;
  const auto& members = call.group->members;
  std::vector<int> ranks;
  for (std::size_t i = 0; i < ticket.exchange->tickets.size(); ++i) {
    if (ticket.exchange->tickets[i].posted) continue;
    ranks.push_back(members[call.message() ? static_cast<std::size_t>(call.peer) : i]);
  }
  return ranks;
}

}  // namespace

World::Frozen::Frozen(const World& world) : world_(world) {
  if (world_.frozen_++ > 0) return;
  for (const auto& s : world_.slots_) s->gate.lock();
}

World::Frozen::~Frozen() {
  if (--world_.frozen_ > 0) return;
  for (const auto& s : world_.slots_) s->gate.unlock();
}

void World::fail_run(const std::string& cause, const std::vector<int>& odd, std::exception_ptr error) {
  {
    const Frozen frozen(*this);
    failure_ = cause + "\n" + table_text(states(), odd);
  }
  error_ = std::move(error);
  failed_ = true;
  for (auto& s : slots_) {
    s->wake.notify_all();
    s->jobs_wake.notify_all();
  }
}

void World::finished(int rank, const std::exception_ptr& error) {
  bool own = error != nullptr;  // the rank's own exception, not the failure of the run
  std::string why = "an exception that is not a std::exception";
  try {
    if (error) std::rethrow_exception(error);
  } catch (const RunFailed&) {
    own = false;
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {
  }
  const std::lock_guard lock(mutex_);
  Slot& mine = slot(rank);
  mine.state = error ? Slot::failed : Slot::returned;
  {
    const std::lock_guard gate(mine.gate);
    mine.since = now_ns();
  }
  if (own && !failed_) {
    fail_run(fmt::format("rank {} failed: {}", rank, why), {rank}, error);
  } else if (own && culprit_ == rank && !error_) {
    error_ = error;
  } else {
    check_deadlock();
  }
}

void World::rethrow() const {
  if (error_) std::rethrow_exception(error_);
  if (failed_) fail(failure_);
  std::vector<std::shared_ptr<ThreadGroup>> all = {everyone_};
  for (const auto& [key, group] : groups_) all.push_back(group);
  for (const auto& group : all) {
    for (const auto& [route, queue] : group->messages) {
      if (queue.empty()) continue;
      const Exchange& first = *queue.front();
      fail(fmt::format("rank {} returned, and nobody received its {}", member(first, 0),
                       describe(first.tickets[0].call)));
    }
  }
}

// No rank can move and nothing is under way: nobody will ever wake anybody.
void World::check_deadlock() {
  if (failed_ || under_way_ > 0) return;
  bool any = false;
  for (const auto& s : slots_) {
    if (s->state != Slot::running) continue;
    if (s->asleep == nullptr || s->asleep->done) return;
    any = true;
  }
  if (!any) return;
  const Frozen frozen(*this);
  std::vector<int> odd;
  const std::string why = explain_waiting(states(), odd);
  fail_run("deadlock: " + why, odd);
}

// Called when the last member has called: all must have called the same. A message is posted under the lock.
void World::refuse_unless_fits(Exchange& exchange, int poster, const Call& call) {
  const auto& tickets = exchange.tickets;
  const Call& first = tickets[0].call;
  const auto refuse = [&](const std::string& cause, const std::vector<int>& odd) {
    if (!failed_) {
      slot(poster).posting = &call;
      fail_run(cause, odd);
      slot(poster).posting = nullptr;
    }
    exchange.refused = true;
    throw RunFailed(failure_);
  };
  if (first.message()) {
    const std::string text = mismatch_text(first, member(exchange, 0), tickets[1].call, member(exchange, 1));
    if (!text.empty()) refuse(text, {});
    return;
  }
  const auto fits_first = [&](const Ticket& t) { return fits(t.call, first); };
  if (std::all_of(tickets.begin() + 1, tickets.end(), fits_first)) return;

  const Lock lock = this->lock();
  std::vector<const Call*> calls;
  std::vector<int> members, odd;
  calls.reserve(tickets.size());
  members.reserve(tickets.size());
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    calls.push_back(&tickets[i].call);
    members.push_back(member(exchange, i));
  }
  const std::string text = mismatch_text(calls, members, odd);
  refuse(text, odd);
}

std::vector<RankState> World::states() const {
  std::vector<RankState> all;
  all.reserve(slots_.size());
  const std::int64_t now = now_ns();
  for (const auto& slot : slots_) {
    const Slot& s = *slot;
    RankState& r = all.emplace_back();
    r.for_ns = now - s.since;
    if (s.any_completed) r.last = describe(s.last);
    if (s.state != Slot::running) {
      r.state = s.state == Slot::returned ? RankState::returned : RankState::failed;
      continue;
    }
    if (waits(s)) {
      const Call& call = s.inside->call;
      r.call = describe(call);
      r.waits = s.posting == nullptr;
      r.sends = call.kind == Kind::send;
      r.exchange = reinterpret_cast<std::uintptr_t>(s.inside->exchange);
      r.missing = missing(*s.inside);
    }
    if (s.posting != nullptr) r.call = describe(*s.posting);
  }
  return all;
}

}  // namespace shardlings::comm_detail
