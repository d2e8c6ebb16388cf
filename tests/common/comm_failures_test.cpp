// It never hangs: every misuse ends on all ranks, at once, with the cause. Repeated, because threads differ
// each time.
#include <chrono>
#include <cmath>
#include <thread>

#include "comm_fixture.hpp"

namespace shardlings {
namespace {

using comm_test::failure_of;
using comm_test::filled;
using comm_test::unbuffered;

constexpr int kRepeats = 20;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

// The run fails within a second, 20 times, with each of these parts in its text.
void expect_failure(int ranks, const std::function<void(Rank&)>& body, const std::vector<std::string>& parts,
                    const RunOptions& options = {}) {
  for (int i = 0; i < kRepeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string text = failure_of(ranks, body, options);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(took.count(), 1.0) << text;
    for (const std::string& part : parts)
      ASSERT_TRUE(contains(text, part)) << "lacks '" << part << "':\n" << text;
  }
}

TEST(CommFailure, OtherCountTypeRootOrOperation) {
  expect_failure(3, [](Rank& r) { r.world().all_reduce(filled(r, r.rank() == 1 ? 5 : 4)).wait(); },
                 {"mismatch on world #0: rank 1 calls all_reduce(5 f32), ranks 0, 2 call all_reduce(4 f32)",
                  "> 1 |", "rank | doing", "since | last completed", "nothing"});
  expect_failure(3,
                 [](Rank& r) {
                   const DType t = r.rank() == 2 ? DType::bf16 : DType::f32;
                   r.world().all_reduce(filled(r, t, 4, [](i64) { return 1; })).wait();
                 },
                 {"rank 2 calls all_reduce(4 bf16)", "> 2 |"});
  expect_failure(
      3,
      [](Rank& r) { r.world().all_reduce(filled(r, 4), r.rank() == 0 ? Reduce::max : Reduce::sum).wait(); },
      {"rank 0 calls all_reduce(4 f32 max)", "> 0 |"});
  expect_failure(4, [](Rank& r) { r.world().broadcast(filled(r, 4), r.rank() == 3 ? 1 : 0).wait(); },
                 {"rank 3 calls broadcast(4 f32 root 1)", "> 3 |"});
  expect_failure(3,
                 [](Rank& r) {
                   r.world().barrier();
                   if (r.rank() == 1)
                     r.world().broadcast(filled(r, 4), 0).wait();
                   else
                     r.world().all_reduce(filled(r, 4)).wait();
                 },
                 {"mismatch on world #1: rank 1 calls broadcast(4 f32 root 0)", "| barrier() on world #0"});
  expect_failure(
      2,
      [](Rank& r) {
        const std::vector<i64> counts = r.rank() == 0 ? std::vector<i64>{1, 3} : std::vector<i64>{3, 1};
        Tensor in = filled(r, 1), out = filled(r, 4);
        r.world().all_gather(in, out, counts).wait();
      },
      {"4 f32 as 1+3", "4 f32 as 3+1"});
}

TEST(CommFailure, TwoCallsSwapped) {
  expect_failure(3,
                 [](Rank& r) {
                   Tensor a = filled(r, 4), b = filled(r, 8);
                   Work first = r.world().all_reduce(r.rank() == 0 ? b : a),
                        second = r.world().all_reduce(r.rank() == 0 ? a : b);
                   first.wait();
                   second.wait();
                 },
                 {"mismatch on world #", "rank 0 calls", "> 0 |"});
}

TEST(CommFailure, MessagesThatDoNotFit) {
  for (const bool buffered : {true, false}) {
    RunOptions options;
    options.buffered_send = buffered;
    expect_failure(
        2,
        [](Rank& r) {
          if (r.rank() == 0)
            r.world().send(filled(r, 4), 1, 7).wait();
          else
            r.world().recv(filled(r, 4), 0, 8).wait();
        },
        {"mismatch on world: rank 0 calls send(4 f32 to 1 tag 7), rank 1 calls recv(4 f32 from 0 tag 8)"},
        options);
    expect_failure(
        2,
        [](Rank& r) {
          if (r.rank() == 0)
            r.world().send(filled(r, 4), 1).wait();
          else
            r.world().recv(filled(r, 5), 0).wait();
        },
        {"recv(5 f32 from 0)"}, options);
  }
  expect_failure(2,
                 [](Rank& r) {
                   if (r.rank() == 0) r.world().send(filled(r, 4), 1).wait();
                 },
                 {"rank 0 returned, and nobody received its send(4 f32 to 1) on world"});
}

// Rejects: waiting for the deadline (30 s) instead of seeing the deadlock, and blaming a rank that waits.
TEST(CommFailure, RankReturnsEarly) {
  expect_failure(
      3,
      [](Rank& r) {
        if (r.rank() != 1) r.world().all_reduce(filled(r, 4)).wait();
      },
      {"deadlock: ranks 0, 2 wait in all_reduce(4 f32) on world #0; rank 1 returned without calling it",
       "> 1 | returned", "0 | waits in all_reduce(4 f32) on world #0"});
  expect_failure(2,
                 [](Rank& r) {
                   if (r.rank() == 1) r.world().recv(filled(r, 4), 0).wait();
                 },
                 {"deadlock: rank 1 waits in recv(4 f32 from 0) on world; rank 0 returned", "> 0 |"});
}

// A skipped collective shifts all later ones: the rank ends up one short.
TEST(CommFailure, RankSkipsACollective) {
  expect_failure(3,
                 [](Rank& r) {
                   for (int step = 0; step < 4; ++step) {
                     if (r.rank() == 2 && step == 1) continue;
                     r.world().all_reduce(filled(r, 4)).wait();
                   }
                 },
                 {"ranks 0, 1 wait in all_reduce(4 f32) on world #3; rank 2 returned", "> 2 |",
                  "all_reduce(4 f32) on world #2"});
}

TEST(CommFailure, RanksWaitForEachOther) {
  expect_failure(
      2, [](Rank& r) { r.world().recv(filled(r, 4), 1 - r.rank()).wait(); },
      {"deadlock: the ranks wait for each other", "rank 0 in recv(4 f32 from 1) on world for rank 1",
       "rank 1 in recv(4 f32 from 0) on world for rank 0"});
  expect_failure(4,
                 [](Rank& r) {
                   const Communicator pair = r.world().split(r.rank() / 2, r.rank());
                   if (r.rank() == 1)
                     pair.barrier();
                   else
                     r.world().barrier();
                 },
                 {"the ranks wait for each other", "> 1 | waits in barrier() on world/0 #0"});
}

// Buffered it works; a send that ends on receipt does not. Rejects: sends that are always buffered.
TEST(CommFailure, SendSendCycle) {
  const auto exchange = [](Rank& r) {
    Tensor x = filled(r, 4000, r.rank()), y = filled(r, 4000);
    r.world().send(x, 1 - r.rank()).wait();
    r.world().recv(y, 1 - r.rank()).wait();
    EXPECT_EQ(y.get(3999), 1 - r.rank());
  };
  EXPECT_EQ(failure_of(2, exchange), "");
  for (const bool checked : {true, false}) {
    expect_failure(2, exchange, {"deadlock", "rank 0 in send(4000 f32 to 1)", "post the receive before"},
                   unbuffered(checked));
  }
}

// The type and text are the culprit's, whichever rank is joined first.
TEST(CommFailure, RankThrows) {
  struct Boom : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  for (int i = 0; i < kRepeats; ++i) {
    std::string others;
    const auto body = [&](Rank& r) {
      if (r.rank() == 2) throw Boom("boom");
      try {
        r.world().all_reduce(filled(r, 4)).wait();
      } catch (const std::exception& e) {
        if (r.rank() == 0) others = e.what();
        throw;
      }
    };
    EXPECT_THROW(run_ranks(3, body), Boom);
    EXPECT_TRUE(contains(others, "rank 2 failed: boom\n")) << others;
    EXPECT_TRUE(contains(others, "> 2 | failed")) << others;
  }
}

// Unwinding rank 1 meets its own Work first, whose partner never comes: it must not wait for it, nor the
// others for it.
TEST(CommFailure, RankThrowsWithTransfersUnderWay) {
  struct Boom : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  for (const std::string link : {"none", "100,10"}) {
    RunOptions options;
    options.link = link_from(link);
    for (int i = 0; i < kRepeats; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_THROW(run_ranks(
                       3,
                       [](Rank& r) {
                         Tensor x = filled(r, 50000), y = filled(r, 50000);
                         Work first = r.world().all_reduce(x);
                         if (r.rank() == 1) {
                           Work second = r.world().all_reduce(y);
                           throw Boom("boom");
                         }
                         first.wait();
                         r.world().recv(y, 1).wait();
                       },
                       options),
                   Boom);
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
    }
  }
}

// A rank fails at any moment between small collectives. Rejects (under sanitizers): an exchange that is still
// completed after a member has left with its buffer.
TEST(CommFailure, RankThrowsAmongSmallCollectives) {
  for (int run = 0; run < 60; ++run) {
    RunOptions options;
    options.checked = run % 2 == 0;
    const std::string text = failure_of(
        3,
        [run](Rank& r) {
          for (int i = 0; i < 40; ++i) {
            const Tensor x = filled(r, 16), y = filled(r, 16);
            Work first = r.world().all_reduce(x), second = r.world().all_reduce(y);
            if (r.rank() == run % 3 && i == run / 2) throw std::runtime_error("out of luck");
            second.wait();
            first.wait();
          }
        },
        options);
    ASSERT_EQ(text, "out of luck") << "run " << run;
  }
}

TEST(CommFailure, DroppedWork) {
  const std::vector<std::string> parts = {"rank 1 dropped all_reduce(4 f32) on world #0 without wait()",
                                          "> 1 |"};
  expect_failure(
      3,
      [](Rank& r) {
        Tensor x = filled(r, 4);
        Work work = r.world().all_reduce(x);
        if (r.rank() == 1) {
          const Work dropped = std::move(work);
        } else
          work.wait();
        r.world().barrier();
      },
      parts);
  expect_failure(
      3,
      [](Rank& r) {  // overwritten: assignment drops, too
        Tensor x = filled(r, 4);
        Work work = r.world().all_reduce(x);
        if (r.rank() == 1) work = Work();
        work.wait();
        r.world().barrier();
      },
      parts);
  expect_failure(2,
                 [](Rank& r) {
                   Tensor x = filled(r, 4);
                   if (r.rank() == 0) {
                     const Work dropped = r.world().send(x, 1);
                   } else
                     r.world().recv(x, 0).wait();
                 },
                 {"rank 0 dropped send(4 f32 to 1) on world without wait()"});
}

// A rank that computes for ever is no deadlock; the deadline ends it.
TEST(CommFailure, DeadlineNamesTheRankThatComputes) {
  RunOptions options;
  options.deadline = std::chrono::milliseconds(30);
  const std::string text = failure_of(
      3,
      [](Rank& r) {
        if (r.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
        r.world().barrier();
      },
      options);
  EXPECT_TRUE(
      contains(text, "deadline of 30 ms: ranks 1, 2 wait in barrier() on world #0; rank 0 has not called it"))
      << text;
  EXPECT_TRUE(contains(text, "> 0 | computes")) << text;
}

// Rejects: detection by time. A slow rank is not a deadlock.
TEST(CommFailure, SlowRankIsNoDeadlock) {
  EXPECT_EQ(failure_of(3,
                       [](Rank& r) {
                         for (int i = 0; i < 5; ++i) {
                           if (r.rank() == i % 3) std::this_thread::sleep_for(std::chrono::milliseconds(2));
                           Tensor x = filled(r, 30000, 1);
                           r.world().all_reduce(x).wait();
                         }
                       }),
            "");
}

// Checked mode: whoever reads a result too early reads NaN, however fast the transfer was.
TEST(CheckedMode, OutputIsNanUntilWait) {
  for (const int n : {1, 2}) {
    run_ranks(n, [n](Rank& r) {
      Tensor x = filled(r, 64, 1), piece = filled(r, 64, 3), all = filled(r, 64 * n, 2);
      Work reduce = r.world().all_reduce(x), gather = r.world().all_gather(piece, all);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_TRUE(std::isnan(x.get(5)) && std::isnan(all.get(0)) && std::isnan(all.get(64 * n - 1)));
      EXPECT_EQ(piece.get(7), 3);  // an input may be read
      reduce.wait();
      gather.wait();
      EXPECT_EQ(x.get(5), n);
      EXPECT_EQ(all.get(64 * n - 1), 3);
      // In place: the own piece is an input, the rest an output; and the other way round.
      Tensor own = all.slice(64 * r.rank(), 64 * (r.rank() + 1));
      Work again = r.world().all_gather(own, all);
      EXPECT_EQ(own.get(1), 3);
      EXPECT_EQ(std::isnan(all.get(64 * (n - 1 - r.rank()) + 63)), n > 1);
      again.wait();
      Work scatter = r.world().reduce_scatter(all, own);
      EXPECT_TRUE(std::isnan(own.get(0)));
      EXPECT_EQ(std::isnan(all.get(64 * (n - 1 - r.rank()))), n == 1);
      scatter.wait();
      EXPECT_EQ(own.get(0), 3 * n);
    });
  }
}

// Rejects: checks that look only while data moves. The write may come before the partner, or long after the
// transfer.
TEST(CheckedMode, WritesWhileUnderWayAreReported) {
  for (const int pause_ms : {0, 2}) {
    expect_failure(
        2,
        [pause_ms](Rank& r) {
          Tensor in = filled(r, 40, 1), out = filled(r, 80);
          Work work = r.world().all_gather(in, out);
          std::this_thread::sleep_for(std::chrono::milliseconds(r.rank() * pause_ms));
          if (r.rank() == 1) in.set(17, 2);
          work.wait();
        },
        {"rank 1 wrote element 17 of the input of all_gather(40 f32) on world #0 before wait()", "> 1 |"});
    expect_failure(2,
                   [pause_ms](Rank& r) {
                     Tensor x = filled(r, 40, 1);
                     Work work = r.world().all_reduce(x);
                     std::this_thread::sleep_for(std::chrono::milliseconds(r.rank() * pause_ms));
                     if (r.rank() == 1) x.set(3, 5);
                     work.wait();
                   },
                   {"rank 1 wrote element 3 of the output of all_reduce(40 f32) on world #0 before wait()"});
  }
  expect_failure(2,
                 [](Rank& r) {
                   Tensor in = filled(r, 40, 1), out = in.slice(20 * r.rank(), 20 * r.rank() + 20);
                   Work work = r.world().reduce_scatter(in, out);
                   if (r.rank() == 0) in.set(39, 2);
                   work.wait();
                 },
                 {"rank 0 wrote element 39 of the input of reduce_scatter(40 f32)"});
  for (const bool buffered : {true, false}) {
    RunOptions options;
    options.buffered_send = buffered;
    expect_failure(
        2,
        [](Rank& r) {
          Tensor x = filled(r, 9);
          if (r.rank() == 1) return r.world().recv(x, 0).wait();
          Work work = r.world().send(x, 1);
          x.set(8, 1);
          work.wait();
        },
        {"rank 0 wrote element 8 of the input of send(9 f32 to 1) on world"}, options);
  }
}

// The owner's thread frees: peaks of the memory ledger do not depend on the timing of transfers.
TEST(CheckedMode, WorkReleasesItsTensorsInWait) {
  run_ranks(2, [](Rank& r) {
    for (int i = 0; i < 20; ++i) {
      Work work;
      {
        Tensor x = filled(r, 1000);
        work = r.world().all_reduce(x);
      }
      EXPECT_EQ(r.memory.now(Category::communication), 4000);
      work.wait();
      EXPECT_EQ(r.memory.now(Category::communication), 0);
    }
  });
}

}  // namespace
}  // namespace shardlings
