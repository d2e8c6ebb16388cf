// Threads or processes: what the environment and the flags decide before anything starts. How processes run
// is tested in tests/mpi.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "comm/mpi/environment.hpp"
#include "core/error.hpp"
#include "run/flags.hpp"
#include "run/launch.hpp"

namespace shardlings::run {
namespace {

/// The environment of one test: of all variables that matter only these are set.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& set) {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK",
                             "PMI_SIZE", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"}) {
      const char* before = std::getenv(name);
      if (before != nullptr) before_[name] = before;
      names_.emplace_back(name);
      unsetenv(name);
    }
    for (const auto& [name, value] : set) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const std::string& name : names_) unsetenv(name.c_str());
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::map<std::string, std::string> before_;
  std::vector<std::string> names_;
};

/// What a program's common flags are after parsing these words; or the complaint.
std::pair<CommonFlags, std::string> parsed(std::vector<const char*> words,
                                           const char* default_link = "none") {
  CommonFlags common;
  common.link = default_link;
  Flags flags("program", "");
  common.add_to(flags);
  words.insert(words.begin(), "program");
  try {
    flags.parse(static_cast<int>(words.size()), words.data());
  } catch (const UsageError& error) {
    return {common, error.what()};
  }
  return {common, ""};
}

TEST(Launch, ThreadsUnlessStartedByMpirun) {
  const Environment none({});
  const auto [common, complaint] = parsed({});
  EXPECT_EQ(complaint, "");
  EXPECT_EQ(common.backend, "threads");
  EXPECT_EQ(common.ranks, 4);
  EXPECT_EQ(common.chosen.at("backend"), "threads");  // config.json says what it was
  EXPECT_NE(parsed({"--backend", "mpi", "--ranks", "3"}).second.find("mpirun -n 3"), std::string::npos);
}

// Rejects: the default of --ranks against the world's size, a given number that is overruled in silence, N
// copies of a program that each train all ranks.
TEST(Launch, ProcessesOfMpirunAreTheRanks) {
  if (!built_with_mpi()) GTEST_SKIP() << "this build has no MPI";
  for (const char* size : {"1", "3"}) {
    const Environment job({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", size}});
    const auto [common, complaint] = parsed({});
    EXPECT_EQ(complaint, "");
    EXPECT_EQ(common.backend, "mpi");
    EXPECT_EQ(std::to_string(common.ranks), size);
    EXPECT_EQ(common.chosen.at("ranks"), size);
    EXPECT_EQ(parsed({"--ranks", size}).second, "");
    const std::string other = parsed({"--ranks", "4"}).second;
    EXPECT_NE(other.find("--ranks 4: mpirun started " + std::string(size)), std::string::npos) << other;
  }
  const Environment job({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}});
  EXPECT_NE(parsed({"--backend", "threads"}).second.find("started 3 processes"), std::string::npos);
}

// A program of the course may pretend a link by default. Rejects: that default among processes, which refuse
// to pretend; a link that was asked for and is dropped in silence.
TEST(Launch, ProcessesPretendNoLinkUnasked) {
  if (!built_with_mpi()) GTEST_SKIP() << "this build has no MPI";
  const Environment job({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_EQ(parsed({}, "eth1g").first.link, "none");
  EXPECT_EQ(parsed({}, "eth1g").first.chosen.at("link"), "none");
  EXPECT_EQ(parsed({"--link", "pcie4"}, "eth1g").first.link, "pcie4");
}

// Rejects: a batch script, whose variables look like a job, taken for one.
TEST(Launch, SrunIsRecognisedByItsProcessManager) {
  {
    const Environment script({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}});
    EXPECT_FALSE(mpi_environment());
  }
  const Environment step({{"PMIX_RANK", "5"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}});
  const auto job = mpi_environment();
  ASSERT_TRUE(job);
  EXPECT_EQ(job->launcher, "srun");
  EXPECT_EQ(job->rank, 5);
  EXPECT_EQ(job->size, 8);
}

}  // namespace
}  // namespace shardlings::run
