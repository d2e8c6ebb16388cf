// Threads x ranks: the default does not start more threads than there are cores, and the sentence says what
// is.
#include "run/layout.hpp"

#include <gtest/gtest.h>

#include "comm/comm.hpp"

namespace shardlings {
namespace {

// Rejects: a thread per core on every rank (8 ranks on 16 cores would start 128), and none at all.
TEST(Layout, DefaultThreadsShareTheCores) {
  const int cores = available_cores();
  ASSERT_GE(cores, 1);
  for (int ranks : {1, 2, 3, 4, 8, 64})
    EXPECT_EQ(default_threads(ranks), std::max(1, cores / ranks)) << ranks;
}

// Rejects: a sentence that is silent about too many ranks or threads, or advises the wrong number.
TEST(Layout, SentenceSaysWhoSharesWhat) {
  EXPECT_EQ(run::layout_text(8, 2, 16), "8 ranks x 2 threads on 16 cores: one core for each thread");
  EXPECT_EQ(run::layout_text(4, 1, 2),
            "4 ranks x 1 thread on 2 cores: more ranks than cores, so they take turns; results are the same, "
            "times are not");
  EXPECT_EQ(run::layout_text(8, 16, 16),
            "8 ranks x 16 threads on 16 cores: 128 threads share 16 cores; --threads 2 gives each a core of "
            "its own");
  EXPECT_EQ(run::layout_text(1, 1, 2), "1 rank x 1 thread on 2 cores: 1 is idle");
}

}  // namespace
}  // namespace shardlings
