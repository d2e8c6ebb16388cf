#include "comm/mpi/session.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <array>
#include <map>

#include "comm/launcher.hpp"
#include "comm/mpi/world.hpp"

namespace shardlings {

namespace {

using comm_detail::Port;
using comm_detail::ProcessWorld;

/// Cores this process may use, as bytes: mpirun may have bound it to some.
std::string allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return {reinterpret_cast<const char*>(&set), sizeof set};
}

/// Cores that at least one of the processes may use.
int cores_of(const std::vector<std::string>& processes) {
  cpu_set_t any;
  CPU_ZERO(&any);
  for (const std::string& bytes : processes) {
    cpu_set_t set;
    std::memcpy(&set, bytes.data(), sizeof set);
    CPU_OR(&any, &any, &set);
  }
  return std::max(1, CPU_COUNT(&any));
}

std::string machine() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

MpiSession::MpiSession() : port_(std::make_unique<Port>()) {
  const std::vector<std::string> machines = gather(machine()), cores = gather(allowed_cores());
  std::map<std::string, std::vector<std::string>> by_machine;
  for (std::size_t r = 0; r < machines.size(); ++r) by_machine[machines[r]].push_back(cores[r]);
  cores_ = 0;
  for (const auto& [name, processes] : by_machine) cores_ += cores_of(processes);
  const auto& here = by_machine[machines[static_cast<std::size_t>(rank())]];
  cores_here_ = cores_of(here);
  ranks_here_ = static_cast<int>(here.size());
}

MpiSession::~MpiSession() = default;
int MpiSession::rank() const { return port_->rank(); }
int MpiSession::size() const { return port_->size(); }
std::vector<std::string> MpiSession::gather(const std::string& mine) { return port_->gather(mine); }
void MpiSession::barrier() { port_->barrier(); }
void MpiSession::set_piece_bytes(i64 bytes) { port_->piece_bytes = bytes; }

void MpiSession::run(const std::function<void(Rank&)>& body, const RunOptions& options) {
  if (!options.link.none())
    fail_usage(fmt::format("--link {}: only thread ranks pretend to have a link; processes use a real one",
                           options.link.name));
  Rank rank;
  const int threads = options.threads > 0 ? options.threads : std::max(1, cores_here_ / ranks_here_);
  RankLauncher::place(rank, port_->rank(), port_->size(), threads, cores_);
  rank.memory.poison_new_memory = options.checked;
  ProcessWorld world(*port_, runs_++, ranks_here_ <= cores_here_, rank, options);
  RankLauncher::connect(rank, world, world.everyone());
#ifdef _OPENMP
  omp_set_num_threads(threads);
#endif
  std::exception_ptr error;
  try {
    body(rank);
  } catch (...) {
    error = std::current_exception();
  }
  world.finish(error);
}

}  // namespace shardlings
