#pragma once
// Two checksums against accidents (not against attackers): the one of the POSIX tool `cksum`, with which
// set-up records the text, and XXH64, fast enough for checkpoints.
#include <cstddef>
#include <cstdint>
#include <span>

namespace shardlings::data {

/// What `cksum` prints for a file of these bytes: CRC-32 of the bytes and their number (POSIX.1, cksum).
std::uint32_t posix_cksum(std::span<const std::byte> bytes);

/// XXH64 (Y. Collet, xxHash specification), the same as `xxhsum -H64` prints for seed 0.
std::uint64_t xxh64(std::span<const std::byte> bytes, std::uint64_t seed = 0);

}  // namespace shardlings::data
