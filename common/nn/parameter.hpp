#pragma once
// A parameter is declared apart from its memory: the algorithm that owns the buffers binds views of them.
#include <string>

#include "comm/comm.hpp"
#include "core/tensor.hpp"

namespace shardlings {

struct Parameter {
  std::string name;   ///< GPT-2's name in Hugging Face's files: "h.0.attn.c_attn.weight"
  Shape shape;        ///< what this rank holds
  Shape full, start;  ///< the whole parameter, and where our part of it begins
  double mean = 0, stddev = 0;
  bool decay = false;     ///< weight decay: matrices yes; gains and biases no
  Communicator grad_sum;  ///< if any: the gradient is partial over these ranks and must be summed
  bool counted = true;    ///< does this rank count it in the global norm?
  Tensor value, grad;     ///< views; empty while not bound (not gathered)

  i64 numel() const { return numel_of(shape); }
  /// Initial value of element i of our part: a pure function of (name, global index), the same on every
  /// layout.
  double initial(i64 i) const;
};

}  // namespace shardlings
