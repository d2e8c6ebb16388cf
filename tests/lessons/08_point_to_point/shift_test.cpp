// shift: value (who holds what afterwards) and traffic (one message, straight there).
#include "lesson_test.hpp"
#include "messages.hpp"

namespace shardlings {
namespace {

/// The rank whose value arrived, on each rank.
std::vector<int> owners_after(int ranks, int places, bool buffered) {
  RunOptions options = lesson::test_options();
  options.buffered_send = buffered;
  return lesson::on_each_rank<int>(
      ranks,
      [places](Rank& rank) {
        const Tensor mine = lesson::tensor_of(rank, {static_cast<double>(rank.rank())});
        const Tensor out(rank.memory, Category::communication, DType::f32, {1});
        shift(rank.world(), mine, out, places);
        return static_cast<int>(out.get(0));
      },
      options);
}

// Value. Rejects: the wrong direction (seen from 3 ranks on), a remainder of a negative number, which is
// negative in C++, and partners that are off by one place.
TEST(Shift, BringsWhatTheRankToTheLeftHolds) {
  for (const bool buffered : {true, false}) {
    for (const int n : lesson::kRankCounts) {
      for (const int places : {1, 0, -1, 2, n, n + 1, -n - 2, 1000}) {
        std::vector<int> wanted, wrong_way;
        for (int r = 0; r < n; ++r) {
          wanted.push_back(((r - places) % n + n) % n);
          wrong_way.push_back(((r + places) % n + n) % n);
        }
        const std::vector<int> got = owners_after(n, places, buffered);
        EXPECT_EQ(got, wanted) << n << " ranks, " << places
                               << " places to the right: whose value each rank got"
                               << (got == wrong_way ? ". The ring was turned the wrong way" : "");
      }
    }
  }
}

// Traffic. Rejects: going one place at a time, which carries everything `places` times.
TEST(Shift, SendsOnceHoweverFar) {
  for (const int places : {1, 3, -2}) {
    lesson::run_on(4, [places](Rank& rank) {
      const Tensor mine = lesson::tensor_of(rank, {1, 2, 3, 4, 5});
      const Tensor out(rank.memory, Category::communication, DType::f32, {5});
      shift(rank.world(), mine, out, places);
      const std::string what = " sent for " + std::to_string(places) + " places";
      EXPECT_TRUE(lesson::equals_formula(rank.traffic.calls["send"], 1, "messages" + what))
          << "a message goes straight to where it belongs: any rank can reach any other";
      EXPECT_TRUE(lesson::equals_formula(rank.traffic.total(), 20, "bytes" + what));
    });
  }
}

}  // namespace
}  // namespace shardlings
