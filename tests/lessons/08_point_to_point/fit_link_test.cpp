// fit_link: value. The times come from a formula, so we know what must come out.
#include "lesson_test.hpp"
#include "messages.hpp"

namespace shardlings {
namespace {

/// Times over a link with this latency and bandwidth; every second one takes `noise` times longer.
std::vector<Timing> timings(double alpha, double bandwidth, double noise) {
  std::vector<Timing> all;
  for (i64 bytes = 1024; bytes <= i64{16} << 20; bytes *= 4) {
    const double seconds = alpha + static_cast<double>(bytes) / bandwidth;
    all.push_back({bytes, seconds * (all.size() % 2 == 1 ? noise : 1)});
  }
  return all;
}

// Rejects: seconds a byte instead of bytes a second, bits, and a line without a beginning.
TEST(FitLink, FindsBothNumbers) {
  for (const double alpha : {3e-6, 50e-6, 0.02}) {
    for (const double bandwidth : {0.125e9, 450e9}) {
      const Link link = fit_link(timings(alpha, bandwidth, 1));
      EXPECT_NEAR(link.alpha / alpha, 1, 1e-3)
          << "alpha is " << link.alpha << " s; the times were made with " << alpha << " s";
      EXPECT_NEAR(link.bandwidth / bandwidth, 1, 1e-3)
          << "bandwidth is " << link.bandwidth << " B/s; the times were made with " << bandwidth
          << " B/s. (Does the slope of the line have bytes above or below?)";
    }
  }
}

// Rejects: equal weights. A hundredth of the longest message's time is 27 times the whole alpha.
TEST(FitLink, ShortMessagesCountAsMuchAsLongOnes) {
  const Link link = fit_link(timings(50e-6, 0.125e9, 1.02));
  EXPECT_NEAR(link.alpha * 1e6, 50, 2) << "alpha in microseconds, from times that are 0 to 2 % too long. Far "
                                          "off? Then the long messages' errors "
                                          "drowned it: weigh each error by 1 / seconds";
  EXPECT_NEAR(link.bandwidth / 0.125e9, 1, 0.03);
}

}  // namespace
}  // namespace shardlings
