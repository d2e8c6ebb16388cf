// First working version: posted operations, executed by one helper thread per rank. Replaced by threads/ next.
#include "comm/comm.hpp"
#include <omp.h>
#include <sched.h>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <algorithm>
#include <exception>

namespace shardlings {
namespace comm_detail {
// Raw pointers on purpose: the owner's Work keeps the buffers alive; were a Call to hold Tensors, a
// failed run would release them after the owner's ledger is gone.
struct Buffer {
  std::byte* p = nullptr; i64 n = 0; DType t = DType::f32;
  Buffer() = default;
  Buffer(const Tensor& x) { if (x) { p = x.raw(); n = x.numel(); t = x.dtype(); } }
  i64 bytes() const { return n * size_of(t); }
  template <class S> S* data() const { return reinterpret_cast<S*>(p); }
};
struct Call { std::string text; std::string op; Buffer in, out; int peer = -1; Reduce how = Reduce::sum; std::vector<i64> counts; std::uint64_t sum = 0; };
static std::uint64_t checksum(const Buffer& b) {
  std::uint64_t h = 1469598103934665603ull;
  for (i64 i = 0; i < b.bytes(); ++i) h = (h ^ std::uint64_t(b.p[i])) * 1099511628211ull;
  return h;
}
// Whoever reads a result before wait() reads NaN. The part that is also input keeps its bytes.
static void poison_output(const Buffer& in, const Buffer& out) {
  for (i64 i = 0; i < out.bytes(); ++i) if (out.p + i < in.p || out.p + i >= in.p + in.bytes()) out.p[i] = std::byte(0xff);
}
struct Operation {
  std::vector<Call> calls;
  std::vector<bool> here;
  int arrived = 0;
  bool done = false;
  std::string what;
};
struct Letter { std::string form; std::vector<std::byte> bytes; std::shared_ptr<Operation> sender; };
struct Group {
  std::string name;
  std::vector<int> members;
  std::vector<i64> next;
  std::map<i64, std::shared_ptr<Operation>> ops;
  std::map<std::pair<int, int>, std::deque<Letter>> mail;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Operation>>> receivers;
};
struct World {
  std::mutex m;
  std::condition_variable cv;
  RunOptions options;
  std::vector<Rank*> ranks;
  std::vector<Operation*> waiting;          // what each rank is blocked on
  std::vector<bool> finished;
  std::vector<std::string> last;     // each rank's last call
  std::map<std::string, std::shared_ptr<Group>> groups;
  int jobs = 0;
  bool stop = false;
  std::string failure;
  int culprit = -1;                  // the rank whose exception is the cause

  void poison(const std::string& why) { if (failure.empty()) failure = why; cv.notify_all(); }
  std::string everyone() const {
    std::string s;
    for (std::size_t r = 0; r < ranks.size(); ++r)
      s += "\n  rank " + std::to_string(r) + ": " + (finished[r] ? "finished, last call " + last[r] : waiting[r] ? "waits in " + last[r] : "runs, last call " + last[r]);
    return s;
  }
  // No rank can move and no transfer is under way: nobody will ever wake anybody.
  void check_deadlock() {
    if (jobs > 0 || !failure.empty()) return;
    bool any = false;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (finished[r]) continue;
      if (!waiting[r] || waiting[r]->done) return;
      any = true;
    }
    if (any) poison("deadlock: no rank can go on" + everyone());
  }
  static void execute(Operation& op) {
    auto& c = op.calls;
    const std::string& name = c[0].op;
    const int n = int(c.size());
    if (name == "all_reduce" || name == "reduce_scatter") {
      dispatch(c[0].in.t, [&](auto s) {
        using S = decltype(s); using A = acc_t<S>;
        i64 count = c[0].in.n, part = count / n;
        std::vector<S> sum(std::size_t(count), S{});
        for (i64 i = 0; i < count; ++i) {
          A a = A(c[0].in.template data<S>()[i]);
          for (int r = 1; r < n; ++r) { A b = A(c[std::size_t(r)].in.template data<S>()[i]); a = c[0].how == Reduce::max ? std::max(a, b) : a + b; }
          if (c[0].how == Reduce::average) a /= A(n);
          sum[std::size_t(i)] = S(a);
        }
        for (int r = 0; r < n; ++r) {
          bool whole = name == "all_reduce";
          std::memcpy(c[std::size_t(r)].out.p, sum.data() + (whole ? 0 : r * part), sizeof(S) * std::size_t(whole ? count : part));
        }
      });
    } else if (name == "all_gather") {
      for (int r = 0; r < n; ++r) {
        std::byte* to = c[std::size_t(r)].out.p;
        for (int q = 0; q < n; ++q) { std::memmove(to, c[std::size_t(q)].in.p, std::size_t(c[std::size_t(q)].in.bytes())); to += c[std::size_t(q)].in.bytes(); }
      }
    } else if (name == "all_to_all") {
      const i64 b = c[0].in.bytes() / n;
      for (int r = 0; r < n; ++r)
        for (int q = 0; q < n; ++q) std::memcpy(c[std::size_t(r)].out.p + q * b, c[std::size_t(q)].in.p + r * b, std::size_t(b));
    } else if (name == "broadcast") {
      for (int r = 0; r < n; ++r) if (r != c[0].peer) std::memcpy(c[std::size_t(r)].out.p, c[std::size_t(c[0].peer)].in.p, std::size_t(c[0].in.bytes()));
    }
  }
};

}  // namespace comm_detail
using namespace comm_detail;
i64 TrafficLedger::total() const { i64 s = 0; for (auto& [k, v] : bytes) s += v; return s; }
int Communicator::size() const { return int(group_->members.size()); }

