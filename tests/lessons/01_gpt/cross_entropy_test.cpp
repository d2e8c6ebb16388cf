// Cross-entropy: the loss against known values, its gradient against central differences.
#include "gpt_test.hpp"
#include "layers.hpp"

namespace shardlings {
namespace {

using lesson::Numbers;
using Targets = std::vector<int>;

struct Forward {
  double loss;
  Numbers prob;
};

/// The learner's.
template <class S = double>
Forward run_forward(const Numbers& logits, const Targets& targets, double scale) {
  const std::vector<S> in(logits.begin(), logits.end());
  std::vector<S> prob(logits.size(), std::numeric_limits<S>::quiet_NaN());
  const auto n = static_cast<i64>(targets.size());
  const double loss = cross_entropy_forward<S>(in.data(), targets.data(), scale, prob.data(), n,
                                               static_cast<i64>(logits.size()) / n);
  return {loss, Numbers(prob.begin(), prob.end())};
}

/// The test's own: scale * sum of -log softmax[target], and the softmax.
Forward formula(const Numbers& logits, const Targets& targets, double scale) {
  const std::size_t V = logits.size() / targets.size();
  Forward f{0, logits};
  for (std::size_t i = 0; i < targets.size(); ++i) {
    double sum = 0;
    for (std::size_t v = 0; v < V; ++v) sum += std::exp(logits[i * V + v]);
    for (std::size_t v = 0; v < V; ++v) f.prob[i * V + v] = std::exp(logits[i * V + v]) / sum;
    if (targets[i] >= 0) f.loss -= scale * std::log(f.prob[i * V + static_cast<std::size_t>(targets[i])]);
  }
  return f;
}

Numbers times(Numbers x, double factor) {
  for (double& element : x) element *= factor;
  return x;
}

// Value. Rejects: a wrong logarithm (base 2), a sum without scale. A model that knows nothing pays ln V.
TEST(CrossEntropy, UniformLogitsCostLogV) {
  for (const std::size_t V : {1U, 2U, 65U, 256U}) {
    const Targets targets{0, static_cast<int>(V) - 1, static_cast<int>(V) / 2};
    const double loss = run_forward(Numbers(3 * V, 2.5), targets, 1.0 / 3).loss;
    EXPECT_NEAR(loss, std::log(static_cast<double>(V)), 1e-12)
        << "all " << V << " logits equal: every token has probability 1/V and costs ln V nats, on average";
  }
}

// Value. Rejects: a loss averaged twice, scaled twice or not at all, and ignored targets that are counted.
TEST(CrossEntropy, LossIsScaledOnce) {
  const Targets targets{2, -1, 0, 5, -1};
  const Numbers logits = lesson::numbers(5 * 6, 1, 2);
  const double scale = 1.0 / 8;  // a step of 8 tokens, of which this micro-batch has 3
  const Forward got = run_forward(logits, targets, scale), want = formula(logits, targets, scale);
  const double loss = want.loss;
  double ignored_as_0 = 0;  // what targets of 0 in place of -1 would give
  ignored_as_0 = formula(logits, {2, 0, 0, 5, 0}, scale).loss;
  const auto loss_is_right = lesson::value_is(
      "the loss", {got.loss}, {loss},
      {{"the loss is averaged twice: it was divided by the rows, and scaled too", {loss / 5}},
       {"the loss is averaged twice: divided by the counted rows, and scaled too", {loss / 3}},
       {"scale is applied twice", {loss * scale}},
       {"scale is not applied", {loss / scale}},
       {"rows with target -1 are counted", {ignored_as_0}}});
  EXPECT_TRUE(loss_is_right);
  const auto prob_is_right = lesson::value_is("prob", got.prob, want.prob);
  EXPECT_TRUE(prob_is_right);
}

// Value. Rejects: exp without the largest logit subtracted.
TEST(CrossEntropy, LargeLogitsDoNotOverflow) {
  const Numbers logits{1e4, 1e4 - 1, 0, -1e4, -1e4, -1e4 - 1};
  for (const double got :
       {run_forward<float>(logits, {1, 0}, 1).loss, run_forward<double>(logits, {1, 0}, 1).loss}) {
    const double want = 1 + std::log(1 + std::exp(-1)) + std::log(2 + std::exp(-1));
    EXPECT_NEAR(got, want, 2e-3) << "logits of 1e4: exp overflows (and of -1e4: every exp is 0) unless the "
                                    "largest logit of the row is subtracted first";
  }
}

// Value. Rejects: the logarithm of a probability that has rounded to 0.
TEST(CrossEntropy, UnlikelyTargetsHaveAFiniteLoss) {
  const Numbers logits{1000, 0};
  for (const double got :
       {run_forward<float>(logits, {1}, 1).loss, run_forward<double>(logits, {1}, 1).loss}) {
    EXPECT_NEAR(got, 1000, 1e-3) << "the target's probability is e^-1000, which rounds to 0, and log 0 is "
                                    "infinite: take log(sum) + largest - logit instead";
  }
}

// Value. Rejects: gradients without the loss's scale, or with its square; rows of ignored targets with a
// gradient.
TEST(CrossEntropy, GradientEqualsDifferences) {
  const Targets targets{2, -1, 0, 5, 3};
  const Numbers logits = lesson::numbers(5 * 6, 2, 2);
  const double scale = 1.0 / 8;
  const Numbers want =
      lesson::differences(logits, [&](const Numbers& moved) { return formula(moved, targets, scale).loss; });
  const Numbers prob = formula(logits, targets, scale).prob;
  Numbers got = lesson::nans(logits.size());
  cross_entropy_backward<double>(prob.data(), targets.data(), scale, got.data(), 5, 6);
  Numbers ignored_counted = want;
  for (std::size_t v = 0; v < 6; ++v) ignored_counted[6 + v] = scale * prob[6 + v];
  const auto dlogits_is_right = lesson::value_is(
      "dlogits", got, want,
      {{"the loss's scale is forgotten: backward differentiates scale * sum, so the scale stays",
        times(want, 1 / scale)},
       {"the scale is applied twice", times(want, scale)},
       {"averaged twice: divided by the rows, and scaled too", times(want, 1.0 / 5)},
       {"it lacks - scale at the target: dlogits = scale (prob - 1 at the target)", times(prob, scale)},
       {"the row with target -1 has a gradient: it is not counted in the loss, so write zeros",
        ignored_counted}});
  EXPECT_TRUE(dlogits_is_right);
}

}  // namespace
}  // namespace shardlings
