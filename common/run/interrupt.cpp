#include "run/interrupt.hpp"

#include <atomic>
#include <csignal>

namespace shardlings::run {

namespace {
// A signal handler has no other way to speak: the only globals of the library. Ranks are threads and each may
// hold a guard: the first sets the handlers, the last takes them away.
std::atomic<int> guards = 0;
std::atomic<bool> asked = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

extern "C" void remember(int signal) {
  asked = true;
  std::signal(signal, SIG_DFL);  // asked a second time, leave at once
}
}  // namespace

InterruptGuard::InterruptGuard() {
  if (guards.fetch_add(1) > 0) return;
  asked = false;
  std::signal(SIGINT, remember);
  std::signal(SIGTERM, remember);
}

InterruptGuard::~InterruptGuard() {
  if (guards.fetch_sub(1) > 1) return;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool InterruptGuard::requested() { return asked; }

}  // namespace shardlings::run