Work& Work::operator=(Work&& o) noexcept { std::swap(rank_, o.rank_); std::swap(operation_, o.operation_); std::swap(keep_, o.keep_); std::swap(what_, o.what_); return *this; }
Work::~Work() {
  if (!operation_) return;
  World& w = *rank_->backend_;
  std::unique_lock lock(w.m);
  if (w.failure.empty() && std::uncaught_exceptions()) {  // our rank is failing: tell the others now, not when it has unwound
    w.culprit = rank_->rank();
    w.poison("rank " + std::to_string(rank_->rank()) + " failed while " + what_ + " was under way");
  } else if (w.failure.empty() && what_.rfind("send", 0) != 0) {
    w.poison("rank " + std::to_string(rank_->rank()) + " dropped " + what_ + " without wait()");
  }
  w.cv.wait(lock, [&] { return operation_->done || !w.failure.empty(); });
  w.cv.wait(lock, [&] { return w.jobs == 0; });  // nobody may still read or write our buffers
}
void Work::wait() {
  if (!operation_) return;
  World& w = *rank_->backend_;
  const std::size_t r = std::size_t(rank_->rank());
  std::unique_lock lock(w.m);
  if (!operation_->done && w.failure.empty()) {
    w.waiting[r] = operation_.get();
    w.last[r] = what_;
    w.check_deadlock();
    if (!w.cv.wait_for(lock, w.options.deadline, [&] { return operation_->done || !w.failure.empty(); }))
      w.poison("deadline: rank " + std::to_string(r) + " waited too long" + w.everyone());
    w.waiting[r] = nullptr;
  }
  if (!w.failure.empty()) { w.cv.wait(lock, [&] { return w.jobs == 0; }); operation_.reset(); fail(w.failure); }
  lock.unlock();
  rank_->trace.mark(Event::done, what_);
  operation_.reset();
  keep_.clear();
}

