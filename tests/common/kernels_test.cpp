// Kernels against plain formulas written again here, and gradients against central differences in f64.
#include "kernels/ops.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/random.hpp"

namespace shardlings {
namespace {

using namespace kernels;

class Kernels : public ::testing::Test {
 protected:
  // Normal numbers: a function of (seed, index), so that every dtype sees the same ones.
  Tensor random(DType t, Shape shape, std::uint64_t seed, double scale = 1) {
    Tensor x = make(t, std::move(shape));
    for (i64 i = 0; i < x.numel(); ++i) x.set(i, scale * normal(seed, static_cast<std::uint64_t>(i)));
    return x;
  }
  Tensor make(DType t, Shape shape) { return {ledger_, Category::activations, t, std::move(shape)}; }
  Tensor zeros(DType t, Shape shape) {
    Tensor x = make(t, std::move(shape));
    x.zero();
    return x;
  }
  Tensor as(DType t, const Tensor& x) {
    Tensor y = make(t, x.shape());
    convert(x, y);
    return y;
  }
  MemoryLedger ledger_;
};

// Largest |a - b| over the largest |b|.
double difference(const Tensor& a, const Tensor& b) {
  double worst = 0, top = 1e-30;
  for (i64 i = 0; i < a.numel(); ++i) {
    worst = std::max(worst, std::isfinite(a.get(i)) ? std::abs(a.get(i) - b.get(i))
                                                    : std::numeric_limits<double>::infinity());
    top = std::max(top, std::abs(b.get(i)));
  }
  return worst / top;
}

double tolerance(DType t) {
  switch (t) {
    case DType::f64:
      return 1e-12;
    case DType::f32:
      return 3e-6;
    case DType::f16:
      return 4e-3;
    default:
      return 3e-2;
  }
}

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

// d loss / d x by central differences, where loss = sum(weights * f(x)).
void expect_gradient(const Tensor& x, const Tensor& analytic, const std::function<double()>& loss,
                     double tolerance_of = 1e-7) {
  constexpr double kStep = 1e-5;
  double top = 1e-12;
  for (i64 i = 0; i < analytic.numel(); ++i) top = std::max(top, std::abs(analytic.get(i)));
  for (i64 i = 0; i < x.numel(); i += std::max<i64>(1, x.numel() / 40)) {
    const double before = x.get(i);
    x.set(i, before + kStep);
    const double up = loss();
    x.set(i, before - kStep);
    const double down = loss();
    x.set(i, before);
    ASSERT_NEAR((up - down) / (2 * kStep), analytic.get(i), tolerance_of * top) << "element " << i;
  }
}

double weighted(const Tensor& y, const Tensor& weights) {
  double sum = 0;
  for (i64 i = 0; i < y.numel(); ++i) sum += y.get(i) * weights.get(i);
  return sum;
}

TEST_F(Kernels, GemmTransposesAlphaAndBetaInAllTypes) {
  for (DType t : kTypes) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const i64 m = 5, n = 7, k = 11;
        const Tensor a = random(t, ta ? Shape{k, m} : Shape{m, k}, 1),
                     b = random(t, tb ? Shape{n, k} : Shape{k, n}, 2);
        const Tensor c = random(t, {m, n}, 3);
        Tensor want = make(DType::f64, {m, n});
        for (i64 i = 0; i < m; ++i) {
          for (i64 j = 0; j < n; ++j) {
            double sum = 0;
            for (i64 p = 0; p < k; ++p)
              sum += a.get(ta ? p * m + i : i * k + p) * b.get(tb ? j * k + p : p * n + j);
            want.set(i * n + j, 0.5 * sum + 2 * c.get(i * n + j));
          }
        }
        gemm(ta, tb, 0.5, a, b, 2, c);
        EXPECT_LT(difference(c, want), tolerance(t)) << name_of(t) << " transposed " << ta << tb;
      }
    }
  }
}

