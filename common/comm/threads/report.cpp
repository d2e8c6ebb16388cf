// What went wrong, in one sentence and one table. Everything here runs under the lock of the world.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "comm/threads/world.hpp"

namespace shardlings::comm_detail {

namespace {

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  return text;
}

const char* verb(const std::vector<int>& ranks, const char* one, const char* many) {
  return ranks.size() == 1 ? one : many;
}

bool has(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

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

std::string doing(const Slot& s) {
  if (s.state == Slot::returned) return "returned";
  if (s.state == Slot::failed) return "failed";
  if (s.posting != nullptr) return "calls " + describe(*s.posting);
  if (waits(s)) return "waits in " + describe(s.inside->call);
  return "computes";
}

std::string milliseconds(std::int64_t ns) {
  const double ms = static_cast<double>(ns) * 1e-6;
  return ms < 10 ? fmt::format("{:.2f} ms", ms) : std::to_string(std::lround(ms)) + " ms";
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
    failure_ = cause + "\n" + table(odd);
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
    const Frozen frozen(*this);
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
  const std::string why = explain_waiting(odd);
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
    const Call& second = tickets[1].call;
    if (first.in.count == second.out.count && first.in.dtype == second.out.dtype && first.tag == second.tag)
      return;
    return refuse(fmt::format("mismatch on {}: rank {} calls {}, rank {} calls {}", first.group->name,
                              member(exchange, 0), signature(first), member(exchange, 1), signature(second)),
                  {});
  }
  const auto fits_first = [&](const Ticket& t) { return fits(t.call, first); };
  if (std::all_of(tickets.begin() + 1, tickets.end(), fits_first)) return;

  const Lock lock = this->lock();
  std::map<std::string, std::vector<int>> camps;  // who calls what
  for (std::size_t i = 0; i < tickets.size(); ++i)
    camps[signature(tickets[i].call)].push_back(member(exchange, i));
  std::vector<std::pair<std::string, std::vector<int>>> sorted(camps.begin(), camps.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.size() != b.second.size() ? a.second.size() < b.second.size() : a.second < b.second;
  });
  std::vector<int> odd;  // all but the majority, if there is one
  std::string text;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const auto& [what, ranks] = sorted[i];
    text +=
        fmt::format("{}{} {} {}", i > 0 ? ", " : "", ranks_text(ranks), verb(ranks, "calls", "call"), what);
    const bool majority = i + 1 == sorted.size() && 2 * ranks.size() > tickets.size();
    if (!majority) odd.insert(odd.end(), ranks.begin(), ranks.end());
  }
  if (odd.size() == tickets.size()) odd.clear();
  refuse(fmt::format("mismatch on {} #{}: {}", first.group->name, first.sequence, text), odd);
}

// Why the waiting ranks wait: for ranks that do not wait themselves, or else for each other.
std::string World::explain_waiting(std::vector<int>& odd) const {
  for (const auto& s : slots_) {
    if (!waits(*s)) continue;
    for (const int r : missing(*s->inside)) {
      if (!waits(slot(r))) odd.push_back(r);
    }
    if (odd.empty()) continue;
    std::vector<int> together;
    for (const auto& t : slots_) {
      if (waits(*t) && t->inside->exchange == s->inside->exchange) together.push_back(t->rank->rank());
    }
    const bool over = slot(odd[0]).state == Slot::returned;
    return fmt::format(
        "{} {} in {}; {} {}", ranks_text(together), verb(together, "waits", "wait"),
        describe(s->inside->call), ranks_text(odd),
        over ? "returned without calling it" : verb(odd, "has not called it", "have not called it"));
  }
  return explain_cycle(odd);
}

std::string World::explain_cycle(std::vector<int>& odd) const {
  std::vector<int> waited_for(slots_.size(), 0), path;
  for (const auto& s : slots_) {
    if (!waits(*s)) continue;
    if (path.empty()) path.push_back(s->rank->rank());
    for (const int r : missing(*s->inside)) ++waited_for[static_cast<std::size_t>(r)];
  }
  const auto most = std::max_element(waited_for.begin(), waited_for.end());
  if (*most > 1 && std::count(waited_for.begin(), waited_for.end(), *most) == 1) {
    odd = {static_cast<int>(most - waited_for.begin())};
  }
  // From the first waiting rank along "waits for", until a rank comes again.
  std::string text = "the ranks wait for each other: ";
  for (;;) {
    const Slot& s = slot(path.back());
    const std::vector<int> next = missing(*s.inside);
    if (next.empty()) return text + doing(s);
    const bool again = has(path, next[0]);
    text += fmt::format("rank {} in {} for rank {}{}", path.back(), describe(s.inside->call), next[0],
                        again ? "" : ", ");
    if (again) break;
    path.push_back(next[0]);
  }
  const bool sends =
      std::all_of(path.begin(), path.end(), [&](int r) { return slot(r).inside->call.kind == Kind::send; });
  if (sends) text += ". Here a send ends when it is received: post the receive before waiting for the send";
  return text;
}

std::string World::table(const std::vector<int>& odd) const {
  struct Row {
    std::string rank, doing, since, last;
  };
  std::vector<Row> rows = {{"rank", "doing", "since", "last completed"}};
  const std::int64_t now = now_ns();
  for (std::size_t r = 0; r < slots_.size(); ++r) {
    const Slot& s = *slots_[r];
    rows.push_back({fmt::format("{}{}", has(odd, static_cast<int>(r)) ? "> " : "", r), doing(s),
                    milliseconds(now - s.since), s.any_completed ? describe(s.last) : "nothing"});
  }
  std::size_t a = 0, b = 0, c = 0;
  for (const Row& row : rows) {
    a = std::max(a, row.rank.size());
    b = std::max(b, row.doing.size());
    c = std::max(c, row.since.size());
  }
  std::string text;
  for (const Row& row : rows) {
    text += "  " + std::string(a - row.rank.size(), ' ') + row.rank + " | " + row.doing +
            std::string(b - row.doing.size(), ' ') + " | " + std::string(c - row.since.size(), ' ') +
            row.since + " | " + row.last + "\n";
  }
  text.pop_back();
  return text;
}

}  // namespace shardlings::comm_detail
