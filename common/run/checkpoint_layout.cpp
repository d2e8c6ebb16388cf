// How our parameters and those of GPT-2's files correspond.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "run/checkpoint.hpp"

namespace shardlings::run {
namespace {

bool is_fused(const std::string& name) { return name.find(".c_attn.") != std::string::npos; }

/// GPT-2's layers are "Conv1D": y = x W + b with W [in, out]. Tables and the head are as ours.
bool is_linear_weight(const std::string& name) {
  return name.ends_with(".c_attn.weight") || name.ends_with(".c_proj.weight") ||
         name.ends_with(".c_fc.weight");
}

}  // namespace

Shape gpt2_shape(const std::string& name, const Shape& shape) {
  Shape theirs = shape;
  if (is_linear_weight(name)) std::reverse(theirs.begin(), theirs.end());
  return theirs;
}

void convert_layout(const std::string& name, const Shape& shape, i64 element_bytes, i64 heads, Layout to,
                    const std::byte* from, std::byte* out) {
  const i64 rows = shape.empty() ? 1 : shape[0];  // of ours: output channels
  const i64 in = rows == 0 ? 0 : numel_of(shape) / rows;
  const bool fused = is_fused(name), linear = is_linear_weight(name);
  require(!linear || shape.size() == 2,
          [&] { return fmt::format("{} is {}, not a matrix", name, to_string(shape)); });
  require(!fused || (heads > 0 && rows % (3 * heads) == 0), [&] {
    return fmt::format("{} {} cannot be q, k and v of {} heads", name, to_string(shape), heads);
  });
  if (!fused && !linear) {
    std::memcpy(out, from, static_cast<std::size_t>(numel_of(shape) * element_bytes));
    return;
  }
  const i64 head_dim = fused ? rows / (3 * heads) : 1;
  for (i64 row = 0; row < rows; ++row) {
    i64 column = row;  // of theirs
    if (fused) {
      const i64 head = row / (3 * head_dim), which = row / head_dim % 3, d = row % head_dim;
      column = (which * heads + head) * head_dim + d;
    }
    for (i64 i = 0; i < in; ++i) {
      const i64 ours = row * in + i, theirs = i * rows + column;
      const auto [source, target] = to == Layout::gpt2 ? std::pair(ours, theirs) : std::pair(theirs, ours);
      std::memcpy(out + target * element_bytes, from + source * element_bytes,
                  static_cast<std::size_t>(element_bytes));
    }
  }
}

}  // namespace shardlings::run
