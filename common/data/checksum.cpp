#include "data/checksum.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace shardlings::data {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i << 24;
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1) ^ ((crc >> 31) != 0 ? 0x04c11db7U : 0U);
    table[i] = crc;
  }
  return table;
}
constexpr auto kCrcTable = crc_table();

constexpr std::uint64_t kPrime1 = 0x9e3779b185ebca87U, kPrime2 = 0xc2b2ae3d27d4eb4fU,
                        kPrime3 = 0x165667b19e3779f9U, kPrime4 = 0x85ebca77c2b2ae63U,
                        kPrime5 = 0x27d4eb2f165667c5U;

static_assert(std::endian::native == std::endian::little,
              "files are read and written in the machine's byte order");

template <class Word>
std::uint64_t read(const std::byte* p) {
  Word word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

std::uint64_t round_of(std::uint64_t lane, std::uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

std::uint64_t merge(std::uint64_t hash, std::uint64_t lane) {
  return (hash ^ round_of(0, lane)) * kPrime1 + kPrime4;
}

}  // namespace

std::uint32_t posix_cksum(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0;
  const auto add = [&crc](std::uint32_t byte) { crc = (crc << 8) ^ kCrcTable[(crc >> 24) ^ byte]; };
  for (std::byte b : bytes) add(std::to_integer<std::uint32_t>(b));
  for (std::size_t n = bytes.size(); n != 0; n >>= 8) add(static_cast<std::uint32_t>(n & 0xffU));
  return ~crc;
}

std::uint64_t xxh64(std::span<const std::byte> bytes, std::uint64_t seed) {
  const std::byte* p = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t hash = seed + kPrime5;
  if (left >= 32) {
    std::array<std::uint64_t, 4> lane{seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
    for (; left >= 32; p += 32, left -= 32) {
      for (std::size_t i = 0; i < 4; ++i) lane[i] = round_of(lane[i], read<std::uint64_t>(p + 8 * i));
    }
    hash = std::rotl(lane[0], 1) + std::rotl(lane[1], 7) + std::rotl(lane[2], 12) + std::rotl(lane[3], 18);
    for (std::uint64_t l : lane) hash = merge(hash, l);
  }
  hash += bytes.size();
  for (; left >= 8; p += 8, left -= 8) {
    hash = std::rotl(hash ^ round_of(0, read<std::uint64_t>(p)), 27) * kPrime1 + kPrime4;
  }
  for (; left >= 4; p += 4, left -= 4) {
    hash = std::rotl(hash ^ (read<std::uint32_t>(p) * kPrime1), 23) * kPrime2 + kPrime3;
  }
  for (; left > 0; ++p, --left) hash = std::rotl(hash ^ (read<std::uint8_t>(p) * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace shardlings::data
