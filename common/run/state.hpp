#pragma once
// What a checkpoint of a training run holds: weights, moments, step counts, place in the data, configuration.
#include <string>

#include "data/loader.hpp"
#include "optim/single.hpp"
#include "run/checkpoint.hpp"

namespace shardlings::run {

/// The whole weights of a model whose parameters are bound on this rank.
std::vector<ParameterView> weight_views(Gpt& model);
/// One flat tensor of optimizer state, parameter by parameter: for "m", "optimizer.m.h.0.ln_1.weight" …
std::vector<ParameterView> state_views(const FlatModel& flat, const std::string& name, const Tensor& state);
/// AdamW's moments and, where there are, master copies: state "m", "v" and "master".
std::vector<ParameterView> optimizer_views(const FlatModel& flat, const AdamW& adam);

/// Configuration as strings, and the check that a checkpoint was made with the same one: UsageError naming
/// what differs.
Metadata describe(const GptConfig& config);
void expect_same_config(const GptConfig& config, const Metadata& metadata, const std::string& path);

/// A whole number that must be at least 0. UsageError naming `path` if it is missing (weights without
/// training state) or is none.
i64 number_of(const Metadata& metadata, const std::string& key, const std::string& path);

/// Saves and restores a one-rank training run so that it goes on bit for bit.
void save_run(const std::string& path, Gpt& model, Single& single, const data::Loader& loader,
              i64 steps_done);
/// Returns the number of steps done. UsageError in one sentence if the file does not fit.
i64 resume_run(const std::string& path, Gpt& model, Single& single, data::Loader& loader);
/// Weights only.
void load_model(const std::string& path, Gpt& model);

}  // namespace shardlings::run
