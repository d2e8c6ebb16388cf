#include "comm/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shardlings::comm_detail {

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::all_reduce:
      return "all_reduce";
    case Kind::reduce_scatter:
      return "reduce_scatter";
    case Kind::all_gather:
      return "all_gather";
    case Kind::all_to_all:
      return "all_to_all";
    case Kind::broadcast:
      return "broadcast";
    case Kind::send:
      return "send";
    case Kind::recv:
      return "recv";
    case Kind::barrier:
      return "barrier";
    case Kind::split:
      return "split";
  }
  return "?";
}

Group::Group(std::string group_name, std::vector<int> ranks)
    : name(std::move(group_name)), members(std::move(ranks)), next(members.size()) {
  for (int k = 0; k < kKinds; ++k) {
    keys[k] = name_of(static_cast<Kind>(k));
    group_keys[k] = keys[k] + "@" + name;
  }
}

std::string signature(const Call& call) {
  const Buffer& shown = call.counts.empty() && call.kind != Kind::recv && call.in.data ? call.in : call.out;
  std::string text = fmt::format("{}(", name_of(call.kind));
  if (call.kind != Kind::barrier && call.kind != Kind::split) {
    text += fmt::format("{} {}", shown.count, name_of(shown.dtype));
  }
  for (std::size_t r = 0; r < call.counts.size(); ++r) {
    text += (r == 0 ? " as " : "+") + std::to_string(call.counts[r]);
  }
  if (call.how == Reduce::average) text += " average";
  if (call.how == Reduce::max) text += " max";
  if (call.kind == Kind::broadcast) text += fmt::format(" root {}", call.peer);
  if (call.message()) text += fmt::format(" {} {}", call.kind == Kind::send ? "to" : "from", call.peer);
  if (call.message() && call.tag != 0) text += fmt::format(" tag {}", call.tag);
  return text + ")";
}

std::string describe(const Call& call) {
  std::string text = signature(call) + " on " + call.group->name;
  if (call.sequence >= 0) text += fmt::format(" #{}", call.sequence);
  return text;
}

bool fits(const Call& a, const Call& b) {
  if (a.kind != b.kind || a.how != b.how || a.peer != b.peer || a.counts != b.counts) return false;
  if (a.kind == Kind::broadcast) {  // the root has an input, the others an output
    return a.in.count + a.out.count == b.in.count + b.out.count && a.in.dtype == b.in.dtype;
  }
  const bool in_fits = !a.counts.empty() || a.in.count == b.in.count;
  return in_fits && a.out.count == b.out.count && a.in.dtype == b.in.dtype;
}

i64 ring_bytes(const Call& call) {
  const i64 n = call.group->size();
  switch (call.kind) {
    case Kind::all_reduce:
      return 2 * (n - 1) * call.in.bytes() / n;
    case Kind::reduce_scatter:
      return (n - 1) * call.out.bytes();
    case Kind::all_gather: {  // every piece passes us but that of our right neighbour
      if (call.counts.empty()) return (n - 1) * call.in.bytes();
      const auto right = static_cast<std::size_t>((call.me + 1) % n);
      return call.out.bytes() - call.counts[right] * size_of(call.out.dtype);
    }
    case Kind::all_to_all:
      return (n - 1) * (call.in.bytes() / n);
    case Kind::broadcast:
      return (call.me + 1) % n == call.peer ? 0 : total_bytes(call);
    case Kind::send:
      return call.in.bytes();
    case Kind::recv:
    case Kind::barrier:
    case Kind::split:
      return 0;
  }
  return 0;
}

i64 total_bytes(const Call& call) { return std::max(call.in.bytes(), call.out.bytes()); }

}  // namespace shardlings::comm_detail
