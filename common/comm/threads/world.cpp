// Matching calls, doing exchanges, waiting for them.
#include "comm/threads/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace shardlings::comm_detail {

namespace {

// An exchange of so few bytes (of all members together) is done in post() by who completes it, helped by
// ranks that wait: waking somebody takes longer.
constexpr i64 kSmall = 256 * 1024;
// How long a rank looks before it sleeps, where each rank has a core. A wake-up costs about 50 us.
constexpr std::int64_t kSpinNs = 100'000;
// How often it lets another rank run before it sleeps, where ranks share cores.
constexpr int kYields = 8;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

bool has_parts(const Exchange& exchange) { return exchange.open && exchange.parts_taken < exchange.parts; }

std::chrono::steady_clock::time_point clock_at(std::int64_t ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(ns));
}

}  // namespace

void Gate::lock() {
  for (int tries = 0; taken_.exchange(true, std::memory_order_acquire); ++tries) {
    for (int i = 0; taken_.load(std::memory_order_relaxed) && i < 64; ++i) pause();
    if (tries > 8) std::this_thread::yield();  // who holds it may have lost its core
  }
}

void Ticket::reset() {
  posted.store(false, std::memory_order_relaxed);
  done.store(false, std::memory_order_relaxed);
  stage = Stage();
  call = Call();
  text.clear();
}

void Exchange::prepare(ThreadGroup* owner) {
  constexpr auto kRelaxed = std::memory_order_relaxed;  // who gets it from the group comes through its gate
  group = owner;
  joined = 0;
  counted = false;
  members.clear();
  arrived.store(0, kRelaxed);
  holders.store(static_cast<int>(tickets.size()), kRelaxed);
  timed.store(false, kRelaxed);
  complete.store(false, kRelaxed);
  open.store(false, kRelaxed);
  parts_taken.store(0, kRelaxed);
  // Not in Ticket::reset: another member may still look for parts when this one has gone.
  for (Ticket& t : tickets) t.part_taken.store(false, kRelaxed);
}

void Exchange::release() {
  if (holders.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  const std::lock_guard gate(group->gate);
  group->free.push_back(this);
}

// What is done under the lock is short: where each rank has a core, looking again is faster than sleeping.
World::Lock World::lock() {
  Lock lock(mutex_, std::try_to_lock);
  for (int i = 0; spins_ && !lock && i < 200; ++i) {
    pause();
    if (lock.try_lock()) return lock;
  }
  if (!lock) lock.lock();
  return lock;
}

World::World(std::vector<Rank*> ranks, const RunOptions& options)
    : options_(options), spins_(static_cast<int>(ranks.size()) <= available_cores()) {
  std::vector<int> all;
  for (Rank* rank : ranks) {
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->rank = rank;
    slots_.back()->since = now_ns();
    all.push_back(static_cast<int>(all.size()));
  }
  everyone_ = std::make_shared<ThreadGroup>("world", std::move(all));
  for (auto& s : slots_) s->thread = std::thread([this, &mine = *s] { communicate(mine); });
}

World::~World() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (auto& s : slots_) s->jobs_wake.notify_all();
  }
  for (auto& s : slots_) s->thread.join();
}

std::shared_ptr<Group> World::group(const Group& parent, i64 sequence, int color, std::string name,
                                    std::vector<int> members) {
  const std::lock_guard lock(mutex_);
  auto& group = groups_[{&parent, sequence, color}];
  if (!group) group = std::make_shared<ThreadGroup>(std::move(name), std::move(members));
  return group;
}

// ---------------------------------------------------------------- posting

// World rank of a ticket's owner.
int World::member(const Exchange& exchange, std::size_t index) {
  if (exchange.group != nullptr) return exchange.group->members[index];
  const Call& call = exchange.tickets[index].call;
  return call.group->members[static_cast<std::size_t>(call.me)];
}

Exchange& World::join_collective(const Call& call) {
  auto& group = static_cast<ThreadGroup&>(*call.group);
  const std::lock_guard gate(group.gate);
  const auto index = static_cast<std::size_t>(call.sequence - group.first);
  if (index == group.collectives.size()) {
    if (group.free.empty()) {
      group.exchanges.push_back(std::make_unique<Exchange>(static_cast<std::size_t>(group.size())));
      group.free.push_back(group.exchanges.back().get());
    }
    group.collectives.push_back(group.free.back());
    group.free.pop_back();
    group.collectives.back()->prepare(&group);
  }
  Exchange& exchange = *group.collectives[index];
  if (++exchange.joined == group.size()) {  // the first of the list: every member has joined those before
    group.collectives.pop_front();
    ++group.first;
  }
  return exchange;
}

