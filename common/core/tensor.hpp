#pragma once
// A contiguous tensor with a run-time type. Copies share storage; views are cut along dimension 0.
#include <memory>
#include <vector>

#include "core/dtype.hpp"
#include "core/ledger.hpp"

namespace shardlings {

using Shape = std::vector<i64>;
i64 numel_of(const Shape& shape);
std::string to_string(const Shape& shape);  ///< "[768, 128]"

class Tensor {
 public:
  /// A tensor without memory: any access throws "used while it has no memory (not gathered?)".
  Tensor() = default;
  /// New memory, charged to a category of `ledger` until the last copy is gone. `ledger` must outlive it.
  Tensor(MemoryLedger& ledger, Category category, DType dtype, Shape shape);

  explicit operator bool() const { return storage_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  i64 dim(int i) const { return shape_.at(static_cast<std::size_t>(i)); }
  i64 numel() const { return numel_; }
  i64 bytes() const { return numel_ * size_of(dtype_); }

  std::byte* raw() const;  ///< first byte; throws without memory
  /// First element; throws when S is not the tensor's type.
  template <class S>
  S* data() const {
    if (dtype_ != dtype_of<S>()) wrong_type(dtype_of<S>());
    return reinterpret_cast<S*>(raw());
  }

  Tensor view(Shape shape) const;          ///< same elements, another shape
  Tensor slice(i64 begin, i64 end) const;  ///< rows [begin, end) of dimension 0, sharing memory
  void zero() const;
  void copy_from(const Tensor& other) const;  ///< same number of elements and type

  double get(i64 i) const;              ///< slow; for tests, initial values, readable code
  void set(i64 i, double value) const;  ///< slow; rounds to the tensor's type

 private:
  [[noreturn]] void wrong_type(DType asked) const;
  std::shared_ptr<std::byte> storage_;
  i64 offset_ = 0;  // elements
  Shape shape_{0};
  i64 numel_ = 0;
  DType dtype_ = DType::f32;
};

}  // namespace shardlings
