#pragma once
// GPT-2 as nanoGPT has it: learned positions, pre-norm blocks, GELU (tanh), a head that may be tied to the
// embedding. The model is a list of units: embedding, block x layers, head. A factory makes the layers, so
// that tensor, sequence and context parallelism are other factories; a strategy is called around each unit,
// so that DDP, ZeRO and FSDP are strategies.
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "nn/layers.hpp"

namespace shardlings {

struct GptConfig {
  i64 layers = 4, heads = 4, channels = 128, time = 64, vocab = 256;
  double dropout = 0;
  bool tied = true;        ///< the head's matrix is the embedding's
  bool recompute = false;  ///< drop a block's activations after forward, make them again in backward
  DType dtype = DType::f32;
  i64 units() const { return layers + 2; }
};

/// A named configuration with the batch it is trained with.
struct NamedConfig {
  GptConfig model;
  i64 batch;
};
/// "char" (4 layers, 4 heads, 128 channels, T 64, batch 12), "baby" (6, 6, 384, 256, 8) or "gpt2" (124M: 12,
/// 12, 768, 1024, vocabulary 50,257); UsageError naming them otherwise.
NamedConfig named_config(const std::string& name);
/// UsageError with the numbers if the configuration is impossible (heads do not divide channels, a size below
/// 1 …).
void check_config(const GptConfig& config);
/// 12 L C^2 + 13 L C + (V + T) C + 2 C parameters, and V C more if the head is not tied.
i64 parameter_count(const GptConfig& config);

/// What FSDP gathers, recomputation drops, a pipeline stage is made of.
class Unit {
 public:
  explicit Unit(std::string its_name) : name(std::move(its_name)) {}
  virtual ~Unit() = default;
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;
  virtual Tensor forward(const Tensor& x, Saved& saved) = 0;
  virtual Tensor backward(const Tensor& dy, Saved& saved) = 0;

  /// Declares a whole parameter (a factory that cuts it changes shape and start afterwards).
  Parameter* add(std::string parameter, Shape shape, double mean, double stddev, bool decay);

  std::string name;
  std::size_t index = 0;         ///< position in its Gpt: what per-unit tables are indexed by
  std::deque<Parameter> params;  ///< owned; addresses are stable
  std::vector<Unit*> borrows;    ///< units whose parameters we also read (tied embedding)
  bool recompute = false;
};

/// Makes the layers. Every parameter passes through here. The default makes the one-rank model.
struct LayerFactory {
  LayerFactory() = default;
  virtual ~LayerFactory() = default;
  LayerFactory(const LayerFactory&) = delete;
  LayerFactory& operator=(const LayerFactory&) = delete;
  /// Weight [out, in] and bias [out] named name + ".weight", ".bias"; "column" and "row" say how tensor
  /// parallelism cuts them.
  virtual LayerPtr column(Unit& unit, const std::string& name, i64 in, i64 out, double stddev);
  virtual LayerPtr row(Unit& unit, const std::string& name, i64 in, i64 out, double stddev);
  virtual LayerPtr attention(i64 heads, i64 head_dim);
  virtual LayerPtr norm(Unit& unit, const std::string& name, i64 channels);
  virtual LayerPtr gelu();
  virtual LayerPtr dropout(const std::string& name, double p);
  virtual Parameter* vocab_table(Unit& unit, const std::string& name, i64 vocab, i64 channels);
  virtual LayerPtr embedding(Unit& unit, Parameter* wte, i64 time, i64 channels);
  virtual LayerPtr vocab_linear(Parameter* table);
  virtual LayerPtr loss();
};

/// A data-parallel algorithm: things to do around a step and around each unit. The default does nothing.
struct Strategy {
  Strategy() = default;
  virtual ~Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;
  virtual void begin_step() {}
  virtual void before_forward(Unit&) {}
  virtual void after_forward(Unit&) {}
  virtual void before_backward(Unit&) {}
  virtual void after_backward(Unit&, const MicroBatch&) {}
  /// Gradients are complete: clip, update with this learning rate; returns the global norm before clipping.
  virtual double end_step(double learning_rate) = 0;
};

class Gpt {
 public:
  Gpt(const GptConfig& config, LayerFactory& factory);  ///< all units
  Gpt(const GptConfig& config, LayerFactory& factory,
      const std::vector<i64>& which);     ///< a subset of 0 .. layers + 1
  explicit Gpt(const GptConfig& config);  ///< all units, the default factory

  /// Units [first, last) of ours. x is empty for the embedding; the head returns an empty tensor and sets
  /// saved.loss.
  Tensor forward(Tensor x, Saved& saved, Strategy& strategy, std::size_t first, std::size_t last);
  Tensor backward(Tensor dy, Saved& saved, Strategy& strategy, std::size_t first, std::size_t last);
  Tensor forward(Tensor x, Saved& saved, Strategy& strategy) {
    return forward(std::move(x), saved, strategy, 0, units.size());
  }
  Tensor backward(Tensor dy, Saved& saved, Strategy& strategy) {
    return backward(std::move(dy), saved, strategy, 0, units.size());
  }
  /// Logits [n, V] of a micro-batch, without loss: for sampling. Needs all units; nothing is kept.
  Tensor logits(Rank& rank, const MicroBatch& micro_batch, Strategy& strategy);

  std::vector<Parameter*> parameters();
  GptConfig config;
  std::vector<std::unique_ptr<Unit>> units;

 private:
  void build(LayerFactory& factory, const std::vector<i64>& which);
};

}  // namespace shardlings
