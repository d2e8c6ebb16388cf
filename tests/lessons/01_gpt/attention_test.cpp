// Causal attention. The test has a formula of its own (with a switch for each usual mistake), so that
// backward can be judged before forward is written.
#include <fmt/format.h>

#include "gpt_test.hpp"
#include "layers.hpp"

namespace shardlings {
namespace {

using lesson::Numbers;

const std::vector<AttentionShape> kShapes{{1, 1, 1, 4}, {2, 5, 2, 3}, {1, 4, 3, 2}, {1, 7, 1, 5}};

std::size_t size_of_qkv(const AttentionShape& at) {
  return static_cast<std::size_t>(at.B * at.T * at.H * 3 * at.D);
}
std::string name_of(const AttentionShape& at) {
  return fmt::format("{} sequences of {} tokens, {} heads of {} channels", at.B, at.T, at.H, at.D);
}

struct Forward {
  Numbers prob, y;
};

/// The learner's.
template <class S = double>
Forward run_forward(const Numbers& qkv, const AttentionShape& at) {
  const std::vector<S> in(qkv.begin(), qkv.end());
  std::vector<S> prob(static_cast<std::size_t>(at.B * at.H * at.T * at.T),
                      std::numeric_limits<S>::quiet_NaN());
  std::vector<S> y(qkv.size() / 3, std::numeric_limits<S>::quiet_NaN());
  attention_forward<S>(in.data(), prob.data(), y.data(), at);
  return {Numbers(prob.begin(), prob.end()), Numbers(y.begin(), y.end())};
}

struct Variant {
  bool scaled = true;       // 1 / sqrt(D)
  bool heads_first = true;  // columns (head, q|k|v, D), else (q|k|v, head, D)
  bool row_sum = true;      // in the softmax's backward
  bool all_queries = true;  // dk, dv of token s are sums over the queries t >= s
};

/// Where the D numbers of q (0), k (1) or v (2) begin.
std::size_t part(const AttentionShape& at, const Variant& how, i64 b, i64 h, i64 t, i64 which) {
  const i64 begin =
      how.heads_first ? at.qkv(b, h, t) + which * at.D : at.qkv(b, 0, t) + (which * at.H + h) * at.D;
  return static_cast<std::size_t>(begin);
}

/// The test's own forward; with dy also backward (dqkv).
struct Formula {
  Numbers prob, y, dqkv;
  Formula(const Numbers& qkv, const AttentionShape& at, const Variant& how = {}, const Numbers& dy = {})
      : prob(static_cast<std::size_t>(at.B * at.H * at.T * at.T)), y(qkv.size() / 3), dqkv(qkv.size()) {
    const auto D = static_cast<std::size_t>(at.D);
    const double scale = how.scaled ? 1 / std::sqrt(static_cast<double>(at.D)) : 1;
    const auto product = [D](const Numbers& a, std::size_t i, const Numbers& b, std::size_t j) {
      double sum = 0;
      for (std::size_t d = 0; d < D; ++d) sum += a[i + d] * b[j + d];
      return sum;
    };
    for (i64 b = 0; b < at.B; ++b) {
      for (i64 h = 0; h < at.H; ++h) {
        for (i64 t = 0; t < at.T; ++t) {
          const std::size_t q = part(at, how, b, h, t, 0), out = static_cast<std::size_t>(at.y(b, h, t));
          double* p = prob.data() + at.prob(b, h, t);
          double sum = 0, row = 0;
          for (i64 s = 0; s <= t; ++s)
            sum += p[s] = std::exp(scale * product(qkv, q, qkv, part(at, how, b, h, s, 1)));
          for (i64 s = 0; s <= t; ++s) {
            p[s] /= sum;
            for (std::size_t d = 0; d < D; ++d) y[out + d] += p[s] * qkv[part(at, how, b, h, s, 2) + d];
          }
          if (dy.empty()) continue;
          const auto dprob = [&](i64 s) { return product(dy, out, qkv, part(at, how, b, h, s, 2)); };
          for (i64 s = 0; s <= t && how.row_sum; ++s) row += p[s] * dprob(s);
          for (i64 s = 0; s <= t; ++s) {
            const std::size_t k = part(at, how, b, h, s, 1), v = part(at, how, b, h, s, 2);
            const double dscore = p[s] * (dprob(s) - row) * scale, keep = how.all_queries ? 1 : 0;
            for (std::size_t d = 0; d < D; ++d) {
              dqkv[q + d] += dscore * qkv[k + d];
              dqkv[k + d] = keep * dqkv[k + d] + dscore * qkv[q + d];
              dqkv[v + d] = keep * dqkv[v + d] + p[s] * dy[out + d];
            }
          }
        }
      }
    }
  }
};

// Value. Rejects: no 1 / sqrt(D), columns in another order, probabilities of the wrong head.
TEST(Attention, EqualsTheFormula) {
  for (const AttentionShape& at : kShapes) {
    const Numbers qkv = lesson::numbers(static_cast<i64>(size_of_qkv(at)), 1);
    const Formula want(qkv, at);
    const Forward got = run_forward(qkv, at);
    const auto y_is_right =
        lesson::value_is("y", got.y, want.y,
                         {{"the scores lack 1 / sqrt(D)", Formula(qkv, at, {.scaled = false}).y},
                          {"columns were read as (q|k|v, head, D); they are (head, q|k|v, D)",
                           Formula(qkv, at, {.heads_first = false}).y}});
    EXPECT_TRUE(y_is_right) << name_of(at);
    const auto prob_is_right = lesson::value_is("prob", got.prob, want.prob);
    EXPECT_TRUE(prob_is_right) << name_of(at);
  }
}

// Value. Rejects: a mask that is off by one.
TEST(Attention, LaterTokensChangeNothing) {
  const AttentionShape at{1, 6, 2, 3};
  const Numbers qkv = lesson::numbers(static_cast<i64>(size_of_qkv(at)), 2);
  const Numbers before = run_forward(qkv, at).y;
  for (i64 changed = 1; changed < at.T; ++changed) {
    Numbers other = qkv;
    for (i64 i = at.qkv(0, 0, changed); i < at.qkv(0, 0, changed + 1); ++i)
      other[static_cast<std::size_t>(i)] += 1;
    const Numbers after = run_forward(other, at).y;
    for (i64 t = 0; t < changed; ++t) {
      const auto row = static_cast<std::ptrdiff_t>(at.y(0, 0, t)),
                 end = static_cast<std::ptrdiff_t>(at.y(0, 0, t + 1));
      ASSERT_TRUE(std::equal(before.begin() + row, before.begin() + end, after.begin() + row))
          << "token " << changed << " was changed, and row " << t << " of y with it: token t sees "
          << (changed - t == 1 ? "the next token, which it is to predict" : "the future")
          << ". Only s <= t take part, in the softmax's sum too";
    }
  }
}

// Value. Rejects: a mask after the softmax, which leaves the future in the denominator; unwritten entries.
TEST(Attention, RowsOfProbSumToOne) {
  const AttentionShape at{2, 5, 2, 3};
  const Forward got = run_forward(lesson::numbers(static_cast<i64>(size_of_qkv(at)), 3), at);
  for (i64 t = 0; t < at.T; ++t) {
    double sum = 0;
    for (i64 s = 0; s < at.T; ++s) {
      const double p = got.prob[static_cast<std::size_t>(at.prob(1, 1, t) + s)];
      if (s > t) {
        EXPECT_EQ(p, 0) << "prob[" << t << ", " << s << "]: the future has weight 0";
      } else {
        sum += p;
      }
    }
    EXPECT_NEAR(sum, 1, 1e-12) << "the weights of token " << t << " add up to " << sum
                               << "; below 1, the future was masked after the softmax, not before";
  }
}

// Value. Rejects: exp without the row's largest score subtracted.
TEST(Attention, LargeScoresDoNotOverflow) {
  const AttentionShape at{1, 3, 1, 1};
  const Numbers qkv{100, 1, 5, 100, 100, 6, 100, 99, 7};  // scores of the last row: 100, 10000, 9900
  const Numbers want{5, 6, 6};
  for (const Numbers& got : {run_forward<float>(qkv, at).y, run_forward<double>(qkv, at).y}) {
    const auto y_is_right = lesson::value_is("y", got, want);
    EXPECT_TRUE(y_is_right)
        << "scores of 1e4: exp overflows unless the largest score of the row is subtracted first";
  }
}

// Value. Rejects: a softmax backward without the sum over its row, no 1 / sqrt(D) in backward, dk and dv of
// the last query only, columns in another order.
TEST(Attention, BackwardEqualsDifferences) {
  for (const AttentionShape& at : kShapes) {
    const std::size_t size = size_of_qkv(at);
    const Numbers qkv = lesson::numbers(static_cast<i64>(size), 4),
                  dy = lesson::numbers(static_cast<i64>(size / 3), 5);
    const Numbers want =
        lesson::differences(qkv, [&](const Numbers& moved) { return lesson::dot(Formula(moved, at).y, dy); });
    Numbers got = lesson::nans(size);
    const Numbers prob = Formula(qkv, at).prob;
    attention_backward<double>(dy.data(), qkv.data(), prob.data(), got.data(), at);
    const auto with = [&](const Variant& how) { return Formula(qkv, at, how, dy).dqkv; };
    Numbers unscaled = with({});  // q and k only: v has no scale
    for (i64 i = 0; i < static_cast<i64>(size); ++i) {
      if (i / at.D % 3 < 2) unscaled[static_cast<std::size_t>(i)] *= std::sqrt(static_cast<double>(at.D));
    }
    const auto dqkv_is_right = lesson::value_is(
        "dqkv", got, want,
        {{"dq and dk lack 1 / sqrt(D): the scores were scaled in forward", unscaled},
         {"dscore lacks the sum over the row: dscore_s = prob_s (dprob_s - sum_r prob_r dprob_r)",
          with({.row_sum = false})},
         {"dk and dv are overwritten by each query: add up over all t >= s", with({.all_queries = false})}});
    EXPECT_TRUE(dqkv_is_right) << name_of(at) << ", against central differences";
  }
}

}  // namespace
}  // namespace shardlings
