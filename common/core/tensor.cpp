#include "core/tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <utility>

namespace shardlings {

i64 numel_of(const Shape& shape) {
  i64 n = 1;
  for (i64 d : shape) n *= d;
  return n;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Tensor::Tensor(MemoryLedger& ledger, Category category, DType dtype, Shape shape)
    : shape_(std::move(shape)), numel_(numel_of(shape_)), dtype_(dtype) {
  for (i64 d : shape_) require(d >= 0, [&] { return "tensor: negative size in " + to_string(shape_); });
  const i64 size = bytes();
  MemoryLedger* owner = &ledger;
  storage_ = std::shared_ptr<std::byte>(
      ledger.allocate(category, size),
      [owner, category, size](std::byte* block) { owner->release(category, block, size); });
}

std::byte* Tensor::raw() const {
  require(storage_ != nullptr, "tensor used while it has no memory (not gathered?)");
  return storage_.get() + offset_ * size_of(dtype_);
}

void Tensor::wrong_type(DType asked) const {
  fail(fmt::format("tensor {} is {}, not {}", to_string(shape_), name_of(dtype_), name_of(asked)));
}

Tensor Tensor::view(Shape shape) const {
  require(numel_of(shape) == numel_, [&] {
    return fmt::format("view: {} has {} elements, {} has {}", to_string(shape_), numel_, to_string(shape),
                       numel_of(shape));
  });
  Tensor t = *this;
  t.shape_ = std::move(shape);
  return t;
}

Tensor Tensor::slice(i64 begin, i64 end) const {
  require(!shape_.empty() && 0 <= begin && begin <= end && end <= shape_[0],
          [&] { return fmt::format("slice [{}, {}) of {}", begin, end, to_string(shape_)); });
  Tensor t = *this;
  const i64 row = shape_[0] == 0 ? 0 : numel_ / shape_[0];
  t.offset_ += begin * row;
  t.shape_[0] = end - begin;
  t.numel_ = (end - begin) * row;
  return t;
}

void Tensor::zero() const { std::memset(raw(), 0, static_cast<std::size_t>(bytes())); }

void Tensor::copy_from(const Tensor& other) const {
  require(other.numel() == numel() && other.dtype() == dtype(), [&] {
    return fmt::format("copy_from: {} {} into {} {}", to_string(other.shape()), name_of(other.dtype()),
                       to_string(shape_), name_of(dtype_));
  });
  std::memmove(raw(), other.raw(), static_cast<std::size_t>(bytes()));
}

double Tensor::get(i64 i) const {
  require(0 <= i && i < numel_, [&] { return fmt::format("element {} of {}", i, to_string(shape_)); });
  if (dtype_ == DType::i32) return data<std::int32_t>()[i];
  return dispatch(dtype_, [&](auto s) {
    using S = decltype(s);
    return static_cast<double>(static_cast<acc_t<S>>(data<S>()[i]));
  });
}

void Tensor::set(i64 i, double value) const {
  require(0 <= i && i < numel_, [&] { return fmt::format("element {} of {}", i, to_string(shape_)); });
  if (dtype_ == DType::i32) {
    data<std::int32_t>()[i] = static_cast<std::int32_t>(value);
    return;
  }
  dispatch(dtype_, [&](auto s) {
    using S = decltype(s);
    data<S>()[i] = S(static_cast<acc_t<S>>(value));
  });
}

}  // namespace shardlings
