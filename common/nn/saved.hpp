#pragma once
// One micro-batch on its way through forward and backward, and what forward keeps for backward.
#include <vector>

#include "comm/comm.hpp"
#include "core/tensor.hpp"

namespace shardlings {

struct MicroBatch {
  i64 index = 0, step = 0;  ///< global numbers: they key the dropout
  i64 batch = 0, time = 0;  ///< sequences, tokens of each
  i64 first_position = 0;   ///< context parallel: our tokens are [first, first + time) of each sequence
  std::vector<int> tokens, targets;  ///< batch * time each; a target of -1 is not counted
  bool last = true;                  ///< the last of its step on this rank: gradients may be reduced now
  double loss_scale = 1;  ///< 1 / (counted tokens of the whole step): every reduction is a plain sum
  bool training = true;   ///< false: no dropout
};

/// The context of one micro-batch, with a stack that forward fills and backward empties. A pipeline keeps
/// several, recomputation starts a fresh one.
class Saved {
 public:
  Saved(Rank& its_rank, const MicroBatch& micro_batch, DType its_dtype)
      : rank(its_rank), mb(micro_batch), dtype(its_dtype) {}
  Rank& rank;
  const MicroBatch& mb;
  DType dtype;
  double loss = 0;  ///< the sum of scaled losses, once the head has run

  /// A new activation, charged to this rank.
  Tensor make(Shape shape) const { return {rank.memory, Category::activations, dtype, std::move(shape)}; }
  void push(Tensor t) { stack_.push_back(std::move(t)); }
  Tensor pop();  ///< Error when nothing is left: a layer pops more than it pushed
  bool empty() const { return stack_.empty(); }
  Saved fresh() const { return {rank, mb, dtype}; }  ///< same micro-batch, empty stack

 private:
  std::vector<Tensor> stack_;
};

}  // namespace shardlings
