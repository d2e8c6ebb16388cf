#include "data/shard.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>

#include "core/error.hpp"

namespace shardlings::data {
namespace {

using Header = std::array<std::int32_t, 256>;
constexpr std::int32_t kMagic = 20240520, kVersion = 1;

}  // namespace

void write_shard(const std::string& path, std::span<const std::uint16_t> tokens) {
  if (tokens.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    fail_usage(fmt::format("{} tokens do not fit into one shard (at most 2147483647): write several",
                           tokens.size()));
  }
  const Header header{kMagic, kVersion, static_cast<std::int32_t>(tokens.size())};
  AtomicFile file(path, static_cast<i64>(sizeof header + tokens.size_bytes()));
  file.write(header.data(), sizeof header);
  file.write(tokens.data(), tokens.size_bytes());
  file.commit();
}

TokenShard::TokenShard(const std::string& path) : file_(path) {
  const auto bytes = file_.bytes();
  Header header{};
  if (bytes.size() < sizeof header) {
    fail_usage(fmt::format("{} is not a token shard: it has {} bytes, the header alone has {}", path,
                           bytes.size(), sizeof header));
  }
  std::memcpy(header.data(), bytes.data(), sizeof header);
  if (header[0] != kMagic) {
    fail_usage(
        fmt::format("{} is not a token shard: it begins with {}, a shard with {}", path, header[0], kMagic));
  }
  if (header[1] != kVersion) {
    fail_usage(fmt::format("{} is a token shard of version {}; this program reads version {}", path,
                           header[1], kVersion));
  }
  const std::size_t expected = sizeof header + static_cast<std::size_t>(header[2]) * sizeof(std::uint16_t);
  if (header[2] < 0 || bytes.size() != expected) {
    fail_usage(fmt::format(
        "{} is truncated or damaged: its header says {} tokens, which makes {} bytes, and it has {}", path,
        header[2], expected, bytes.size()));
  }
  tokens_ = {reinterpret_cast<const std::uint16_t*>(bytes.data() + sizeof header),
             static_cast<std::size_t>(header[2])};
}

}  // namespace shardlings::data