Work Communicator::post(const std::string& op, Tensor in, Tensor out, int peer, Reduce how, i64 ring_bytes, int tag, const std::vector<i64>& counts) const {
  World& w = *owner_->backend_;
  Work work;
  work.rank_ = owner_;
  work.keep_ = {in, out};
  owner_->traffic.bytes[op] += ring_bytes;
  owner_->traffic.calls[op] += 1;
  std::unique_lock lock(w.m);
  if (!w.failure.empty()) fail(w.failure);
  const bool p2p = op == "send" || op == "recv";
  if (w.options.checked && out && op != "send") poison_output(op == "recv" ? Buffer() : Buffer(in), out);
  std::string text = op + "(" + (!counts.empty() ? std::to_string(out.numel()) + " gathered " + name_of(out.dtype()) : in ? std::to_string(in.numel()) + " " + name_of(in.dtype()) : "") +
                     (how == Reduce::max ? " max" : how == Reduce::average ? " average" : "") + (peer >= 0 ? (op == "send" ? " to " : op == "recv" ? " from " : " root ") + std::to_string(peer) : "") + ")";
  std::string where = text + " on " + group_->name + (p2p ? "" : " #" + std::to_string(group_->next[std::size_t(me_)]));
  owner_->trace.mark(Event::post, where);
  work.what_ = where;
  w.last[std::size_t(owner_->rank())] = where;
  if (p2p) {
    const bool sending = op == "send";
    std::pair<int, int> route = sending ? std::pair{me_, peer} : std::pair{peer, me_};
    auto& box = group_->mail[route];
    auto& line = group_->receivers[route];
    auto mine = std::make_shared<Operation>();
    mine->what = where;
    work.operation_ = mine;
    std::string form = std::to_string(in.numel()) + " " + name_of(in.dtype()) + " tag " + std::to_string(tag);
    if (sending) {
      box.push_back({form, std::vector<std::byte>(in.raw(), in.raw() + in.bytes()), mine});
      mine->done = w.options.buffered_send;
    } else {
      mine->calls.push_back({text, form, in, out, peer, how, {}, 0});
      line.push_back(mine);
    }
    while (!box.empty() && !line.empty()) {
      Call& c = line.front()->calls[0];
      if (box.front().form != c.op) {
        w.poison("mismatch on " + group_->name + " from " + std::to_string(route.first) + " to " + std::to_string(route.second) + ": sent " + box.front().form + ", receiver wants " + c.op);
        fail(w.failure);
      }
      std::memcpy(c.out.p, box.front().bytes.data(), box.front().bytes.size());
      line.front()->done = box.front().sender->done = true;
      line.pop_front();
      box.pop_front();
    }
    w.cv.notify_all();
    return work;
  }
  i64 seq = group_->next[std::size_t(me_)]++;
  auto& slot = group_->ops[seq];
  if (!slot) {
    slot = std::make_shared<Operation>();
    slot->calls.resize(group_->members.size());
    slot->here.resize(group_->members.size());
  }
  std::shared_ptr<Operation> o = slot;
  o->what = where;
  o->calls[std::size_t(me_)] = {text, op, in, out, peer, how, counts, w.options.checked ? checksum(in) : 0};
  o->here[std::size_t(me_)] = true;
  work.operation_ = o;
  if (++o->arrived < size()) return work;
  group_->ops.erase(seq);
  bool same = true;
  for (auto& c : o->calls) same = same && c.text == o->calls[0].text;
  if (!same) {
    std::string msg = "mismatch on " + group_->name + " #" + std::to_string(seq);
    for (int r = 0; r < size(); ++r) msg += "\n  rank " + std::to_string(group_->members[std::size_t(r)]) + ": " + o->calls[std::size_t(r)].text;
    w.poison(msg);
    fail(msg);
  }
  for (std::size_t r = 0; r < o->calls.size(); ++r)
    if (w.options.checked && checksum(o->calls[r].in) != o->calls[r].sum) w.poison("input changed between the call and its end: " + o->what);
  World::execute(*o);
  o->done = true;
  w.cv.notify_all();
  return work;
}

