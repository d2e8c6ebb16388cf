// Softmax and cross-entropy in one pass: the loss and its gradient.
#include <fmt/format.h>

#include <numeric>

#include "kernels/cpu/detail.hpp"
#include "kernels/ops.hpp"

namespace shardlings::kernels {

using namespace detail;

double cross_entropy(const Tensor& logits, const std::vector<int>& targets, double scale,
                     const Tensor& dlogits) {
  expect_matrix(logits, "cross_entropy: logits");
  const i64 n = logits.dim(0), vocab = logits.dim(1);
  expect_shape(dlogits, {n, vocab}, "cross_entropy: dlogits");
  require(static_cast<i64>(targets.size()) == n,
          [&] { return fmt::format("cross_entropy: {} targets for {} rows", targets.size(), n); });
  for (int t : targets) {
    require(t >= -1 && t < vocab, [&] {
      return fmt::format("cross_entropy: target {} is outside the vocabulary of {}", t, vocab);
    });
  }
  std::vector<double> losses(static_cast<std::size_t>(n));
  dispatch(logits.dtype(), [&](auto s) {
    using S = decltype(s);
    using A = acc_t<S>;
    const S* in = logits.data<S>();
    S* out = dlogits.data<S>();
#pragma omp parallel for schedule(static) if (n * vocab > kSmall)
    for (i64 i = 0; i < n; ++i) {
      const S* row = in + i * vocab;
      S* grad = out + i * vocab;
      const int target = targets[static_cast<std::size_t>(i)];
      if (target < 0) {
        std::fill(grad, grad + vocab, store<S>(A(0)));
        continue;
      }
      A* e = scratch<A>(0, vocab);
      A top = load(row[0]);
#pragma omp simd reduction(max : top)
      for (i64 v = 0; v < vocab; ++v) top = load(row[v]) > top ? load(row[v]) : top;
      A sum = 0;
#pragma omp simd reduction(+ : sum)
      for (i64 v = 0; v < vocab; ++v) {
        e[v] = fast_exp(load(row[v]) - top);
        sum += e[v];
      }
      const A factor = static_cast<A>(scale);
      const A inverse = factor / sum;
#pragma omp simd
      for (i64 v = 0; v < vocab; ++v) grad[v] = store<S>(e[v] * inverse);
      grad[target] = store<S>(e[target] * inverse - factor);
      losses[static_cast<std::size_t>(i)] = static_cast<double>(std::log(sum) + (top - load(row[target])));
    }
  });
  return std::accumulate(losses.begin(), losses.end(), 0.0) * scale;
}

}  // namespace shardlings::kernels
