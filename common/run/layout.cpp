#include "run/layout.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardlings::run {

std::string layout_text(int ranks, int threads, int cores) {
  const auto plural = [](int n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  const std::string head =
      fmt::format("{} x {} on {}", plural(ranks, "rank"), plural(threads, "thread"), plural(cores, "core"));
  if (ranks > cores) {
    return fmt::format("{}: more ranks than cores, so they take turns; results are the same, times are not",
                       head);
  }
  if (ranks * threads > cores) {
    return fmt::format("{}: {} threads share {}; --threads {} gives each a core of its own", head,
                       ranks * threads, plural(cores, "core"), std::max(1, cores / ranks));
  }
  if (ranks * threads < cores) {
    return fmt::format(
        "{}: {} idle", head,
        cores - ranks * threads == 1 ? "1 is" : fmt::format("{} are", cores - ranks * threads));
  }
  return fmt::format("{}: one core for each thread", head);
}

}  // namespace shardlings::run
