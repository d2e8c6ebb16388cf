#include "nn/parameter.hpp"

#include "core/random.hpp"

namespace shardlings {

double Parameter::initial(i64 i) const {
  if (stddev == 0) return mean;
  const i64 columns = shape.size() > 1 ? shape[1] : 1;
  const i64 full_columns = full.size() > 1 ? full[1] : 1;
  const i64 column = i % columns + (start.size() > 1 ? start[1] : 0);
  const i64 global = (i / columns + start[0]) * full_columns + column;
  return mean + stddev * normal(key_of(name), static_cast<std::uint64_t>(global));
}

}  // namespace shardlings
