#include "run/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>

#include "core/error.hpp"

namespace shardlings::run {
namespace {

constexpr std::string_view kState = "optimizer.";

std::size_t bytes_of(const Shape& shape, DType dtype) {
  return static_cast<std::size_t>(numel_of(shape) * size_of(dtype));
}

SafetensorsFile open_checked(const std::string& path) {
  try {
    return SafetensorsFile(path);
  } catch (const UsageError& error) {
    const std::string previous = previous_checkpoint(path);
    if (!std::filesystem::exists(previous)) throw;
    fail_usage(fmt::format("{}; the checkpoint before it is at {}", error.what(), previous));
  }
}

/// Whether a complete checkpoint is at `path`.
bool is_intact(const std::string& path) {
  try {
    const SafetensorsFile file(path);
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

/// Keeps the file at `path` under another name too, without a moment in which `path` does not exist. A
/// damaged one is not kept: it would push out the last good one.
void keep_as(const std::string& path, const std::string& kept) {
  if (!is_intact(path)) return;
  const std::string link = kept + ".tmp";
  std::error_code code;
  std::filesystem::remove(link, code);
  std::filesystem::create_hard_link(path, link, code);
  if (code) std::filesystem::copy_file(path, link, code);  // a file system without hard links
  if (!code) std::filesystem::rename(link, kept, code);
  if (code) fail_usage(fmt::format("cannot keep {} as {}: {}; it is untouched", path, kept, code.message()));
}

/// Copies elements between floating types (16-bit ones by way of float).
void convert_elements(DType from, const std::byte* in, DType to, std::byte* out, i64 n) {
  dispatch(from, [&](auto source) {
    dispatch(to, [&](auto target) {
      using From = decltype(source);
      using To = decltype(target);
      for (i64 i = 0; i < n; ++i) {
        From value;
        std::memcpy(&value, in + i * size_of(from), sizeof value);
        const To result = To(static_cast<acc_t<To>>(static_cast<acc_t<From>>(value)));
        std::memcpy(out + i * size_of(to), &result, sizeof result);
      }
    });
  });
}

/// Buffers of the pretrained files that are no parameters: the causal mask and the value that masks.
bool is_mask(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

void check_name(bool is_state, const ParameterView& view) {
  require(view.name.starts_with(kState) == is_state, [&] {
    return fmt::format("checkpoint: {} is among the {}", view.name, is_state ? "optimizer state" : "weights");
  });
}

}  // namespace

std::string previous_checkpoint(const std::string& path) {
  const std::filesystem::path p = path;
  return (p.parent_path() / (p.stem().string() + ".previous" + p.extension().string())).string();
}

void save_checkpoint(const std::string& path, const std::vector<ParameterView>& weights, i64 heads,
                     const std::vector<ParameterView>& state, Metadata metadata) {
  std::vector<std::vector<std::byte>>
      converted;  // the second copy of the weights lives only as long as the save
  std::vector<NamedTensor> tensors;
  converted.reserve(weights.size());
  for (const ParameterView& w : weights) {
    check_name(false, w);
    auto& bytes = converted.emplace_back(bytes_of(w.shape, w.dtype));
    convert_layout(w.name, w.shape, size_of(w.dtype), heads, Layout::gpt2, w.data, bytes.data());
    tensors.push_back({w.name, w.dtype, gpt2_shape(w.name, w.shape), bytes.data()});
  }
  for (const ParameterView& s : state) {
    check_name(true, s);
    tensors.push_back({s.name, s.dtype, s.shape, s.data});
  }
  metadata["heads"] = std::to_string(heads);
  save_safetensors(path, tensors, metadata, [&] { keep_as(path, previous_checkpoint(path)); });
}

Checkpoint::Checkpoint(const std::string& path) : file_(open_checked(path)) {
  for (const std::string& name : file_.names()) {
    if (name.starts_with("transformer.")) prefix_ = "transformer.";
  }
}

bool Checkpoint::can_resume() const {
  const auto names = file_.names();
  return file_.has_checksum() &&
         std::any_of(names.begin(), names.end(), [](const std::string& n) { return n.starts_with(kState); });
}

void Checkpoint::load_weights(const std::vector<ParameterView>& weights, i64 heads) const {
  if (const auto recorded = metadata().find("heads");
      recorded != metadata().end() && recorded->second != std::to_string(heads)) {
    fail_usage(fmt::format("{} is of a model with {} heads, this one has {}", file_.path(), recorded->second,
                           heads));
  }
  const auto name_in_file = [this](const std::string& name) {
    return name == "lm_head.weight" ? name : prefix_ + name;
  };
  for (const ParameterView& w : weights) {
    check_name(false, w);
    if (!file_.has(name_in_file(w.name))) {
      fail_usage(fmt::format("{} does not fit this model: it has {} tensors, but no {}", file_.path(),
                             file_.names().size(), w.name));
    }
    const NamedTensor found = file_.find(name_in_file(w.name));
    if (found.shape != gpt2_shape(w.name, w.shape) || found.dtype == DType::i32) {
      fail_usage(fmt::format("{} does not fit this model: {} is {} {} there, and {} is expected",
                             file_.path(), w.name, name_of(found.dtype), to_string(found.shape),
                             to_string(gpt2_shape(w.name, w.shape))));
    }
  }
  refuse_leftovers(weights);
  for (const ParameterView& w : weights) {
    const NamedTensor found = file_.find(name_in_file(w.name));
    const std::byte* source = found.data;
    std::vector<std::byte> same_type;
    if (found.dtype != w.dtype) {
      same_type.resize(bytes_of(w.shape, w.dtype));
      convert_elements(found.dtype, found.data, w.dtype, same_type.data(), numel_of(w.shape));
      source = same_type.data();
    }
    convert_layout(w.name, w.shape, size_of(w.dtype), heads, Layout::ours, source, w.data);
  }
}

void Checkpoint::refuse_leftovers(const std::vector<ParameterView>& weights) const {
  std::set<std::string> wanted;
  for (const ParameterView& w : weights) wanted.insert(w.name);
  for (const std::string& full : file_.names()) {
    const std::string name = full.starts_with(prefix_) ? full.substr(prefix_.size()) : full;
    if (wanted.contains(name) || name.starts_with(kState) || is_mask(name)) continue;
    if (name == "lm_head.weight" && file_.has(prefix_ + "wte.weight")) {
      const NamedTensor head = file_.find(full), table = file_.find(prefix_ + "wte.weight");
      const bool tied = head.shape == table.shape && head.dtype == table.dtype &&
                        std::memcmp(head.data, table.data, bytes_of(head.shape, head.dtype)) == 0;
      if (tied) continue;
    }
    fail_usage(
        fmt::format("{} does not fit this model: it has {}, for which the model ({} tensors) has no place",
                    file_.path(), full, weights.size()));
  }
}

void Checkpoint::load_state(const std::vector<ParameterView>& state) const {
  for (const ParameterView& s : state) {
    check_name(true, s);
    if (!file_.has(s.name)) {
      fail_usage(fmt::format("{} cannot be resumed from: it has weights, but no {}", file_.path(), s.name));
    }
    const NamedTensor found = file_.find(s.name);
    if (found.shape != s.shape || found.dtype != s.dtype) {
      fail_usage(fmt::format("{} cannot be resumed from: {} is {} {} there, and {} {} is expected",
                             file_.path(), s.name, name_of(found.dtype), to_string(found.shape),
                             name_of(s.dtype), to_string(s.shape)));
    }
  }
  for (const ParameterView& s : state)
    std::memcpy(s.data, file_.find(s.name).data, bytes_of(s.shape, s.dtype));
}

}  // namespace shardlings::run
