#pragma once
// The threads backend: N ranks in one process. A call only posts; who posts last completes the exchange,
// whose parts are then done by the ranks that wait for it, or by communication threads for ranks that go on
// computing. No thread but a caller in wait() ever blocks for another rank, so the order of operations on
// different groups cannot deadlock by itself, and a real deadlock is exact: every live rank waits and nothing
// is under way.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/backend.hpp"
#include "comm/threads/move.hpp"
#include "comm/threads/stage.hpp"

namespace shardlings::comm_detail {

struct Exchange;

/// One member's share of an exchange.
struct Ticket : Operation {
  bool posted = false;
  std::atomic<bool> part_taken{false};  // the part of the exchange with this number
  Stage stage;
  Exchange* exchange = nullptr;
};

/// One collective of a group, or one message (tickets: sender, receiver).
struct Exchange {
  explicit Exchange(std::size_t size) : tickets(size) {
    for (Ticket& t : tickets) t.exchange = this;
  }
  std::vector<Ticket> tickets;
  int arrived = 0;
  std::vector<Member> members;        // set when complete, as is what follows
  std::atomic<bool> complete{false};  // all calls are there
  std::atomic<bool> open{false};      // waiting ranks may take parts: no link decides when it happens
  std::int64_t begin = 0, end = 0;    // now_ns(); with a link, the time it takes
  int parts = 0;
  std::atomic<int> parts_taken{0}, parts_left{0};
  std::atomic<int> blocked{0};  // ranks that sleep until it is done
};

struct ThreadGroup : Group {
  using Group::Group;
  std::map<i64, std::shared_ptr<Exchange>> collectives;  // not all calls are there yet
  // Messages from one rank to another of which one side is there: all sends, or all receives.
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Exchange>>> messages;
};

/// What the others may know about a rank. Guarded by World::mutex, except where noted.
struct Slot {
  enum State { running, returned, failed } state = running;
  Rank* rank = nullptr;
  const Call* posting = nullptr;  // it is inside post()
  Ticket* inside = nullptr;       // it is inside wait() for this, and will do parts
  Ticket* asleep = nullptr;       // and sleeps until it is done
  std::condition_variable wake;   // the rank, asleep in wait()
  std::int64_t since = 0;         // start of what it does now
  Call last;                      // last completed
  bool any_completed = false;
  std::int64_t link_free = 0;  // when its outgoing link has sent all there is
  // Its communication thread:
  std::deque<std::shared_ptr<Exchange>> jobs;
  std::condition_variable jobs_wake;
  std::thread thread;
};

class World final : public Backend {
 public:
  World(std::vector<Rank*> ranks, const RunOptions& options);
  ~World() override;
  std::shared_ptr<Operation> post(Rank& rank, const Call& call) override;
  void wait(Rank& rank, Operation& operation) override;
  void drop(Rank& rank, Operation& operation) noexcept override;
  std::shared_ptr<Group> group(const Group& parent, i64 sequence, int color, std::string name,
                               std::vector<int> members) override;
  const std::shared_ptr<ThreadGroup>& everyone() const { return everyone_; }
  /// The body of a rank is over, with its exception if it threw.
  void finished(int rank, const std::exception_ptr& error);
  /// Throws the cause of the failure, if the run failed. Called when all ranks are over.
  void rethrow() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  Slot& slot(int world_rank) const { return *slots_[static_cast<std::size_t>(world_rank)]; }
  static int member(const Exchange& exchange, std::size_t index);

  // world.cpp
  Lock lock();
  std::shared_ptr<Exchange> join_collective(const Call& call);
  std::shared_ptr<Exchange> join_messages(const Call& call);
  void reserve_link(Exchange& exchange);
  void start(const std::shared_ptr<Exchange>& exchange, int poster, int place, Lock& lock);
  void enqueue(int rank, const std::shared_ptr<Exchange>& exchange);
  void do_parts(Exchange& exchange, int first, bool by_rank);
  void finish(Exchange& exchange, bool by_rank);
  void communicate(Slot& mine);
  void block(int rank, Ticket& ticket);
  void settle(Ticket& ticket);

  // report.cpp; all under the lock
  void fail_run(const std::string& cause, const std::vector<int>& odd, std::exception_ptr error = nullptr);
  void check_deadlock();
  void check_fits(const Exchange& exchange);
  std::string explain_waiting(std::vector<int>& odd) const;
  std::string explain_cycle(std::vector<int>& odd) const;
  std::string table(const std::vector<int>& odd) const;

  const RunOptions options_;
  const bool spins_;  // while a rank waits: only where each has a core
  std::vector<std::unique_ptr<Slot>> slots_;
  std::shared_ptr<ThreadGroup> everyone_;
  std::mutex mutex_;
  std::map<std::tuple<const Group*, i64, int>, std::shared_ptr<ThreadGroup>> groups_;
  std::atomic<int> under_way_{0};  // complete exchanges that are not done
  std::atomic<bool> failed_{false};
  std::string failure_;
  std::exception_ptr error_;  // the cause, where it is a rank's own exception
  int culprit_ = -1;          // a rank known to fail whose exception has not arrived
  bool stop_ = false;
};

}  // namespace shardlings::comm_detail