TEST_F(Kernels, GemmWithBetaZeroDoesNotReadC) {
  for (DType t : kTypes) {
    const Tensor c = make(t, {3, 3});  // holds NaN
    gemm(false, false, 1, random(t, {3, 4}, 1), random(t, {4, 3}, 2), 0, c);
    EXPECT_EQ(first_not_finite(c), -1) << name_of(t);
  }
}

TEST_F(Kernels, GemmRefusesShapesThatDoNotFit) {
  const Tensor a = zeros(DType::f32, {2, 3}), b = zeros(DType::f32, {4, 5}), c = zeros(DType::f32, {2, 5});
  try {
    gemm(false, false, 1, a, b, 0, c);
    FAIL() << "a 2 x 3 times 4 x 5 product was accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("[4, 5]"), std::string::npos) << e.what();
  }
}

TEST_F(Kernels, LinearAddsItsGradientsToWhatIsThere) {
  const Tensor x = random(DType::f64, {5, 3}, 1), w = random(DType::f64, {4, 3}, 2),
               b = random(DType::f64, {4}, 3);
  const Tensor weights = random(DType::f64, {5, 4}, 4), y = make(DType::f64, {5, 4});
  const auto loss = [&] {
    linear_forward(x, w, b, y);
    return weighted(y, weights);
  };
  const Tensor dx = make(DType::f64, {5, 3}), dw = zeros(DType::f64, {4, 3}), db = zeros(DType::f64, {4});
  linear_backward_input(weights, w, dx);
  linear_backward_weight(weights, x, dw, db);
  expect_gradient(x, dx, loss);
  expect_gradient(w, dw, loss);
  expect_gradient(b, db, loss);
  const double dw0 = dw.get(0), db0 = db.get(0);
  linear_backward_weight(weights, x, dw, db);
  EXPECT_NEAR(dw.get(0), 2 * dw0, 1e-12);
  EXPECT_NEAR(db.get(0), 2 * db0, 1e-12);
}

TEST_F(Kernels, LayerNormGradients) {
  const i64 n = 130, C = 9;  // more rows than one chunk of partial sums
  const Tensor x = random(DType::f64, {n, C}, 1, 3), g = random(DType::f64, {C}, 2),
               b = random(DType::f64, {C}, 3);
  const Tensor weights = random(DType::f64, {n, C}, 4), y = make(DType::f64, {n, C});
  const auto loss = [&] {
    layer_norm_forward(x, g, b, y);
    return weighted(y, weights);
  };
  const Tensor dx = make(DType::f64, {n, C}), dg = zeros(DType::f64, {C}), db = zeros(DType::f64, {C});
  layer_norm_backward(weights, x, g, dx, dg, db);
  expect_gradient(x, dx, loss);
  expect_gradient(g, dg, loss);
  expect_gradient(b, db, loss);
}

TEST_F(Kernels, LayerNormRowsHaveMeanBiasAndDeviationGain) {
  for (DType t : kTypes) {
    const Tensor x = random(t, {4, 257}, 5, 7), g = make(t, {257}), b = zeros(t, {257}),
                 y = make(t, {4, 257});
    for (i64 k = 0; k < 257; ++k) g.set(k, 2);
    layer_norm_forward(x, g, b, y);
    for (i64 r = 0; r < 4; ++r) {
      double mean = 0, square = 0;
      for (i64 k = 0; k < 257; ++k)
        mean += y.get(r * 257 + k) / 257, square += y.get(r * 257 + k) * y.get(r * 257 + k) / 257;
      EXPECT_NEAR(mean, 0, 0.01) << name_of(t);
      EXPECT_NEAR(square, 4, 0.04) << name_of(t);
    }
  }
}

double gelu(double v) {
  return 0.5 * v * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (v + 0.044715 * v * v * v)));
}

