// Token and position embedding: rows are copied forward and added back per row, in token order.
#include <fmt/format.h>

#include <numeric>

#include "kernels/cpu/detail.hpp"
#include "kernels/ops.hpp"

namespace shardlings::kernels {

using namespace detail;

namespace {

void check(const std::vector<int>& tokens, i64 time, i64 first_position, const Tensor& wte, const Tensor& wpe,
           const Tensor& y) {
  expect_matrix(wte, "embedding: wte");
  const auto n = static_cast<i64>(tokens.size());
  expect_shape(y, {n, wte.dim(1)}, "embedding: y");
  expect_shape(wpe, {wpe.dim(0), wte.dim(1)}, "embedding: wpe");
  require(time > 0 && n % time == 0 && first_position >= 0 && first_position + time <= wpe.dim(0), [&] {
    return fmt::format("embedding: {} tokens in sequences of {} from position {} with {} positions", n, time,
                       first_position, wpe.dim(0));
  });
  for (int t : tokens) {
    require(t >= 0 && t < wte.dim(0), [&] {
      return fmt::format("embedding: token {} is outside the vocabulary of {}", t, wte.dim(0));
    });
  }
}

}  // namespace

void embedding_forward(const std::vector<int>& tokens, i64 time, i64 first_position, const Tensor& wte,
                       const Tensor& wpe, const Tensor& y) {
  check(tokens, time, first_position, wte, wpe, y);
  const i64 n = y.dim(0), width = y.dim(1);
  dispatch(y.dtype(), [&](auto s) {
    using S = decltype(s);
    const S *words = wte.data<S>(), *places = wpe.data<S>();
    S* to = y.data<S>();
#pragma omp parallel for schedule(static) if (n * width > kSmall)
    for (i64 i = 0; i < n; ++i) {
      const S* word = words + tokens[static_cast<std::size_t>(i)] * width;
      const S* place = places + (i % time + first_position) * width;
#pragma omp simd
      for (i64 k = 0; k < width; ++k) to[i * width + k] = store<S>(load(word[k]) + load(place[k]));
    }
  });
}

void embedding_backward(const std::vector<int>& tokens, i64 time, i64 first_position, const Tensor& dy,
                        const Tensor& dwte, const Tensor& dwpe) {
  check(tokens, time, first_position, dwte, dwpe, dy);
  const i64 n = dy.dim(0), width = dy.dim(1);
  // Rows sorted by token: each table row gets the finished sum of its tokens, once, in token order.
  std::vector<i64> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](i64 a, i64 b) {
    return tokens[static_cast<std::size_t>(a)] < tokens[static_cast<std::size_t>(b)];
  });
  dispatch(dy.dtype(), [&](auto s) {
    using S = decltype(s);
    using A = acc_t<S>;
    const S* d = dy.data<S>();
    const auto add_rows = [&](S* to, auto&& rows) {
      A* sum = scratch<A>(0, width);
      std::fill(sum, sum + width, A(0));
      rows([&](i64 i) {
        const S* row = d + i * width;
#pragma omp simd
        for (i64 k = 0; k < width; ++k) sum[k] += load(row[k]);
      });
      for (i64 k = 0; k < width; ++k) to[k] = store<S>(load(to[k]) + sum[k]);
    };
    S* words = dwte.data<S>();
    for (i64 begin = 0, end = 0; begin < n; begin = end) {
      const int token = tokens[static_cast<std::size_t>(order[static_cast<std::size_t>(begin)])];
      while (end < n && tokens[static_cast<std::size_t>(order[static_cast<std::size_t>(end)])] == token)
        ++end;
      add_rows(words + token * width, [&](auto&& add_row) {
        for (i64 i = begin; i < end; ++i) add_row(order[static_cast<std::size_t>(i)]);
      });
    }
    S* places = dwpe.data<S>();
#pragma omp parallel for schedule(static) if (n * width > kSmall)
    for (i64 t = 0; t < time; ++t) {
      add_rows(places + (t + first_position) * width, [&](auto&& add_row) {
        for (i64 i = t; i < n; i += time) add_row(i);
      });
    }
  });
}

}  // namespace shardlings::kernels
