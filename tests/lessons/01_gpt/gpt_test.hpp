#pragma once
// For the tests of this lesson: numbers, central differences, and comparisons that know the usual mistakes.
#include "core/random.hpp"
#include "lesson_test.hpp"

namespace shardlings::lesson {

using Numbers = std::vector<double>;

/// n normal numbers around `mean`; the same for the same seed.
inline Numbers numbers(i64 n, std::uint64_t seed, double deviation = 1, double mean = 0) {
  Numbers x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = mean + deviation * normal(key_of({seed}), i);
  return x;
}

inline Numbers nans(std::size_t n) { return Numbers(n, std::numeric_limits<double>::quiet_NaN()); }

inline double dot(const Numbers& a, const Numbers& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// dloss/dx_i for each i by central differences: (loss(x + h) - loss(x - h)) / 2h.
inline Numbers differences(Numbers x, const std::function<double(const Numbers&)>& loss) {
  const double h = 1e-5;
  Numbers gradient;
  for (double& element : x) {
    const double at = element;
    element = at + h;
    const double above = loss(x);
    element = at - h;
    gradient.push_back((above - loss(x)) / (2 * h));
    element = at;
  }
  return gradient;
}

/// A typical mistake, and the values that it leads to.
struct Mistake {
  std::string says;
  Numbers values;
};

/// got == want to a relative 1e-7; if not, and if a known mistake leads to just these values, says so.
inline testing::AssertionResult value_is(const std::string& what, const Numbers& got, const Numbers& want,
                                         const std::vector<Mistake>& mistakes = {}) {
  testing::AssertionResult result = close_to(got, want, 1e-7);
  if (result) return result;
  result << "\n  in " << what;
  for (const Mistake& mistake : mistakes) {
    if (close_to(got, mistake.values, 1e-6)) return result << ". Probably: " << mistake.says;
  }
  return result;
}

}  // namespace shardlings::lesson
