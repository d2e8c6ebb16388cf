// tree_broadcast: value, traffic, and order (the number of rounds).
#include "collectives_test.hpp"

namespace shardlings {
namespace {

std::vector<double> message(i64 count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 5.0 + static_cast<double>(i);
  return values;
}

Tensor begin_with(Rank& rank, int root, i64 count) {
  if (rank.rank() == root) return lesson::tensor_of(rank, message(count));
  return Tensor(rank.memory, Category::communication, DType::f32, {count});
}

// Value and robustness. Rejects: a root that is taken for rank 0, partners beyond the last rank when n is no
// power of two, leaving early with an empty tensor.
TEST(TreeBroadcast, EveryRankHasIt) {
  for (const bool buffered : {true, false}) {
    for (const int n : lesson::kRingSizes) {
      for (int root = 0; root < n; ++root) {
        for (const i64 count : {0, 7}) {
          lesson::run_case("root " + std::to_string(root), n, buffered, [&](Rank& rank) {
            const Tensor x = begin_with(rank, root, count);
            tree_broadcast(rank.world(), x, root);
            EXPECT_TRUE(lesson::same(lesson::values_of(x), message(count)))
                << "what rank " << root << " had must be on rank " << rank.rank()
                << ": does the tree begin at the root?";
          });
        }
      }
    }
  }
}

/// To whom each rank sent, in its order.
std::vector<std::vector<int>> destinations(int ranks, int root) {
  return lesson::on_each_rank<std::vector<int>>(ranks, [root](Rank& rank) {
    tree_broadcast(rank.world(), begin_with(rank, root, 7), root);
    std::vector<int> to;
    for (const std::string& call : lesson::events_of(rank, Event::post)) {
      if (call.starts_with("send(")) to.push_back(std::stoi(call.substr(call.find(" to ") + 4)));
    }
    return to;
  });
}

// Order. Rejects: the root sends to one after the other (n - 1 rounds), and a chain (n - 1 rounds too).
// Values and the bytes received are right in both. A round is one message; a rank sends one at a time.
TEST(TreeBroadcast, DoublesTheNumberOfRanksInEachRound) {
  for (const int n : {2, 3, 4, 5, 8}) {
    for (const int root : {0, n - 1}) {
      const std::vector<std::vector<int>> sends = destinations(n, root);
      std::vector<int> has_it_after(static_cast<std::size_t>(n), -1);  // rounds
      std::vector<int> todo{root};
      has_it_after[static_cast<std::size_t>(root)] = 0;
      int last = 0;
      while (!todo.empty()) {
        const auto from = static_cast<std::size_t>(todo.back());
        todo.pop_back();
        int round = has_it_after[from];
        for (const int to : sends[from]) {
          last = std::max(last, has_it_after[static_cast<std::size_t>(to)] = ++round);
          todo.push_back(to);
        }
      }
      int wanted = 0;
      while (1 << wanted < n) ++wanted;
      EXPECT_LE(last, wanted) << n << " ranks from root " << root << ": the last one has it after " << last
                              << " rounds, and a tree needs " << wanted
                              << ". Who has it can send while the root sends to others";
    }
  }
}

// Traffic. Rejects: sending to ranks that have it already.
TEST(TreeBroadcast, EachRankReceivesItOnce) {
  for (const int n : lesson::kRingSizes) {
    std::vector<int> received(static_cast<std::size_t>(n));
    for (const std::vector<int>& sends : destinations(n, 0)) {
      for (const int to : sends) ++received[static_cast<std::size_t>(to)];
    }
    for (int r = 0; r < n; ++r) {
      EXPECT_EQ(received[static_cast<std::size_t>(r)], r == 0 ? 0 : 1)
          << n << " ranks, root 0: how often rank " << r << " was sent the tensor";
    }
  }
}

}  // namespace
}  // namespace shardlings
