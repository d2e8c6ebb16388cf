#pragma once
// Token shards: the .bin files of llm.c and modded-nanogpt. 256 int32 of header (magic 20240520, version 1,
// number of tokens, zeros), then one uint16 a token, little-endian. FineWeb shards made for those programs
// can be read as they are.
#include <cstdint>
#include <span>
#include <string>

#include "data/files.hpp"

namespace shardlings::data {

/// Writes a shard, whole or not at all. UsageError when it cannot be written, or for more than 2^31 - 1
/// tokens.
void write_shard(const std::string& path, std::span<const std::uint16_t> tokens);

/// A shard, mapped. UsageError with the numbers when it is foreign, of another version, or truncated.
class TokenShard {
 public:
  explicit TokenShard(const std::string& path);
  std::span<const std::uint16_t> tokens() const { return tokens_; }

 private:
  MappedFile file_;
  std::span<const std::uint16_t> tokens_;
};

}  // namespace shardlings::data
