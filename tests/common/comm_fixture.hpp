#pragma once
// What the communicator's tests share.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "comm/comm.hpp"

namespace shardlings::comm_test {

/// A tensor whose element i is value(i).
template <class F>
Tensor filled(Rank& rank, DType dtype, i64 count, F value) {
  Tensor t(rank.memory, Category::communication, dtype, {count});
  for (i64 i = 0; i < count; ++i) t.set(i, static_cast<double>(value(i)));
  return t;
}

inline Tensor filled(Rank& rank, i64 count, double value = 0) {
  return filled(rank, DType::f32, count, [value](i64) { return value; });
}

/// The text of what run_ranks throws; "" if it throws nothing.
inline std::string failure_of(int ranks, const std::function<void(Rank&)>& body,
                              const RunOptions& options = {}) {
  try {
    run_ranks(ranks, body, options);
  } catch (const std::exception& e) {
    return e.what();
  }
  return {};
}

inline RunOptions unbuffered(bool checked = true) {
  RunOptions options;
  options.buffered_send = false;
  options.checked = checked;
  return options;
}

}  // namespace shardlings::comm_test
