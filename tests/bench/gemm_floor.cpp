#include "gemm_floor.hpp"

#include "core/random.hpp"
#include "kernels/cpu/detail.hpp"
#include "kernels/ops.hpp"

namespace shardlings::bench {

using kernels::detail::raw_gemm;

GemmFloor::GemmFloor(const GptConfig& config, i64 batch) : config_(config), batch_(batch) {
  const auto tensor = [&](Shape shape) {
    Tensor t(memory_, Category::activations, DType::f32, std::move(shape));
    auto* p = t.data<float>();
    for (i64 i = 0; i < t.numel(); ++i) p[i] = 0.01F * (static_cast<float>(i % 199) / 100.0F - 1.0F);
    return t;
  };
  const i64 C = config.channels, rows = batch * config.time;
  const auto linear = [&](i64 in, i64 out) {
    return Linear{in,
                  out,
                  tensor({rows, in}),
                  tensor({rows, out}),
                  tensor({out, in}),
                  tensor({out, in}),
                  tensor({rows, in}),
                  tensor({rows, out})};
  };
  for (i64 l = 0; l < config.layers; ++l) {
    Layer layer;
    for (auto [in, out] : {std::pair{C, 3 * C}, {C, C}, {C, 4 * C}, {4 * C, C}})
      layer.linears.push_back(linear(in, out));
    layer.scores = tensor({batch * config.heads, config.time, config.time});
    layer.dscores = tensor({batch * config.heads, config.time, config.time});
    layers_.push_back(std::move(layer));
  }
  head_ = linear(C, config.vocab);
}

double GemmFloor::flops() const {
  const auto C = static_cast<double>(config_.channels), rows = static_cast<double>(batch_ * config_.time);
  const auto L = static_cast<double>(config_.layers), V = static_cast<double>(config_.vocab),
             T = static_cast<double>(config_.time);
  return 6 * rows * (12 * L * C * C + V * C) + 12 * L * C * T * rows;
}

void GemmFloor::forward(const Linear& l) const { kernels::gemm(false, true, 1, l.x, l.w, 0, l.y); }

void GemmFloor::backward(const Linear& l) const {
  kernels::gemm(false, false, 1, l.dy, l.w, 0, l.dx);
  kernels::gemm(true, false, 1, l.dy, l.x, 0, l.dw);
}

void GemmFloor::attention_forward(const Layer& l) const {
  const i64 C = config_.channels, T = config_.time, H = config_.heads, D = C / H;
#pragma omp parallel for schedule(static)
  for (i64 i = 0; i < batch_ * H; ++i) {
    const i64 b = i / H, h = i % H;
    const float* q = l.linears[0].y.data<float>() + b * T * 3 * C + h * D;
    const float *k = q + C, *v = q + 2 * C;
    float* scores = l.scores.data<float>() + i * T * T;
    float* out = l.linears[1].x.data<float>() + b * T * C + h * D;
    raw_gemm(false, true, T, T, D, 1.0F, q, 3 * C, k, 3 * C, 0.0F, scores, T);
    raw_gemm(false, false, T, D, T, 1.0F, scores, T, v, 3 * C, 0.0F, out, C);
  }
}

void GemmFloor::attention_backward(const Layer& l) const {
  const i64 C = config_.channels, T = config_.time, H = config_.heads, D = C / H;
#pragma omp parallel for schedule(static)
  for (i64 i = 0; i < batch_ * H; ++i) {
    const i64 b = i / H, h = i % H, at = b * T * 3 * C + h * D;
    const float *q = l.linears[0].y.data<float>() + at, *k = q + C, *v = q + 2 * C;
    float *dq = l.linears[0].dy.data<float>() + at, *dk = dq + C, *dv = dq + 2 * C;
    const float* scores = l.scores.data<float>() + i * T * T;
    float* dscores = l.dscores.data<float>() + i * T * T;
    const float* dout = l.linears[1].dx.data<float>() + b * T * C + h * D;
    raw_gemm(false, true, T, T, D, 1.0F, dout, C, v, 3 * C, 0.0F, dscores, T);
    raw_gemm(true, false, T, D, T, 1.0F, scores, T, dout, C, 0.0F, dv, 3 * C);
    raw_gemm(false, false, T, D, T, 1.0F, dscores, T, k, 3 * C, 0.0F, dq, 3 * C);
    raw_gemm(true, false, T, D, T, 1.0F, dscores, T, q, 3 * C, 0.0F, dk, 3 * C);
  }
}

void GemmFloor::run() {
  for (const Layer& l : layers_) {
    forward(l.linears[0]);
    attention_forward(l);
    for (std::size_t i = 1; i < 4; ++i) forward(l.linears[i]);
  }
  forward(head_);
  backward(head_);
  for (auto l = layers_.rbegin(); l != layers_.rend(); ++l) {
    for (std::size_t i = 4; i-- > 1;) backward(l->linears[i]);
    attention_backward(*l);
    backward(l->linears[0]);
  }
}

}  // namespace shardlings::bench
