#include "optim/flat.hpp"

#include <algorithm>

namespace shardlings {

FlatUnit::FlatUnit(Unit& its_unit, i64 multiple) : unit(&its_unit) {
  for (const Parameter& p : its_unit.params) {
    segments.push_back({size, size + p.numel(), &p});
    size += p.numel();
  }
  used = size;
  size = (size + multiple - 1) / multiple * multiple;
}

void FlatUnit::bind_values(const Tensor& flat) {
  std::size_t i = 0;
  for (Parameter& p : unit->params) {
    p.value = flat.slice(segments[i].begin, segments[i].end).view(p.shape);
    ++i;
  }
}

void FlatUnit::bind_grads(const Tensor& flat) {
  std::size_t i = 0;
  for (Parameter& p : unit->params) {
    p.grad = flat.slice(segments[i].begin, segments[i].end).view(p.shape);
    ++i;
  }
}

void FlatUnit::unbind_values() {
  for (Parameter& p : unit->params) p.value = {};
}

void FlatUnit::unbind_grads() {
  for (Parameter& p : unit->params) p.grad = {};
}

void FlatUnit::initialize(const Tensor& out, i64 begin) const {
  out.zero();
  for (const Segment& s : segments) {
    const i64 from = std::max(s.begin, begin), to = std::min(s.end, begin + out.numel());
#pragma omp parallel for schedule(static) if (to - from > 4096)
    for (i64 i = from; i < to; ++i) out.set(i - begin, s.parameter->initial(i - s.begin));
  }
}

std::vector<Segment> FlatUnit::part(i64 begin, i64 end) const {
  std::vector<Segment> inside;
  for (const Segment& s : segments) {
    const i64 from = std::max(s.begin, begin), to = std::min(s.end, end);
    if (from < to) inside.push_back({from - begin, to - begin, s.parameter});
  }
  return inside;
}

FlatModel::FlatModel(Rank& rank, Gpt& model, i64 multiple, bool with_grads) {
  for (auto& unit : model.units) {
    offset.push_back(size);
    flats.emplace_back(*unit, multiple);
    size += flats.back().size;
  }
  values = Tensor(rank.memory, Category::parameters, model.config.dtype, {size});
  for (std::size_t u = 0; u < flats.size(); ++u) {
    flats[u].initialize(value(u), 0);
    flats[u].bind_values(value(u));
    for (const Segment& s : flats[u].segments)
      segments.push_back({s.begin + offset[u], s.end + offset[u], s.parameter});
  }
  if (!with_grads) return;
  grads = Tensor(rank.memory, Category::gradients, model.config.dtype, {size});
  grads.zero();
  for (std::size_t u = 0; u < flats.size(); ++u) flats[u].bind_grads(grad(u));
}

}  // namespace shardlings