Work Communicator::all_reduce(Tensor x, Reduce how) const { return post("all_reduce", x, x, -1, how, 2 * (size() - 1) * x.bytes() / size()); }
Work Communicator::reduce_scatter(Tensor in, Tensor out, Reduce how) const {
  require(in.numel() == out.numel() * size() && in.dtype() == out.dtype(), "reduce_scatter: in must be size() times out");
  return post("reduce_scatter", in, out, -1, how, (size() - 1) * out.bytes());
}
Work Communicator::all_gather(Tensor in, Tensor out) const { return all_gather(in, out, std::vector<i64>(std::size_t(size()), in.numel())); }
Work Communicator::all_gather(Tensor in, Tensor out, const std::vector<i64>& counts) const {
  i64 total = 0;
  for (i64 n : counts) total += n;
  require(int(counts.size()) == size() && out.numel() == total && in.numel() == counts[std::size_t(me_)] && in.dtype() == out.dtype(), "all_gather: counts do not fit in and out");
  return post("all_gather", in, out, -1, Reduce::sum, (size() - 1) * out.bytes() / size(), 0, counts);
}
Work Communicator::broadcast(Tensor x, int root) const { return post("broadcast", x, x, root, Reduce::sum, (size() - 1) * x.bytes() / size()); }
Work Communicator::send(Tensor x, int to, int tag) const { return post("send", x, x, to, Reduce::sum, x.bytes(), tag); }
Work Communicator::all_to_all(Tensor in, Tensor out) const { return post("all_to_all", in, out, -1, Reduce::sum, (size() - 1) * in.bytes() / size()); }
Work Communicator::recv(Tensor x, int from, int tag) const { return post("recv", x, x, from, Reduce::sum, 0, tag); }
void Communicator::barrier() const { post("barrier", {}, {}, -1, Reduce::sum, 0).wait(); }
Communicator Communicator::split(int color, int key) const {
  MemoryLedger scratch;
  Tensor mine(scratch, Category::communication, DType::f32, {2}), all(scratch, Category::communication, DType::f32, {2 * size()});
  mine.set(0, color); mine.set(1, key);
  i64 seq = group_->next[std::size_t(me_)];
  all_gather(mine, all).wait();
  std::vector<std::pair<int, int>> order;  // (key, parent rank)
  for (int r = 0; r < size(); ++r) if (int(all.get(2 * r)) == color) order.push_back({int(all.get(2 * r + 1)), r});
  std::sort(order.begin(), order.end());
  World& w = *owner_->backend_;
  std::lock_guard g(w.m);
  auto& group = w.groups[group_->name + "/" + std::to_string(seq) + "." + std::to_string(color)];
  if (!group) {
    group = std::make_shared<Group>();
    group->name = group_->name + "/" + std::to_string(color);
    for (auto [k, r] : order) group->members.push_back(group_->members[std::size_t(r)]);
    group->next.resize(order.size());
  }
  Communicator c;
  c.owner_ = owner_;
  c.group_ = group;
  c.me_ = int(std::find(group->members.begin(), group->members.end(), owner_->rank()) - group->members.begin());
  return c;
}

struct RankLauncher {
  static void set(Rank& rank, int r, int n, int threads, World& w, const std::shared_ptr<Group>& all) {
    rank.rank_ = r; rank.size_ = n; rank.threads_ = threads; rank.backend_ = &w;
    rank.world_.owner_ = &rank; rank.world_.group_ = all; rank.world_.me_ = r;
  }
};
int available_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : int(std::thread::hardware_concurrency());
}
int default_threads(int ranks) { return std::max(1, available_cores() / std::max(ranks, 1)); }
void run_ranks(int n, const std::function<void(Rank&)>& body, const RunOptions& options) {
  if (n < 1) fail_usage("ranks: at least 1, not " + std::to_string(n));
  World w;
  w.options = options;
  w.waiting.assign(std::size_t(n), nullptr);
  w.finished.assign(std::size_t(n), false);
  w.last.assign(std::size_t(n), "none");
  auto all = std::make_shared<Group>();
  all->name = "world";
  all->next.resize(std::size_t(n));
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int r = 0; r < n; ++r) {
    all->members.push_back(r);
    ranks.push_back(std::make_unique<Rank>());
    RankLauncher::set(*ranks.back(), r, n, options.threads > 0 ? options.threads : default_threads(n), w, all);
    ranks.back()->memory.poison_new_memory = options.checked;
    w.ranks.push_back(ranks.back().get());
  }
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (auto& p : ranks) threads.emplace_back([&, rank = p.get()] {
    std::exception_ptr error;
    omp_set_num_threads(rank->threads());
    try { body(*rank); } catch (...) { error = std::current_exception(); }
    std::lock_guard g(w.m);
    w.finished[std::size_t(rank->rank())] = true;
    if (error) {
      if (!first || rank->rank() == w.culprit) first = error;
      std::string why = "unknown exception";
      try { std::rethrow_exception(error); } catch (const std::exception& e) { why = e.what(); } catch (...) {}
      w.poison("rank " + std::to_string(rank->rank()) + " failed: " + why);
    } else {
      w.check_deadlock();
    }
  });
  for (auto& t : threads) t.join();
  if (first) std::rethrow_exception(first);
}
}  // namespace shardlings
