#include "core/dtype.hpp"

namespace shardlings {

const char* name_of(DType t) {
  switch (t) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::f64:
      return "f64";
    case DType::i32:
      return "i32";
  }
  return "?";
}

DType dtype_from(const std::string& name) {
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32}) {
    if (name == name_of(t)) return t;
  }
  fail_usage("unknown dtype \"" + name + "\": use f32, bf16, f16 or f64");
}

}  // namespace shardlings
