#pragma once
// What went wrong, in one sentence and one table: the words that all backends share. A backend fills in what
// it knows of each rank.
#include <cstdint>
#include <string>
#include <vector>

#include "comm/call.hpp"

namespace shardlings::comm_detail {

/// What is known of one rank at the moment of a failure. The vectors below are indexed by world rank.
struct RankState {
  enum State { running, returned, failed, silent } state = running;  ///< silent: its process does not answer
  std::string call;              ///< describe() of the call it is in; "": it computes
  bool waits = false;            ///< inside wait() for that call; otherwise it is posting it
  bool sends = false;            ///< that call is a send
  std::uint64_t exchange = 0;    ///< the same for the ranks that wait for the same thing
  std::vector<int> missing;      ///< world ranks whose calls it waits for
  std::int64_t for_ns = 0;       ///< how long it has been doing this
  std::string last = "nothing";  ///< last completed
};

/// "rank 2", "ranks 0, 3"
std::string ranks_text(const std::vector<int>& ranks);
/// Why the waiting ranks wait: for ranks that do not wait themselves, or else for each other. `odd` gets the
/// ranks to blame, if some stand out.
std::string explain_waiting(const std::vector<RankState>& ranks, std::vector<int>& odd);
/// The table `rank | doing | since | last completed`, with a mark at the odd ones.
std::string table_text(const std::vector<RankState>& ranks, const std::vector<int>& odd);
/// "" if the calls of a collective fit together; else who calls what. calls[i] belongs to members[i] (world
/// ranks); `odd` gets all but the majority, if there is one.
std::string mismatch_text(const std::vector<const Call*>& calls, const std::vector<int>& members,
                          std::vector<int>& odd);
/// The same for a send and the receive it met.
std::string mismatch_text(const Call& send, int sender, const Call& recv, int receiver);

}  // namespace shardlings::comm_detail
