// Who gets which sample, and means over all of them: values.
#include <set>

#include "ddp_test.hpp"

namespace shardlings {
namespace {

std::vector<i64> of_all_ranks(const Epoch& epoch, int ranks) {
  std::vector<i64> all;
  for (int r = 0; r < ranks; ++r) {
    for (const i64 sample : my_samples(epoch, 0, epoch.samples, r, ranks)) all.push_back(sample);
  }
  return all;
}

/// The order in which the samples come: place 0, place 1, …, as one rank sees it.
std::vector<i64> order_of(const Epoch& epoch) { return my_samples(epoch, 0, epoch.samples, 0, 1); }

// Value, case C26. Rejects: shares padded to the same length by repeating samples, tails that are dropped,
// and an order that each rank draws for itself.
TEST(Samples, EachIsSomebodysOnce) {
  for (const int ranks : lesson::kRankCounts) {
    for (const i64 n : {i64{1}, i64{10}, i64{22}, i64{23}}) {
      std::vector<i64> all = of_all_ranks({n, 2, 7}, ranks);
      std::sort(all.begin(), all.end());
      const auto twice = std::adjacent_find(all.begin(), all.end());
      if (twice != all.end()) {
        ADD_FAILURE() << n << " samples on " << ranks << " ranks: sample " << *twice << " is there twice. "
                      << (static_cast<i64>(all.size()) > n
                              ? "Were shares padded to the same length? An accuracy would count it twice"
                              : "Do all ranks shuffle with the same key? The rank must not be part of it");
        continue;
      }
      EXPECT_EQ(static_cast<i64>(all.size()), n)
          << n << " samples on " << ranks << " ranks: some are nobody's. Was the tail dropped?";
      EXPECT_TRUE(!all.empty() && all.front() == 0 && all.back() == n - 1) << "samples are 0 .. " << n - 1;
    }
  }
}

// Value, case C26. Rejects: one order for all epochs, which is what a sampler does that nobody told the
// epoch; and an order that the run's seed does not change.
TEST(Samples, EachEpochHasItsOwnOrder) {
  std::set<std::vector<i64>> orders;
  for (i64 epoch = 0; epoch < 3; ++epoch) orders.insert(order_of({22, epoch, 7}));
  EXPECT_EQ(orders.size(), 3U) << "three epochs have " << orders.size()
                               << " different order(s): is the epoch's number part of the key?";
  EXPECT_NE(order_of({22, 0, 7}), order_of({22, 0, 8})) << "another seed must be another order";
  EXPECT_EQ(order_of({22, 1, 7}), order_of({22, 1, 7})) << "the same epoch again must be the same order";
  std::vector<i64> sorted(22);
  std::iota(sorted.begin(), sorted.end(), 0);
  EXPECT_NE(order_of({22, 0, 7}), sorted) << "the samples come as they lie in the file: not shuffled";
}

// Value. Rejects: blocks in place of cards. Then the first step of many ranks has other samples than the
// first step of one rank, and the number of ranks changes what is learned.
TEST(Samples, TheStepsOfManyRanksAreThoseOfOne) {
  for (const int ranks : lesson::kRankCounts) {
    const Epoch epoch{23, 1, 7};
    const std::vector<i64> order = order_of(epoch);
    for (i64 begin = 0; begin < 23; begin += 9) {
      const i64 end = std::min<i64>(begin + 9, 23);
      for (int r = 0; r < ranks; ++r) {
        std::vector<i64> cards;
        for (i64 place = begin + r; place < end; place += ranks)
          cards.push_back(order.at(static_cast<std::size_t>(place)));
        EXPECT_EQ(my_samples(epoch, begin, end, r, ranks), cards)
            << "places " << begin << " .. " << end - 1 << " of the order, dealt to " << ranks
            << " ranks: these are the cards of rank " << r << ". Blocks, perhaps?";
      }
    }
  }
}

// Value, case C49: 10 samples on 3 ranks (4, 3 and 3 of them), and sample 0 is the only wrong one. Rejects:
// the mean of the ranks' means, which gives each rank and not each sample the same weight.
TEST(Mean, EverySampleWeighsTheSame) {
  const auto accuracies = lesson::on_each_rank<double>(3, [](Rank& rank) {
    double correct = 0;
    i64 count = 0;
    for (i64 sample = rank.rank(); sample < 10; sample += 3, ++count) correct += sample == 0 ? 0 : 1;
    return mean_over(rank, rank.world(), correct, count);
  });
  for (const double accuracy : accuracies) {
    EXPECT_NEAR(accuracy, 0.9, 1e-15)
        << "9 of 10 are right. 0.9167 is the mean of the ranks' means (3/4 + 1 + 1) / 3: rank 0 has more "
           "samples, so each of its samples counted less";
  }
}

// Value, case C49, with your shares. Rejects: padding by repetition: 10 samples become 12.
TEST(Mean, NoSampleCountsTwice) {
  const auto accuracies = lesson::on_each_rank<double>(3, [](Rank& rank) {
    double correct = 0;
    const std::vector<i64> mine = my_samples({10, 0, 7}, 0, 10, rank.rank(), 3);
    for (const i64 sample : mine) correct += sample == 0 ? 0 : 1;
    return mean_over(rank, rank.world(), correct, static_cast<i64>(mine.size()));
  });
  EXPECT_TRUE(lesson::close_to(accuracies, {0.9, 0.9, 0.9}, 1e-15))
      << "9 of 10 are right. 0.8333 is 10 of 12, and 0.9167 11 of 12: shares that were padded";
}

// Robustness. Rejects: a rank that divides before it adds (0 / 0 is NaN, for all); and one that has nothing
// and leaves.
TEST(Mean, RanksWithoutSamplesTakePart) {
  for (const int ranks : lesson::kRankCounts) {
    const auto means = lesson::on_each_rank<double>(ranks, [](Rank& rank) {
      const bool has = rank.rank() == 0;
      return mean_over(rank, rank.world(), has ? 6 : 0, has ? 4 : 0);
    });
    for (const double mean : means) {
      EXPECT_EQ(mean, 1.5) << "rank 0 has 4 samples that sum to 6, the other " << ranks - 1 << " have none"
                           << (std::isnan(mean) ? ". NaN: was a rank's mean taken before the sum?" : "");
    }
  }
}

}  // namespace
}  // namespace shardlings
