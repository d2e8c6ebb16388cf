#pragma once
// The MPI backend: one process a rank. Every call of a collective is announced to all other members in a note
// (its letter), which also carries the data where they are small; large data move when all letters are here
// and fit together. A send is announced to its receiver, which answers when a receive has met it. So nothing
// is ever under way that not all sides have agreed to, and what they agreed to always ends.
//
// A rank in wait() drives all that; while it computes, its communication thread does. Rank 0 also judges: the
// first complaint decides what the failure of the run is, and all ranks get the same report.
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/backend.hpp"
#include "comm/mpi/port.hpp"
#include "comm/report.hpp"
#include "comm/threads/stage.hpp"

namespace shardlings::comm_detail {

class Unpacker;

/// Data of at most so many bytes travel in the letter itself.
constexpr i64 kLetterBytes = 8 * 1024;

struct ProcessGroup : Group {
  ProcessGroup(std::string group_name, std::vector<int> ranks, std::uint64_t number)
      : Group(std::move(group_name), std::move(ranks)), id(number) {}
  std::uint64_t id;  ///< the same on all members, without asking them
};

/// One member's announcement of its call.
struct Letter {
  Call call;
  std::string payload;    // the data, where they are small
  bool has_data = false;  // payload holds all there is: no transfer follows
  int tag = 0;            // of the transfers that follow
  i64 number = 0;         // of a send, among all sends of its rank
};

/// This rank's share of an operation.
struct Share : Operation {
  Stage stage;
  std::uint64_t exchange = 0;  // the same on all members
  bool agreed = false;         // all sides are there: it will end
  bool moves = false;          // transfers may use its memory
  bool refused = false;        // they do not fit together
};

/// A collective as this rank sees it.
struct Collective {
  std::vector<std::optional<Letter>> letters;  // by member; ours is left out
  int arrived = 0;                             // letters, and our own call
  std::shared_ptr<Share> share;                // our call
  std::vector<int> tags;                       // of what we send to each member
  bool sending = false;                        // phase 1 was handed to the port
  std::vector<bool> receiving;                 // likewise, by member
  std::vector<std::shared_ptr<Transfer>> moving;
  std::unique_ptr<std::byte[]> inputs;  // of a reduction: what the others contribute, one slot each
  bool computing = false;               // a thread is adding, without the lock
  bool added = false;                   // phase 1 is over: of all_reduce, the finished pieces go round
  bool over() const { return share && (share->done || share->refused); }
};

/// Messages from one rank to this one, on one group.
struct Route {
  std::deque<Letter> letters;                // sent, not yet received
  std::deque<std::shared_ptr<Share>> recvs;  // posted, not yet sent to us
};

/// A send that its receiver has not met, or whose data are moving.
struct Outgoing {
  std::shared_ptr<Share> share;
  int to = 0, tag = 0;
  bool has_data = false;
  std::shared_ptr<Transfer> transfer{};
};

/// What a driver does between two looks at the port: the longer nothing happens, the longer it sleeps,
/// without the lock.
class Pause {
 public:
  explicit Pause(bool spins) : spins_(spins) {}
  void progressed() { idle_since_ = 0; }
  void pause(std::unique_lock<std::mutex>& lock);

 private:
  const bool spins_;
  std::int64_t idle_since_ = 0;
};

/// What a rank has to complain about; the first complaint is the failure of the run.
struct Complaint {
  std::string cause;
  std::vector<int> odd;
  bool explain = false;    // rank 0 adds why the ranks wait
  int culprit = -1;        // the rank whose own exception this is, or will be
  int code = 1;            // exit code of the job
  std::string sentence{};  // of the exception, where the code says that it is enough
};

class ProcessWorld final : public Backend {
 public:
  /// `run` numbers the runs of this process; `spins`: every rank of this machine has a core.
  ProcessWorld(Port& port, int run, bool spins, Rank& rank, const RunOptions& options);
  ~ProcessWorld() override;
  std::shared_ptr<Operation> post(Rank& rank, const Call& call) override;
  void wait(Rank& rank, Operation& operation) override;
  void drop(Rank& rank, Operation& operation) noexcept override;
  std::shared_ptr<Group> group(const Group& parent, i64 sequence, int color, std::string name,
                               std::vector<int> members) override;
  const std::shared_ptr<Group>& everyone() const { return everyone_; }
  /// The body is over, with its exception if it threw. Returns when all ranks are over; throws the failure of
  /// the run.
  void finish(const std::exception_ptr& error);

