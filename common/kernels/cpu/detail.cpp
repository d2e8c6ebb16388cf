#include "kernels/cpu/detail.hpp"

#include <fmt/format.h>

namespace shardlings::kernels::detail {

void expect_shape(const Tensor& t, const Shape& shape, std::string_view what) {
  if (t.shape() != shape)
    fail(fmt::format("{} is {}, expected {}", what, to_string(t.shape()), to_string(shape)));
}

void expect_dtype(const Tensor& t, DType dtype, std::string_view what) {
  if (t.dtype() != dtype)
    fail(fmt::format("{} is {}, expected {}", what, name_of(t.dtype()), name_of(dtype)));
}

void expect_matrix(const Tensor& t, std::string_view what) {
  if (t.shape().size() != 2)
    fail(fmt::format("{} is {}, expected two dimensions", what, to_string(t.shape())));
}

}  // namespace shardlings::kernels::detail
