#pragma once
// Random numbers without state: a pure function of (key, index), by Philox4x32-10 (Salmon et al. 2011,
// Random123). Any rank can draw any element of any stream, on the CPU and on a GPU, and gets the same number.
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace shardlings {

/// A 64-bit key from numbers, or from a name; the same on every machine.
std::uint64_t key_of(std::initializer_list<std::uint64_t> parts);
std::uint64_t key_of(std::string_view name);

/// Four independent 32-bit words: block `block` of stream `key`.
std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t block);

/// 32 uniform bits: element i of the stream (word i % 4 of block i / 4).
std::uint32_t random_bits(std::uint64_t key, std::uint64_t i);
/// Uniform in [0, 1) with 53 bits; element i of a stream of its own.
double uniform(std::uint64_t key, std::uint64_t i);
/// Standard normal (Box-Muller); element i of a stream of its own.
double normal(std::uint64_t key, std::uint64_t i);

}  // namespace shardlings
