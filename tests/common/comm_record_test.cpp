// What communication leaves behind: bytes, marks and spans; and the time that a chosen link takes.
#include <algorithm>
#include <chrono>
#include <thread>

#include "comm_fixture.hpp"

namespace shardlings {
namespace {

using comm_test::failure_of;
using comm_test::filled;

// To the byte. Rejects: bytes of another operation's formula, bytes charged to the receiver, groups thrown
// together.
TEST(Traffic, FollowsTheRingModel) {
  run_ranks(4, [](Rank& r) {
    const Communicator& world = r.world();
    const Communicator pair = world.split(r.rank() / 2, r.rank(), "pair");
    EXPECT_EQ(r.traffic.total(), 0);  // splitting is not charged
    Tensor x = filled(r, 40), big = filled(r, 160), y = filled(r, 40),
           bf = filled(r, DType::bf16, 40, [](i64) { return 0; });
    world.all_reduce(x).wait();
    world.all_reduce(bf).wait();
    pair.all_reduce(x).wait();
    world.reduce_scatter(big, x).wait();
    world.all_gather(x, big).wait();
    world.all_to_all(x, y).wait();
    world.broadcast(x, 1).wait();
    world.barrier();
    if (r.rank() == 0) world.send(x, 3).wait();
    if (r.rank() == 3) world.recv(x, 0).wait();
    auto& t = r.traffic;
    EXPECT_EQ(t.group_bytes["all_reduce@world"], 2 * 3 * 160 / 4 + 2 * 3 * 80 / 4);
    EXPECT_EQ(t.group_bytes["all_reduce@pair"], 160);
    EXPECT_EQ(t.bytes["all_reduce"], 240 + 120 + 160);
    EXPECT_EQ(t.calls["all_reduce"], 3);
    EXPECT_EQ(t.group_calls["all_reduce@world"], 2);
    EXPECT_EQ(t.bytes["reduce_scatter"], 3 * 160);
    EXPECT_EQ(t.bytes["all_gather"], 3 * 160);
    EXPECT_EQ(t.bytes["all_to_all"], 3 * 40);
    EXPECT_EQ(t.bytes["broadcast"], r.rank() == 0 ? 0 : 160);  // the chain is 1, 2, 3, 0
    EXPECT_EQ(t.bytes["barrier"], 0);
    EXPECT_EQ(t.bytes["send"], r.rank() == 0 ? 160 : 0);
    EXPECT_EQ(t.bytes["recv"], 0);
    EXPECT_EQ(t.calls["recv"], r.rank() == 3 ? 1 : 0);
    EXPECT_EQ(t.total(), 520 + 480 + 480 + 120 + 160);
  });
  run_ranks(3, [](Rank& r) {
    Tensor in = filled(r, r.rank() + 1), out = filled(r, 6);
    r.world().all_gather(in, out, {1, 2, 3}).wait();
    EXPECT_EQ(r.traffic.bytes["all_gather"], 4 * (r.rank() == 0 ? 1 + 3 : r.rank() == 1 ? 1 + 2 : 2 + 3));
  });
  run_ranks(1, [](Rank& r) {
    r.world().all_reduce(filled(r, 8)).wait();
    EXPECT_EQ(r.traffic.total(), 0);
    EXPECT_EQ(r.traffic.calls["all_reduce"], 1);
  });
}

// Rejects: done marked at the post or by the transfer instead of in wait(), numbers that count messages too.
TEST(CommTrace, MarksInProgramOrder) {
  run_ranks(2, [](Rank& r) {
    Tensor x = filled(r, 64), y = filled(r, DType::bf16, 3, [](i64) { return 0; });
    Tensor z = filled(r, DType::bf16, 3, [](i64) { return 0; });
    r.world().barrier();
    Work message = r.rank() == 0 ? r.world().send(y, 1, 4) : r.world().recv(y, 0, 4);
    Work first = r.world().all_reduce(x);
    Work second = r.world().broadcast(z, 1);
    second.wait();
    first.wait();
    message.wait();
    std::vector<std::string> marks;
    for (const Event& e : r.trace.events()) {
      if (e.kind == Event::post || e.kind == Event::done)
        marks.push_back(std::string(name_of(e.kind)) + " " + e.what);
    }
    const std::string p2p =
        r.rank() == 0 ? "send(3 bf16 to 1 tag 4) on world" : "recv(3 bf16 from 0 tag 4) on world";
    const std::vector<std::string> want = {"post barrier() on world #0",
                                           "done barrier() on world #0",
                                           "post " + p2p,
                                           "post all_reduce(64 f32) on world #1",
                                           "post broadcast(3 bf16 root 1) on world #2",
                                           "done broadcast(3 bf16 root 1) on world #2",
                                           "done all_reduce(64 f32) on world #1",
                                           "done " + p2p};
    EXPECT_EQ(marks, want);
  });
}

// 100 ms on the link: rank 0 computes 20 ms meanwhile and waits for the rest. Rejects: waiting that is not
// drawn or is drawn while computing, transfers drawn from post to wait.
TEST(CommTrace, DrawsTransferAndWaiting) {
  RunOptions options;
  options.link = link_from("50000,1000");
  run_ranks(
      2,
      [](Rank& r) {
        Tensor x = filled(r, 64);
        Work work = r.world().all_reduce(x);
        std::this_thread::sleep_for(std::chrono::milliseconds(r.rank() == 0 ? 20 : 250));
        work.wait();
        int transfers = 0, waits = 0;
        for (const Event& e : r.trace.events()) {
          const double ms = static_cast<double>(e.end - e.begin) * 1e-6;
          if (e.kind == Event::transfer) {
            ++transfers;
            EXPECT_EQ(e.lane, Event::communication);
            EXPECT_NEAR(ms, 100, 0.1);
            EXPECT_EQ(e.what, "all_reduce(64 f32) on world #0");
          }
          if (e.kind == Event::wait) {
            ++waits;
            EXPECT_EQ(e.lane, Event::compute);
            EXPECT_GT(ms, 1);
            EXPECT_LT(ms, 99);
          }
        }
        EXPECT_EQ(transfers, 1);
        EXPECT_EQ(waits, r.rank() == 0 ? 1 : 0);  // rank 1 comes when all is over
      },
      options);
}

TEST(CommTrace, RecordsNothingWhilePaused) {
  run_ranks(2, [](Rank& r) {
    r.trace.recording = false;
    r.world().all_reduce(filled(r, 64)).wait();
    EXPECT_TRUE(r.trace.events().empty());
  });
}

TEST(Links, AreReadFromText) {
  EXPECT_TRUE(link_from("none").none());
  for (const char* name : {"nvlink4", "pcie4", "ib-ndr", "eth10g", "eth1g"}) {
    const Link link = link_from(name);
    EXPECT_EQ(link.name, name);
    EXPECT_GT(link.alpha, 0);
    EXPECT_GT(link.bandwidth, 1e8);
    EXPECT_GT(link.source.size(), 10U);
  }
  EXPECT_DOUBLE_EQ(link_from("eth1g").bandwidth, 125e6);
  const Link link = link_from("12.5,3");
  EXPECT_DOUBLE_EQ(link.alpha, 12.5e-6);
  EXPECT_DOUBLE_EQ(link.bandwidth, 3e9);
  EXPECT_EQ(to_string(link), "12.5,3: 12.5 us + bytes / 3 GB/s (as asked for)");
  for (const char* bad :
       {"", "eth", "1", "1,", ",1", "-1,1", "1,0", "1,-2", "1,2,3", "1,2x", "nan,1", "1,inf", " 1,2"}) {
    EXPECT_THROW(link_from(bad), UsageError) << bad;
  }
}

// Against the formulas written out. Rejects: alpha once instead of per step, n instead of n - 1 steps.
TEST(Links, TakeTheRingModelsTime) {
  const Link link = link_from("10,1");  // 10 us, 1e9 bytes a second
  EXPECT_DOUBLE_EQ(transfer_seconds(link, "send", 4, 1000000), 10e-6 + 1e-3);
  EXPECT_DOUBLE_EQ(transfer_seconds(link, "all_reduce", 4, 1000000), 60e-6 + 1.5e-3);
  EXPECT_DOUBLE_EQ(transfer_seconds(link, "all_gather", 4, 1000000), 30e-6 + 0.75e-3);
  EXPECT_DOUBLE_EQ(transfer_seconds(link, "reduce_scatter", 4, 1000000), 30e-6 + 0.75e-3);
  EXPECT_DOUBLE_EQ(transfer_seconds(link, "broadcast", 4, 1000000), 30e-6 + 1e-3);
  EXPECT_DOUBLE_EQ(transfer_seconds(link, "barrier", 5, 0), 30e-6);
  for (const char* operation : {"all_reduce", "all_gather", "broadcast", "barrier"}) {
    EXPECT_EQ(transfer_seconds(link, operation, 1, 1000), 0) << operation;
  }
  EXPECT_EQ(transfer_seconds(link_from("none"), "all_reduce", 8, 1000000), 0);
  EXPECT_THROW(transfer_seconds(link, "reduce", 4, 1), Error);
}

// On rank 0, the fastest of five tries: this machine has other things to do.
double milliseconds_of(int ranks, const std::function<void(Rank&)>& body, const RunOptions& options) {
  double ms = 1e9;
  for (int i = 0; i < 5; ++i) {
    run_ranks(
        ranks,
        [&](Rank& r) {
          r.world().barrier();
          const std::int64_t begin = now_ns();
          body(r);
          if (r.rank() == 0) ms = std::min(ms, static_cast<double>(now_ns() - begin) * 1e-6);
        },
        options);
  }
  return ms;
}

// Rejects: transfers of one rank that overlap, and spans that tell it otherwise.
TEST(Links, TransfersOfOneRankComeOneAfterTheOther) {
  RunOptions options;
  options.link = link_from("5000,1000");
  const double ms = milliseconds_of(
      2,
      [](Rank& r) {
        Tensor x = filled(r, 16), y = filled(r, 16);
        Work first = r.world().all_reduce(x), second = r.world().all_reduce(y);  // 2 messages of 5 ms each
        second.wait();
        first.wait();
        std::vector<Event> spans;
        for (const Event& e : r.trace.events()) {
          if (e.kind == Event::transfer) spans.push_back(e);
        }
        ASSERT_EQ(spans.size(), 2U);
        EXPECT_GE(spans[0].begin, spans[1].end);
        EXPECT_NEAR(static_cast<double>(spans[0].end - spans[0].begin) * 1e-6, 10, 0.1);
      },
      options);
  EXPECT_GE(ms, 19.9);
  EXPECT_LT(ms, 29);
}

// Rejects: a send that takes the link of its receiver, too.
TEST(Links, SendAndReceiveShareNothing) {
  RunOptions options;
  options.link = link_from("10000,1000");
  for (const bool buffered : {true, false}) {
    options.buffered_send = buffered;
    const double ms = milliseconds_of(
        2,
        [](Rank& r) {
          Tensor x = filled(r, 16), y = filled(r, 16);
          Work receive = r.world().recv(y, 1 - r.rank()), send = r.world().send(x, 1 - r.rank());
          receive.wait();
          send.wait();
        },
        options);
    EXPECT_GE(ms, buffered ? 0 : 9.9);  // a buffered one may have left before rank 0 looked at its clock
    EXPECT_LT(ms, 19);
  }
}

// A buffered message travels while its receiver computes; an unbuffered one starts when both are there.
TEST(Links, OnlyBufferedMessagesTravelEarly) {
  RunOptions options;
  options.link = link_from("20000,1000");
  for (const bool buffered : {true, false}) {
    options.buffered_send = buffered;
    const double ms = milliseconds_of(
        2,
        [](Rank& r) {
          Tensor x = filled(r, 16);
          if (r.rank() == 1) return r.world().send(x, 0).wait();
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          r.world().recv(x, 1).wait();
        },
        options);
    EXPECT_EQ(ms < 39.9, buffered) << ms;
  }
}

// The same bits over a slow link. Rejects: data that moves before all ranks are there, or not at all.
TEST(Links, ValuesAreTheSame) {
  for (const bool checked : {true, false}) {
    RunOptions options;
    options.checked = checked;
    options.link = link_from("300,1");
    EXPECT_EQ(failure_of(
                  3,
                  [](Rank& r) {
                    Tensor x = filled(r, 20000, r.rank()), all = filled(r, 60000);
                    Work reduce = r.world().all_reduce(x);
                    reduce.wait();
                    EXPECT_EQ(x.get(19999), 3);
                    r.world().all_gather(x, all).wait();
                    EXPECT_EQ(all.get(59999), 3);
                    Work send = r.world().send(x, (r.rank() + 1) % 3);
                    Tensor y = filled(r, 20000);
                    r.world().recv(y, (r.rank() + 2) % 3).wait();
                    send.wait();
                    EXPECT_EQ(y.get(0), 3);
                  },
                  options),
              "");
  }
}

}  // namespace
}  // namespace shardlings
