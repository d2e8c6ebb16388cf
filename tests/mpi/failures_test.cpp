// It never hangs, with processes either: every misuse ends on all ranks with the same report.
#include <chrono>
#include <stdexcept>
#include <thread>

#include "core/error.hpp"
#include "mpi_test.hpp"

namespace shardlings::mpi_test {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

RunOptions quick() {
  RunOptions options;
  options.deadline = std::chrono::milliseconds(1000);
  return options;
}

// On every rank the run ends within `seconds` and says all of this. Each needs two ranks or more.
void expect_failure(const std::function<void(Rank&)>& body, const std::vector<std::string>& parts,
                    RunOptions options = quick(), double seconds = 10) {
  if (session().size() < 2) return;
  const auto begin = std::chrono::steady_clock::now();
  const std::string text = failure_of(body, options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), seconds) << text;
  for (const std::string& part : parts)
    EXPECT_TRUE(contains(text, part)) << "lacks '" << part << "':\n" << text;
}

Tensor zeros(Rank& rank, i64 count) {
  Tensor t(rank.memory, Category::communication, DType::f32, {count});
  t.zero();
  return t;
}

// Rejects: data moved before the calls were compared, the wrong rank called odd.
TEST(MpiFailure, OtherCountTypeOrOperation) {
  expect_failure([](Rank& r) { r.world().all_reduce(zeros(r, r.rank() == 1 ? 50'000 : 40'000)).wait(); },
                 {"mismatch on world #0", "all_reduce(50000 f32)", "all_reduce(40000 f32)", "rank | doing",
                  "since | last completed"});
  expect_failure(
      [](Rank& r) {
        r.world().barrier();
        if (r.rank() == 1) {
          r.world().broadcast(zeros(r, 4), 0).wait();
        } else {
          r.world().all_reduce(zeros(r, 4)).wait();
        }
      },
      {"mismatch on world #1", "rank 1 calls broadcast(4 f32 root 0)", "| barrier() on world #0"});
}

TEST(MpiFailure, TwoCallsSwapped) {
  expect_failure(
      [](Rank& r) {
        Tensor a = zeros(r, 4), b = zeros(r, 8);
        Work first = r.world().all_reduce(r.rank() == 1 ? b : a),
             second = r.world().all_reduce(r.rank() == 1 ? a : b);
        first.wait();
        second.wait();
      },
      {"mismatch on world #", "rank 1 calls"});
}

// A skipped collective shifts all later ones: the rank ends up one short, which is seen at once.
TEST(MpiFailure, RankSkipsACollective) {
  RunOptions patient;
  expect_failure(
      [](Rank& r) {
        for (int step = 0; step < 4; ++step) {
          if (r.rank() == 1 && step == 1) continue;
          r.world().all_reduce(zeros(r, 4)).wait();
        }
      },
      {"in all_reduce(4 f32) on world #3; rank 1 returned without calling it", "> 1 | returned",
       "all_reduce(4 f32) on world #2"},
      patient);
}

// The type is the culprit's on the culprit; the others learn its sentence.
TEST(MpiFailure, RankThrows) {
  RunOptions patient;
  const auto body = [](Rank& r) {
    if (r.rank() == 1) throw std::runtime_error("boom");
    r.world().all_reduce(zeros(r, 4)).wait();
  };
  if (session().rank() == 1) {
    EXPECT_EQ(failure_of(body, patient), "boom");
  } else {
    expect_failure(body, {"rank 1 failed: boom\n", "> 1 | failed"}, patient);
  }
  // With work under way: unwinding must not wait for it, nor the others for it.
  expect_failure(
      [](Rank& r) {
        Tensor x = zeros(r, 50'000), y = zeros(r, 50'000);
        Work first = r.world().all_reduce(x);
        if (r.rank() == 0) {
          Work second = r.world().all_reduce(y);
          throw UsageError("not this way");
        }
        first.wait();
        r.world().recv(y, 0).wait();
      },
      {"not this way"}, patient);
}

TEST(MpiFailure, DroppedWorkAndTouchedBuffers) {
  expect_failure(
      [](Rank& r) {
        Tensor x = zeros(r, 4);
        Work work = r.world().all_reduce(x);
        if (r.rank() == 1) {
          const Work dropped = std::move(work);
        } else {
          work.wait();
        }
        r.world().barrier();
      },
      {"rank 1 dropped all_reduce(4 f32) on world #0 without wait()", "> 1 |"});
  expect_failure(
      [](Rank& r) {
        Tensor x = zeros(r, 40'000);
        Work work = r.world().all_reduce(x);
        if (r.rank() == 0) x.set(7, 1);
        work.wait();
        r.world().barrier();
      },
      {"rank 0 wrote element 7"});
}

TEST(MpiFailure, DeadlineNamesTheRankThatComputes) {
  RunOptions options;
  options.deadline = std::chrono::milliseconds(300);
  expect_failure(
      [](Rank& r) {
        if (r.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
        r.world().barrier();
      },
      {"deadline of 300 ms", "in barrier() on world #0; rank 1 has not called it", "> 1 | computes"},
      options);
}

// Rejects: detection by time. A slow rank is no deadlock.
TEST(MpiFailure, SlowRankIsNoFailure) {
  EXPECT_EQ(failure_of([](Rank& r) {
              if (r.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
              r.world().barrier();
            }),
            "");
}

// Buffered it works; a send that ends on receipt does not. Rejects: sends that MPI buffers behind our back.
TEST(MpiFailure, SendSendCycle) {
  const auto exchange = [](Rank& r) {
    const int other = r.rank() ^ 1;
    if (other >= r.size()) return;
    Tensor x = zeros(r, 400), y = zeros(r, 400);
    r.world().send(x, other).wait();
    r.world().recv(y, other).wait();
  };
  EXPECT_EQ(failure_of(exchange), "");
  RunOptions options = quick();
  options.buffered_send = false;
  options.deadline = std::chrono::milliseconds(300);
  expect_failure(exchange, {"rank 0 in send(400 f32 to 1)", "post the receive before"}, options);
}

TEST(MpiFailure, NobodyReceives) {
  expect_failure(
      [](Rank& r) {
        if (r.rank() == 0) r.world().send(zeros(r, 4), 1).wait();
      },
      {"rank 0 returned, and nobody received its send(4 f32 to 1) on world"});
}

}  // namespace
}  // namespace shardlings::mpi_test