TEST_F(Kernels, GeluIsTheTanhFormFarOutToo) {
  for (DType t : {DType::f64, DType::f32}) {
    const Tensor x = random(t, {1003}, 1, 3), y = make(t, {1003});
    x.set(0, 60), x.set(1, -60), x.set(2, 0), x.set(3, 1e-4);
    gelu_forward(x, y);
    for (i64 i = 0; i < 1003; ++i)
      EXPECT_NEAR(y.get(i), gelu(x.get(i)), tolerance(t) * std::max(1.0, std::abs(x.get(i))));
  }
}

TEST_F(Kernels, GeluGradient) {
  const Tensor x = random(DType::f64, {60}, 1, 2), weights = random(DType::f64, {60}, 2),
               y = make(DType::f64, {60}), dx = make(DType::f64, {60});
  gelu_backward(weights, x, dx);
  expect_gradient(x, dx, [&] {
    gelu_forward(x, y);
    return weighted(y, weights);
  });
}

// Memory that nobody has written holds bytes 0xff (checked mode): a NaN with all payload bits set. Fast
// exponentials that add to the exponent's bits turn it into a finite number.
TEST_F(Kernels, NanOfUnwrittenMemorySurvivesEveryExponential) {
  const Tensor x = make(DType::f32, {1, 48}), y = make(DType::f32, {1, 48});
  gelu_forward(x, y);
  for (i64 i = 0; i < 48; ++i) ASSERT_TRUE(std::isnan(y.get(i))) << "gelu forward, element " << i;
  gelu_backward(random(DType::f32, {1, 48}, 1), x, y);
  for (i64 i = 0; i < 48; ++i) ASSERT_TRUE(std::isnan(y.get(i))) << "gelu backward, element " << i;
  const i64 T = 16, D = 4;
  const Tensor qkv = random(DType::f32, {T, 3 * D}, 1), out = make(DType::f32, {T, D}),
               sums = make(DType::f32, {1, 1, T});
  qkv.set(5 * 3 * D + D, std::numeric_limits<double>::quiet_NaN());  // one key that the first five do not see
  attention_forward(qkv, 1, 1, out, sums);
  for (i64 i = 0; i < T * D; ++i) ASSERT_EQ(std::isnan(out.get(i)), i / D >= 5) << "attention, row " << i / D;
  const Tensor logits = make(DType::f32, {1, 48});
  const std::vector<int> targets = {3};
  EXPECT_TRUE(std::isnan(cross_entropy(logits, targets, 1.0, y)));
}

// Plain softmax attention, nothing blocked.
Tensor naive_attention(MemoryLedger& ledger, const Tensor& qkv, i64 batch, i64 heads) {
  const i64 T = qkv.dim(0) / batch, D = qkv.dim(1) / (3 * heads);
  Tensor y(ledger, Category::activations, DType::f64, {batch * T, heads * D});
  const auto at = [&](i64 b, i64 i, i64 h, i64 which, i64 d) {
    return qkv.get((b * T + i) * 3 * heads * D + (h * 3 + which) * D + d);
  };
  for (i64 b = 0; b < batch; ++b) {
    for (i64 h = 0; h < heads; ++h) {
      for (i64 i = 0; i < T; ++i) {
        std::vector<double> p(static_cast<std::size_t>(i + 1));
        double sum = 0;
        for (i64 j = 0; j <= i; ++j) {
          double score = 0;
          for (i64 d = 0; d < D; ++d) score += at(b, i, h, 0, d) * at(b, j, h, 1, d);
          sum += p[static_cast<std::size_t>(j)] = std::exp(score / std::sqrt(static_cast<double>(D)));
        }
        for (i64 d = 0; d < D; ++d) {
          double out = 0;
          for (i64 j = 0; j <= i; ++j) out += p[static_cast<std::size_t>(j)] / sum * at(b, j, h, 2, d);
          y.set((b * T + i) * heads * D + h * D + d, out);
        }
      }
    }
  }
  return y;
}

