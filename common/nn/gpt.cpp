#include "nn/gpt.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kernels/ops.hpp"

namespace shardlings {

namespace {

constexpr double kInitial = 0.02;  // GPT-2's standard deviation

// Output of a residual branch + its input. The branch's output is new memory that nobody else holds: add in
// place.
Tensor residual(const Chain& branch, const Tensor& x, Saved& saved) {
  Tensor y = branch.forward(x, saved);
  kernels::add(y, x);
  return y;
}

Tensor residual_backward(const Chain& branch, const Tensor& dy, Saved& saved) {
  Tensor dx = branch.backward(dy, saved);
  kernels::add(dx, dy);
  return dx;
}

struct EmbeddingUnit : Unit {
  EmbeddingUnit(const GptConfig& c, LayerFactory& f) : Unit("embedding") {
    wte = f.vocab_table(*this, "wte.weight", c.vocab, c.channels);
    chain.layers.push_back(f.embedding(*this, wte, c.time, c.channels));
    chain.layers.push_back(f.dropout("drop", c.dropout));
  }
  Tensor forward(const Tensor& x, Saved& saved) override { return chain.forward(x, saved); }
  Tensor backward(const Tensor& dy, Saved& saved) override { return chain.backward(dy, saved); }
  Parameter* wte;
  Chain chain;
};

struct BlockUnit : Unit {
  BlockUnit(const GptConfig& c, LayerFactory& f, i64 layer) : Unit(fmt::format("block{}", layer)) {
    const std::string h = fmt::format("h.{}.", layer);
    const double residual_stddev = kInitial / std::sqrt(2.0 * static_cast<double>(c.layers));
    recompute = c.recompute;
    mix.layers.push_back(f.norm(*this, h + "ln_1", c.channels));
    mix.layers.push_back(f.column(*this, h + "attn.c_attn", c.channels, 3 * c.channels, kInitial));
    mix.layers.push_back(f.attention(c.heads, c.channels / c.heads));
    mix.layers.push_back(f.row(*this, h + "attn.c_proj", c.channels, c.channels, residual_stddev));
    mix.layers.push_back(f.dropout(h + "attn.drop", c.dropout));
    mlp.layers.push_back(f.norm(*this, h + "ln_2", c.channels));
    mlp.layers.push_back(f.column(*this, h + "mlp.c_fc", c.channels, 4 * c.channels, kInitial));
    mlp.layers.push_back(f.gelu());
    mlp.layers.push_back(f.row(*this, h + "mlp.c_proj", 4 * c.channels, c.channels, residual_stddev));
    mlp.layers.push_back(f.dropout(h + "mlp.drop", c.dropout));
  }
  Tensor forward(const Tensor& x, Saved& saved) override {
    return residual(mlp, residual(mix, x, saved), saved);
  }
  Tensor backward(const Tensor& dy, Saved& saved) override {
    return residual_backward(mix, residual_backward(mlp, dy, saved), saved);
  }
  Chain mix, mlp;
};

struct HeadUnit : Unit {
  HeadUnit(const GptConfig& c, LayerFactory& f, EmbeddingUnit* embedding) : Unit("head") {
    chain.layers.push_back(f.norm(*this, "ln_f", c.channels));
    if (c.tied && embedding != nullptr) borrows.push_back(embedding);
    // Tied, but without the embedding here (another pipeline stage): a copy of the table with the same name
    // and values.
    Parameter* table =
        c.tied && embedding != nullptr
            ? embedding->wte
            : f.vocab_table(*this, c.tied ? "wte.weight" : "lm_head.weight", c.vocab, c.channels);
    chain.layers.push_back(f.vocab_linear(table));
    loss = f.loss();
  }
  Tensor forward(const Tensor& x, Saved& saved) override {
    return loss->forward(chain.forward(x, saved), saved);
  }
  Tensor backward(const Tensor& dy, Saved& saved) override {
    return chain.backward(loss->backward(dy, saved), saved);
  }
  Chain chain;
  LayerPtr loss;
};

}  // namespace

NamedConfig named_config(const std::string& name) {
  NamedConfig c{{}, 12};
  if (name == "char") return c;
  if (name == "baby") {
    c.model.layers = c.model.heads = 6;
    c.model.channels = 384;
    c.model.time = 256;
    c.batch = 8;
    return c;
  }
  if (name == "gpt2") {
    c.model.layers = c.model.heads = 12;
    c.model.channels = 768;
    c.model.time = 1024;
    c.model.vocab = 50257;
    c.batch = 8;
    return c;
  }
  fail_usage(fmt::format("unknown config \"{}\": use char, baby or gpt2", name));
}

void check_config(const GptConfig& c) {
  const std::pair<const char*, i64> sizes[] = {{"layers", c.layers},
                                               {"heads", c.heads},
                                               {"channels", c.channels},
                                               {"time", c.time},
                                               {"vocab", c.vocab}};
  for (const auto& [what, value] : sizes) {
    if (value < 1) fail_usage(fmt::format("impossible model: {} is {}, it must be at least 1", what, value));
  }
  if (c.channels % c.heads != 0) {
    fail_usage(fmt::format("impossible model: {} heads do not divide {} channels; use a multiple of {}",
                           c.heads, c.channels, c.heads));
  }
  if (!(c.dropout >= 0 && c.dropout < 1)) {
    fail_usage(fmt::format("impossible model: dropout {} must be at least 0 and below 1", c.dropout));
  }
}

i64 parameter_count(const GptConfig& c) {
  const i64 C = c.channels;
  return 12 * c.layers * C * C + 13 * c.layers * C + (c.vocab + c.time) * C + 2 * C +
         (c.tied ? 0 : c.vocab * C);
}

Parameter* Unit::add(std::string parameter, Shape shape, double mean, double stddev, bool decay) {
  Parameter p;
  p.name = std::move(parameter);
  p.full = shape;
  p.start = Shape(shape.size(), 0);
  p.shape = std::move(shape);
  p.mean = mean;
  p.stddev = stddev;
  p.decay = decay;
  params.push_back(std::move(p));
  return &params.back();
}

LayerPtr LayerFactory::column(Unit& unit, const std::string& name, i64 in, i64 out, double stddev) {
  Parameter* weight = unit.add(name + ".weight", {out, in}, 0, stddev, true);
  return std::make_unique<Linear>(weight, unit.add(name + ".bias", {out}, 0, 0, false));
}
LayerPtr LayerFactory::row(Unit& unit, const std::string& name, i64 in, i64 out, double stddev) {
  return column(unit, name, in, out, stddev);
}
LayerPtr LayerFactory::attention(i64 heads, i64) { return std::make_unique<Attention>(heads); }
LayerPtr LayerFactory::norm(Unit& unit, const std::string& name, i64 channels) {
  Parameter* gain = unit.add(name + ".weight", {channels}, 1, 0, false);
  return std::make_unique<LayerNorm>(gain, unit.add(name + ".bias", {channels}, 0, 0, false));
}
LayerPtr LayerFactory::gelu() { return std::make_unique<Gelu>(); }
LayerPtr LayerFactory::dropout(const std::string& name, double p) {
  return std::make_unique<Dropout>(name, p);
}
Parameter* LayerFactory::vocab_table(Unit& unit, const std::string& name, i64 vocab, i64 channels) {
  return unit.add(name, {vocab, channels}, 0, kInitial, true);
}
LayerPtr LayerFactory::embedding(Unit& unit, Parameter* wte, i64 time, i64 channels) {
  return std::make_unique<Embedding>(wte, unit.add("wpe.weight", {time, channels}, 0, kInitial, true));
}
LayerPtr LayerFactory::vocab_linear(Parameter* table) { return std::make_unique<Linear>(table, nullptr); }
LayerPtr LayerFactory::loss() { return std::make_unique<CrossEntropy>(); }

Gpt::Gpt(const GptConfig& c, LayerFactory& factory, const std::vector<i64>& which) : config(c) {
  build(factory, which);
}

Gpt::Gpt(const GptConfig& c, LayerFactory& factory) : config(c) {
  std::vector<i64> all;
  for (i64 u = 0; u < c.units(); ++u) all.push_back(u);
  build(factory, all);
}

Gpt::Gpt(const GptConfig& c) : config(c) {
  LayerFactory factory;
  std::vector<i64> all;
  for (i64 u = 0; u < c.units(); ++u) all.push_back(u);
  build(factory, all);
}

void Gpt::build(LayerFactory& factory, const std::vector<i64>& which) {
  check_config(config);
  EmbeddingUnit* embedding = nullptr;
  for (i64 u : which) {
    require(u >= 0 && u < config.units(),
            [&] { return fmt::format("Gpt: unit {} of {}", u, config.units()); });
    if (u == 0) {
      auto unit = std::make_unique<EmbeddingUnit>(config, factory);
      embedding = unit.get();
      units.push_back(std::move(unit));
    } else if (u == config.units() - 1) {
      units.push_back(std::make_unique<HeadUnit>(config, factory, embedding));
    } else {
      units.push_back(std::make_unique<BlockUnit>(config, factory, u - 1));
    }
    units.back()->index = units.size() - 1;
  }
}

Tensor Gpt::forward(Tensor x, Saved& saved, Strategy& strategy, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) {
    Unit& unit = *units[i];
    strategy.before_forward(unit);
    {
      const auto span = saved.rank.trace.span(Event::forward, unit.name);
      if (unit.recompute) {
        saved.push(x);
        Saved dropped = saved.fresh();
        x = unit.forward(x, dropped);
      } else {
        x = unit.forward(x, saved);
      }
    }
    saved.rank.trace.sample(saved.rank.memory);
    strategy.after_forward(unit);
  }
  return x;
}

