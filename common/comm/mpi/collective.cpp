// Collectives: announce the call, agree, move pieces, add them up in rank order. Every rank adds one piece of
// the whole, so that each byte is sent once in each direction; small tensors go to everybody in the letters.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "comm/mpi/wire.hpp"
#include "comm/mpi/world.hpp"
#include "comm/threads/move.hpp"
#include "core/random.hpp"

namespace shardlings::comm_detail {

namespace {

constexpr i64 kLongWork = 64 * 1024;  // bytes that a thread adds or copies without holding the lock

i64 size_of_group(const Call& call) { return call.group->size(); }

/// Elements [begin, end) of an all_reduce, which rank `member` of the group adds up.
struct Range {
  i64 begin, end;
};
Range piece(const Call& call, std::size_t member) {
  const i64 n = size_of_group(call);
  const i64 each = (call.in.count + n - 1) / n;
  const i64 begin = std::min(static_cast<i64>(member) * each, call.in.count);
  return {begin, std::min(begin + each, call.in.count)};
}

bool reduces(const Call& call) { return call.kind == Kind::all_reduce || call.kind == Kind::reduce_scatter; }
/// An all_reduce so small that every rank gets all inputs and adds up everything.
bool everybody_adds(const Call& call) {
  return call.kind == Kind::all_reduce && call.in.bytes() <= kLetterBytes;
}
bool in_pieces(const Call& call) { return call.kind == Kind::all_reduce && !everybody_adds(call); }

struct Span {
  std::byte* data;
  i64 bytes;
};

/// What our call sends to a member before anything is added.
Span outgoing(const Share& share, std::size_t to) {
  const Call& call = share.call;
  std::byte* in = share.stage.in();
  const i64 width = size_of(call.in.dtype), q = static_cast<i64>(to);
  switch (call.kind) {
    case Kind::all_reduce: {
      if (everybody_adds(call)) return {in, call.in.bytes()};
      const Range range = piece(call, to);
      return {in + range.begin * width, (range.end - range.begin) * width};
    }
    case Kind::reduce_scatter:
      return {in + q * call.out.bytes(), call.out.bytes()};
    case Kind::all_to_all: {
      const i64 bytes = call.in.bytes() / size_of_group(call);
      return {in + q * bytes, bytes};
    }
    case Kind::all_gather:
    case Kind::split:
      return {in, call.in.bytes()};
    case Kind::broadcast:
      return {in, call.me == call.peer ? call.in.bytes() : 0};
    default:
      return {nullptr, 0};
  }
}

/// Bytes that one member contributes to what this rank adds up.
i64 slot_bytes(const Call& call) {
  if (everybody_adds(call)) return call.in.bytes();
  if (call.kind == Kind::reduce_scatter) return call.out.bytes();
  const Range mine = piece(call, static_cast<std::size_t>(call.me));
  return (mine.end - mine.begin) * size_of(call.in.dtype);
}
i64 slot_stride(const Call& call) { return (slot_bytes(call) + 63) / 64 * 64; }

/// Where the contribution of a member belongs.
Span incoming(const Collective& c, std::size_t from) {
  const Share& share = *c.share;
  const Call& call = share.call;
  std::byte* out = share.stage.out();
  const i64 q = static_cast<i64>(from);
  switch (call.kind) {
    case Kind::all_reduce:
    case Kind::reduce_scatter:
      return {c.inputs.get() + q * slot_stride(call), slot_bytes(call)};
    case Kind::all_to_all: {
      const i64 bytes = call.in.bytes() / size_of_group(call);
      return {out + q * bytes, bytes};
    }
    case Kind::all_gather:
    case Kind::split: {
      if (call.counts.empty()) return {out + q * call.in.bytes(), call.in.bytes()};
      const auto counts = call.counts.begin();
      const i64 width = size_of(call.out.dtype);
      return {out + std::accumulate(counts, counts + q, i64{0}) * width, counts[q] * width};
    }
    case Kind::broadcast:
      return {out, q == call.peer ? call.out.bytes() : 0};
    default:
      return {nullptr, 0};
  }
}

/// The sum over the members of what they contributed, as the threads backend adds: in rank order.
void add_up(const Collective& c) {
  const Share& share = *c.share;
  const Call& call = share.call;
  const i64 width = size_of(call.in.dtype);
  const auto me = static_cast<std::size_t>(call.me);
  Call sum;  // "piece 0 of a reduce_scatter"
  sum.kind = Kind::reduce_scatter;
  sum.how = call.how;
  sum.in.dtype = sum.out.dtype = call.in.dtype;
  sum.out.count = slot_bytes(call) / width;
  std::vector<Member> members(c.letters.size());
  for (std::size_t r = 0; r < members.size(); ++r) {
    members[r].call = &sum;
    members[r].in = r == me ? outgoing(share, me).data : incoming(c, r).data;
  }
  members[0].out = share.stage.out() + (in_pieces(call) ? piece(call, me).begin * width : 0);
  move_part(members, 0);
}

/// What this rank contributes to its own output.
void copy_own(const Collective& c) {
  const auto me = static_cast<std::size_t>(c.share->call.me);
  const Span from = outgoing(*c.share, me), to = incoming(c, me);
  if (to.bytes > 0 && to.data != from.data)
    std::memmove(to.data, from.data, static_cast<std::size_t>(to.bytes));
}

}  // namespace

std::shared_ptr<Collective> ProcessWorld::collective(std::uint64_t group, i64 sequence) {
  auto& entry = collectives_[{group, sequence}];
  if (!entry) entry = std::make_shared<Collective>();
  return entry;
}

// Our own call: everybody else is told.
void ProcessWorld::join(const std::shared_ptr<Share>& share) {
  const Call& call = share->call;
  const auto& group = static_cast<const ProcessGroup&>(*call.group);
  const auto n = static_cast<std::size_t>(group.size());
  share->exchange = key_of({group.id, static_cast<std::uint64_t>(call.sequence)});
  const auto c = collective(group.id, call.sequence);
  c->share = share;
  c->letters.resize(n);
  c->receiving.resize(n);
  c->tags.resize(n);
  ++c->arrived;
  active_.push_back(c);
  for (std::size_t q = 0; q < n; ++q) {
    if (static_cast<int>(q) == call.me) continue;
    const int to = group.members[q];
    const Span data = outgoing(*share, q);
    const bool has_data = data.bytes <= kLetterBytes;
    if (!has_data || in_pieces(call)) c->tags[q] = next_tag(to);
    Packer note;
    note.put<int>(kLetter).put(group.id);
    pack(note, call);
    note.put(has_data).put(c->tags[q]).put(i64{0});
    if (has_data) note.rest(data.data, data.bytes);
    tell(to, note.take());
  }
  if (reduces(call))
    c->inputs = std::make_unique_for_overwrite<std::byte[]>(n * static_cast<std::size_t>(slot_stride(call)));
}

// All calls are there: do they fit?
bool ProcessWorld::agree(Collective& c) {
  Share& share = *c.share;
  const auto& members = share.call.group->members;
  if (options_.check_calls) {
    std::vector<const Call*> calls;
    calls.reserve(members.size());
    for (std::size_t r = 0; r < members.size(); ++r) {
      if (!c.letters[r]) {
        calls.push_back(&share.call);
        continue;
      }
      c.letters[r]->call.group = share.call.group;
      calls.push_back(&c.letters[r]->call);
    }
    std::vector<int> odd;
    const std::string text = mismatch_text(calls, members, odd);
    if (!text.empty()) {
      refused_ = describe(share.call);
      share.refused = true;
      complain({text, odd});
      return false;
    }
  }
  share.begin = now_ns();
  share.agreed = true;
  return true;
}

void ProcessWorld::send_pieces(Collective& c) {
  c.sending = true;
  c.share->moves = true;
  for (std::size_t q = 0; q < c.letters.size(); ++q) {
    if (static_cast<int>(q) == c.share->call.me) continue;
    const Span data = outgoing(*c.share, q);
    if (data.bytes <= kLetterBytes) continue;
    c.moving.push_back(port_.send(data.data, data.bytes, c.share->call.group->members[q], c.tags[q]));
  }
}

void ProcessWorld::receive_piece(Collective& c, std::size_t member) {
  c.receiving[member] = true;
  const Letter& letter = *c.letters[member];
  const Span place = incoming(c, member);
  if (place.bytes == 0) return;
  if (!letter.has_data) {
    const int from = c.share->call.group->members[member];
    c.moving.push_back(port_.receive(place.data, place.bytes, from, letter.tag));
    return;
  }
  require(static_cast<i64>(letter.payload.size()) == place.bytes, "a call brought another count than ours");
  std::memcpy(place.data, letter.payload.data(), letter.payload.size());
}

// Second half of an all_reduce in pieces: our finished piece goes to everybody.
void ProcessWorld::exchange_sums(Collective& c) {
  const Share& share = *c.share;
  const i64 width = size_of(share.call.in.dtype);
  const auto span = [&](std::size_t member) {
    const Range range = piece(share.call, member);
    return Span{share.stage.out() + range.begin * width, (range.end - range.begin) * width};
  };
  const auto me = static_cast<std::size_t>(share.call.me);
  const Span mine = span(me);
  for (std::size_t q = 0; q < c.letters.size(); ++q) {
    if (q == me) continue;
    const int other = share.call.group->members[q];
    const Span theirs = span(q);
    if (theirs.bytes > 0)
      c.moving.push_back(port_.receive(theirs.data, theirs.bytes, other, c.letters[q]->tag));
    if (mine.bytes > 0) c.moving.push_back(port_.send(mine.data, mine.bytes, other, c.tags[q]));
  }
}

// One look at a collective with our call in it. True if it went on.
bool ProcessWorld::advance(Collective& c, Lock& lock) {
  Share& share = *c.share;
  if (c.over() || c.computing) return false;
  bool any = false;
  if (!share.agreed) {
    if (c.arrived < static_cast<int>(c.letters.size())) {
      if (options_.check_calls) return false;
    } else {
      any = true;
      if (!agree(c)) return true;
    }
  }
  if (!c.sending) send_pieces(c);
  bool all = true;
  for (std::size_t q = 0; q < c.letters.size(); ++q) {
    if (c.receiving[q] || static_cast<int>(q) == share.call.me) continue;
    if (c.letters[q]) receive_piece(c, q);
    all &= c.receiving[q];
  }
  std::erase_if(c.moving, [](const auto& transfer) { return transfer->done(); });
  if (!all || !c.moving.empty() || !share.agreed) return any;

  if (!c.added) {
    c.added = true;
    const bool unlocked = total_bytes(share.call) > kLongWork;
    c.computing = true;
    if (unlocked) lock.unlock();
    if (reduces(share.call)) {
      add_up(c);
    } else {
      copy_own(c);
    }
    if (unlocked) lock.lock();
    c.computing = false;
    if (in_pieces(share.call)) {
      exchange_sums(c);
      return true;
    }
  }
  share.end = now_ns();
  share.done = true;
  collectives_.erase({static_cast<const ProcessGroup&>(*share.call.group).id, share.call.sequence});
  return true;
}

}  // namespace shardlings::comm_detail
