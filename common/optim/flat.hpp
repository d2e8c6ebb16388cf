#pragma once
// Flat storage for parameters: where each one lies in one run of memory, and views of that memory for the
// model.
#include <vector>

#include "nn/gpt.hpp"

namespace shardlings {

/// Elements [begin, end) of a flat buffer that belong to one parameter. decay and counted are read from it
/// when asked.
struct Segment {
  i64 begin, end;
  const Parameter* parameter;
  bool decay() const { return parameter->decay; }
  bool counted() const { return parameter->counted; }
};

/// Where a unit's parameters lie in one flat run of memory. Owns no memory: binds views into a tensor it is
/// given.
class FlatUnit {
 public:
  /// size is padded to a multiple of `multiple` elements.
  FlatUnit(Unit& its_unit, i64 multiple);
  void bind_values(const Tensor& flat);
  void bind_grads(const Tensor& flat);
  void unbind_values();
  void unbind_grads();
  /// Initial values of elements [begin, begin + out.numel()); padding is zero. A rank can make its shard
  /// without the rest.
  void initialize(const Tensor& out, i64 begin) const;
  /// The segments inside [begin, end), counted from begin.
  std::vector<Segment> part(i64 begin, i64 end) const;

  Unit* unit;
  i64 size = 0, used = 0;  ///< elements with and without padding
  std::vector<Segment> segments;
};

/// One buffer for all values and, unless told otherwise, one for all gradients; unit after unit.
class FlatModel {
 public:
  FlatModel(Rank& rank, Gpt& model, i64 multiple = 1, bool with_grads = true);
  Tensor value(std::size_t unit) const { return values.slice(offset[unit], offset[unit] + flats[unit].size); }
  Tensor grad(std::size_t unit) const { return grads.slice(offset[unit], offset[unit] + flats[unit].size); }

  std::vector<FlatUnit> flats;
  std::vector<i64> offset;        ///< first element of each unit
  std::vector<Segment> segments;  ///< of the whole model
  i64 size = 0;
  Tensor values, grads;
};

}  // namespace shardlings
