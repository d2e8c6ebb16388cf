#pragma once
// Layers with hand-written backward. Forward pushes what backward will pop, in reverse order.
#include <memory>

#include "nn/parameter.hpp"
#include "nn/saved.hpp"

namespace shardlings {

struct Layer {
  virtual ~Layer() = default;
  Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  virtual Tensor forward(const Tensor& x, Saved& saved) = 0;
  virtual Tensor backward(const Tensor& dy,
                          Saved& saved) = 0;  ///< returns dx; adds to the parameters' gradients
};
using LayerPtr = std::unique_ptr<Layer>;

/// y[n, out] = x[n, in] w^T + b. Saves x. The bias may be null.
class Linear : public Layer {
 public:
  Linear(Parameter* weight, Parameter* bias) : weight_(weight), bias_(bias) {}
  Tensor forward(const Tensor& x, Saved& saved) override;
  Tensor backward(const Tensor& dy, Saved& saved) override;

 private:
  Parameter *weight_, *bias_;
};

/// Saves x.
class LayerNorm : public Layer {
 public:
  LayerNorm(Parameter* gain, Parameter* bias) : gain_(gain), bias_(bias) {}
  Tensor forward(const Tensor& x, Saved& saved) override;
  Tensor backward(const Tensor& dy, Saved& saved) override;

 private:
  Parameter *gain_, *bias_;
};

/// Saves x.
class Gelu : public Layer {
 public:
  Tensor forward(const Tensor& x, Saved& saved) override;
  Tensor backward(const Tensor& dy, Saved& saved) override;
};

/// Keyed by (name, step, micro-batch, global element): recomputation and every layout draw the same mask;
/// nothing is saved.
class Dropout : public Layer {
 public:
  /// `part`: we hold rows part * n .. of the whole activation (sequence parallel).
  Dropout(const std::string& name, double p, i64 part = 0);
  Tensor forward(const Tensor& x, Saved& saved) override { return apply(x, saved); }
  Tensor backward(const Tensor& dy, Saved& saved) override { return apply(dy, saved); }

 private:
  Tensor apply(const Tensor& x, const Saved& saved) const;
  std::uint64_t key_;
  double p_;
  i64 part_;
};

/// Causal self-attention on qkv[n, H*3*D] -> y[n, H*D]. Saves qkv, y and log sum exp of each row.
class Attention : public Layer {
 public:
  explicit Attention(i64 heads) : heads_(heads) {}
  Tensor forward(const Tensor& qkv, Saved& saved) override;
  Tensor backward(const Tensor& dy, Saved& saved) override;

 private:
  i64 heads_;
};

/// Ignores x: tokens come from the micro-batch.
class Embedding : public Layer {
 public:
  Embedding(Parameter* wte, Parameter* wpe) : wte_(wte), wpe_(wpe) {}
  Tensor forward(const Tensor& x, Saved& saved) override;
  Tensor backward(const Tensor& dy, Saved& saved) override;

 private:
  Parameter *wte_, *wpe_;
};

/// logits -> nothing; the loss goes to saved.loss. Saves the gradient of the logits, which is all backward
/// needs.
class CrossEntropy : public Layer {
 public:
  Tensor forward(const Tensor& logits, Saved& saved) override;
  Tensor backward(const Tensor& dy, Saved& saved) override;
};

/// Forward in order, backward in reverse.
struct Chain {
  std::vector<LayerPtr> layers;
  Tensor forward(Tensor x, Saved& saved) const;
  Tensor backward(Tensor dy, Saved& saved) const;
};

}  // namespace shardlings