TEST_F(Kernels, AttentionEqualsThePlainFormula) {
  for (DType t : kTypes) {
    for (const i64 T : {1, 5, 64, 65, 150}) {  // below, at and beyond one block of queries
      const i64 B = 2, H = 3, D = 4;
      const Tensor qkv = random(t, {B * T, H * 3 * D}, 1), y = make(t, {B * T, H * D});
      const Tensor sums = make(t == DType::f64 ? DType::f64 : DType::f32, {B, H, T});
      attention_forward(qkv, B, H, y, sums);
      EXPECT_LT(difference(y, naive_attention(ledger_, qkv, B, H)), tolerance(t)) << name_of(t) << " T " << T;
    }
  }
}

TEST_F(Kernels, AttentionGradient) {
  const i64 B = 2, T = 70, H = 2, D = 3;
  const Tensor qkv = random(DType::f64, {B * T, H * 3 * D}, 1), y = make(DType::f64, {B * T, H * D}),
               sums = make(DType::f64, {B, H, T});
  const Tensor weights = random(DType::f64, y.shape(), 2), dqkv = make(DType::f64, qkv.shape());
  const auto loss = [&] {
    attention_forward(qkv, B, H, y, sums);
    return weighted(y, weights);
  };
  loss();
  attention_backward(weights, qkv, y, sums, B, H, dqkv);
  expect_gradient(qkv, dqkv, loss);
}

TEST_F(
    Kernels,
    NarrowTypesFollowF64) {  // each backward kernel in f32, f16, bf16 against f64 on the same rounded inputs
  for (DType t : {DType::f32, DType::f16, DType::bf16}) {
    const i64 B = 2, T = 33, H = 2, D = 8, C = H * D, n = B * T;
    const Tensor x = random(t, {n, C}, 1), dy = random(t, {n, C}, 2), g = random(t, {C}, 3),
                 qkv = random(t, {n, 3 * C}, 4);
    const auto both = [&](const std::function<Tensor(DType)>& f) { return difference(f(t), f(DType::f64)); };
    EXPECT_LT(both([&](DType u) {
                Tensor dx = make(u, {n, C});
                layer_norm_backward(as(u, dy), as(u, x), as(u, g), dx, zeros(u, {C}), zeros(u, {C}));
                return dx;
              }),
              tolerance(t))
        << "layer norm " << name_of(t);
    EXPECT_LT(both([&](DType u) {
                Tensor dx = make(u, {n, C});
                gelu_backward(as(u, dy), as(u, x), dx);
                return dx;
              }),
              tolerance(t))
        << "gelu " << name_of(t);
    EXPECT_LT(both([&](DType u) {
                Tensor y = make(u, {n, C}), sums = make(u == DType::f64 ? u : DType::f32, {B, H, T}),
                       dqkv = make(u, {n, 3 * C});
                attention_forward(as(u, qkv), B, H, y, sums);
                attention_backward(as(u, dy), as(u, qkv), y, sums, B, H, dqkv);
                return dqkv;
              }),
              2 * tolerance(t))
        << "attention " << name_of(t);
  }
}

TEST_F(Kernels, EmbeddingRoundTripAndGradient) {
  const i64 V = 6, T = 4, C = 5;
  const std::vector<int> tokens = {2, 2, 5, 0, 2, 1, 1, 5};
  const Tensor wte = random(DType::f64, {V, C}, 1), wpe = random(DType::f64, {T + 3, C}, 2),
               y = make(DType::f64, {8, C});
  const Tensor weights = random(DType::f64, {8, C}, 3), dwte = zeros(DType::f64, {V, C}),
               dwpe = zeros(DType::f64, {T + 3, C});
  const auto loss = [&] {
    embedding_forward(tokens, T, 3, wte, wpe, y);
    return weighted(y, weights);
  };
  loss();
  EXPECT_DOUBLE_EQ(y.get(2 * C + 1), wte.get(5 * C + 1) + wpe.get(5 * C + 1));
  embedding_backward(tokens, T, 3, weights, dwte, dwpe);
  expect_gradient(wte, dwte, loss);
  expect_gradient(wpe, dwpe, loss);
}

