// sum_of_squares: value, memory, traffic and robustness. The tests cut the vector themselves, unevenly, so
// that they do not depend on my_slice; only the last one uses both.
#include <numeric>

#include "hello.hpp"
#include "lesson_test.hpp"

namespace shardlings {
namespace {

/// Whole numbers whose squares need more than the 24 bits of a float, and whose sum is exact in double in any
/// order.
float element(i64 i) { return static_cast<float>(4097 + (37 * i) % 1000); }

double expected_sum(i64 begin, i64 end) {
  double sum = 0;
  for (i64 i = begin; i < end; ++i) sum += static_cast<double>(element(i)) * static_cast<double>(element(i));
  return sum;
}

/// Later ranks own more: different sizes on every rank, and empty ones when there are few elements.
Slice uneven_slice(i64 n, int rank, int size) {
  const i64 squared = static_cast<i64>(size) * size;
  return {n * rank * rank / squared, n * (rank + 1) * (rank + 1) / squared};
}

Tensor elements_of(Rank& rank, Slice slice) {
  Tensor mine(rank.memory, Category::activations, DType::f32, {slice.size()});
  for (i64 i = slice.begin; i < slice.end; ++i) mine.set(i - slice.begin, static_cast<double>(element(i)));
  return mine;
}

std::vector<double> sums_on(int ranks, i64 n, const RunOptions& options = lesson::test_options()) {
  const auto body = [n](Rank& rank) {
    return sum_of_squares(rank, elements_of(rank, uneven_slice(n, rank.rank(), rank.size())));
  };
  return lesson::on_each_rank<double>(ranks, body, options);
}

std::vector<double> everywhere(int ranks, double value) {
  return std::vector<double>(static_cast<std::size_t>(ranks), value);
}

// Value. Rejects: the sum of the own slice only, an average, squares in float.
TEST(SumOfSquares, EveryRankGetsTheWholeSum) {
  const i64 n = 10'007;
  for (int ranks : lesson::kRankCounts) {
    const std::vector<double> got = sums_on(ranks, n);
    std::vector<double> own;
    for (int r = 0; r < ranks; ++r) {
      const Slice slice = uneven_slice(n, r, ranks);
      own.push_back(expected_sum(slice.begin, slice.end));
    }
    if (ranks > 1) {
      EXPECT_NE(got, own) << "each rank has only its own part: the sums of the ranks were never added";
    }
    EXPECT_TRUE(lesson::same(got, everywhere(ranks, expected_sum(0, n)), ranks))
        << "on " << ranks
        << " ranks, one value per rank. (Off by a few millionths? A float cannot hold these squares.)";
  }
}

// Memory. Rejects: collecting the whole vector on every rank, with which all values are right.
TEST(SumOfSquares, AllocatesOneNumber) {
  for (int ranks : lesson::kRankCounts) {
    lesson::run_on(ranks, [](Rank& rank) {
      const Tensor mine = elements_of(rank, uneven_slice(1000, rank.rank(), rank.size()));
      rank.memory.reset_peaks();
      const i64 before = rank.memory.now();
      sum_of_squares(rank, mine);
      EXPECT_TRUE(
          lesson::equals_formula(rank.memory.peak() - before, 8, "bytes allocated by sum_of_squares"));
      EXPECT_EQ(rank.memory.now(), before) << "something is still held after the call";
    });
  }
}

// Traffic. Rejects: the same, and one message per element. A ring all_reduce of b bytes sends 2 b (n-1)/n per
// rank.
TEST(SumOfSquares, SendsOneNumberOnce) {
  for (int ranks : lesson::kRankCounts) {
    lesson::run_on(ranks, [](Rank& rank) {
      sum_of_squares(rank, elements_of(rank, uneven_slice(1000, rank.rank(), rank.size())));
      const i64 bytes = 2 * 8 * (rank.size() - 1) / rank.size();
      EXPECT_TRUE(lesson::equals_formula(rank.traffic.calls["all_reduce"], 1, "all_reduce calls"));
      EXPECT_TRUE(lesson::equals_formula(rank.traffic.total(), bytes, "bytes sent per rank", rank.size()));
    });
  }
}

// Robustness. Rejects: leaving early when there is nothing to add; the others would wait for ever, and the
// communicator says for whom.
TEST(SumOfSquares, RanksWithoutElementsTakePart) {
  for (i64 n : {0, 1, 3}) {
    for (int ranks : lesson::kRankCounts) {
      EXPECT_TRUE(lesson::same(sums_on(ranks, n), everywhere(ranks, expected_sum(0, n)), ranks))
          << n << " elements on " << ranks << " ranks";
    }
  }
}

// Robustness. Rejects: reading the result before wait(). While one rank is late, nothing can have been added.
TEST(SumOfSquares, OneRankIsLate) {
  const i64 n = 1000;
  for (int ranks : lesson::kRankCounts) {
    const auto body = [](Rank& rank) {
      const Tensor mine = elements_of(rank, uneven_slice(n, rank.rank(), rank.size()));
      if (rank.rank() == rank.size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return sum_of_squares(rank, mine);
    };
    const std::vector<double> got = lesson::on_each_rank<double>(ranks, body);
    EXPECT_TRUE(lesson::same(got, everywhere(ranks, expected_sum(0, n)), ranks))
        << "the last of " << ranks << " ranks came late. Was the result read before wait()?";
  }
}

// Robustness. Rejects: a result, or a launcher, that depends on how many threads a rank computes with. By
// default a rank has cores / ranks threads, so that eight ranks do not start eight times as many threads as
// there are cores.
TEST(SumOfSquares, ThreadsPerRankDoNotMatter) {
  const i64 n = 10'007;
  for (int threads : {0, 1, 2, 5}) {
    RunOptions options = lesson::test_options();
    options.threads = threads;
    const int expected_threads = threads == 0 ? std::max(1, available_cores() / 4) : threads;
    lesson::run_on(
        4,
        [&](Rank& rank) {
          EXPECT_EQ(rank.threads(), expected_threads);
          const Tensor mine = elements_of(rank, uneven_slice(n, rank.rank(), rank.size()));
          EXPECT_EQ(sum_of_squares(rank, mine), expected_sum(0, n)) << threads << " threads per rank";
        },
        options);
  }
}

// Value, both gaps together: what the lesson program does.
TEST(SumOfSquares, WorksWithMySlice) {
  for (i64 n : {1, 7, 1003}) {
    for (int ranks : lesson::kRankCounts) {
      const auto body = [n](Rank& rank) {
        return sum_of_squares(rank, elements_of(rank, my_slice(n, rank.rank(), rank.size())));
      };
      EXPECT_TRUE(lesson::same(lesson::on_each_rank<double>(ranks, body),
                               everywhere(ranks, expected_sum(0, n)), ranks))
          << n << " elements on " << ranks << " ranks";
    }
  }
}

}  // namespace
}  // namespace shardlings
