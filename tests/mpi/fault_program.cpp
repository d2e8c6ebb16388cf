// A program with one fault, chosen by --fault, as a lesson could have it: tests/mpi/process_test.cpp starts
// it with mpirun and looks at what it says and how it ends.
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/error.hpp"
#include "run/flags.hpp"
#include "run/launch.hpp"

using namespace shardlings;

namespace {

void faulty(Rank& rank, const std::string& fault) {
  Tensor x(rank.memory, Category::communication, DType::f32, {50'000});
  x.zero();
  rank.world().all_reduce(x).wait();
  const bool odd = rank.rank() == 1;
  if (fault == "skips" && odd) return;
  if (fault == "usage") fail_usage("2 sequences cannot be shared by 3 ranks.");
  if (fault == "throws" && odd) throw std::runtime_error("boom");
  if (fault == "todo" && odd) LAB_TODO("write this");
  if (fault == "sleeps" && odd) std::this_thread::sleep_for(std::chrono::seconds(60));
  if (fault == "rank 0 sleeps" && rank.rank() == 0) std::this_thread::sleep_for(std::chrono::seconds(60));
  if (fault == "killed" && odd) std::raise(SIGKILL);
  if (fault == "stopped" && odd) std::raise(SIGSTOP);
  if (fault == "other count" && odd) x = x.slice(0, 40'000);
  rank.world().all_reduce(x).wait();
}

}  // namespace

int main(int argc, char** argv) {
  return run::main_guard([&] {
    run::CommonFlags common;
    std::string fault = "none";
    run::Flags flags("fault_program", "Has one fault.");
    common.add_to(flags);
    flags.add("--fault", fault, "Which");
    flags.parse(argc, argv);
    run::launch(common, [&](Rank& rank) { faulty(rank, fault); });
  });
}