Tensor Gpt::backward(Tensor dy, Saved& saved, Strategy& strategy, std::size_t first, std::size_t last) {
  for (std::size_t i = last; i-- > first;) {
    Unit& unit = *units[i];
    strategy.before_backward(unit);
    {
      const auto span = saved.rank.trace.span(Event::backward, unit.name);
      if (unit.recompute) {
        Saved again = saved.fresh();
        unit.forward(saved.pop(), again);
        dy = unit.backward(dy, again);
      } else {
        dy = unit.backward(dy, saved);
      }
    }
    saved.rank.trace.sample(saved.rank.memory);
    strategy.after_backward(unit, saved.mb);
  }
  return dy;
}

Tensor Gpt::logits(Rank& rank, const MicroBatch& micro_batch, Strategy& strategy) {
  require(static_cast<i64>(units.size()) == config.units(), "Gpt::logits needs all units on this rank");
  Saved saved(rank, micro_batch, config.dtype);
  Tensor x;
  for (std::size_t i = 0; i + 1 < units.size(); ++i) {
    Saved dropped = saved.fresh();
    strategy.before_forward(*units[i]);
    x = units[i]->forward(x, dropped);
    strategy.after_forward(*units[i]);
  }
  auto& head = static_cast<HeadUnit&>(*units.back());
  strategy.before_forward(head);
  x = head.chain.forward(x, saved);
  strategy.after_forward(head);
  return x;
}

std::vector<Parameter*> Gpt::parameters() {
  std::vector<Parameter*> all;
  for (auto& unit : units) {
    for (auto& p : unit->params) all.push_back(&p);
  }
  return all;
}

}  // namespace shardlings
