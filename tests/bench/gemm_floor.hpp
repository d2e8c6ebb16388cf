#pragma once
// The matrix products of one training step and nothing else: the time below which a step cannot go.
#include "nn/gpt.hpp"

namespace shardlings::bench {

/// Forward, input gradient and weight gradient of every linear layer and the head, and for each head of
/// attention the six T x T products, not causal: two forward, four backward. Own buffers per layer, one call
/// per product, as a step has them.
class GemmFloor {
 public:
  GemmFloor(const GptConfig& config, i64 batch);
  void run();            ///< once, with this thread's OpenMP threads
  double flops() const;  ///< of one run

 private:
  struct Linear {
    i64 in, out;
    Tensor x, y, w, dw, dx, dy;
  };
  struct Layer {
    std::vector<Linear> linears;
    Tensor scores, dscores;
  };
  void forward(const Linear& l) const;
  void backward(const Linear& l) const;
  void attention_forward(const Layer& l) const;
  void attention_backward(const Layer& l) const;

  GptConfig config_;
  i64 batch_;
  MemoryLedger memory_;
  std::vector<Layer> layers_;
  Linear head_;
};

}  // namespace shardlings::bench