std::shared_ptr<Exchange> World::join_messages(const Call& call) {
  const bool sends = call.kind == Kind::send;
  auto& queue = static_cast<ThreadGroup&>(*call.group)
                    .messages[sends ? std::pair{call.me, call.peer} : std::pair{call.peer, call.me}];
  if (!queue.empty() && !queue.front()->tickets[sends ? 0 : 1].posted) {
    auto exchange = queue.front();
    queue.pop_front();
    return exchange;
  }
  return queue.emplace_back(std::make_shared<Exchange>(2));
}

std::shared_ptr<Operation> World::post(Rank& rank, const Call& call) {
  const bool message = call.message(), letter = call.kind == Kind::send && options_.buffered_send;
  Stage stage = options_.checked ? Stage::checked(call, *pool_)
                : letter         ? Stage::letter(call, *pool_)
                                 : Stage::direct(call);
  Lock lock(mutex_, std::defer_lock);
  if (message) lock = this->lock();
  if (failed_) {
    if (!lock) lock = this->lock();
    throw RunFailed(failure_);
  }
  // A message belongs to those who know it; a collective to its group.
  const std::shared_ptr<Exchange> exchange =
      message ? join_messages(call)
              : std::shared_ptr<Exchange>(std::shared_ptr<void>(), &join_collective(call));
  const std::size_t index = message ? (call.kind == Kind::send ? 0 : 1) : static_cast<std::size_t>(call.me);
  Ticket& ticket = exchange->tickets[index];
  ticket.call = call;
  ticket.stage = std::move(stage);
  ticket.posted.store(true, std::memory_order_release);
  if (rank.trace.recording) exchange->timed.store(true, std::memory_order_relaxed);
  if (letter) {  // on its way at once, received or not
    reserve_link(*exchange);
    ticket.begin = exchange->begin;
    ticket.end = exchange->end;
    ticket.done = true;
  }
  // From here on somebody else may complete the exchange, and after a failure nobody: see settle().
  const int before = exchange->arrived.fetch_add(1, std::memory_order_acq_rel);
  if ((before & kClosed) != 0) {
    exchange->refused = true;
    if (!lock) lock = this->lock();
    throw RunFailed(failure_);
  }
  if (before + 1 == static_cast<int>(exchange->tickets.size())) {
    refuse_unless_fits(*exchange, rank.rank(), call);
    start(exchange, rank.rank(), call.me, lock);
  }
  if (message) return {exchange, &ticket};  // a letter outlives its sender's interest
  return {&ticket, [](Ticket* mine) {       // the caller's last touch
            Exchange& of = *mine->exchange;
            mine->reset();
            of.release();
          }};
}

// When the exchange begins and ends. With a link: its members send one thing after the other; receiving is
// free.
void World::reserve_link(Exchange& exchange) {
  exchange.begin = exchange.end = now_ns();
  if (options_.link.none()) return;
  const Call& call = exchange.tickets[0].call;
  std::vector<int> senders;
  for (std::size_t i = 0; i < (call.message() ? 1 : exchange.tickets.size()); ++i)
    senders.push_back(member(exchange, i));
  for (const int r : senders) exchange.begin = std::max(exchange.begin, slot(r).link_free);
  const double seconds =
      transfer_seconds(options_.link, name_of(call.kind), call.group->size(), total_bytes(call));
  exchange.end = exchange.begin + static_cast<std::int64_t>(seconds * 1e9);
  for (const int r : senders) slot(r).link_free = exchange.end;
}

void World::enqueue(int rank, const std::shared_ptr<Exchange>& exchange) {
  if (exchange->group != nullptr) ++exchange->holders;
  slot(rank).jobs.push_back(exchange);
  slot(rank).jobs_wake.notify_one();
}

