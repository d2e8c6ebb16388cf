#pragma once
// Element types and the one run-time type switch. 16-bit types are storage only: arithmetic is done in acc_t.
#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/error.hpp"

namespace shardlings {

using i64 = std::int64_t;

/// f64 is for proofs only; i32 for token tensors.
enum class DType { f32, bf16, f16, f64, i32 };

/// bfloat16: the upper half of a float. Converts with round to nearest even; NaN stays NaN.
struct bf16 {
  std::uint16_t bits = 0;
  bf16() = default;
  explicit bf16(float value) {
    const auto u = std::bit_cast<std::uint32_t>(value);
    const bool nan = (u & 0x7fffffffU) > 0x7f800000U;
    const std::uint32_t rounded = (u + 0x7fffU + ((u >> 16) & 1U)) >> 16;
    bits = static_cast<std::uint16_t>(nan ? (u >> 16) | 0x40U : rounded);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

/// IEEE binary16. Converts with round to nearest even, subnormals included; above 65519.99 it becomes
/// infinity.
struct f16 {
  std::uint16_t bits = 0;
  f16() = default;
  explicit f16(float value) {
    const auto u = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (u >> 16) & 0x8000U;
    const std::uint32_t magnitude = u & 0x7fffffffU;
    if (magnitude > 0x7f800000U) {  // NaN: keep the upper payload, stay quiet
      bits = static_cast<std::uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x1ffU));
    } else if (magnitude >= 0x477ff000U) {  // 65520 and above round to infinity
      bits = static_cast<std::uint16_t>(sign | 0x7c00U);
    } else if (magnitude < 0x38800000U) {  // below 2^-14: adding 0.5 lets the float unit do the rounding
      const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
      bits = static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U));
    } else {
      const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
      bits = static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
    }
  }
  explicit operator float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    const std::uint32_t magnitude = bits & 0x7fffU;
    if (magnitude >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | ((magnitude & 0x3ffU) << 13));
    if (magnitude < 0x400U) {
      const float value = static_cast<float>(magnitude) * 0x1p-24F;
      return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
    }
    return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000U));
  }
};

/// What sums over elements of S are kept in: double for double, else float.
template <class S>
using acc_t = std::conditional_t<std::is_same_v<S, double>, double, float>;

template <class S>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<S, float>) return DType::f32;
  if constexpr (std::is_same_v<S, bf16>) return DType::bf16;
  if constexpr (std::is_same_v<S, f16>) return DType::f16;
  if constexpr (std::is_same_v<S, double>) return DType::f64;
  if constexpr (std::is_same_v<S, std::int32_t>) return DType::i32;
}

/// Bytes of one element.
constexpr i64 size_of(DType t) { return t == DType::f64 ? 8 : (t == DType::bf16 || t == DType::f16) ? 2 : 4; }
const char* name_of(DType t);
/// From "f32", "bf16", "f16", "f64", "i32"; UsageError naming the valid ones otherwise.
DType dtype_from(const std::string& name);

/// Calls f(S{}) with the C++ type of a floating dtype.
template <class F>
decltype(auto) dispatch(DType t, F&& f) {
  switch (t) {
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(bf16{});
    case DType::f16:
      return f(f16{});
    case DType::f64:
      return f(double{});
    default:
      fail("dispatch: not a floating type");
  }
}

}  // namespace shardlings
