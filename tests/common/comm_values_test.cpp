// What collectives and messages compute, bit for bit, with and without checked mode.
#include <cmath>
#include <cstring>
#include <limits>

#include "comm_fixture.hpp"
#include "core/random.hpp"

namespace shardlings {
namespace {

using comm_test::filled;

constexpr int kRanks[] = {1, 2, 3, 4, 8};
constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16, DType::f64};

// Element i of rank r: magnitudes so far apart that another order of additions gives other bits.
double value(int r, i64 i) {
  const std::uint64_t key = key_of({42, static_cast<std::uint64_t>(r)});
  const double u = uniform(key, static_cast<std::uint64_t>(i)) - 0.5;
  return u * ((i + r) % 3 == 0 ? 1000.0 : (i + r) % 3 == 1 ? 1.0 : 0.01);
}

// The reduction in rank order: in acc_t, rounded once.
double expected(DType dtype, int n, Reduce how, i64 i) {
  return dispatch(dtype, [&](auto s) {
    using S = decltype(s);
    using A = acc_t<S>;
    const auto x = [&](int r) { return static_cast<A>(S(static_cast<A>(value(r, i)))); };
    A sum = x(0);
    for (int r = 1; r < n; ++r) sum = how == Reduce::max ? std::max(sum, x(r)) : sum + x(r);
    if (how == Reduce::average) sum /= static_cast<A>(n);
    return static_cast<double>(static_cast<A>(S(sum)));
  });
}

void expect_element(const Tensor& x, i64 i, double want, const std::string& what) {
  const double got = x.get(i);
  if (std::memcmp(&got, &want, sizeof got) != 0)
    ADD_FAILURE() << what << " element " << i << ": " << got << ", not " << want;
}

RunOptions checked(bool on) {
  RunOptions options;
  options.checked = on;
  return options;
}

// Rejects: another order of additions, sums in 16 bits or rounded at each step, an average taken before the
// sum, lost or doubled elements at the borders of parts.
TEST(Collectives, AllReduceAddsInRankOrder) {
  for (const bool check : {true, false}) {
    for (const int n : kRanks) {
      run_ranks(
          n,
          [n](Rank& rank) {
            for (const DType dtype : kTypes) {
              for (const i64 count : {0, 1, 2, 33, 257, 4097}) {
                for (const Reduce how : {Reduce::sum, Reduce::average, Reduce::max}) {
                  Tensor x = filled(rank, dtype, count, [&](i64 i) { return value(rank.rank(), i); });
                  rank.world().all_reduce(x, how).wait();
                  for (i64 i = 0; i < count; ++i) {
                    expect_element(x, i, expected(dtype, n, how, i),
                                   std::to_string(n) + " ranks " + name_of(dtype));
                  }
                }
              }
            }
          },
          checked(check));
    }
  }
}

// Many elements go through communication threads and waiting ranks in parts. Rejects: a part done twice or
// never, done reported before the last part, results that depend on who does a part.
TEST(Collectives, LargeAllReduceOverlapsWithOtherWork) {
  for (const bool check : {true, false}) {
    for (const int n : {2, 3, 4}) {
      run_ranks(
          n,
          [n](Rank& rank) {
            constexpr i64 kCount = 100003;
            for (int repeat = 0; repeat < 3; ++repeat) {
              Tensor x = filled(rank, DType::f32, kCount, [&](i64 i) { return value(rank.rank(), i); });
              Tensor y = filled(rank, DType::bf16, kCount, [&](i64 i) { return value(rank.rank(), i); });
              Work first = rank.world().all_reduce(x), second = rank.world().all_reduce(y);
              volatile double busy = 0;  // some ranks come to wait late
              for (int i = 0; i < 20000 * rank.rank(); ++i) busy = busy + 1;
              second.wait();
              first.wait();
              for (i64 i = 0; i < kCount; i += 37) {
                expect_element(x, i, expected(DType::f32, n, Reduce::sum, i), "first");
                expect_element(y, i, expected(DType::bf16, n, Reduce::sum, i), "second");
              }
            }
          },
          checked(check));
    }
  }
}

// 256 + seven times 1: sums kept in bf16 stay at 256, the fp32 sum is 263, rounded to 264.
TEST(Collectives, Bf16SumsDoNotStall) {
  run_ranks(8, [](Rank& rank) {
    Tensor x = filled(rank, DType::bf16, 1, [&](i64) { return rank.rank() == 0 ? 256.0 : 1.0; });
    rank.world().all_reduce(x).wait();
    EXPECT_EQ(x.get(0), 264.0);
  });
}

// An overflow on one rank must reach every rank, wherever the NaN stands. Rejects: std::max, which drops it.
TEST(Collectives, MaximumKeepsNan) {
  run_ranks(3, [](Rank& rank) {
    Tensor x = filled(rank, DType::f32, 3, [&](i64 i) { return i == rank.rank() ? std::nan("") : 1.0; });
    rank.world().all_reduce(x, Reduce::max).wait();
    for (i64 i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(x.get(i)));
  });
}

// Rejects: sums of i32 in fp32 (2^24 + 1 is no float).
TEST(Collectives, IntegersAreSummedExactly) {
  run_ranks(2, [](Rank& rank) {
    Tensor x = filled(rank, DType::i32, 2, [&](i64) { return rank.rank() == 0 ? 16777216 : 1; });
    EXPECT_THROW((void)rank.world().all_reduce(x, Reduce::average), Error);
    rank.world().all_reduce(x).wait();
    EXPECT_EQ(x.get(1), 16777217.0);
  });
}

// Rejects: piece 0 on every rank, wrong displacement of the in-place form, average left out.
TEST(Collectives, ReduceScatterGivesOwnPiece) {
  for (const int n : kRanks) {
    run_ranks(n, [n](Rank& rank) {
      for (const DType dtype : kTypes) {
        for (const i64 each : {0, 1, 5, 700}) {
          for (const bool in_place : {false, true}) {
            Tensor in = filled(rank, dtype, each * n, [&](i64 i) { return value(rank.rank(), i); });
            const i64 begin = each * rank.rank();
            Tensor out =
                in_place ? in.slice(begin, begin + each) : filled(rank, dtype, each, [](i64) { return 0; });
            rank.world().reduce_scatter(in, out, Reduce::average).wait();
            for (i64 i = 0; i < each; ++i) {
              expect_element(out, i, expected(dtype, n, Reduce::average, begin + i), "reduce_scatter");
            }
          }
        }
      }
    });
  }
}

// Rejects: pieces in another order, displacements from equal counts, gathers that need something from every
// rank.
TEST(Collectives, AllGatherTakesUnequalPieces) {
  for (const bool check : {true, false}) {
    for (const int n : kRanks) {
      run_ranks(
          n,
          [n](Rank& rank) {
            std::vector<i64> counts;
            i64 total = 0, before = 0;
            for (int r = 0; r < n; ++r) {
              if (r == rank.rank()) before = total;
              counts.push_back(r % 3 == 1 ? 0 : 100 * r + 1);
              total += counts.back();
            }
            const i64 mine = counts[static_cast<std::size_t>(rank.rank())];
            for (const bool in_place : {false, true}) {
              Tensor out = filled(rank, DType::f32, total, [&](i64 i) { return -i; });
              Tensor in = in_place    ? out.slice(before, before + mine)
                          : mine == 0 ? Tensor()
                                      : filled(rank, DType::f32, mine, [](i64) { return 0; });
              for (i64 i = 0; i < mine; ++i) in.set(i, static_cast<double>(1000 * rank.rank() + i));
              rank.world().all_gather(in, out, counts).wait();
              i64 at = 0;
              for (int r = 0; r < n; ++r) {
                for (i64 i = 0; i < counts[static_cast<std::size_t>(r)]; ++i) {
                  expect_element(out, at++, static_cast<double>(1000 * r + i), "all_gather");
                }
              }
            }
            Tensor all = filled(rank, DType::i32, 3 * n, [](i64) { return 0; });
            Tensor own = all.slice(3 * rank.rank(), 3 * rank.rank() + 3);
            for (i64 i = 0; i < 3; ++i) own.set(i, static_cast<double>(10 * rank.rank() + i));
            rank.world().all_gather(own, all).wait();
            for (i64 i = 0; i < 3 * n; ++i) EXPECT_EQ(all.get(i), static_cast<double>(10 * (i / 3) + i % 3));
          },
          checked(check));
    }
  }
}

// Rejects: a transposed or identical exchange, a root other than the one asked for.
TEST(Collectives, AllToAllAndBroadcast) {
  for (const int n : kRanks) {
    run_ranks(n, [n](Rank& rank) {
      const int me = rank.rank();
      Tensor in = filled(rank, DType::f32, 3 * n, [&](i64 i) { return 100 * me + i; }),
             out = filled(rank, 3 * n);
      rank.world().all_to_all(in, out).wait();
      for (i64 i = 0; i < 3 * n; ++i)
        EXPECT_EQ(out.get(i), static_cast<double>(100 * (i / 3) + 3 * me + i % 3));
      for (int root = 0; root < n; ++root) {
        Tensor x = filled(rank, DType::bf16, 9, [&](i64 i) { return 10 * me + i; });
        rank.world().broadcast(x, root).wait();
        for (i64 i = 0; i < 9; ++i) EXPECT_EQ(x.get(i), static_cast<double>(10 * root + i));
      }
    });
  }
}

// Rejects: messages that overtake each other, routes that mix, a send whose copy is freed before it is
// received.
// The place of a small collective is used again as soon as all have left it. Rejects: a place that is reset
// while somebody still looks for work in it, or that two numbers share.
TEST(Collectives, ManySmallOnesUnderWayInTwoGroups) {
  for (const bool checked : {false, true}) {
    RunOptions options;
    options.checked = checked;
    run_ranks(
        4,
        [](Rank& r) {
          const Communicator half = r.world().split(r.rank() % 2, r.rank());
          for (int round = 0; round < 60; ++round) {
            r.trace.recording = round % 3 == 0;
            const int depth = round % 7 + 1;
            std::vector<Tensor> tensors;
            std::vector<Work> works;
            for (int i = 0; i < depth; ++i) {
              tensors.push_back(filled(r, 40, r.rank() + i));
              works.push_back((i % 2 == 0 ? r.world() : half).all_reduce(tensors.back()));
            }
            for (int i = 0; i < depth; ++i) {
              const int at = r.rank() % 2 == 0 ? i : depth - 1 - i;  // waited for in another order
              works[static_cast<std::size_t>(at)].wait();
              const double sum = at % 2 == 0 ? 6 + 4 * at : 2 * (r.rank() % 2) + 2 + 2 * at;
              ASSERT_EQ(tensors[static_cast<std::size_t>(at)].get(39), sum) << "round " << round;
            }
          }
        },
        options);
  }
}

TEST(Messages, ArriveInOrderBothModes) {
  for (const bool buffered : {true, false}) {
    for (const bool check : {true, false}) {
      RunOptions options = checked(check);
      options.buffered_send = buffered;
      run_ranks(
          3,
          [](Rank& rank) {
            const int right = (rank.rank() + 1) % 3, left = (rank.rank() + 2) % 3;
            for (const i64 count : {0, 1, 9, 50000}) {
              std::vector<Work> works;
              std::vector<Tensor> sent, received;
              for (int k = 0; k < 4; ++k) {
                sent.push_back(filled(rank, count, 100 * rank.rank() + k));
                received.push_back(filled(rank, count, -1));
                if (k % 2 == 0) works.push_back(rank.world().recv(received.back(), left, k));
                works.push_back(rank.world().send(sent.back(), right, k));
                if (k % 2 == 1) works.push_back(rank.world().recv(received.back(), left, k));
              }
              for (Work& w : works) w.wait();
              for (int k = 0; k < 4; ++k) {
                for (i64 i = 0; i < count; i += 7)
                  EXPECT_EQ(received[static_cast<std::size_t>(k)].get(i), 100 * left + k);
              }
            }
          },
          options);
    }
  }
}

// A buffered send leaves the buffer to the sender once wait() returns, received or not. Rejects: sends by
// reference.
TEST(Messages, BufferedSendIsDoneAtOnce) {
  for (const bool check : {true, false}) {
    run_ranks(
        2,
        [](Rank& rank) {
          Tensor x = filled(rank, 5000, 7);
          if (rank.rank() == 0) {
            rank.world().send(x, 1).wait();
            for (i64 i = 0; i < 5000; ++i) x.set(i, 8);
            rank.world().barrier();
          } else {
            rank.world().barrier();
            rank.world().recv(x, 0).wait();
            EXPECT_EQ(x.get(4999), 7);
          }
        },
        checked(check));
  }
}

// Rejects: order by world rank instead of key, groups of one color that mix, a member's wrong number.
TEST(Groups, SplitOrdersByKey) {
  run_ranks(6, [](Rank& rank) {
    const int me = rank.rank();
    const Communicator half = rank.world().split(me % 2, -me, "half");
    EXPECT_EQ(half.size(), 3);
    EXPECT_EQ(half.rank(), 2 - me / 2);
    EXPECT_EQ(half.name(), "half");
    Tensor x = filled(rank, 1, me), all = filled(rank, 3);
    half.all_gather(x, all).wait();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(all.get(i), static_cast<double>(4 + me % 2 - 2 * i));

    const Communicator pair = half.split(half.rank() < 2 ? 5 : -1, 0);
    EXPECT_EQ(static_cast<bool>(pair), half.rank() < 2);
    if (!pair) return;
    EXPECT_EQ(pair.name(), "half/5");
    pair.all_reduce(x).wait();
    EXPECT_EQ(x.get(0), static_cast<double>(4 + 2 + 2 * (me % 2)));
  });
}

// Groups do not wait for each other. Rejects: one queue for all groups, in which these orders deadlock.
TEST(Groups, OrderAcrossGroupsIsFree) {
  run_ranks(2, [](Rank& rank) {
    const Communicator a = rank.world().split(0, rank.rank()), b = rank.world().split(0, rank.rank());
    Tensor x = filled(rank, 50000, 1), y = filled(rank, 50000, 2);
    Work first = rank.rank() == 0 ? a.all_reduce(x) : b.all_reduce(y);
    Work second = rank.rank() == 0 ? b.all_reduce(y) : a.all_reduce(x);
    first.wait();
    second.wait();
    EXPECT_EQ(x.get(49999), 2);
    EXPECT_EQ(y.get(0), 4);
  });
}

// Rejects: sizes, types, ranks and overlaps that go unnoticed, and texts without the numbers.
TEST(Communicator, RefusesWhatCannotFit) {
  run_ranks(2, [](Rank& rank) {
    const Communicator& world = rank.world();
    Tensor x = filled(rank, 6), y = filled(rank, 4),
           half = filled(rank, DType::bf16, 3, [](i64) { return 0; });
    const auto text = [](auto call) -> std::string {
      try {
        call().wait();
      } catch (const std::exception& e) {
        return e.what();
      }
      return "accepted";
    };
    EXPECT_EQ(text([&] { return world.reduce_scatter(x, y); }),
              "reduce_scatter: in has 6 elements; 2 ranks with 4 each in out need 8");
    EXPECT_NE(text([&] { return world.all_gather(x, y); }).find("need 12"), std::string::npos);
    EXPECT_NE(text([&] { return world.all_gather(half, x); }).find("in is bf16, out is f32"),
              std::string::npos);
    EXPECT_NE(text([&] { return world.all_gather(x, y, {6}); }).find("1 counts for 2 ranks"),
              std::string::npos);
    EXPECT_NE(text([&] { return world.all_gather(x, y, {3, 1}); }).find("counts say"), std::string::npos);
    EXPECT_NE(text([&] { return world.all_to_all(x, y); }).find("same multiple of 2"), std::string::npos);
    EXPECT_NE(text([&] { return world.all_to_all(x, x); }).find("overlap"), std::string::npos);
    EXPECT_NE(text([&] { return world.all_gather(x.slice(1, 4), x); }).find("not its piece"),
              std::string::npos);
    EXPECT_NE(text([&] { return world.reduce_scatter(x, x.slice(1, 4)); }).find("not its piece"),
              std::string::npos);
    EXPECT_EQ(text([&] { return world.broadcast(x, 2); }),
              "broadcast: root 2 on world, which has ranks 0 to 1");
    EXPECT_NE(text([&] { return world.send(x, -1); }).find("to rank -1"), std::string::npos);
    EXPECT_NE(text([&] {
                return world.all_reduce(Tensor().view({0, 3}));
              }).find("accepted"),
              std::string::npos);
  });
}

TEST(RunRanks, GivesEachRankItsPlaceAndThreads) {
  EXPECT_THROW(run_ranks(0, [](Rank&) {}), UsageError);
  EXPECT_THROW(run_ranks(-3, [](Rank&) {}), UsageError);
  EXPECT_GE(available_cores(), 1);
  EXPECT_EQ(default_threads(1), available_cores());
  EXPECT_EQ(default_threads(2 * available_cores()), 1);
  RunOptions options;
  options.threads = 3;
  options.checked = false;
  std::vector<int> seen(4, 0);
  run_ranks(
      4,
      [&](Rank& rank) {
        seen[static_cast<std::size_t>(rank.rank())] = rank.size() * 10 + rank.threads();
        EXPECT_FALSE(rank.memory.poison_new_memory);
      },
      options);
  EXPECT_EQ(seen, std::vector<int>(4, 43));
  run_ranks(1, [](Rank& rank) { EXPECT_TRUE(rank.memory.poison_new_memory); });
}

}  // namespace
}  // namespace shardlings
