#pragma once
// What mpirun or srun tells a process before MPI has started.
#include <optional>
#include <string>

namespace shardlings {

struct MpiEnvironment {
  std::string launcher;  ///< "mpirun" or "srun"
  int rank = 0;
  int size = 0;  ///< 0: the environment does not say; MPI will
};

/// From the variables of Open MPI (OMPI_COMM_WORLD_…), PMIx and PMI (srun --mpi=pmix or pmi2); nothing where
/// none of them is set, as inside a batch script before mpirun.
std::optional<MpiEnvironment> mpi_environment();

/// Whether this build can run ranks as processes.
bool built_with_mpi();

}  // namespace shardlings
