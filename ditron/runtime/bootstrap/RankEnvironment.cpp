//===- RankEnvironment.cpp - Which rank of which job this process is ----------------------------------------------===//
//
// The variables of each launcher as a table.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/bootstrap/RankEnvironment.h"

#include <charconv>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>
#include <vector>

namespace ditron::bootstrap {

namespace {

struct Launcher {
  const char *name;
  const char *rank, *worldSize, *localRank, *localWorldSize;
  std::vector<const char *> job; ///< All that are set make up the job's name.
};

const std::vector<Launcher> &launchers() {
  static const std::vector<Launcher> table = {
      {"torchrun",
       "RANK",
       "WORLD_SIZE",
       "LOCAL_RANK",
       "LOCAL_WORLD_SIZE",
       {"DITRON_JOB_ID", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"}},
      {"Open MPI",
       "OMPI_COMM_WORLD_RANK",
       "OMPI_COMM_WORLD_SIZE",
       "OMPI_COMM_WORLD_LOCAL_RANK",
       "OMPI_COMM_WORLD_LOCAL_SIZE",
       {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri"}},
      {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", {"PMI_JOBID", "PMI_ID_STRING"}},
      {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
  };
  return table;
}

Expected<uint32_t> number(const char *name, const std::string &text) {
  uint32_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return invalidArgument(fmt::format("environment variable {}='{}' is not a number from 0", name, text));
  return value;
}

/// Slurm says how many tasks each node has as "4(x2),3". All equal, or the job cannot be laid out here.
Expected<uint32_t> slurmTasksPerNode(const RankEnvironment::Lookup &lookup, uint32_t worldSize) {
  for (const char *name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"}) {
    const std::optional<std::string> text = lookup(name);
    if (!text)
      continue;
    const size_t digits = text->find_first_not_of("0123456789");
    const bool equal = digits == std::string::npos || ((*text)[digits] == '(' && text->find(',') == std::string::npos);
    if (!equal)
      return unsupported(
          fmt::format("environment variable {}='{}': nodes with different numbers of tasks", name, *text));
    return number(name, text->substr(0, digits));
  }
  const std::optional<std::string> nodes = lookup("SLURM_NNODES");
  if (nodes && *nodes == "1")
    return worldSize;
  return invalidArgument(
      "Slurm's SLURM_PROCID is set, but neither SLURM_STEP_TASKS_PER_NODE nor SLURM_NNODES=1: how many "
      "of the ranks are on this node?");
}

} // namespace

Expected<RankEnvironment> RankEnvironment::parse(const Lookup &lookup, int parent) {
  for (const Launcher &launcher : launchers()) {
    if (!lookup(launcher.rank))
      continue;
    // An interactive Slurm allocation sets these for the shell, which is a job step of one task or none.
    if (launcher.name == std::string_view("Slurm") && !lookup("SLURM_STEP_ID"))
      continue;
    RankEnvironment place;
    place.launcher = launcher.name;
    auto read = [&](const char *name, uint32_t &value) -> Status {
      const std::optional<std::string> text = lookup(name);
      if (!text)
        return invalidArgument(fmt::format("{} is set but {} is not: the environment of {} is incomplete",
                                           launcher.rank, name, launcher.name));
      DITRON_ASSIGN_OR_RETURN(value, number(name, *text));
      return Status::ok();
    };
    DITRON_RETURN_IF_ERROR(read(launcher.rank, place.rank));
    DITRON_RETURN_IF_ERROR(read(launcher.worldSize, place.worldSize));
    DITRON_RETURN_IF_ERROR(read(launcher.localRank, place.localRank));
    if (launcher.localWorldSize) {
      DITRON_RETURN_IF_ERROR(read(launcher.localWorldSize, place.localWorldSize));
    } else {
      DITRON_ASSIGN_OR_RETURN(place.localWorldSize, slurmTasksPerNode(lookup, place.worldSize));
    }
    if (place.worldSize < 1 || place.rank >= place.worldSize)
      return invalidArgument(fmt::format("{}={} with {}={}: ranks are 0 to the size less one", launcher.rank,
                                         place.rank, launcher.worldSize, place.worldSize));
    if (place.localRank >= place.localWorldSize)
      return invalidArgument(
          fmt::format("local rank {} of {} ({})", place.localRank, place.localWorldSize, launcher.name));
    if (place.localWorldSize != place.worldSize)
      return unsupported(
          fmt::format("{} started {} ranks, {} of them on this machine; this version runs on one machine",
                      launcher.name, place.worldSize, place.localWorldSize));
    for (const char *name : launcher.job)
      if (const std::optional<std::string> text = lookup(name)) {
        if (name == std::string_view("DITRON_JOB_ID"))
          place.launcher = "ditron launch";
        place.job += fmt::format("{}={};", name, *text);
      }
    if (place.job.empty())
      place.job = fmt::format("{} {}", launcher.name, parent);
    return place;
  }
  return RankEnvironment();
}

Expected<RankEnvironment> RankEnvironment::fromProcess() {
  return parse(
      [](const std::string &name) -> std::optional<std::string> {
        const char *value = std::getenv(name.c_str());
        return value ? std::optional<std::string>(value) : std::nullopt;
      },
      getppid());
}

Expected<int> RankEnvironment::chooseGpu(int visible) const {
  if (visible <= 0)
    return unsupported("the driver sees no GPU (CUDA_VISIBLE_DEVICES?)");
  if (visible == 1)
    return 0;
  if (localRank < static_cast<uint32_t>(visible))
    return static_cast<int>(localRank);
  return unsupported(fmt::format("local rank {} needs a GPU of its own; this process sees {}", localRank, visible));
}

} // namespace ditron::bootstrap
