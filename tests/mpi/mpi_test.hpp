#pragma once
// What the tests of the MPI backend share. They run as all ranks of a job at once: mpirun -n N mpi_tests.
// Every process runs every test, so whatever a test calls, all call.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "comm/comm.hpp"
#include "comm/mpi/session.hpp"

namespace shardlings::mpi_test {

/// The session of this process.
MpiSession& session();

/// What a rank wrote down while it ran: bytes and words.
class Log {
 public:
  void add(const std::string& what) { entries_.push_back(what); }
  void add(const std::string& what, const Tensor& tensor);
  const std::vector<std::string>& entries() const { return entries_; }

 private:
  std::vector<std::string> entries_;
};

using Scenario = std::function<void(Rank&, Log&)>;

/// Runs the scenario with as many thread ranks as the job has processes, then as processes. This rank must
/// have written down the same, bit for bit.
void expect_as_threads(const Scenario& scenario, const RunOptions& options = {});

/// The text of what run throws on this rank; "" if nothing.
std::string failure_of(const std::function<void(Rank&)>& body, const RunOptions& options = {});

/// Element i of rank r: magnitudes so far apart that another order of additions gives other bits.
double value(int r, i64 i);
Tensor filled(Rank& rank, DType dtype, i64 count, int salt = 0);

/// The four ways in which a run may be watched: checked mode and comparison of calls, each on or off.
std::vector<RunOptions> all_options();

}  // namespace shardlings::mpi_test
