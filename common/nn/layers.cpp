#include "nn/layers.hpp"

#include "core/random.hpp"
#include "kernels/ops.hpp"

namespace shardlings {

Tensor Saved::pop() {
  require(!stack_.empty(), "Saved: pop from an empty stack (a layer pops more than it pushed)");
  Tensor t = std::move(stack_.back());
  stack_.pop_back();
  return t;
}

Tensor Linear::forward(const Tensor& x, Saved& saved) {
  Tensor y = saved.make({x.dim(0), weight_->shape[0]});
  kernels::linear_forward(x, weight_->value, bias_ != nullptr ? bias_->value : Tensor(), y);
  saved.push(x);
  return y;
}

Tensor Linear::backward(const Tensor& dy, Saved& saved) {
  const Tensor x = saved.pop();
  kernels::linear_backward_weight(dy, x, weight_->grad, bias_ != nullptr ? bias_->grad : Tensor());
  Tensor dx = saved.make(x.shape());
  kernels::linear_backward_input(dy, weight_->value, dx);
  return dx;
}

Tensor LayerNorm::forward(const Tensor& x, Saved& saved) {
  Tensor y = saved.make(x.shape());
  kernels::layer_norm_forward(x, gain_->value, bias_->value, y);
  saved.push(x);
  return y;
}

Tensor LayerNorm::backward(const Tensor& dy, Saved& saved) {
  const Tensor x = saved.pop();
  Tensor dx = saved.make(x.shape());
  kernels::layer_norm_backward(dy, x, gain_->value, dx, gain_->grad, bias_->grad);
  return dx;
}

Tensor Gelu::forward(const Tensor& x, Saved& saved) {
  Tensor y = saved.make(x.shape());
  kernels::gelu_forward(x, y);
  saved.push(x);
  return y;
}

Tensor Gelu::backward(const Tensor& dy, Saved& saved) {
  const Tensor x = saved.pop();
  Tensor dx = saved.make(x.shape());
  kernels::gelu_backward(dy, x, dx);
  return dx;
}

Dropout::Dropout(const std::string& name, double p, i64 part) : key_(key_of(name)), p_(p), part_(part) {}

Tensor Dropout::apply(const Tensor& x, const Saved& saved) const {
  if (p_ == 0 || !saved.mb.training) return x;
  Tensor y = saved.make(x.shape());
  const auto key =
      key_of({key_, static_cast<std::uint64_t>(saved.mb.step), static_cast<std::uint64_t>(saved.mb.index)});
  kernels::dropout(x, p_, key, part_ * x.numel(), y);
  return y;
}

Tensor Attention::forward(const Tensor& qkv, Saved& saved) {
  const i64 batch = saved.mb.batch, n = qkv.dim(0);
  Tensor y = saved.make({n, qkv.dim(1) / 3});
  const DType sums = saved.dtype == DType::f64 ? DType::f64 : DType::f32;
  const Tensor log_sum(saved.rank.memory, Category::activations, sums, {batch, heads_, n / batch});
  kernels::attention_forward(qkv, batch, heads_, y, log_sum);
  saved.push(qkv);
  saved.push(y);
  saved.push(log_sum);
  return y;
}

Tensor Attention::backward(const Tensor& dy, Saved& saved) {
  const Tensor log_sum = saved.pop(), y = saved.pop(), qkv = saved.pop();
  Tensor dqkv = saved.make(qkv.shape());
  kernels::attention_backward(dy, qkv, y, log_sum, saved.mb.batch, heads_, dqkv);
  return dqkv;
}

Tensor Embedding::forward(const Tensor&, Saved& saved) {
  const MicroBatch& mb = saved.mb;
  Tensor y = saved.make({mb.batch * mb.time, wte_->shape[1]});
  kernels::embedding_forward(mb.tokens, mb.time, mb.first_position, wte_->value, wpe_->value, y);
  return y;
}

Tensor Embedding::backward(const Tensor& dy, Saved& saved) {
  const MicroBatch& mb = saved.mb;
  kernels::embedding_backward(mb.tokens, mb.time, mb.first_position, dy, wte_->grad, wpe_->grad);
  return {};
}

Tensor CrossEntropy::forward(const Tensor& logits, Saved& saved) {
  const Tensor dlogits = saved.make(logits.shape());
  saved.loss += kernels::cross_entropy(logits, saved.mb.targets, saved.mb.loss_scale, dlogits);
  saved.push(dlogits);
  return {};
}

Tensor CrossEntropy::backward(const Tensor&, Saved& saved) { return saved.pop(); }

Tensor Chain::forward(Tensor x, Saved& saved) const {
  for (const auto& layer : layers) x = layer->forward(x, saved);
  return x;
}

Tensor Chain::backward(Tensor dy, Saved& saved) const {
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) dy = (*layer)->backward(dy, saved);
  return dy;
}

}  // namespace shardlings
