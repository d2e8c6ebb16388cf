// Messages: the send is announced, the receive that meets it answers, then the data move.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "comm/mpi/wire.hpp"
#include "comm/mpi/world.hpp"
#include "core/random.hpp"

namespace shardlings::comm_detail {

void ProcessWorld::announce(const std::shared_ptr<Share>& share, bool buffered) {
  const Call& call = share->call;
  const auto& group = static_cast<const ProcessGroup&>(*call.group);
  const int other = group.members[static_cast<std::size_t>(call.peer)];
  const i64 number = messages_++;
  share->exchange = key_of({group.id, static_cast<std::uint64_t>(me_), static_cast<std::uint64_t>(number)});
  if (call.kind == Kind::recv) {
    Route& route = routes_[{group.id, other}];
    route.recvs.push_back(share);
    return match(other, route);
  }
  Outgoing out{share, other};
  out.has_data = call.in.bytes() <= kLetterBytes;
  if (!out.has_data) out.tag = next_tag(other);
  Packer note;
  note.put<int>(kLetter).put(group.id);
  pack(note, call);
  note.put(out.has_data).put(out.tag).put(number);
  if (out.has_data) note.rest(share->stage.in(), call.in.bytes());
  if (buffered) {  // on its way at once, received or not
    share->begin = share->end = now_ns();
    share->done = true;
  }
  outgoing_.emplace(number, std::move(out));
  tell(other, note.take());
}

// Messages from one rank arrive in order.
void ProcessWorld::match(int from, Route& route) {
  while (!closed_ && !route.letters.empty() && !route.recvs.empty()) {
    const std::shared_ptr<Share> share = route.recvs.front();
    const Letter letter = std::move(route.letters.front());
    route.recvs.pop_front();
    route.letters.pop_front();
    const std::string text = mismatch_text(letter.call, from, share->call, me_);
    if (!text.empty()) {
      refused_ = describe(share->call);
      share->refused = true;
      return complain({text, {}});
    }
    share->agreed = true;
    share->begin = now_ns();
    std::byte* out = share->stage.out();
    if (letter.has_data) {
      if (!letter.payload.empty()) std::memcpy(out, letter.payload.data(), letter.payload.size());
      share->end = now_ns();
      share->done = true;
    } else {
      receiving_.emplace_back(share, port_.receive(out, share->call.out.bytes(), from, letter.tag));
    }
    tell(from, Packer().put<int>(kMet).put(letter.number).take());
  }
}

// A receive has met our send.
void ProcessWorld::acknowledged(i64 number) {
  const auto found = outgoing_.find(number);
  if (found == outgoing_.end()) return;
  Outgoing& out = found->second;
  Share& share = *out.share;
  share.agreed = true;
  if (!share.done) share.begin = now_ns();
  if (!out.has_data) {
    out.transfer = port_.send(share.stage.in(), share.call.in.bytes(), out.to, out.tag);
    return;
  }
  ended(share);
  outgoing_.erase(found);
}

void ProcessWorld::ended(Share& share) {
  if (share.done) return;  // a buffered send
  share.end = now_ns();
  share.done = true;
}

bool ProcessWorld::advance_messages() {
  bool any = false;
  std::erase_if(receiving_, [&](const auto& entry) {
    if (!entry.second->done()) return false;
    ended(*entry.first);
    return any = true;
  });
  std::erase_if(outgoing_, [&](const auto& entry) {
    const Outgoing& out = entry.second;
    if (!out.transfer || !out.transfer->done()) return false;
    ended(*out.share);
    return any = true;
  });
  return any;
}

// Asked when all ranks have returned: a send that no receive has met by now never will be.
std::string ProcessWorld::unreceived() const {
  for (const auto& [number, out] : outgoing_) {
    if (!out.share->agreed)
      return fmt::format("rank {} returned, and nobody received its {}", me_, describe(out.share->call));
  }
  return {};
}

}  // namespace shardlings::comm_detail
