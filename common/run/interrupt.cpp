#include "run/interrupt.hpp"

#include <csignal>

namespace shardlings::run {

namespace {
// A signal handler has no other way to speak: the one global of the library.
volatile std::sig_atomic_t requested_signal = 0;

extern "C" void remember(int signal) {
  requested_signal = 1;
  std::signal(signal, SIG_DFL);  // asked a second time, leave at once
}
}  // namespace

InterruptGuard::InterruptGuard() {
  requested_signal = 0;
  std::signal(SIGINT, remember);
  std::signal(SIGTERM, remember);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool InterruptGuard::requested() { return requested_signal != 0; }

}  // namespace shardlings::run
