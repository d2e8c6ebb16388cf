#pragma once
// The live progress line: step, loss, tokens/s, time left and the loss as a curve. On a terminal one line
// that is redrawn; elsewhere (a file, a pipe, CI) a plain line every few seconds.
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "run/metrics.hpp"

namespace shardlings::run {

struct ProgressOptions {
  bool quiet = false;
  std::FILE* out = nullptr;  ///< nullptr: stdout
  enum { detect, live, plain } style = detect;
  double plain_every = 3;         ///< seconds between plain lines
  std::function<double()> clock;  ///< seconds; for tests. Empty: the steady clock
};

/// Used by one thread (rank 0).
class Progress {
 public:
  /// `total` is the number of the last step. A resumed run starts at `first` > 0 steps already done.
  explicit Progress(i64 total, i64 first = 0, ProgressOptions options = {});
  ~Progress();  ///< finishes
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// After each step: step counts from 1; loss, val_loss and tokens_per_s are shown when they are there.
  /// Cheap: draws at most ten times a second.
  void update(const StepMetrics& metrics);
  /// Prints a line of text above the live line.
  void note(const std::string& line);
  /// Draws the last state and ends the line. Later calls do nothing.
  void finish();

 private:
  std::string line(double now) const;
  void draw(double now);

  i64 total_, first_;
  ProgressOptions options_;
  bool live_ = false, finished_ = false, drawn_ = false;
  double started_ = 0, last_drawn_ = 0;
  StepMetrics last_;
  std::optional<double> val_loss_;
  std::vector<double> losses_;
};

/// "1m 05s", "3h 20m", "4.2s".
std::string duration_text(double seconds);

}  // namespace shardlings::run
