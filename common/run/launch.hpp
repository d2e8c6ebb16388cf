#pragma once
// From a program's flags to its running ranks, and from them back to one rank that reports. A program written
// against this does not know whether its ranks are threads or processes.
#include <functional>
#include <string>
#include <vector>

#include "comm/comm.hpp"
#include "run/flags.hpp"
#include "run/trace_json.hpp"

namespace shardlings::run {

/// What the flags say about how ranks run: threads, link, deadline, checks.
RunOptions run_options(const CommonFlags& common);

/// "4 ranks x 1 thread on 2 cores: …", and a second line with the link when one was chosen. For the head of a
/// run, printed by rank 0.
std::string head_text(const CommonFlags& common, const Rank& rank);

/// Runs body once for each of common.ranks ranks and returns when all are over; what run_ranks throws. Under
/// mpirun or srun (common.backend is then "mpi") body runs once, as this process' rank, if all processes were
/// given the same flags; a failure is said once, by rank 0, and FailureShown thrown on every process. Only
/// rank 0 may print, make the run directory and write files: under processes the others have no part in them.
void launch(const CommonFlags& common, const std::function<void(Rank&)>& body);

/// On rank 0 what every rank handed in, by rank; empty elsewhere. Collective over the world. Counted as
/// traffic like any other operation: take records first.
std::vector<std::string> gather_texts(Rank& rank, const std::string& mine);
/// The same for numbers.
std::vector<double> gather_numbers(Rank& rank, double mine);
/// The same for record_of(rank), taken before anything is sent.
std::vector<RankRecord> gather_records(Rank& rank);

}  // namespace shardlings::run
