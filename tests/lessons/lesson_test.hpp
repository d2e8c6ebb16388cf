#pragma once
// What lesson tests share: running ranks, and comparisons whose failures say what is probably wrong.
// This header is precompiled and forced into every lesson test; keep it light.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/comm.hpp"

namespace shardlings::lesson {

/// What each distributed test is run on: one rank, a pair, an odd number, and more ranks than most laptops
/// have cores.
inline constexpr std::array kRankCounts{1, 2, 3, 4, 8};

/// Checked mode, and a deadline short enough for a test.
RunOptions test_options();

/// run_ranks; a failure inside names the rank ("rank 2 of 4"). Inside `body` use EXPECT_…: a rank that
/// returns from a failed ASSERT_… leaves the others waiting.
void run_on(int ranks, const std::function<void(Rank&)>& body, const RunOptions& options = test_options());

/// What `body` returns on each rank, in rank order. T must not be bool.
template <class T>
std::vector<T> on_each_rank(int ranks, const std::function<T(Rank&)>& body,
                            const RunOptions& options = test_options()) {
  std::vector<T> results(static_cast<std::size_t>(ranks));
  run_on(
      ranks, [&](Rank& rank) { results[static_cast<std::size_t>(rank.rank())] = body(rank); }, options);
  return results;
}

/// All elements, in order.
std::vector<double> values_of(const Tensor& tensor);
/// A tensor of activations with these values, rounded to its type.
Tensor tensor_of(Rank& rank, const std::vector<double>& values, DType dtype = DType::f32);

/// One sentence on how `got` probably came to differ from `want` ("4 times too large: summed but not
/// averaged?"), or
/// "" when nothing typical is seen. `ranks` is 0 where no ranks are involved.
std::string difference_hint(const std::vector<double>& got, const std::vector<double>& want, int ranks = 0);

/// Equal to the bit; else says where the first difference is, how many there are, and the hint.
testing::AssertionResult same(const std::vector<double>& got, const std::vector<double>& want, int ranks = 0);
/// |got - want| <= tolerance * max(1, largest |want|); else as `same`.
testing::AssertionResult close_to(const std::vector<double>& got, const std::vector<double>& want,
                                  double tolerance, int ranks = 0);

/// Measured bytes (calls, …) equal the formula; else says by how much and, for whole factors, what that
/// suggests.
testing::AssertionResult equals_formula(i64 measured, i64 predicted, const std::string& what, int ranks = 0);

/// The texts of one kind of event in this rank's order, for tests of order.
std::vector<std::string> events_of(const Rank& rank, Event::Kind kind);

}  // namespace shardlings::lesson
