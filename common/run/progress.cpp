#include "run/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <cmath>
#include <utility>

#include "core/trace.hpp"
#include "run/sparkline.hpp"

namespace shardlings::run {

namespace {
constexpr double kLiveEvery = 0.1;  // seconds between two drawings of the live line
constexpr int kCurveWidth = 24;
}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f}s", seconds);
  const auto s = static_cast<long>(std::lround(seconds));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m {:02}s", s / 60, s % 60);
  return fmt::format("{}h {:02}m", s / 3600, s % 3600 / 60);
}

Progress::Progress(i64 total, i64 first, ProgressOptions options)
    : total_(total), first_(first), options_(std::move(options)) {
  if (!options_.out) options_.out = stdout;
  if (!options_.clock) options_.clock = [] { return static_cast<double>(now_ns()) * 1e-9; };
  live_ = options_.style == ProgressOptions::live ||
          (options_.style == ProgressOptions::detect && isatty(fileno(options_.out)) == 1);
  started_ = options_.clock();
  last_drawn_ = live_ ? -HUGE_VAL : started_;
  last_.step = first;
}

Progress::~Progress() { finish(); }

void Progress::update(const StepMetrics& metrics) {
  last_ = metrics;
  if (metrics.val_loss) val_loss_ = metrics.val_loss;
  if (metrics.loss) losses_.push_back(*metrics.loss);
  if (options_.quiet || finished_) return;
  const double now = options_.clock();
  if (now - last_drawn_ >= (live_ ? kLiveEvery : options_.plain_every)) draw(now);
}

void Progress::note(const std::string& text) {
  if (options_.quiet) return;
  fmt::print(options_.out, "{}{}\n", live_ && drawn_ ? "\r\033[K" : "", text);
  if (live_ && drawn_ && !finished_) draw(options_.clock());
  std::fflush(options_.out);
}

void Progress::finish() {
  if (finished_ || options_.quiet) return;
  if (last_.step > first_) draw(options_.clock());
  if (live_ && drawn_) fmt::print(options_.out, "\n");
  std::fflush(options_.out);
  finished_ = true;
}

std::string Progress::line(double now) const {
  std::string text = fmt::format("step {:>{}}/{}", last_.step, fmt::formatted_size("{}", total_), total_);
  if (last_.loss) text += fmt::format("  loss {:.4f}", *last_.loss);
  if (val_loss_) text += fmt::format("  val {:.4f}", *val_loss_);
  if (last_.tokens_per_s) text += fmt::format("  {:.0f} tokens/s", *last_.tokens_per_s);
  const i64 done = last_.step - first_, left = total_ - last_.step;
  if (left > 0 && done > 0) {
    text += fmt::format(
        "  {} left", duration_text((now - started_) / static_cast<double>(done) * static_cast<double>(left)));
  } else {
    text += fmt::format("  {} in all", duration_text(now - started_));
  }
  return text + "  " + sparkline(losses_, kCurveWidth);
}

void Progress::draw(double now) {
  fmt::print(options_.out, "{}{}{}", live_ ? "\r" : "", line(now), live_ ? "\033[K" : "\n");
  std::fflush(options_.out);
  last_drawn_ = now;
  drawn_ = true;
}

}  // namespace shardlings::run