 private:
  using Lock = std::unique_lock<std::mutex>;

  // world.cpp; all but communicate() under the lock
  void communicate();
  bool progress(Lock& lock);
  void handle(const Note& note);
  void settle(Share& share, Lock& lock);
  void forget(Share& share);
  std::vector<int> missing(const Share& share) const;
  bool never_comes(const Share& share) const;
  int next_tag(int to);

  // collective.cpp
  std::shared_ptr<Collective> collective(std::uint64_t group, i64 sequence);
  void join(const std::shared_ptr<Share>& share);
  bool advance(Collective& c, Lock& lock);
  bool agree(Collective& c);
  void send_pieces(Collective& c);
  void receive_piece(Collective& c, std::size_t member);
  void exchange_sums(Collective& c);
  // message.cpp
  void announce(const std::shared_ptr<Share>& share, bool buffered);
  void match(int from, Route& route);
  void acknowledged(i64 number);
  static void ended(Share& share);
  bool advance_messages();
  std::string unreceived() const;

  // control.cpp: the failure and the end of the run
  void complain(const Complaint& complaint);
  void judge(const Complaint& complaint);
  void decide();
  void fail_run(Unpacker& in);
  RankState state_now() const;
  void tell(int to, const std::string& note);
  void tell_all(const std::string& note);
  bool handle_control(int from, int kind, Unpacker& in);
  void look_at_clock();
  void step_to_end(const std::optional<Complaint>& own);
  [[noreturn]] void last_words();
  std::string report() const { return cause_ + "\n" + table_; }

  Port& port_;
  const RunOptions options_;
  const std::shared_ptr<StagePool> pool_ = std::make_shared<StagePool>();
  const bool spins_;
  const int me_, ranks_;
  std::mutex mutex_;  // everything below, and the port
  std::condition_variable wake_;
  std::thread thread_;
  bool driven_ = false;  // the rank itself drives
  bool stop_ = false;

  std::vector<std::shared_ptr<Group>> groups_;  // calls point to them
  std::shared_ptr<Group> everyone_;
  std::map<std::pair<std::uint64_t, i64>, std::shared_ptr<Collective>> collectives_;
  std::vector<std::shared_ptr<Collective>> active_;        // with our own call in it
  std::map<std::pair<std::uint64_t, int>, Route> routes_;  // by group and sender
  std::map<i64, Outgoing> outgoing_;                       // by number
  std::vector<std::pair<std::shared_ptr<Share>, std::shared_ptr<Transfer>>> receiving_;
  std::deque<Note> own_notes_;  // from this rank to itself
  std::vector<int> tags_;       // used so far, by receiver
  i64 messages_ = 0;            // numbers sends and receives

  // What the others may know about this rank.
  RankState::State state_ = RankState::running;
  const Share* inside_ = nullptr;  // it waits for this
  std::string refused_;            // the call that did not fit
  std::int64_t since_ = 0;
  Call last_;
  bool any_completed_ = false;

  // The end. Times are now_ns(), 0: not yet.
  std::vector<bool> returned_, flushed_;  // by rank: it starts nothing any more
  bool failed_ = false, closed_ = false;  // closed: nor do we
  bool told_closed_ = false, told_over_ = false, told_end_ = false, ended_ = false;
  std::int64_t complained_at_ = 0, failed_at_ = 0;
  std::string cause_, table_, sentence_;
  int culprit_ = -1, code_ = 0;
  // Rank 0 only:
  std::optional<Complaint> case_;
  std::vector<std::optional<RankState>> states_;
  std::int64_t asked_at_ = 0;
  bool decided_ = false;
  std::vector<bool> closed_ranks_, over_ranks_;
};

/// The kinds of notes.
enum NoteKind : int {
  kLetter,     // a member calls a collective, or sends
  kMet,        // a receive has met the send of this number
  kReturned,   // the sender's body has returned: it posts nothing any more
  kComplaint,  // to rank 0
  kAsk,        // rank 0 asks what the receiver is doing
  kState,      // the answer
  kFailed,     // rank 0: the run has failed
  kFlush,      // the sender knows, and starts nothing any more
  kClosed,     // to rank 0: all ranks have returned, and the sender has nothing left
  kOver,       // to rank 0: the run has failed, and the sender's body is over
  kEnd         // rank 0: all are over
};

}  // namespace shardlings::comm_detail
