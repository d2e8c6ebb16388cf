// What every operation computes with processes: bit for bit what it computes with threads.
#include <chrono>
#include <thread>

#include "mpi_test.hpp"

namespace shardlings::mpi_test {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32};

// Rejects: another order of additions, sums in 16 bits, averages or maxima taken in pieces, an i32 sum in
// fp32, lost or doubled elements at the borders of pieces, a limit between letters and transfers on which
// sides disagree.
TEST(MpiValues, Reductions) {
  const int n = session().size();
  for (const RunOptions& options : all_options()) {
    expect_as_threads(
        [n](Rank& rank, Log& log) {
          for (const DType dtype : kTypes) {
            for (const i64 count : {0, 1, 2, 33, 1031, 2048, 2049, 8193}) {
              for (const Reduce how : {Reduce::sum, Reduce::average, Reduce::max}) {
                if (dtype == DType::i32 && how == Reduce::average) continue;
                Tensor x = filled(rank, dtype, count);
                rank.world().all_reduce(x, how).wait();
                log.add("all_reduce of " + std::to_string(count) + " " + name_of(dtype), x);
                for (const bool in_place : {false, true}) {
                  Tensor in = filled(rank, dtype, count * n, 1);
                  Tensor out = in_place ? in.slice(count * rank.rank(), count * (rank.rank() + 1))
                                        : filled(rank, dtype, count);
                  rank.world().reduce_scatter(in, out, how).wait();
                  log.add("reduce_scatter to " + std::to_string(count) + " " + name_of(dtype), out);
                }
              }
            }
          }
        },
        options);
  }
}

// Rejects: displacements from the wrong counts (unequal, some zero), in-place pieces at offset 0, roots other
// than 0 ignored, pieces of all_to_all transposed, a barrier that lets anybody through.
TEST(MpiValues, GathersAndBroadcasts) {
  const int n = session().size();
  for (const RunOptions& options : all_options()) {
    expect_as_threads(
        [n](Rank& rank, Log& log) {
          const int me = rank.rank();
          for (const DType dtype : kTypes) {
            for (const i64 each : {0, 1, 700, 5001}) {
              const std::string what = std::to_string(each) + " " + name_of(dtype);
              Tensor out = filled(rank, dtype, each * n, 2);
              rank.world().all_gather(filled(rank, dtype, each), out).wait();
              log.add("all_gather of " + what, out);
              Tensor whole = filled(rank, dtype, each * n, 3);
              rank.world().all_gather(whole.slice(each * me, each * (me + 1)), whole).wait();
              log.add("all_gather in place of " + what, whole);
              std::vector<i64> counts;
              i64 total = 0, before = 0;
              for (int r = 0; r < n; ++r) {
                counts.push_back(r % 3 == 1 ? 0 : each + 37 * r);
                if (r < me) before += counts.back();
                total += counts.back();
              }
              const i64 mine = counts[static_cast<std::size_t>(me)];
              Tensor uneven = filled(rank, dtype, total, 4);
              rank.world().all_gather(filled(rank, dtype, mine, 5), uneven, counts).wait();
              log.add("uneven all_gather of " + what, uneven);
              rank.world().all_gather(uneven.slice(before, before + mine), uneven, counts).wait();
              log.add("uneven all_gather in place of " + what, uneven);
              Tensor turned = filled(rank, dtype, each * n, 6);
              rank.world().all_to_all(filled(rank, dtype, each * n, 7), turned).wait();
              log.add("all_to_all of " + what, turned);
              for (int root = 0; root < n; ++root) {
                Tensor x = filled(rank, dtype, each, 8);
                rank.world().broadcast(x, root).wait();
                log.add("broadcast of " + what + " from " + std::to_string(root), x);
              }
              rank.world().barrier();
            }
          }
        },
        options);
  }
}

// Rejects: messages that overtake each other, tags or counts mixed up, a send to the rank itself that waits
// for itself, large messages cut short.
TEST(MpiValues, Messages) {
  const int n = session().size();
  for (RunOptions options : all_options()) {
    for (const bool buffered : {true, false}) {
      options.buffered_send = buffered;
      expect_as_threads(
          [n](Rank& rank, Log& log) {
            const int right = (rank.rank() + 1) % n, left = (rank.rank() + n - 1) % n;
            for (const i64 count : {0, 1, 4000, 70001}) {
              std::vector<Tensor> in;
              std::vector<Work> works;
              for (int i = 0; i < 3; ++i) {
                in.push_back(filled(rank, DType::f32, count + i, 9));
                works.push_back(rank.world().recv(in.back(), left, i));
              }
              for (int i = 0; i < 3; ++i) {
                works.push_back(rank.world().send(filled(rank, DType::f32, count + i, i), right, i));
              }
              for (Work& work : works) work.wait();
              for (const Tensor& x : in) log.add("message", x);
            }
          },
          options);
    }
  }
}

