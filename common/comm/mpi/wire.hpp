#pragma once
// Notes between processes as bytes. All processes run the same program on the same kind of machine, so
// numbers travel as they are in memory.
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "comm/call.hpp"
#include "comm/report.hpp"

namespace shardlings::comm_detail {

class Packer {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T> Packer& put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Packer& put(const std::string& text) {
    put(text.size());
    bytes_ += text;
    return *this;
  }
  template <class T>
  Packer& put(const std::vector<T>& values) {
    put(values.size());
    for (const T& v : values) put(v);
    return *this;
  }
  /// The rest of the note, without a length.
  Packer& rest(const std::byte* from, i64 bytes) {
    if (bytes > 0) bytes_.append(reinterpret_cast<const char*>(from), static_cast<std::size_t>(bytes));
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads in the order in which Packer wrote.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  T get() {
    T value{};
    if constexpr (std::is_same_v<T, std::string>) {
      value = std::string(cut(get<std::size_t>()));
    } else {
      std::memcpy(&value, cut(sizeof value).data(), sizeof value);
    }
    return value;
  }
  template <class T>
  std::vector<T> list() {
    std::vector<T> values(get<std::size_t>());
    for (T& v : values) v = get<T>();
    return values;
  }
  std::string rest() { return std::string(cut(bytes_.size())); }

 private:
  std::string_view cut(std::size_t size) {
    require(size <= bytes_.size(), "a note from another process is too short: do all run the same program?");
    const std::string_view part = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return part;
  }
  std::string_view bytes_;
};

/// A call without its group, and without its memory: buffers only say whether there is any.
void pack(Packer& to, const Call& call);
Call unpack_call(Unpacker& from);
void pack(Packer& to, const RankState& state);
RankState unpack_state(Unpacker& from);

}  // namespace shardlings::comm_detail
