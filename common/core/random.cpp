#include "core/random.hpp"

#include <Random123/philox.h>

#include <cmath>

namespace shardlings {

namespace {
std::uint64_t mix(std::uint64_t x) {  // the finalizer of splitmix64 (Steele et al. 2014)
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
std::uint64_t join(std::uint32_t low, std::uint32_t high) {
  return (static_cast<std::uint64_t>(high) << 32) | low;
}
}  // namespace

std::uint64_t key_of(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t k = 1;
  for (std::uint64_t p : parts) k = mix(k ^ mix(p));
  return k;
}

std::uint64_t key_of(std::string_view name) {
  std::uint64_t k = 7;
  for (char c : name) k = mix(k ^ static_cast<unsigned char>(c));
  return k;
}

std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t block) {
  const r123::Philox4x32::ctr_type counter = {
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0}};
  const r123::Philox4x32::key_type k = {
      {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)}};
  const auto r = r123::Philox4x32()(counter, k);
  return {r[0], r[1], r[2], r[3]};
}

std::uint32_t random_bits(std::uint64_t key, std::uint64_t i) { return philox(key, i / 4)[i % 4]; }

double uniform(std::uint64_t key, std::uint64_t i) {
  const auto r = philox(key, i);
  return static_cast<double>(join(r[0], r[1]) >> 11) * 0x1p-53;
}

double normal(std::uint64_t key, std::uint64_t i) {
  const auto r = philox(key, i);
  const double u = (static_cast<double>(join(r[0], r[1]) >> 11) + 0.5) * 0x1p-53;  // never 0
  const double v = static_cast<double>(join(r[2], r[3]) >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
}

}  // namespace shardlings
