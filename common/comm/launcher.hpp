#pragma once
// For backends: fills in what a Rank keeps private.
#include <memory>
#include <utility>

#include "comm/backend.hpp"

namespace shardlings {

struct RankLauncher {
  static void place(Rank& rank, int number, int ranks, int threads, int cores) {
    rank.rank_ = number;
    rank.size_ = ranks;
    rank.threads_ = threads;
    rank.cores_ = cores;
  }
  static void connect(Rank& rank, comm_detail::Backend& backend,
                      std::shared_ptr<comm_detail::Group> everyone) {
    rank.backend_ = &backend;
    rank.world_.owner_ = &rank;
    rank.world_.group_ = std::move(everyone);
    rank.world_.me_ = rank.rank_;
  }
};

}  // namespace shardlings
