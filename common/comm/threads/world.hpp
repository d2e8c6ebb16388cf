#pragma once
// The threads backend: N ranks in one process. A call only posts; who posts last completes the exchange,
// whose parts are then done by the ranks that wait for it, or by communication threads for ranks that go on
// computing. No thread but a caller in wait() ever blocks for another rank, so the order of operations on
// different groups cannot deadlock by itself, and a real deadlock is exact: every live rank waits and nothing
// is under way.
//
// Who guards what: World::mutex all that is slow or rare (messages, sleeping, jobs, failures); a group's gate
// the list of its collectives; a slot's gate what its rank does now, which only reports ask for. A small
// collective takes no more than the two gates and its own atomics.
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
#include "comm/report.hpp"
#include "comm/threads/move.hpp"
#include "comm/threads/stage.hpp"

namespace shardlings::comm_detail {

struct Exchange;
struct ThreadGroup;

/// Held for a few instructions by threads that each have a core, else soon given up to them.
class Gate {
 public:
  void lock();
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

/// One member's share of an exchange. On cache lines of its own.
struct alignas(64) Ticket : Operation {
  std::atomic<bool> posted{false};
  std::atomic<bool> part_taken{false};  // the part of the exchange with this number
  Stage stage;
  Exchange* exchange = nullptr;
  void reset();
};

/// One collective of a group, or one message (tickets: sender, receiver).
struct Exchange {
  explicit Exchange(std::size_t size) : tickets(size) {
    for (Ticket& t : tickets) t.exchange = this;
    members.reserve(size);
  }
  std::vector<Ticket> tickets;
  int joined = 0;                  // members that know of it; guarded by the group's gate
  std::atomic<int> arrived{0};     // members whose call is there; kClosed: no more of them
  std::atomic<int> holders{0};     // members and communication threads that may still touch it
  std::atomic<bool> timed{false};  // somebody records when it happens
  bool counted = false;            // in World::under_way_
  std::vector<Member> members;     // set when complete, as is what follows
  int parts = 0;
  std::int64_t begin = 0, end = 0;    // now_ns(); with a link, the time it takes
  std::atomic<bool> complete{false};  // all calls are there
  std::atomic<bool> refused{false};   // never will be complete: a call did not fit, or came too late
  // Waiting ranks may take parts: no link decides when it happens. They look at this line again and again.
  alignas(64) std::atomic<bool> open{false};
  std::atomic<int> parts_taken{0};
  alignas(64) std::atomic<int> parts_left{0};
  std::atomic<int> blocked{0};  // ranks that sleep until it is done

  // Of a collective: takes it back when nobody holds it, and each member's ticket is its owner's again when
  // done.
  ThreadGroup* group = nullptr;

  /// Ready for its members. The tickets were reset by their owners.
  void prepare(ThreadGroup* owner);
  void release();
};

constexpr int kClosed = 1 << 30;

struct ThreadGroup : Group {
  using Group::Group;
  Gate gate;
  // Collectives that not all members know of yet; the first is number `first`.
  std::deque<Exchange*> collectives;
  i64 first = 0;
  std::vector<std::unique_ptr<Exchange>> exchanges;  // all there are of collectives
  std::vector<Exchange*> free;                       // of these
  // Messages from one rank to another of which one side is there: all sends, or all receives.
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Exchange>>> messages;
};

/// What the others may know about a rank. Guarded by World::mutex, except where noted.
struct alignas(64) Slot {
  // Guarded by the gate:
  Gate gate;
  Ticket* inside = nullptr;  // it is inside wait() for this, and will do parts
  std::int64_t since = 0;    // start of what it does now
  Call last;                 // last completed
  bool any_completed = false;
  // Guarded by the mutex:
  enum State { running, returned, failed } state = running;
  Rank* rank = nullptr;
  const Call* posting = nullptr;  // it is inside post()
  Ticket* asleep = nullptr;       // it sleeps in wait() until this is done
  std::condition_variable wake;
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
  Exchange& join_collective(const Call& call);
  std::shared_ptr<Exchange> join_messages(const Call& call);
  void reserve_link(Exchange& exchange);
  void start(const std::shared_ptr<Exchange>& exchange, int poster, int place, Lock& lock);
  void start_small(Exchange& exchange, int place);
  void enqueue(int rank, const std::shared_ptr<Exchange>& exchange);
  void do_parts(Exchange& exchange, int first, bool by_rank);
  void finish(Exchange& exchange, bool by_rank);
  void communicate(Slot& mine);
  void block(int rank, Ticket& ticket);
  void settle(Ticket& ticket);

  // report.cpp; all under the lock.
  /// All slots hold still while one looks into them. Nests.
  class Frozen {
   public:
    explicit Frozen(const World& world);
    ~Frozen();
    Frozen(const Frozen&) = delete;
    Frozen& operator=(const Frozen&) = delete;

   private:
    const World& world_;
  };
  void fail_run(const std::string& cause, const std::vector<int>& odd, std::exception_ptr error = nullptr);
  void check_deadlock();
  void refuse_unless_fits(Exchange& exchange, int poster, const Call& call);
  std::vector<RankState> states() const;  // for the words in comm/report.hpp

  const RunOptions options_;
  const bool spins_;        // while a rank waits: only where each has a core
  mutable int frozen_ = 0;  // how many Frozen there are
  const std::shared_ptr<StagePool> pool_ = std::make_shared<StagePool>();
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
