#include "run/state.hpp"

#include <fmt/format.h>

namespace shardlings::run {

namespace {

const std::string& entry(const Metadata& metadata, const std::string& key, const std::string& path) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) {
    fail_usage(fmt::format(
        "{} holds weights but no training state (\"{}\" is missing): it cannot be resumed, only loaded", path,
        key));
  }
  return found->second;
}

}  // namespace

i64 number_of(const Metadata& metadata, const std::string& key, const std::string& path) {
  const std::string& text = entry(metadata, key, path);
  // At most 18 digits: no overflow.
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
    fail_usage(fmt::format("{}: \"{}\" is \"{}\", not a whole number of at least 0", path, key, text));
  return std::stoll(text);
}

std::vector<ParameterView> weight_views(Gpt& model) {
  std::vector<ParameterView> views;
  for (const Parameter* p : model.parameters())
    views.push_back({p->name, p->shape, p->value.dtype(), p->value.raw()});
  return views;
}

std::vector<ParameterView> state_views(const FlatModel& flat, const std::string& name, const Tensor& state) {
  std::vector<ParameterView> views;
  for (const Segment& s : flat.segments) {
    const Tensor part = state.slice(s.begin, s.end);
    views.push_back({fmt::format("optimizer.{}.{}", name, s.parameter->name), s.parameter->shape,
                     part.dtype(), part.raw()});
  }
  return views;
}

std::vector<ParameterView> optimizer_views(const FlatModel& flat, const AdamW& adam) {
  std::vector<ParameterView> views;
  const std::pair<const char*, const Tensor*> states[] = {
      {"m", &adam.m()}, {"v", &adam.v()}, {"master", &adam.master()}};
  for (const auto& [name, state] : states) {
    if (!*state) continue;
    for (ParameterView& view : state_views(flat, name, *state)) views.push_back(std::move(view));
  }
  return views;
}

Metadata describe(const GptConfig& c) {
  return {{"model.layers", std::to_string(c.layers)},      {"model.heads", std::to_string(c.heads)},
          {"model.channels", std::to_string(c.channels)},  {"model.time", std::to_string(c.time)},
          {"model.vocab", std::to_string(c.vocab)},        {"model.tied", c.tied ? "true" : "false"},
          {"model.dropout", fmt::format("{}", c.dropout)}, {"model.dtype", name_of(c.dtype)}};
}

void expect_same_config(const GptConfig& config, const Metadata& metadata, const std::string& path) {
  for (const auto& [key, ours] : describe(config)) {
    const std::string& theirs = entry(metadata, key, path);
    if (theirs != ours)
      fail_usage(fmt::format("{} was made with {} = {}, this run has {}", path, key, theirs, ours));
  }
}

void save_run(const std::string& path, Gpt& model, Single& single, const data::Loader& loader,
              i64 steps_done) {
  Metadata metadata = describe(model.config);
  metadata["step"] = std::to_string(steps_done);
  metadata["optimizer.steps"] = std::to_string(single.adam().steps());
  metadata.merge(loader.state());  // "data.position" …
  save_checkpoint(path, weight_views(model), model.config.heads,
                  optimizer_views(single.flat(), single.adam()), metadata);
}

i64 resume_run(const std::string& path, Gpt& model, Single& single, data::Loader& loader) {
  const Checkpoint file(path);
  const Metadata& metadata = file.metadata();
  const i64 step = number_of(metadata, "step", path);
  const i64 optimizer_steps = number_of(metadata, "optimizer.steps", path);
  expect_same_config(model.config, metadata, path);
  loader.restore(metadata);
  file.load_weights(weight_views(model), model.config.heads);
  file.load_state(optimizer_views(single.flat(), single.adam()));
  single.adam().restore_steps(optimizer_steps);
  return step;
}

void load_model(const std::string& path, Gpt& model) {
  Checkpoint(path).load_weights(weight_views(model), model.config.heads);
}

}  // namespace shardlings::run
