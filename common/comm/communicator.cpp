// Communicator and Work: checks what one rank can check alone, counts, draws, and hands the call to the
// backend.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "comm/backend.hpp"

namespace shardlings {

using comm_detail::Buffer;
using comm_detail::Call;
using comm_detail::Kind;

namespace {

// A tensor without memory is welcome where nothing is contributed; it then has the type of the other side.
Buffer buffer_of(const Tensor& x, DType dtype_if_empty) {
  if (!x && x.numel() == 0) return {nullptr, 0, dtype_if_empty};
  return {x.raw(), x.numel(), x.dtype()};
}

void check_types(const char* operation, const Tensor& in, const Tensor& out) {
  require(in.dtype() == out.dtype() || (!in && in.numel() == 0), [&] {
    return fmt::format("{}: in is {}, out is {}", operation, name_of(in.dtype()), name_of(out.dtype()));
  });
}

void check_reducible(const char* operation, const Tensor& x, Reduce how) {
  require(x.dtype() != DType::i32 || how != Reduce::average,
          [&] { return fmt::format("{}: the average of i32 tensors is not defined; use f32", operation); });
}

}  // namespace

i64 TrafficLedger::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), i64{0},
                         [](i64 sum, const auto& e) { return sum + e.second; });
}

// ---------------------------------------------------------------- Work

Work::Work(Work&& other) noexcept
    : rank_(other.rank_), operation_(std::move(other.operation_)), keep_(std::move(other.keep_)) {}

Work& Work::operator=(Work&& other) noexcept {
  Work mine(std::move(other));
  std::swap(rank_, mine.rank_);
  std::swap(operation_, mine.operation_);
  std::swap(keep_, mine.keep_);
  return *this;
}

Work::~Work() {
  if (operation_) rank_->backend_->drop(*rank_, *operation_);
}

void Work::wait() {
  if (!operation_) return;
  const auto operation = std::move(operation_);
  Trace& trace = rank_->trace;
  const bool blocks = !operation->done.load(std::memory_order_acquire);
  const std::int64_t begin = blocks && trace.recording ? now_ns() : 0;
  rank_->backend_->wait(*rank_, *operation);
  if (trace.recording) {
    if (operation->text.empty()) operation->text = describe(operation->call);
    if (blocks) trace.add({Event::wait, operation->text, begin, now_ns(), Event::compute});
    if (operation->call.kind != Kind::barrier && operation->call.kind != Kind::split) {
      trace.add({Event::transfer, operation->text, operation->begin, operation->end, Event::communication});
    }
    trace.mark(Event::done, operation->text);
  }
  keep_.clear();
}

// ---------------------------------------------------------------- Communicator

int Communicator::size() const { return group_->size(); }
const std::string& Communicator::name() const { return group_->name; }

Work Communicator::post(Call call, std::vector<Tensor> keep) const {
  comm_detail::Group& group = *group_;
  call.group = &group;
  call.me = me_;
  if (!call.message()) call.sequence = group.next[static_cast<std::size_t>(me_)]++;
  const auto kind = static_cast<std::size_t>(call.kind);
  if (call.kind != Kind::split) {
    const i64 bytes = ring_bytes(call);
    TrafficLedger& traffic = owner_->traffic;
    traffic.bytes[group.keys[kind]] += bytes;
    traffic.calls[group.keys[kind]] += 1;
    traffic.group_bytes[group.group_keys[kind]] += bytes;
    traffic.group_calls[group.group_keys[kind]] += 1;
  }
  std::string text;
  if (owner_->trace.recording) {
    text = describe(call);
    owner_->trace.mark(Event::post, text);
  }
  Work work;
  work.rank_ = owner_;
  work.keep_ = std::move(keep);
  work.operation_ = owner_->backend_->post(*owner_, call);
  work.operation_->text = std::move(text);
  return work;
}

void Communicator::check_rank(const char* operation, const char* role, int rank) const {
  require(0 <= rank && rank < size(), [&] {
    return fmt::format("{}: {} {} on {}, which has ranks 0 to {}", operation, role, rank, name(), size() - 1);
  });
}

Work Communicator::all_reduce(Tensor x, Reduce how) const {
  check_reducible("all_reduce", x, how);
  Call call;
  call.kind = Kind::all_reduce;
  call.in = call.out = buffer_of(x, x.dtype());
  call.how = how;
  return post(call, {std::move(x)});
}

Work Communicator::reduce_scatter(Tensor in, Tensor out, Reduce how) const {
  check_types("reduce_scatter", in, out);
  check_reducible("reduce_scatter", in, how);
  require(in.numel() == out.numel() * size(), [&] {
    return fmt::format("reduce_scatter: in has {} elements; {} ranks with {} each in out need {}", in.numel(),
                       size(), out.numel(), out.numel() * size());
  });
  Call call;
  call.kind = Kind::reduce_scatter;
  call.in = buffer_of(in, in.dtype());
  call.out = buffer_of(out, in.dtype());
  call.how = how;
  require(!call.in.overlaps(call.out) || call.out.data == call.in.data + me_ * call.out.bytes(),
          [&] { return fmt::format("reduce_scatter: out overlaps in, and is not its piece {}", me_); });
  return post(call, {std::move(in), std::move(out)});
}

