#pragma once
// Given: turns the functions of layers.hpp into layers of the library's model, and says what they keep for
// backward. Everything else of the model (products, GELU, dropout, embedding) stays the library's.
#include "layers.hpp"

namespace shardlings {

/// Calls f with a number of the tensors' type: float or double. The plain loops know no 16-bit types.
template <class F>
void with_element(DType dtype, F&& f) {
  if (dtype == DType::f64) {
    f(double{});
  } else if (dtype == DType::f32) {
    f(float{});
  } else {
    fail_usage(std::string("the plain layers compute in f32 and f64, not in ") + name_of(dtype));
  }
}

/// Keeps x, and the mean and rstd of each row.
class PlainLayerNorm : public Layer {
 public:
  PlainLayerNorm(Parameter* gain, Parameter* bias) : gain_(gain), bias_(bias) {}

  Tensor forward(const Tensor& x, Saved& saved) override {
    const i64 n = x.dim(0), C = x.dim(1);
    Tensor y = saved.make({n, C});
    const Tensor mean = saved.make({n}), rstd = saved.make({n});
    with_element(saved.dtype, [&](auto element) {
      using S = decltype(element);
      layer_norm_forward<S>(x.data<S>(), gain_->value.data<S>(), bias_->value.data<S>(), y.data<S>(),
                            mean.data<S>(), rstd.data<S>(), n, C);
    });
    for (const Tensor& t : {x, mean, rstd}) saved.push(t);
    return y;
  }

  Tensor backward(const Tensor& dy, Saved& saved) override {
    const Tensor rstd = saved.pop(), mean = saved.pop(), x = saved.pop();
    Tensor dx = saved.make(x.shape());
    with_element(saved.dtype, [&](auto element) {
      using S = decltype(element);
      layer_norm_backward<S>(dy.data<S>(), x.data<S>(), gain_->value.data<S>(), mean.data<S>(),
                             rstd.data<S>(), dx.data<S>(), gain_->grad.data<S>(), bias_->grad.data<S>(),
                             x.dim(0), x.dim(1));
    });
    return dx;
  }

 private:
  Parameter *gain_, *bias_;
};

/// Keeps qkv and the probabilities [B, H, T, T].
class PlainAttention : public Layer {
 public:
  explicit PlainAttention(i64 heads) : heads_(heads) {}

  Tensor forward(const Tensor& qkv, Saved& saved) override {
    const AttentionShape at = shape_of(qkv, saved);
    const Tensor prob = saved.make({at.B, at.H, at.T, at.T});
    Tensor y = saved.make({qkv.dim(0), at.H * at.D});
    with_element(saved.dtype, [&](auto element) {
      using S = decltype(element);
      attention_forward<S>(qkv.data<S>(), prob.data<S>(), y.data<S>(), at);
    });
    saved.push(qkv);
    saved.push(prob);
    return y;
  }

  Tensor backward(const Tensor& dy, Saved& saved) override {
    const Tensor prob = saved.pop(), qkv = saved.pop();
    Tensor dqkv = saved.make(qkv.shape());
    with_element(saved.dtype, [&](auto element) {
      using S = decltype(element);
      attention_backward<S>(dy.data<S>(), qkv.data<S>(), prob.data<S>(), dqkv.data<S>(),
                            shape_of(qkv, saved));
    });
    return dqkv;
  }

 private:
  AttentionShape shape_of(const Tensor& qkv, const Saved& saved) const {
    return {saved.mb.batch, qkv.dim(0) / saved.mb.batch, heads_, qkv.dim(1) / (3 * heads_)};
  }
  i64 heads_;
};

/// Keeps the probabilities [n, V].
class PlainCrossEntropy : public Layer {
 public:
  Tensor forward(const Tensor& logits, Saved& saved) override {
    const Tensor prob = saved.make(logits.shape());
    with_element(saved.dtype, [&](auto element) {
      using S = decltype(element);
      saved.loss += cross_entropy_forward<S>(logits.data<S>(), saved.mb.targets.data(), saved.mb.loss_scale,
                                             prob.data<S>(), logits.dim(0), logits.dim(1));
    });
    saved.push(prob);
    return {};
  }

  Tensor backward(const Tensor&, Saved& saved) override {
    const Tensor prob = saved.pop();
    Tensor dlogits = saved.make(prob.shape());
    with_element(saved.dtype, [&](auto element) {
      using S = decltype(element);
      cross_entropy_backward<S>(prob.data<S>(), saved.mb.targets.data(), saved.mb.loss_scale,
                                dlogits.data<S>(), prob.dim(0), prob.dim(1));
    });
    return dlogits;
  }
};

/// The model with the layers of layers.hpp: `PlainLayers plain; Gpt model(config, plain);`
struct PlainLayers : LayerFactory {
  LayerPtr norm(Unit& unit, const std::string& name, i64 channels) override {
    Parameter* gain = unit.add(name + ".weight", {channels}, 1, 0, false);
    return std::make_unique<PlainLayerNorm>(gain, unit.add(name + ".bias", {channels}, 0, 0, false));
  }
  LayerPtr attention(i64 heads, i64) override { return std::make_unique<PlainAttention>(heads); }
  LayerPtr loss() override { return std::make_unique<PlainCrossEntropy>(); }
};

/// Bytes of activations that one forward pass over B sequences of T tokens leaves for backward (n = B T),
/// with the layers above. Per block, in units of n C: the two norms' outputs 2, qkv 3, attention's output 1,
/// the hidden layer before and after GELU 4 + 4, the two sums with the residual 2; beside them mean and rstd
/// of two norms and B H T T probabilities. Embedding and last norm: 2 n C, mean and rstd, and n V
/// probabilities. A recomputed block leaves only its output.
inline i64 plain_activation_bytes(const GptConfig& c, i64 B, i64 T) {
  const i64 n = B * T, C = c.channels;
  const i64 block = c.recompute ? n * C : 16 * n * C + 4 * n + B * c.heads * T * T;
  return (c.layers * block + 2 * n * C + 2 * n + n * c.vocab) * size_of(c.dtype);
}

}  // namespace shardlings
