// pass_along: value, memory, traffic, and order: pieces go on at once, and the next one arrives meanwhile.
#include "lesson_test.hpp"
#include "messages.hpp"

namespace shardlings {
namespace {

std::vector<double> numbers(i64 count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 3.0 + static_cast<double>(i);
  return values;
}

/// The numbers on rank 0; elsewhere memory that nobody wrote.
Tensor begin_with(Rank& rank, i64 count) {
  if (rank.rank() == 0) return lesson::tensor_of(rank, numbers(count));
  return Tensor(rank.memory, Category::activations, DType::f32, {count});
}

// Value and robustness. Rejects: pieces of n / pieces elements, whose sum misses the tail; a last rank that
// sends on to rank 0, which does not listen; fewer elements than pieces.
TEST(PassAlong, EveryRankHasAllOfIt) {
  for (const bool buffered : {true, false}) {
    RunOptions options = lesson::test_options();
    options.buffered_send = buffered;
    for (const int n : lesson::kRankCounts) {
      for (const i64 count : {0, 1, 5, 103}) {
        for (const int pieces : {1, 3, 8}) {
          lesson::run_on(
              n,
              [&](Rank& rank) {
                const Tensor x = begin_with(rank, count);
                pass_along(rank, x, pieces);
                EXPECT_TRUE(lesson::same(lesson::values_of(x), numbers(count)))
                    << count << " elements in " << pieces << " pieces";
              },
              options);
        }
      }
    }
  }
}

// Memory. Rejects: receiving into new memory and copying from there.
TEST(PassAlong, ReceivesWhereItBelongs) {
  lesson::run_on(3, [](Rank& rank) {
    const Tensor x = begin_with(rank, 100);
    rank.memory.reset_peaks();
    const i64 before = rank.memory.now();
    pass_along(rank, x, 4);
    EXPECT_TRUE(lesson::equals_formula(rank.memory.peak() - before, 0, "bytes allocated by pass_along"))
        << "x.slice(begin, end) is memory of x: receive right into it";
  });
}

// Traffic. Rejects: rank 0 sends to everybody itself. All values are right, but its link carries n - 1 times
// as much, and all the others carry nothing.
TEST(PassAlong, EachRankSendsItOnceToTheNext) {
  for (const int n : lesson::kRankCounts) {
    lesson::run_on(n, [n](Rank& rank) {
      pass_along(rank, begin_with(rank, 103), 4);
      const bool last = rank.rank() == n - 1;
      const std::string why = last ? "the last rank has nobody to send to: a chain is not a ring"
                                   : "each rank sends all of it once, to the next rank only";
      EXPECT_TRUE(lesson::equals_formula(rank.traffic.calls["send"], last ? 0 : 4, "messages sent")) << why;
      EXPECT_TRUE(lesson::equals_formula(rank.traffic.total(), last ? 0 : 412, "bytes sent")) << why;
    });
  }
}

/// Where the marks of one kind about sends (or receives) stand in the rank's order of events.
std::vector<std::size_t> places_of(const Rank& rank, Event::Kind kind, const std::string& operation) {
  std::vector<std::size_t> places;
  const std::vector<Event>& events = rank.trace.events();
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].kind == kind && events[i].what.starts_with(operation + "(")) places.push_back(i);
  }
  return places;
}

constexpr int kPieces = 5;

// Order, on a rank in the middle. Rejects: receiving everything before anything goes on. All values and bytes
// are right; the time is that of n - 1 whole messages, as if there were no pieces.
TEST(PassAlong, PassesEachPieceOnAtOnce) {
  lesson::run_on(4, [](Rank& rank) {
    pass_along(rank, begin_with(rank, 103), kPieces);
    if (rank.rank() == 0 || rank.rank() == 3) return;
    const auto sent = places_of(rank, Event::post, "send"), arrived = places_of(rank, Event::done, "recv");
    EXPECT_EQ(sent.size(), std::size_t{kPieces});
    EXPECT_EQ(arrived.size(), std::size_t{kPieces});
    for (std::size_t p = 0; p + 1 < std::min(sent.size(), arrived.size()); ++p) {
      EXPECT_LT(sent[p], arrived[p + 1]) << "piece " << p << " was sent on only after piece " << p + 1
                                         << " had been waited for: send each piece on as soon as it is there";
    }
  });
}

// Order, on a rank in the middle. Rejects: waiting for a send before the next receive is posted. A link
// carries both directions at once; so does a rank that lets it.
TEST(PassAlong, ReceivesTheNextPieceWhileItSends) {
  lesson::run_on(4, [](Rank& rank) {
    pass_along(rank, begin_with(rank, 103), kPieces);
    if (rank.rank() == 0 || rank.rank() == 3) return;
    const auto asked = places_of(rank, Event::post, "recv"), sent = places_of(rank, Event::done, "send");
    EXPECT_EQ(asked.size(), std::size_t{kPieces});
    EXPECT_EQ(sent.size(), std::size_t{kPieces});
    for (std::size_t p = 0; p + 1 < std::min(asked.size(), sent.size()); ++p) {
      EXPECT_LT(asked[p + 1], sent[p])
          << "the receive of piece " << p + 1 << " was posted only after the send of piece " << p
          << " had been waited for: nothing arrives while this rank sends";
    }
  });
}

// Robustness. Rejects: sending a piece on before it has arrived; checked mode holds NaN there until it has.
TEST(PassAlong, WaitsForALateRank) {
  for (const int late : {0, 1}) {
    lesson::run_on(3, [late](Rank& rank) {
      const Tensor x = begin_with(rank, 10);
      if (rank.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(30));
      pass_along(rank, x, 3);
      EXPECT_TRUE(lesson::same(lesson::values_of(x), numbers(10)))
          << "rank " << late << " came late. Was a piece sent on before it was there?";
    });
  }
}

}  // namespace
}  // namespace shardlings
