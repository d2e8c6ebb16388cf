#include "comm/mpi/wire.hpp"

namespace shardlings::comm_detail {

namespace {

void pack(Packer& to, const Buffer& buffer) {
  to.put(buffer.data != nullptr).put(buffer.count).put(buffer.dtype);
}

Buffer unpack_buffer(Unpacker& from) {
  static std::byte elsewhere{};  // an address that says "there is memory" and is never followed
  Buffer buffer;
  buffer.data = from.get<bool>() ? &elsewhere : nullptr;
  buffer.count = from.get<i64>();
  buffer.dtype = from.get<DType>();
  return buffer;
}

}  // namespace

void pack(Packer& to, const Call& call) {
  to.put(call.kind).put(call.how).put(call.peer).put(call.tag).put(call.me).put(call.sequence);
  pack(to, call.in);
  pack(to, call.out);
  to.put(call.counts);
}

Call unpack_call(Unpacker& from) {
  Call call;
  call.kind = from.get<Kind>();
  call.how = from.get<Reduce>();
  call.peer = from.get<int>();
  call.tag = from.get<int>();
  call.me = from.get<int>();
  call.sequence = from.get<i64>();
  call.in = unpack_buffer(from);
  call.out = unpack_buffer(from);
  call.counts = from.list<i64>();
  return call;
}

void pack(Packer& to, const RankState& state) {
  to.put(state.state)
      .put(state.call)
      .put(state.waits)
      .put(state.sends)
      .put(state.exchange)
      .put(state.missing);
  to.put(state.for_ns).put(state.last);
}

RankState unpack_state(Unpacker& from) {
  RankState state;
  state.state = from.get<RankState::State>();
  state.call = from.get<std::string>();
  state.waits = from.get<bool>();
  state.sends = from.get<bool>();
  state.exchange = from.get<std::uint64_t>();
  state.missing = from.list<int>();
  state.for_ns = from.get<std::int64_t>();
  state.last = from.get<std::string>();
  return state;
}

}  // namespace shardlings::comm_detail