// All calls are there: decides who does the exchange. Takes the lock if it is needed and not held.
void World::start(const std::shared_ptr<Exchange>& exchange, int poster, int place, Lock& lock) {
  Exchange& e = *exchange;
  const Call& call = e.tickets[0].call;
  const bool message = call.message();
  i64 bytes = 0;
  for (const Ticket& t : e.tickets) {
    e.members.push_back({&t.call, t.stage.in(), t.stage.out()});
    bytes += total_bytes(t.call);
  }
  e.parts = message ? 1 : static_cast<int>(e.tickets.size());
  e.parts_left = e.parts;
  if (!message && bytes <= kSmall && options_.link.none()) return start_small(e, place);
  if (!lock) lock = this->lock();
  // A buffered message has been on the link since it was sent.
  if (!e.tickets[0].done || options_.link.none()) reserve_link(e);
  e.counted = true;
  ++under_way_;
  if (!options_.link.none()) {
    e.complete = true;
    return enqueue(message ? member(e, 0) : poster, exchange);
  }
  e.open = true;
  e.complete = true;
  if (bytes <= kSmall) {
    lock.unlock();
    return do_parts(e, place, true);
  }
  // Members inside wait() do the parts; the communication threads of the others help, and do all if nobody
  // waits.
  bool somebody_waits = false;
  for (std::size_t i = 0; i < e.tickets.size(); ++i) {
    const int r = member(e, i);
    if (r == poster) continue;
    Slot& s = slot(r);
    bool waits = false;
    {
      const std::lock_guard gate(s.gate);
      waits = s.inside != nullptr && s.inside->exchange == &e;
    }
    if (waits) {
      somebody_waits = true;
      if (s.asleep != nullptr) s.wake.notify_one();
    } else {
      enqueue(r, exchange);
    }
  }
  if (!somebody_waits) enqueue(poster, exchange);
}

// Without the lock: who posts last does it, helped by ranks that look for it. Those asleep are woken when it
// is done.
void World::start_small(Exchange& exchange, int place) {
  if (exchange.timed) exchange.begin = now_ns();
  exchange.complete.store(true, std::memory_order_release);
  exchange.open.store(true, std::memory_order_release);
  do_parts(exchange, place, true);
}

// ---------------------------------------------------------------- doing

// Takes parts until none is left, beginning with `first`: a rank's own, whose memory its core's cache holds.
// by_rank: on a rank's own thread.
void World::do_parts(Exchange& exchange, int first, bool by_rank) {
  const bool message = exchange.group == nullptr;
  for (int k = 0; k < exchange.parts; ++k) {
    const int part = (first + k) % exchange.parts;
    std::atomic<bool>& taken = exchange.tickets[static_cast<std::size_t>(part)].part_taken;
    if (taken.load(std::memory_order_relaxed) || taken.exchange(true)) continue;
    ++exchange.parts_taken;
    move_part(exchange.members, message ? 1 : part);
    if (exchange.parts_left.fetch_sub(1) == 1) finish(exchange, by_rank);
  }
}

// After this the owners may go on, and free what they lent: nothing here touches it any more.
void World::finish(Exchange& exchange, bool by_rank) {
  if (options_.link.none() && exchange.timed) exchange.end = now_ns();
  for (Ticket& t : exchange.tickets) {
    if (t.done) continue;  // a send that was done at once
    t.begin = exchange.begin;
    t.end = exchange.end;
    t.done = true;
  }
  if (exchange.counted) --under_way_;
  if (by_rank && exchange.blocked == 0) return;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < exchange.tickets.size(); ++i) slot(member(exchange, i)).wake.notify_one();
  check_deadlock();
}

// The communication thread of a rank.
void World::communicate(Slot& mine) {
  Lock lock(mutex_);
  for (;;) {
    mine.jobs_wake.wait(lock, [&] { return stop_ || !mine.jobs.empty(); });
    if (mine.jobs.empty()) return;
    const std::shared_ptr<Exchange> exchange = std::move(mine.jobs.front());
    mine.jobs.pop_front();
    lock.unlock();
    if (exchange->open) {
      do_parts(*exchange, mine.rank->rank(), false);
    } else {
      for (int part = 0; part < exchange->parts; ++part) {
        move_part(exchange->members, exchange->group == nullptr ? 1 : part);
      }
      lock.lock();
      mine.jobs_wake.wait_until(lock, clock_at(exchange->end), [&] { return failed_.load(); });
      lock.unlock();
      finish(*exchange, false);
    }
    if (exchange->group != nullptr) exchange->release();
    lock.lock();
  }
}

// ---------------------------------------------------------------- waiting