// Rejects: groups that share letters or sequence numbers, ranks of the world where ranks of the group are
// meant, members out of order, collective calls that need those who are not members.
TEST(MpiValues, Groups) {
  for (const RunOptions& options : all_options()) {
    expect_as_threads(
        [](Rank& rank, Log& log) {
          const int me = rank.rank();
          const Communicator half = rank.world().split(me % 2, -me);
          const Communicator others = rank.world().split(me == 0 ? -1 : 0, me, "others");
          log.add(half.name() + std::to_string(half.rank()) + "/" + std::to_string(half.size()));
          Tensor x = filled(rank, DType::bf16, 3001), y = filled(rank, DType::f32, 9001),
                 z = filled(rank, DType::f32, 7);
          Work on_world = rank.world().all_reduce(y), on_half = half.all_reduce(x);
          if (others) {
            others.all_reduce(z, Reduce::average).wait();
            others.broadcast(z, others.size() - 1).wait();
          }
          on_half.wait();
          on_world.wait();
          log.add("half", x);
          log.add("world", y);
          log.add("others", z);
          const Communicator again = half.split(0, half.rank());
          Tensor all(rank.memory, Category::communication, DType::f32, {again.size() * 2});
          again.all_gather(filled(rank, DType::f32, 2), all).wait();
          log.add("again", all);
          if (again.size() > 1) {
            const int other = again.rank() ^ 1;
            if (other < again.size()) {
              Tensor in = filled(rank, DType::f32, 5000, 1);
              Work receives = again.recv(in, other);
              again.send(filled(rank, DType::f32, 5000), other).wait();
              receives.wait();
              log.add("message on a group", in);
            }
          }
        },
        options);
  }
}

// Operations under way together, waited for in another order while ranks compute for different times.
// Rejects: a wait that returns for the wrong operation, transfers of two operations mixed, progress only
// inside wait.
TEST(MpiValues, ManyAtOnce) {
  expect_as_threads([](Rank& rank, Log& log) {
    std::vector<Tensor> all;
    std::vector<Work> works;
    for (int i = 0; i < 12; ++i) {
      all.push_back(filled(rank, DType::f32, 10 + 3000 * i, i));
      works.push_back(rank.world().all_reduce(all.back()));
      std::this_thread::sleep_for(std::chrono::microseconds(100 * rank.rank()));
    }
    for (std::size_t i = works.size(); i-- > 0;) works[i].wait();
    for (const Tensor& x : all) log.add("all_reduce", x);
  });
}

// MPI counts in int: what has more bytes goes in pieces. Rejects: one piece only, pieces out of order.
TEST(MpiValues, PiecesOfATransfer) {
  session().set_piece_bytes(10'001);
  for (const RunOptions& options : all_options()) {
    expect_as_threads(
        [](Rank& rank, Log& log) {
          Tensor x = filled(rank, DType::f32, 60'013), y = filled(rank, DType::f64, 20'011, 1);
          Work first = rank.world().all_reduce(x), second = rank.world().broadcast(y, rank.size() - 1);
          first.wait();
          second.wait();
          log.add("all_reduce", x);
          log.add("broadcast", y);
        },
        options);
  }
  session().set_piece_bytes(i64{1} << 30);
}

// Transfers go on while the rank computes. Rejects: progress only inside wait(), where all of it would be
// waited for.
TEST(MpiValues, OverlapIsReal) {
  session().run([](Rank& rank) {
    rank.trace.recording = true;
    Tensor x = filled(rank, DType::f32, 200'000);
    rank.world().barrier();
    Work work = rank.world().all_reduce(x);
    std::this_thread::sleep_for(std::chrono::milliseconds(400));  // computes, with a core to spare
    const std::int64_t computed = now_ns();
    work.wait();
    for (const Event& e : rank.trace.events()) {
      if (e.kind != Event::transfer) continue;
      EXPECT_LT(e.end, computed) << "ended only in wait()";
    }
  });
}

// Rejects: traffic that is counted another way, operations missing from the trace.
TEST(MpiValues, CountsAndDrawsAsThreads) {
  expect_as_threads([](Rank& rank, Log& log) {
    rank.trace.recording = true;
    Tensor x = filled(rank, DType::f32, 5003);
    rank.world().all_reduce(x).wait();
    rank.world().broadcast(x, 0).wait();
    const Communicator half = rank.world().split(rank.rank() % 2, 0);
    half.all_reduce(x).wait();
    rank.world().barrier();
    for (const auto& [what, bytes] : rank.traffic.group_bytes)
      log.add(what + " " + std::to_string(bytes) + " " + std::to_string(rank.traffic.group_calls[what]));
    for (const Event& e : rank.trace.events()) {
      if (e.kind == Event::wait) continue;  // depends on who is late
      log.add(std::to_string(static_cast<int>(e.kind)) + " " + e.what);
      EXPECT_LE(e.begin, e.end);
    }
  });
}

// A pass of many runs in one process: nothing of a run may reach into the next.
TEST(MpiValues, RunsFollowEachOther) {
  for (int i = 0; i < 20; ++i) {
    session().run([i](Rank& rank) {
      Tensor x(rank.memory, Category::communication, DType::i32, {1});
      x.set(0, i);
      rank.world().all_reduce(x).wait();
      EXPECT_EQ(x.get(0), i * rank.size());
    });
  }
}

}  // namespace
}  // namespace shardlings::mpi_test
