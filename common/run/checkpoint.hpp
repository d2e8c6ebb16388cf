#pragma once
// A training run in one file, `checkpoint.safetensors`: weights under the names and in the layout that GPT-2
// has in Hugging Face's files (so other programs read them, and their files can be read here), optimizer
// state in our own layout, and everything else (step, position in the data, configuration) as strings. Leaves
// out: checkpoints in parts of many ranks.
#include <string>
#include <vector>

#include "run/safetensors.hpp"

namespace shardlings::run {

/// A parameter, or a moment of the optimizer, in our layout and somewhere in memory; owns nothing.
struct ParameterView {
  std::string name;  ///< "h.0.attn.c_attn.weight"; moments: "optimizer.m.h.0.attn.c_attn.weight"
  Shape shape;
  DType dtype = DType::f32;
  std::byte* data = nullptr;
};

/// Saves atomically: after any interruption `path` holds a complete checkpoint, the old or the new one. The
/// one before is kept beside it as `previous_checkpoint(path)`, and is replaced only when the new one is
/// durable and read back. `state` must have names beginning with "optimizer." (saved as it is), `weights` the
/// model's. `heads` is needed to convert c_attn. UsageError when the disk is full or the folder not writable;
/// nothing that was there is lost then.
void save_checkpoint(const std::string& path, const std::vector<ParameterView>& weights, i64 heads,
                     const std::vector<ParameterView>& state, Metadata metadata);

/// "runs/x/checkpoint.safetensors" -> "runs/x/checkpoint.previous.safetensors".
std::string previous_checkpoint(const std::string& path);

/// A checkpoint, or a GPT-2 safetensors file of another program, opened and verified. Loading checks every
/// name, shape and type before it writes to the first tensor: a refused file leaves the model as it was.
class Checkpoint {
 public:
  /// UsageError in one sentence when the file is unreadable, truncated, foreign, damaged; the sentence names
  /// the previous checkpoint if there is one.
  explicit Checkpoint(const std::string& path);

  /// Whether it was written by save_checkpoint with optimizer state, so that a run can go on exactly.
  bool can_resume() const;
  const Metadata& metadata() const { return file_.metadata(); }

  /// Fills `weights`. Floating types are converted where they differ. Names may begin with "transformer.". A
  /// head of its own (lm_head.weight) in the file of a tied model is fine if it equals the embedding.
  /// UsageError: a tensor is missing, has another shape, or is one the model has no place for (other number
  /// of layers), or another number of heads was recorded.
  void load_weights(const std::vector<ParameterView>& weights, i64 heads) const;
  /// Fills optimizer state: every tensor must be there with the same shape and type.
  void load_state(const std::vector<ParameterView>& state) const;

 private:
  void refuse_leftovers(const std::vector<ParameterView>& weights) const;
  SafetensorsFile file_;
  std::string prefix_;  // of the weights' names in the file
};

/// From our layout to GPT-2's or back: linear weights [out, in] <-> [in, out], and the fused c_attn's rows
/// (head, q|k|v, head_dim) <-> columns (q|k|v, head, head_dim), its bias alike; all else unchanged. Pure
/// permutations. `shape` is our shape.
enum class Layout { ours, gpt2 };
void convert_layout(const std::string& name, const Shape& shape, i64 element_bytes, i64 heads, Layout to,
                    const std::byte* from, std::byte* out);
/// The shape that a parameter of ours has in a GPT-2 file.
Shape gpt2_shape(const std::string& name, const Shape& shape);

}  // namespace shardlings::run
