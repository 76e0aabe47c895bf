//===- rank_environment_test.cpp - What launchers say -------------------------------------------------------------===//
#include "ditron/runtime/bootstrap/RankEnvironment.h"

#include <gmock/gmock.h>
#include <map>

using namespace ditron;
using namespace ditron::bootstrap;
using testing::AllOf;
using testing::HasSubstr;

namespace {

using Variables = std::map<std::string, std::string>;

Expected<RankEnvironment> parse(const Variables &variables, int parent = 77) {
  return RankEnvironment::parse(
      [&](const std::string &name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      },
      parent);
}

const Variables torchrun = {{"RANK", "3"},         {"WORLD_SIZE", "4"},
                            {"LOCAL_RANK", "3"},   {"LOCAL_WORLD_SIZE", "4"},
                            {"MASTER_ADDR", "h1"}, {"MASTER_PORT", "29500"}};
const Variables openMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                           {"OMPI_COMM_WORLD_SIZE", "2"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
const Variables slurm = {{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"},  {"SLURM_LOCALID", "5"},
                         {"SLURM_JOB_ID", "9"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_TASKS_PER_NODE", "8"}};

Variables with(Variables variables, const std::string &name, const std::string &value) {
  variables[name] = value;
  return variables;
}
Variables without(Variables variables, const std::string &name) {
  variables.erase(name);
  return variables;
}

TEST(RankEnvironment, NoneMeansNotLaunched) { EXPECT_FALSE(parse({})->launched()); }

TEST(RankEnvironment, EachLauncher) {
  const RankEnvironment torch = *parse(torchrun);
  EXPECT_EQ(torch.launcher, "torchrun");
  EXPECT_EQ(torch.rank, 3u);
  EXPECT_EQ(torch.worldSize, 4u);
  EXPECT_EQ(torch.job, "MASTER_ADDR=h1;MASTER_PORT=29500;");
  EXPECT_EQ(parse(with(torchrun, "DITRON_JOB_ID", "abc"))->launcher, "ditron launch");
  const RankEnvironment mpi = *parse(openMpi);
  EXPECT_EQ(mpi.launcher, "Open MPI");
  EXPECT_EQ(mpi.rank, 1u);
  EXPECT_EQ(mpi.job, "Open MPI 77"); // nothing but the parent process tells the job
  const RankEnvironment pmi =
      *parse({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(pmi.launcher, "PMI");
  const RankEnvironment srun = *parse(slurm);
  EXPECT_EQ(srun.launcher, "Slurm");
  EXPECT_EQ(srun.localWorldSize, 8u);
  EXPECT_EQ(srun.job, "SLURM_JOB_ID=9;SLURM_STEP_ID=0;");
}

TEST(RankEnvironment, TorchrunComesFirst) {
  Variables both = torchrun;
  both.insert(openMpi.begin(), openMpi.end());
  both.insert(slurm.begin(), slurm.end());
  EXPECT_EQ(parse(both)->launcher, "torchrun");
  Variables mpiUnderSlurm = openMpi;
  mpiUnderSlurm.insert(slurm.begin(), slurm.end());
  EXPECT_EQ(parse(mpiUnderSlurm)->launcher, "Open MPI");
}

TEST(RankEnvironment, AnIncompleteSetIsAnError) {
  EXPECT_THAT(parse(without(torchrun, "LOCAL_WORLD_SIZE")).status().message(),
              AllOf(HasSubstr("LOCAL_WORLD_SIZE"), HasSubstr("incomplete")));
  EXPECT_THAT(parse(with(torchrun, "WORLD_SIZE", "four")).status().message(), HasSubstr("WORLD_SIZE='four'"));
  EXPECT_THAT(parse(with(torchrun, "RANK", "4")).status().message(), HasSubstr("RANK=4 with WORLD_SIZE=4"));
}

/// The local size must not silently be taken for the world size.
TEST(RankEnvironment, SeveralMachinesAreRefused) {
  EXPECT_THAT(parse(with(torchrun, "WORLD_SIZE", "16")).status().message(), HasSubstr("one machine"));
  EXPECT_THAT(parse(with(slurm, "SLURM_STEP_TASKS_PER_NODE", "4(x2)")).status().message(),
              AnyOf(HasSubstr("one machine"), HasSubstr("local rank 5 of 4")));
  EXPECT_THAT(parse(with(slurm, "SLURM_STEP_TASKS_PER_NODE", "4(x2),3")).status().message(),
              HasSubstr("different numbers"));
  EXPECT_THAT(parse(without(slurm, "SLURM_STEP_TASKS_PER_NODE")).status().message(), HasSubstr("how many"));
  EXPECT_EQ(parse(with(without(slurm, "SLURM_STEP_TASKS_PER_NODE"), "SLURM_NNODES", "1"))->localWorldSize, 8u);
}

TEST(RankEnvironment, AnAllocationIsNotAJobStep) { EXPECT_FALSE(parse(without(slurm, "SLURM_STEP_ID"))->launched()); }

TEST(RankEnvironment, GpuOfARank) {
  RankEnvironment place = *parse(torchrun);
  EXPECT_EQ(*place.chooseGpu(8), 3);
  EXPECT_EQ(*place.chooseGpu(1), 0); // the launcher shows each process one
  EXPECT_FALSE(place.chooseGpu(2).isOk());
  EXPECT_FALSE(place.chooseGpu(0).isOk());
}

} // namespace
