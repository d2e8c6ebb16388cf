// ./lab bench kernels: every kernel of a block alone, at the sizes of a config. Arguments: rows, channels.
#include <benchmark/benchmark.h>

#include "kernels/ops.hpp"

namespace {

using namespace shardlings;

struct Sizes {
  i64 rows, channels, batch, heads;
};
Sizes sizes_of(const benchmark::State& state) {
  return {state.range(0), state.range(1), state.range(0) == 768 ? 12 : 8, state.range(0) == 768 ? 4 : 6};
}

class Bench {
 public:
  Tensor make(Shape shape) {
    Tensor t(ledger_, Category::activations, DType::f32, std::move(shape));
    for (i64 i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(i % 97) / 97.0F - 0.5F;
    return t;
  }

 private:
  MemoryLedger ledger_;
};

void bytes(benchmark::State& state, i64 per_call) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * per_call);
}

void layer_norm(benchmark::State& state) {
  const Sizes z = sizes_of(state);
  Bench b;
  const Tensor x = b.make({z.rows, z.channels}), y = b.make({z.rows, z.channels}), g = b.make({z.channels}),
               c = b.make({z.channels});
  for ([[maybe_unused]] auto _ : state) kernels::layer_norm_forward(x, g, c, y);
  bytes(state, 2 * x.bytes());
}
void layer_norm_backward(benchmark::State& state) {
  const Sizes z = sizes_of(state);
  Bench b;
  const Tensor x = b.make({z.rows, z.channels}), dy = b.make({z.rows, z.channels}),
               dx = b.make({z.rows, z.channels});
  const Tensor g = b.make({z.channels}), dg = b.make({z.channels}), db = b.make({z.channels});
  for ([[maybe_unused]] auto _ : state) kernels::layer_norm_backward(dy, x, g, dx, dg, db);
  bytes(state, 3 * x.bytes());
}
void gelu(benchmark::State& state) {
  const Sizes z = sizes_of(state);
  Bench b;
  const Tensor x = b.make({z.rows, 4 * z.channels}), y = b.make({z.rows, 4 * z.channels});
  for ([[maybe_unused]] auto _ : state) kernels::gelu_forward(x, y);
  bytes(state, 2 * x.bytes());
}
void gelu_backward(benchmark::State& state) {
  const Sizes z = sizes_of(state);
  Bench b;
  const Tensor x = b.make({z.rows, 4 * z.channels}), dy = b.make({z.rows, 4 * z.channels}),
               dx = b.make({z.rows, 4 * z.channels});
  for ([[maybe_unused]] auto _ : state) kernels::gelu_backward(dy, x, dx);
  bytes(state, 3 * x.bytes());
}
void attention(benchmark::State& state) {
  const Sizes z = sizes_of(state);
  Bench b;
  const Tensor qkv = b.make({z.rows, 3 * z.channels}), y = b.make({z.rows, z.channels}),
               sums = b.make({z.batch, z.heads, z.rows / z.batch});
  for ([[maybe_unused]] auto _ : state) kernels::attention_forward(qkv, z.batch, z.heads, y, sums);
}
void attention_backward(benchmark::State& state) {
  const Sizes z = sizes_of(state);
  Bench b;
  const Tensor qkv = b.make({z.rows, 3 * z.channels}), y = b.make({z.rows, z.channels}),
               sums = b.make({z.batch, z.heads, z.rows / z.batch});
  const Tensor dy = b.make({z.rows, z.channels}), dqkv = b.make({z.rows, 3 * z.channels});
  kernels::attention_forward(qkv, z.batch, z.heads, y, sums);
  for ([[maybe_unused]] auto _ : state) kernels::attention_backward(dy, qkv, y, sums, z.batch, z.heads, dqkv);
}
void linear(benchmark::State& state) {
  const Sizes z = sizes_of(state);
  Bench b;
  const Tensor x = b.make({z.rows, z.channels}), w = b.make({4 * z.channels, z.channels}),
               c = b.make({4 * z.channels});
  const Tensor y = b.make({z.rows, 4 * z.channels});
  for ([[maybe_unused]] auto _ : state) kernels::linear_forward(x, w, c, y);
  state.counters["GFLOP/s"] = benchmark::Counter(static_cast<double>(2 * x.numel() * 4 * z.channels) * 1e-9,
                                                 benchmark::Counter::kIsIterationInvariantRate);
}
void linear_weight(benchmark::State& state) {
  const Sizes z = sizes_of(state);
  Bench b;
  const Tensor x = b.make({z.rows, z.channels}), dw = b.make({4 * z.channels, z.channels}),
               db = b.make({4 * z.channels});
  const Tensor dy = b.make({z.rows, 4 * z.channels});
  for ([[maybe_unused]] auto _ : state) kernels::linear_backward_weight(dy, x, dw, db);
  state.counters["GFLOP/s"] = benchmark::Counter(static_cast<double>(2 * x.numel() * 4 * z.channels) * 1e-9,
                                                 benchmark::Counter::kIsIterationInvariantRate);
}
void adamw(benchmark::State& state) {
  const i64 n = 12 * state.range(1) * state.range(1);
  Bench b;
  const Tensor w = b.make({n}), g = b.make({n}), m = b.make({n}), v = b.make({n});
  for (i64 i = 0; i < n; ++i) v.data<float>()[i] = 0.1F;
  for ([[maybe_unused]] auto _ : state)
    kernels::adamw({1e-3, 0.9, 0.95, 1e-8, 0.1, 5, 1}, 0, n, w, g, m, v, Tensor());
  bytes(state, 7 * 4 * n);
}

#define SIZES ->Args({768, 128})->Args({2048, 384})->Unit(benchmark::kMicrosecond)
BENCHMARK(layer_norm) SIZES;
BENCHMARK(layer_norm_backward) SIZES;
BENCHMARK(gelu) SIZES;
BENCHMARK(gelu_backward) SIZES;
BENCHMARK(attention) SIZES;
BENCHMARK(attention_backward) SIZES;
BENCHMARK(linear) SIZES;
BENCHMARK(linear_weight) SIZES;
BENCHMARK(adamw) SIZES;

}  // namespace

BENCHMARK_MAIN();
