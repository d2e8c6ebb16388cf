#pragma once
// How long the steps of a traced run would have taken if only the computing and the links had taken time: no
// waking up, no late start of a transfer. What a program's overlap is measured against.
#include <vector>

#include "run/trace_json.hpp"

namespace shardlings::run {

/// One step, in milliseconds. All but `measured` follow from what the ranks computed between their calls and
/// from how long each transfer was under way.
struct StepSchedule {
  double measured = 0;  ///< from the first rank's begin to the last rank's end
  /// Each transfer starts when every rank has posted it and the one posted before is over; a rank goes on
  /// from a wait when the transfer is over.
  double ideal = 0;
  double serial = 0;  ///< the slowest rank's computing, and after it all transfers
};

/// For each step that all ranks traced (see step_name), in order. Collectives of one group; they are told
/// apart by the number in their text. Error when a rank waits for what it or another one has not posted in
/// the same step.
std::vector<StepSchedule> replay_steps(const std::vector<RankRecord>& ranks);

/// The median of one member over all steps; 0 without steps.
double median_of(const std::vector<StepSchedule>& steps, double StepSchedule::*member);

}  // namespace shardlings::run
