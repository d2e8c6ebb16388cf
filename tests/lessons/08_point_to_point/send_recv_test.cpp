// send_recv: value, memory, traffic and robustness, with both kinds of send. A deadlock does not hang here:
// the communicator sees that nobody can go on, and the failure says who waits for whom.
#include "lesson_test.hpp"
#include "messages.hpp"

namespace shardlings {
namespace {

RunOptions with_sends(bool buffered) {
  RunOptions options = lesson::test_options();
  options.buffered_send = buffered;
  return options;
}

const char* name_of_sends(bool buffered) { return buffered ? "buffered sends" : "sends that end on receipt"; }

/// What rank `rank` sends: other values on every rank and at every index.
std::vector<double> message_of(int rank, i64 count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1000.0 * rank + static_cast<double>(i);
  return values;
}

/// All ranks call send_recv once; each must have received the message of `from(rank)`.
void expect_received(const std::string& pattern, int ranks, bool buffered, const std::function<int(int)>& to,
                     const std::function<int(int)>& from) {
  try {
    lesson::run_on(
        ranks,
        [&](Rank& rank) {
          const i64 count = 5;
          const Tensor out = lesson::tensor_of(rank, message_of(rank.rank(), count));
          const Tensor in(rank.memory, Category::communication, DType::f32, {count});
          send_recv(rank.world(), out, to(rank.rank()), in, from(rank.rank()));
          EXPECT_TRUE(lesson::same(lesson::values_of(in), message_of(from(rank.rank()), count)))
              << pattern << ", " << name_of_sends(buffered) << ": not what rank " << from(rank.rank())
              << " sent";
        },
        with_sends(buffered));
  } catch (const Error& error) {
    ADD_FAILURE() << pattern << ", " << name_of_sends(buffered) << ":\n" << error.what();
  }
}

// Value and robustness. Rejects: waiting for the send before the receive is posted (with sends that end on
// receipt all wait for each other), waiting for the receive first (with any kind), a send nobody waits for.
TEST(SendRecv, TurnsARingWithEitherKindOfSend) {
  for (const bool buffered : {true, false}) {
    for (const int n : {3, 4, 8, 2, 1}) {
      expect_received(
          "a ring of " + std::to_string(n), n, buffered, [n](int r) { return (r + 1) % n; },
          [n](int r) { return (r + n - 1) % n; });
    }
  }
}

// Robustness. Rejects: even ranks send first and odd ranks receive first. That serves a ring, but not two
// ranks of the same kind, nor a rank that talks to itself.
TEST(SendRecv, SwapsWithAnyPartner) {
  for (const bool buffered : {true, false}) {
    const auto two_further = [](int r) { return r ^ 2; };
    expect_received("ranks 0 and 2 swap, and 1 and 3", 4, buffered, two_further, two_further);
    const auto myself = [](int r) { return r; };
    expect_received("each rank with itself", 3, buffered, myself, myself);
  }
}

// Robustness. Rejects: code that lives on buffers. With MPI, short messages are buffered and long ones are
// not: a send/send pair works in the test and stands still in production.
TEST(SendRecv, DoesNotDependOnTheSize) {
  for (const bool buffered : {true, false}) {
    for (const i64 bytes : {i64{0}, i64{1024}, i64{64} << 20}) {
      RunOptions options = with_sends(buffered);
      options.checked = false;  // 64 MiB are copied twice when they are checked
      lesson::run_on(
          2,
          [&](Rank& rank) {
            const Tensor out(rank.memory, Category::communication, DType::i32, {bytes / 4});
            const Tensor in(rank.memory, Category::communication, DType::i32, {bytes / 4});
            std::int32_t* mine = out.data<std::int32_t>();
            std::fill(mine, mine + out.numel(), 7 + rank.rank());
            send_recv(rank.world(), out, 1 - rank.rank(), in, 1 - rank.rank());
            const std::int32_t* got = in.data<std::int32_t>();
            EXPECT_EQ(std::count(got, got + in.numel(), 8 - rank.rank()), bytes / 4)
                << bytes << " bytes both ways, with " << name_of_sends(buffered);
          },
          options);
    }
  }
}

// Traffic. Rejects: cutting the message up. Each piece pays the latency again.
TEST(SendRecv, IsOneMessageEachWay) {
  for (const int n : {2, 3, 8}) {
    lesson::run_on(n, [n](Rank& rank) {
      const Tensor out = lesson::tensor_of(rank, message_of(rank.rank(), 250));
      const Tensor in(rank.memory, Category::communication, DType::f32, {250});
      send_recv(rank.world(), out, (rank.rank() + 1) % n, in, (rank.rank() + n - 1) % n);
      EXPECT_TRUE(lesson::equals_formula(rank.traffic.calls["send"], 1, "messages sent"))
          << "each message pays the latency; one is enough";
      EXPECT_TRUE(lesson::equals_formula(rank.traffic.total(), 1000, "bytes sent", n));
    });
  }
}

// Robustness. Rejects: returning before the message is there. Nothing can have come from a rank that is late.
TEST(SendRecv, WaitsForALateRank) {
  for (const bool buffered : {true, false}) {
    lesson::run_on(
        3,
        [](Rank& rank) {
          const Tensor out = lesson::tensor_of(rank, message_of(rank.rank(), 4));
          const Tensor in(rank.memory, Category::communication, DType::f32, {4});
          if (rank.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
          send_recv(rank.world(), out, (rank.rank() + 1) % 3, in, (rank.rank() + 2) % 3);
          EXPECT_TRUE(lesson::same(lesson::values_of(in), message_of((rank.rank() + 2) % 3, 4)))
              << "rank 1 came late";
        },
        with_sends(buffered));
  }
}

}  // namespace
}  // namespace shardlings
