//===- RankEnvironment.h - Which rank of which job this process is -------------------------------------------*- C++ -*-===//
//
// Launchers tell their processes by environment variables. Looked up in this order, the first complete set decides:
//
//   torchrun, ditron launch   RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
//   Open MPI                  OMPI_COMM_WORLD_RANK _SIZE _LOCAL_RANK _LOCAL_SIZE
//   PMI (MPICH, Intel MPI)    PMI_RANK PMI_SIZE, MPI_LOCALRANKID MPI_LOCALNRANKS
//   Slurm (srun)              SLURM_PROCID SLURM_NTASKS SLURM_LOCALID, SLURM_STEP_TASKS_PER_NODE
//
// A set of which a part is missing is an error, not a guess.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_BOOTSTRAP_RANKENVIRONMENT_H
#define DITRON_RUNTIME_BOOTSTRAP_RANKENVIRONMENT_H

#include "ditron/support/Status.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace ditron::bootstrap {

struct RankEnvironment {
  std::string launcher; ///< "torchrun", "ditron launch", "Open MPI", "PMI", "Slurm"; empty when there is none.
  uint32_t rank = 0;
  uint32_t worldSize = 1;
  uint32_t localRank = 0;
  uint32_t localWorldSize = 1;
  std::string job; ///< What tells this job from others on the machine.

  bool launched() const { return !launcher.empty(); }
  /// The GPU of this rank among `visible` ones: that of the local rank, or the only one when the launcher shows each process
  /// a GPU of its own.
  Expected<int> chooseGpu(int visible) const;

  using Lookup = std::function<std::optional<std::string>(const std::string &name)>;
  /// `parent` stands for the launcher where no variable tells the job.
  static Expected<RankEnvironment> parse(const Lookup &lookup, int parent);
  /// From this process's environment.
  static Expected<RankEnvironment> fromProcess();
};

} // namespace ditron::bootstrap
#endif // DITRON_RUNTIME_BOOTSTRAP_RANKENVIRONMENT_H