void World::wait(Rank& rank, Operation& operation) {
  auto& ticket = static_cast<Ticket&>(operation);
  Slot& mine = slot(rank.rank());
  if (!ticket.done) {
    const std::int64_t now = now_ns(), until = now + kSpinNs;
    {
      const std::lock_guard gate(mine.gate);
      mine.inside = &ticket;
      mine.since = now;
    }
    for (int tries = 0; !ticket.done && !failed_; ++tries) {
      if (ticket.exchange->open) do_parts(*ticket.exchange, ticket.call.me, true);
      for (int i = 0; spins_ && i < 256 && !ticket.done && !has_parts(*ticket.exchange); ++i) pause();
      if (ticket.done || (spins_ ? now_ns() > until : tries == kYields)) break;
      if (!has_parts(*ticket.exchange))
        std::this_thread::yield();  // whom we wait for may be on this very core
    }
    if (!ticket.done && !failed_) block(rank.rank(), ticket);
  }
  if (failed_) settle(ticket);
  const std::string misuse = failed_ ? std::string() : ticket.stage.finish(ticket.call);
  {
    const std::lock_guard gate(mine.gate);
    mine.inside = nullptr;
    if (!failed_ && misuse.empty()) {
      mine.last = ticket.call;
      mine.any_completed = true;
      mine.since = now_ns();
      return;
    }
  }
  const std::lock_guard lock(mutex_);
  if (!failed_) {
    fail_run(fmt::format("rank {} {} {} before wait()", rank.rank(), misuse, describe(ticket.call)),
             {rank.rank()});
  }
  throw RunFailed(failure_);
}

// Sleeps until the ticket is done or the run has failed; does parts that turn up.
void World::block(int rank, Ticket& ticket) {
  Exchange& exchange = *ticket.exchange;
  Slot& mine = slot(rank);
  const auto deadline = std::chrono::steady_clock::now() + options_.deadline;
  Lock lock(mutex_);
  ++exchange.blocked;
  while (!ticket.done && !failed_) {
    mine.asleep = &ticket;
    check_deadlock();
    const bool in_time =
        mine.wake.wait_until(lock, deadline, [&] { return ticket.done || failed_ || has_parts(exchange); });
    if (!in_time && !failed_) {
      const Frozen frozen(*this);
      std::vector<int> odd;
      const std::string why = explain_waiting(states(), odd);
      fail_run(fmt::format("deadline of {} ms: {}", options_.deadline.count(), why), odd);
    }
    mine.asleep = nullptr;
    if (has_parts(exchange)) {
      lock.unlock();
      do_parts(exchange, ticket.call.me, true);
      lock.lock();
    }
  }
  --exchange.blocked;
}

// The run has failed. An exchange that all have joined is still done to its end; one that lacks a call is
// closed, and post() refuses it. Then nobody touches the buffers.
void World::settle(Ticket& ticket) {
  Exchange& exchange = *ticket.exchange;
  const int arrived = exchange.arrived.fetch_or(kClosed) & ~kClosed;
  if (arrived < static_cast<int>(exchange.tickets.size())) return;
  while (!exchange.complete && !exchange.refused) std::this_thread::yield();  // the last member is in post()
  if (exchange.refused) return;
  if (exchange.open) do_parts(exchange, ticket.call.me, true);
  Lock lock(mutex_);
  ++exchange.blocked;
  Slot& mine = slot(ticket.call.group->members[static_cast<std::size_t>(ticket.call.me)]);
  mine.wake.wait(lock, [&] { return ticket.done.load(); });
  --exchange.blocked;
}

void World::drop(Rank& rank, Operation& operation) noexcept {
  auto& ticket = static_cast<Ticket&>(operation);
  {
    const Lock lock(mutex_);
    if (!failed_) {
      // Unwinding: this rank is failing. The others must know now; they or it might wait for each other
      // otherwise.
      const bool unwinding = std::uncaught_exceptions() > 0;
      if (unwinding) {
        culprit_ = rank.rank();
        slot(culprit_).state = Slot::failed;
      }
      fail_run(unwinding
                   ? fmt::format("rank {} failed while {} was under way", rank.rank(), describe(ticket.call))
                   : fmt::format("rank {} dropped {} without wait()", rank.rank(), describe(ticket.call)),
               {rank.rank()});
    }
  }
  settle(ticket);
}

}  // namespace shardlings::comm_detail
