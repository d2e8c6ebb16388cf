#pragma once
// Ctrl-C and SIGTERM as a question the training loop asks between steps, so that it can save and leave.

namespace shardlings::run {

/// While one exists, the first SIGINT or SIGTERM is only remembered; the second ends the process at once.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  static bool requested();  ///< whether a signal came since the guard was made
};

}  // namespace shardlings::run
