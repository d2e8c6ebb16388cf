// Posting, waiting, and who drives: the rank in wait(), else its communication thread.
#include "comm/mpi/world.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>

#include "comm/mpi/wire.hpp"
#include "core/random.hpp"

namespace shardlings::comm_detail {

namespace {

// How long a rank looks before it sleeps between two looks, where each has a core of its own.
constexpr std::int64_t kSpinNs = 200'000;
constexpr std::int64_t kShortestSleepNs = 10'000, kLongestSleepNs = 500'000;

void sleep_precisely() {
#ifdef __linux__
  prctl(PR_SET_TIMERSLACK, 1000UL);  // ns; otherwise every sleep takes 50 us longer
#endif
}

}  // namespace

void Pause::pause(std::unique_lock<std::mutex>& lock) {
  const std::int64_t now = now_ns();
  if (idle_since_ == 0) idle_since_ = now;
  const std::int64_t idle = now - idle_since_;
  lock.unlock();
  if (spins_ && idle < kSpinNs) {
    std::this_thread::yield();
  } else {
    const auto ns = std::clamp(idle / 16, kShortestSleepNs, kLongestSleepNs);
    std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
  }
  lock.lock();
}

ProcessWorld::ProcessWorld(Port& port, int run, bool spins, Rank& rank, const RunOptions& options)
    : port_(port),
      options_(options),
      spins_(spins),
      me_(rank.rank()),
      ranks_(rank.size()),
      tags_(static_cast<std::size_t>(ranks_)),
      since_(now_ns()),
      returned_(static_cast<std::size_t>(ranks_)),
      flushed_(static_cast<std::size_t>(ranks_)),
      states_(static_cast<std::size_t>(ranks_)),
      closed_ranks_(static_cast<std::size_t>(ranks_)),
      over_ranks_(static_cast<std::size_t>(ranks_)) {
  std::vector<int> all;
  all.reserve(static_cast<std::size_t>(ranks_));
  for (int r = 0; r < ranks_; ++r) all.push_back(r);
  everyone_ =
      std::make_shared<ProcessGroup>("world", std::move(all), key_of({static_cast<std::uint64_t>(run)}));
  groups_.push_back(everyone_);
  sleep_precisely();
  thread_ = std::thread([this] { communicate(); });
}

ProcessWorld::~ProcessWorld() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

std::shared_ptr<Group> ProcessWorld::group(const Group& parent, i64 sequence, int color, std::string name,
                                           std::vector<int> members) {
  const std::uint64_t id = key_of({static_cast<const ProcessGroup&>(parent).id,
                                   static_cast<std::uint64_t>(sequence), static_cast<std::uint64_t>(color)});
  const std::lock_guard lock(mutex_);
  return groups_.emplace_back(std::make_shared<ProcessGroup>(std::move(name), std::move(members), id));
}

int ProcessWorld::next_tag(int to) {
  int& tag = tags_[static_cast<std::size_t>(to)];
  tag = (tag + 1) % port_.tags();
  return tag;
}

// ---------------------------------------------------------------- driving

// The communication thread: drives while the rank computes.
void ProcessWorld::communicate() {
  sleep_precisely();
  Pause idle(false);
  Lock lock(mutex_);
  while (!stop_) {
    if (driven_) {
      wake_.wait(lock, [this] { return !driven_ || stop_; });
      idle.progressed();
    } else if (progress(lock)) {
      idle.progressed();
      lock.unlock();  // the rank may want to post
      std::this_thread::yield();
      lock.lock();
    } else {
      idle.pause(lock);
    }
  }
}

bool ProcessWorld::progress(Lock& lock) {
  bool any = false;
  try {
    any = port_.progress();
    while (!own_notes_.empty()) {
      const Note note = std::move(own_notes_.front());
      own_notes_.pop_front();
      handle(note);
      any = true;
    }
    while (const auto note = port_.hear()) {
      handle(*note);
      any = true;
    }
    any |= advance_messages();
    for (std::size_t i = 0; i < active_.size(); ++i) {
      const std::shared_ptr<Collective> c = active_[i];
      any |= advance(*c, lock);
    }
    std::erase_if(active_, [](const auto& c) { return c->over(); });
    look_at_clock();
  } catch (const std::exception& e) {
    complain({fmt::format("rank {}: {}", me_, e.what()), {me_}});
  }
  return any;
}

void ProcessWorld::handle(const Note& note) {
  Unpacker in(note.text);
  const int kind = in.get<int>();
  if (handle_control(note.from, kind, in)) return;
  if (kind == kMet) return acknowledged(in.get<i64>());
  const auto group = in.get<std::uint64_t>();
  Letter letter;
  letter.call = unpack_call(in);
  letter.has_data = in.get<bool>();
  letter.tag = in.get<int>();
  letter.number = in.get<i64>();
  letter.payload = in.rest();
  if (letter.call.message()) {
    Route& route = routes_[{group, note.from}];
    route.letters.push_back(std::move(letter));
    return match(note.from, route);
  }
  const auto c = collective(group, letter.call.sequence);
  const auto from = static_cast<std::size_t>(letter.call.me);
  if (c->letters.size() <= from) c->letters.resize(from + 1);
  c->letters[from] = std::move(letter);
  ++c->arrived;
}

// ---------------------------------------------------------------- posting

std::shared_ptr<Operation> ProcessWorld::post(Rank& /*rank*/, const Call& call) {
  const bool buffered = call.kind == Kind::send && options_.buffered_send;
  auto share = std::make_shared<Share>();
  share->call = call;
  share->stage = options_.checked ? Stage::checked(call, *pool_)
                 : buffered       ? Stage::letter(call, *pool_)
                                  : Stage::direct(call);
  Lock lock(mutex_);
  if (failed_) throw RunFailed(report());
  since_ = now_ns();
  if (call.message()) {
    announce(share, buffered);
  } else {
    join(share);
    const auto c = active_.back();
    advance(*c, lock);
  }
  return share;
}

// ---------------------------------------------------------------- waiting

// World ranks whose calls this one still lacks.
std::vector<int> ProcessWorld::missing(const Share& share) const {
  const Call& call = share.call;
  const auto& members = call.group->members;
  if (share.agreed || share.done) return {};
  if (call.message()) return {members[static_cast<std::size_t>(call.peer)]};
  const auto& group = static_cast<const ProcessGroup&>(*call.group);
  const auto found = collectives_.find({group.id, call.sequence});
  std::vector<int> ranks;
  for (std::size_t r = 0; r < members.size(); ++r) {
    const bool here =
        found != collectives_.end() && r < found->second->letters.size() && found->second->letters[r];
    if (!here && static_cast<int>(r) != call.me) ranks.push_back(members[r]);
  }
  return ranks;
}

// Its notes arrive in order: what a rank that has returned has not called by now, it never will.
bool ProcessWorld::never_comes(const Share& share) const {
  const std::vector<int> ranks = missing(share);
  return std::any_of(ranks.begin(), ranks.end(),
                     [&](int r) { return returned_[static_cast<std::size_t>(r)]; });
}

void ProcessWorld::wait(Rank& rank, Operation& operation) {
  auto& share = static_cast<Share&>(operation);
  Lock lock(mutex_);
  if (!share.done && !failed_) {
    inside_ = &share;
    since_ = now_ns();
    driven_ = true;
    Pause idle(spins_);
    const std::int64_t begin = since_;
    const std::int64_t limit = std::chrono::nanoseconds(options_.deadline).count();
    while (!share.done && !failed_) {
      if (progress(lock)) {
        idle.progressed();
        continue;
      }
      if (complained_at_ == 0 && never_comes(share)) {
        complain({"deadlock: ", {}, true});
      } else if (complained_at_ == 0 && now_ns() - begin > limit) {
        complain({fmt::format("deadline of {} ms: ", options_.deadline.count()), {}, true});
      }
      idle.pause(lock);
    }
    driven_ = false;
    wake_.notify_all();
  }
  if (failed_) settle(share, lock);
  std::string misuse;
  if (!failed_) {
    lock.unlock();
    misuse = share.stage.finish(share.call);
    lock.lock();
  }
  if (!misuse.empty() && !failed_) {
    complain({fmt::format("rank {} {} {} before wait()", rank.rank(), misuse, describe(share.call)), {me_}});
    while (!failed_) {
      if (!progress(lock)) Pause(false).pause(lock);
    }
  }
  inside_ = nullptr;
  if (failed_) throw RunFailed(report());
  last_ = share.call;
  any_completed_ = true;
  since_ = now_ns();
}

// The run has failed. What all sides agreed to is still done to its end; when every rank has said that it
// starts nothing any more, the rest never happens. Then nobody touches the buffers. If a rank does not say
// so, rank 0 ends the job.
void ProcessWorld::settle(Share& share, Lock& lock) {
  driven_ = true;
  Pause idle(spins_);
  const auto quiet = [&] { return std::find(flushed_.begin(), flushed_.end(), false) == flushed_.end(); };
  while (!share.done && !share.refused && (share.agreed || share.moves || !quiet())) {
    if (progress(lock)) {
      idle.progressed();
    } else {
      idle.pause(lock);
    }
  }
  forget(share);
  driven_ = false;
  wake_.notify_all();
}

// Its owner takes the memory away.
void ProcessWorld::forget(Share& share) {
  const auto is = [&](const std::shared_ptr<Share>& t) { return t.get() == &share; };
  std::erase_if(active_, [&](const auto& c) { return is(c->share); });
  for (auto& [key, route] : routes_) std::erase_if(route.recvs, is);
  if (!share.done) std::erase_if(outgoing_, [&](const auto& entry) { return is(entry.second.share); });
}

void ProcessWorld::drop(Rank& rank, Operation& operation) noexcept {
  auto& share = static_cast<Share&>(operation);
  Lock lock(mutex_);
  if (!failed_) {
    const bool unwinding = std::uncaught_exceptions() > 0;  // its exception comes to finish() later
    Complaint complaint;
    complaint.cause =
        unwinding ? fmt::format("rank {} failed while {} was under way", rank.rank(), describe(share.call))
                  : fmt::format("rank {} dropped {} without wait()", rank.rank(), describe(share.call));
    complaint.odd = {me_};
    if (unwinding) {
      complaint.culprit = me_;
      state_ = RankState::failed;
    }
    complain(complaint);
    driven_ = true;
    while (!failed_) {
      if (!progress(lock)) Pause(false).pause(lock);
    }
  }
  settle(share, lock);
}

}  // namespace shardlings::comm_detail