TEST_F(Kernels, EmbeddingNamesATokenOutsideTheVocabulary) {
  const Tensor wte = zeros(DType::f32, {6, 2}), wpe = zeros(DType::f32, {4, 2}), y = make(DType::f32, {2, 2});
  try {
    embedding_forward({1, 6}, 2, 0, wte, wpe, y);
    FAIL() << "token 6 of 6 was accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("token 6"), std::string::npos) << e.what();
  }
}

TEST_F(Kernels, CrossEntropyLossGradientAndMaskedTargets) {
  const i64 n = 5, V = 7;
  const std::vector<int> targets = {0, 6, -1, 3, 3};
  const Tensor logits = random(DType::f64, {n, V}, 1, 2), d = make(DType::f64, {n, V});
  const auto loss = [&] { return cross_entropy(logits, targets, 0.25, d); };
  double want = 0;
  for (i64 i = 0; i < n; ++i) {
    if (targets[static_cast<std::size_t>(i)] < 0) continue;
    double sum = 0;
    for (i64 v = 0; v < V; ++v) sum += std::exp(logits.get(i * V + v));
    want += 0.25 * (std::log(sum) - logits.get(i * V + targets[static_cast<std::size_t>(i)]));
  }
  EXPECT_NEAR(loss(), want, 1e-12);
  const Tensor gradient = make(DType::f64, {n, V});
  gradient.copy_from(d);
  expect_gradient(logits, gradient, loss);
  for (i64 v = 0; v < V; ++v) EXPECT_EQ(gradient.get(2 * V + v), 0) << "a masked row has no gradient";
}

TEST_F(Kernels, CrossEntropySurvivesLogitsThatOverflowANaiveSoftmax) {
  for (DType t : {DType::f64, DType::f32}) {
    const Tensor logits = make(t, {1, 3}), d = make(t, {1, 3});
    logits.set(0, 1e4), logits.set(1, 1e4), logits.set(2, -1e4);
    EXPECT_NEAR(cross_entropy(logits, {0}, 1, d), std::log(2.0), 1e-6);
    EXPECT_NEAR(d.get(0), -0.5, 1e-6);
  }
}

TEST_F(Kernels, DropoutDropsTheShareKeepsTheMeanAndDependsOnTheGlobalElementOnly) {
  const i64 n = 40001;
  const Tensor x = make(DType::f32, {n}), whole = make(DType::f32, {n});
  for (i64 i = 0; i < n; ++i) x.set(i, 1);
  dropout(x, 0.1, 77, 0, whole);
  i64 dropped = 0;
  for (i64 i = 0; i < n; ++i) dropped += whole.get(i) == 0 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(dropped) / static_cast<double>(n), 0.1, 0.006);
  EXPECT_FLOAT_EQ(static_cast<float>(*std::max_element(whole.data<float>(), whole.data<float>() + n)),
                  1 / 0.9F);
  const Tensor part = make(DType::f32, {n - 13});
  dropout(x.slice(13, n), 0.1, 77, 13, part);  // another rank's share, cut at an odd place
  for (i64 i = 0; i < part.numel(); ++i) ASSERT_EQ(part.get(i), whole.get(i + 13)) << "element " << i;
}

TEST_F(Kernels, SumOfSquaresIsExactForAnyCut) {
  const Tensor x = random(DType::f32, {200003}, 9);
  const double whole = sum_squares(x, 0, 200003), cut = sum_squares(x, 0, 777) + sum_squares(x, 777, 200003);
  EXPECT_EQ(static_cast<float>(std::sqrt(whole)), static_cast<float>(std::sqrt(cut)));
  double slow = 0;
  for (i64 i = 0; i < x.numel(); ++i) slow += x.get(i) * x.get(i);
  EXPECT_NEAR(whole, slow, 1e-9 * slow);
}

}  // namespace
}  // namespace shardlings
