#include "comm/mpi/environment.hpp"

#include <cstdlib>

namespace shardlings {

namespace {

std::optional<int> number(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < 0) return std::nullopt;
  return static_cast<int>(value);
}

}  // namespace

std::optional<MpiEnvironment> mpi_environment() {
  if (const auto rank = number("OMPI_COMM_WORLD_RANK"))
    return MpiEnvironment{"mpirun", *rank, number("OMPI_COMM_WORLD_SIZE").value_or(0)};
  for (const char* variable : {"PMIX_RANK", "PMI_RANK"}) {
    const auto rank = number(variable);
    if (!rank) continue;
    // srun sets the size for PMI only; its own variable counts the tasks of the step.
    const auto size = number("PMI_SIZE");
    return MpiEnvironment{number("SLURM_STEP_ID") ? "srun" : "mpirun", *rank,
                          size ? *size : number("SLURM_STEP_NUM_TASKS").value_or(0)};
  }
  return std::nullopt;
}

bool built_with_mpi() {
#ifdef SHARDLINGS_MPI
  return true;
#else
  return false;
#endif
}

}  // namespace shardlings