Work Communicator::all_gather(Tensor in, Tensor out) const {
  require(out.numel() == in.numel() * size(), [&] {
    return fmt::format("all_gather: out has {} elements; {} ranks with {} each in in need {}", out.numel(),
                       size(), in.numel(), in.numel() * size());
  });
  check_types("all_gather", in, out);
  Call call;
  call.kind = Kind::all_gather;
  call.in = buffer_of(in, out.dtype());
  call.out = buffer_of(out, out.dtype());
  require(!call.in.overlaps(call.out) || call.in.data == call.out.data + me_ * call.in.bytes(),
          [&] { return fmt::format("all_gather: in overlaps out, and is not its piece {}", me_); });
  return post(call, {std::move(in), std::move(out)});
}

Work Communicator::all_gather(Tensor in, Tensor out, const std::vector<i64>& counts) const {
  require(static_cast<int>(counts.size()) == size(),
          [&] { return fmt::format("all_gather: {} counts for {} ranks", counts.size(), size()); });
  const auto mine = counts.begin() + me_;
  const i64 total = std::accumulate(counts.begin(), counts.end(), i64{0});
  require(std::all_of(counts.begin(), counts.end(), [](i64 n) { return n >= 0; }) && in.numel() == *mine &&
              out.numel() == total,
          [&] {
            return fmt::format(
                "all_gather: in has {} elements and out {}; the counts say {} from rank {} and {} in all",
                in.numel(), out.numel(), *mine, me_, total);
          });
  check_types("all_gather", in, out);
  Call call;
  call.kind = Kind::all_gather;
  call.in = buffer_of(in, out.dtype());
  call.out = buffer_of(out, out.dtype());
  call.counts = counts;
  const i64 before = std::accumulate(counts.begin(), mine, i64{0}) * size_of(out.dtype());
  require(!call.in.overlaps(call.out) || call.in.data == call.out.data + before,
          [&] { return fmt::format("all_gather: in overlaps out, and is not its piece {}", me_); });
  return post(call, {std::move(in), std::move(out)});
}

Work Communicator::all_to_all(Tensor in, Tensor out) const {
  check_types("all_to_all", in, out);
  require(in.numel() == out.numel() && in.numel() % size() == 0, [&] {
    return fmt::format("all_to_all: in has {} elements and out {}; both need the same multiple of {} ranks",
                       in.numel(), out.numel(), size());
  });
  Call call;
  call.kind = Kind::all_to_all;
  call.in = buffer_of(in, in.dtype());
  call.out = buffer_of(out, in.dtype());
  require(!call.in.overlaps(call.out), "all_to_all: in and out overlap");
  return post(call, {std::move(in), std::move(out)});
}

Work Communicator::broadcast(Tensor x, int root) const {
  check_rank("broadcast", "root", root);
  Call call;
  call.kind = Kind::broadcast;
  call.in.dtype = call.out.dtype = x.dtype();
  (root == me_ ? call.in : call.out) = buffer_of(x, x.dtype());
  call.peer = root;
  return post(call, {std::move(x)});
}

Work Communicator::send(Tensor x, int to, int tag) const {
  check_rank("send", "to rank", to);
  Call call;
  call.kind = Kind::send;
  call.in = buffer_of(x, x.dtype());
  call.peer = to;
  call.tag = tag;
  return post(call, {std::move(x)});
}

Work Communicator::recv(Tensor x, int from, int tag) const {
  check_rank("recv", "from rank", from);
  Call call;
  call.kind = Kind::recv;
  call.out = buffer_of(x, x.dtype());
  call.peer = from;
  call.tag = tag;
  return post(call, {std::move(x)});
}

void Communicator::barrier() const { post(Call{}, {}).wait(); }

Communicator Communicator::split(int color, int key, const std::string& name) const {
  std::array<std::int32_t, 2> mine = {color, key};
  std::vector<std::int32_t> all(2 * static_cast<std::size_t>(size()));
  Call call;
  call.kind = Kind::split;
  call.in = {reinterpret_cast<std::byte*>(mine.data()), 2, DType::i32};
  call.out = {reinterpret_cast<std::byte*>(all.data()), static_cast<i64>(all.size()), DType::i32};
  const i64 sequence = group_->next[static_cast<std::size_t>(me_)];
  post(call, {}).wait();

  Communicator part;
  if (color < 0) return part;
  std::vector<std::pair<int, int>> order;  // key, rank in this group
  for (int r = 0; r < size(); ++r) {
    const std::size_t at = 2 * static_cast<std::size_t>(r);
    if (all[at] == color) order.emplace_back(all[at + 1], r);
  }
  std::sort(order.begin(), order.end());
  std::vector<int> members;
  members.reserve(order.size());
  for (const auto& [unused, r] : order) members.push_back(group_->members[static_cast<std::size_t>(r)]);
  part.me_ = static_cast<int>(std::find(members.begin(), members.end(), owner_->rank()) - members.begin());
  part.owner_ = owner_;
  part.group_ = owner_->backend_->group(*group_, sequence, color,
                                        name.empty() ? fmt::format("{}/{}", group_->name, color) : name,
                                        std::move(members));
  return part;
}

}  // namespace shardlings
