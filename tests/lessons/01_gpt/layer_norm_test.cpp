// Layer norm: forward against known values, backward against central differences of a formula of the test's
// own, so that backward can be judged before forward is written.
#include "gpt_test.hpp"
#include "layers.hpp"

namespace shardlings {
namespace {

using lesson::Mistake;
using lesson::Numbers;

struct Forward {
  Numbers y, mean, rstd;
};

/// The learner's.
Forward run_forward(const Numbers& x, const Numbers& gain, const Numbers& bias) {
  const std::size_t C = gain.size(), n = x.size() / C;
  Forward f{lesson::nans(n * C), lesson::nans(n), lesson::nans(n)};
  layer_norm_forward<double>(x.data(), gain.data(), bias.data(), f.y.data(), f.mean.data(), f.rstd.data(),
                             static_cast<i64>(n), static_cast<i64>(C));
  return f;
}

/// The test's own. `divide_by` is what the sum of squares is divided by.
Forward formula(const Numbers& x, const Numbers& gain, const Numbers& bias, double divide_by) {
  const std::size_t C = gain.size();
  Forward f;
  for (std::size_t begin = 0; begin < x.size(); begin += C) {
    double mean = 0, squares = 0;
    for (std::size_t k = 0; k < C; ++k) mean += x[begin + k] / static_cast<double>(C);
    for (std::size_t k = 0; k < C; ++k) squares += std::pow(x[begin + k] - mean, 2);
    f.mean.push_back(mean);
    f.rstd.push_back(1 / std::sqrt(squares / divide_by + kEpsilon));
    for (std::size_t k = 0; k < C; ++k) {
      f.y.push_back((x[begin + k] - mean) * f.rstd.back() * gain[k] + bias[k]);
    }
  }
  return f;
}
Forward formula(const Numbers& x, const Numbers& gain, const Numbers& bias) {
  return formula(x, gain, bias, static_cast<double>(gain.size()));
}

struct Backward {
  Numbers dx, dgain, dbias;
};

/// The learner's, on gradients that already hold `held`.
Backward run_backward(const Numbers& dy, const Numbers& x, const Numbers& gain, double held) {
  const Forward f = formula(x, gain, Numbers(gain.size()));
  Backward b{lesson::nans(x.size()), Numbers(gain.size(), held), Numbers(gain.size(), held)};
  layer_norm_backward<double>(dy.data(), x.data(), gain.data(), f.mean.data(), f.rstd.data(), b.dx.data(),
                              b.dgain.data(), b.dbias.data(), static_cast<i64>(f.mean.size()),
                              static_cast<i64>(gain.size()));
  return b;
}

/// rstd * (e - a * average(e) - b * h * average(e h)): with a or b zero, the usual mistakes.
Numbers dx_with(const Numbers& dy, const Numbers& x, const Numbers& gain, double a, double b) {
  const std::size_t C = gain.size();
  const Forward f = formula(x, Numbers(C, 1), Numbers(C));  // y is h
  Numbers dx(x.size());
  for (std::size_t begin = 0; begin < x.size(); begin += C) {
    double sum = 0, sum_h = 0;
    for (std::size_t k = 0; k < C; ++k) {
      sum += dy[begin + k] * gain[k];
      sum_h += dy[begin + k] * gain[k] * f.y[begin + k];
    }
    for (std::size_t k = 0; k < C; ++k) {
      dx[begin + k] = f.rstd[begin / C] * (dy[begin + k] * gain[k] - a * sum / static_cast<double>(C) -
                                           b * f.y[begin + k] * sum_h / static_cast<double>(C));
    }
  }
  return dx;
}

// Value. Rejects: a variance divided by C - 1, statistics over columns instead of rows.
TEST(LayerNorm, RowsHaveMeanZeroAndVarianceOne) {
  const std::size_t n = 4, C = 5;
  const Forward f = run_forward(lesson::numbers(n * C, 1, 3, 100), Numbers(C, 1), Numbers(C));
  for (std::size_t i = 0; i < n; ++i) {
    double mean = 0, variance = 0;
    for (std::size_t k = 0; k < C; ++k) mean += f.y[i * C + k] / C;
    for (std::size_t k = 0; k < C; ++k) variance += std::pow(f.y[i * C + k] - mean, 2) / C;
    EXPECT_NEAR(mean, 0, 1e-9) << "row " << i << ": each row is normalised over its C channels";
    EXPECT_NEAR(variance, 1, 1e-3)
        << "row " << i << " has variance " << variance
        << ": 0.8 means that the sum of squares was divided by C - 1, not by C = 5";
  }
}

// Value. Rejects: epsilon outside the root or left out, gain and bias exchanged. The second row is almost
// constant, as the channels of a dead unit are; the third is constant.
TEST(LayerNorm, KnownValues) {
  const Numbers x{1, 2, 3, 4, 1, 1.001, 1, 1.001, 7, 7, 7, 7}, gain{1, 2, 3, 4}, bias{10, 20, 30, 40};
  const Forward got = run_forward(x, gain, bias), want = formula(x, gain, bias);
  const auto mean_is_right = lesson::value_is("mean", got.mean, {2.5, 1.0005, 7});
  EXPECT_TRUE(mean_is_right);
  Numbers outside, none;
  for (double variance : {1.25, 2.5e-7, 0.0}) {
    outside.push_back(1 / (std::sqrt(variance) + kEpsilon));
    none.push_back(1 / std::sqrt(variance));
  }
  const auto rstd_is_right =
      lesson::value_is("rstd", got.rstd, want.rstd,
                       {{"kEpsilon is added outside the root", outside},
                        {"divided by C - 1, not by C", formula(x, gain, bias, 3).rstd}});
  EXPECT_TRUE(rstd_is_right);
  EXPECT_TRUE(std::isfinite(got.rstd[2]))
      << "a constant row has variance 0: without kEpsilon in the root this is 1 / 0";
  const auto y_is_right = lesson::value_is("y", got.y, want.y);
  EXPECT_TRUE(y_is_right);
}

// Value. Rejects: dx without the terms that come from mean and variance, a forgotten gain.
TEST(LayerNorm, InputGradientEqualsDifferences) {
  for (const std::size_t C : {1U, 3U, 7U}) {
    const std::size_t n = 3;
    const Numbers x = lesson::numbers(n * C, 2, 2, 1), gain = lesson::numbers(C, 3, 0.5, 1),
                  dy = lesson::numbers(n * C, 4);
    const auto loss = [&](const Numbers& moved) {
      return lesson::dot(formula(moved, gain, Numbers(C)).y, dy);
    };
    const std::vector<Mistake> mistakes{
        {"dx lacks the two mean terms: mean and variance depend on x too", dx_with(dy, x, gain, 0, 0)},
        {"dx lacks - h * average(e * h): the variance depends on x too", dx_with(dy, x, gain, 1, 0)},
        {"dx lacks - average(e): the mean depends on x too", dx_with(dy, x, gain, 0, 1)},
        {"e is dy * gain; the gain is forgotten", dx_with(dy, x, Numbers(C, 1), 1, 1)},
        {"the averages are sums that were not divided by C",
         dx_with(dy, x, gain, static_cast<double>(C), static_cast<double>(C))}};
    const auto dx_is_right =
        lesson::value_is("dx", run_backward(dy, x, gain, 0).dx, lesson::differences(x, loss), mistakes);
    EXPECT_TRUE(dx_is_right) << n << " rows of " << C << " channels, against central differences";
  }
}

// Value. Rejects: gradients of one row only, gradients overwritten. Two micro-batches of a step must add up.
TEST(LayerNorm, ParameterGradientsAreAdded) {
  const std::size_t n = 3, C = 5;
  const double held = 10;
  const Numbers x = lesson::numbers(n * C, 5, 2, 1), gain = lesson::numbers(C, 6, 0.5, 1),
                bias = lesson::numbers(C, 7), dy = lesson::numbers(n * C, 8);
  const Backward got = run_backward(dy, x, gain, held);
  const auto judge = [&](const char* what, const Numbers& gradient, const Numbers& whole,
                         const Numbers& last) {
    Numbers want = whole, last_added = last;
    for (std::size_t k = 0; k < C; ++k) want[k] += held, last_added[k] += held;
    const auto gradient_is_right = lesson::value_is(
        what, gradient, want,
        {{"the gradient is overwritten. It holds what earlier micro-batches left: add to it", whole},
         {"only the last row's: overwritten row after row where += is wanted", last},
         {"only the last row's: += over rows?", last_added}});
    EXPECT_TRUE(gradient_is_right);
  };
  const auto gradient_of = [&](const Numbers& some_x, const Numbers& some_dy, bool by_gain) {
    return lesson::differences(by_gain ? gain : bias, [&](const Numbers& moved) {
      return lesson::dot(by_gain ? formula(some_x, moved, bias).y : formula(some_x, gain, moved).y, some_dy);
    });
  };
  const Numbers last_x(x.end() - C, x.end()), last_dy(dy.end() - C, dy.end());
  judge("dgain", got.dgain, gradient_of(x, dy, true), gradient_of(last_x, last_dy, true));
  judge("dbias", got.dbias, gradient_of(x, dy, false), gradient_of(last_x, last_dy, false));
}

}  // namespace
}  // namespace shardlings
