//===- KernelRun.h - A run of kernels on every rank -----------------------------------------------------*- C++ -*-===//
//
// The work behind `ditron run`: makes the ranks and the arguments, compiles, launches the kernels one after the other on every
// rank, waits, and gives the arrays back: printed, written, and compared with what is expected.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_KERNELRUN_H
#define DITRON_TOOLS_DITRON_KERNELRUN_H

#include "base/Command.h"
#include "base/Progress.h"
#include "run/Expectation.h"
#include "run/Exploration.h"
#include "run/KernelStage.h"

#include "ditron/package/PackageProvider.h"
#include "ditron/runtime/World.h"
#include "ditron/values/OutputText.h"
#include "ditron/values/SliceText.h"

#include <cstdio>
#include <set>

namespace ditron::tool {

/// The command line of `ditron run`, as text.
struct RunOptions {
  std::vector<StageOptions> stages; ///< At least one.
  std::string target = "sim:sm_80";
  uint32_t ranks = 1;
  uint32_t ranksPerNode = 0; ///< 0: all ranks are on one node.
  SourceOptions source; ///< How the files are read.
  bool debug = false;
  uint64_t seed = 0;
  std::optional<sim::Schedule> schedule; ///< In place of what the seed draws.
  uint64_t dataSeed = 0;
  uint32_t sms = 8;
  std::vector<std::string> slowRanks;    ///< RANK:FACTOR
  std::vector<std::string> memory;       ///< NAME=SPEC
  std::vector<std::string> outputs;      ///< NAME=FILE.npy
  std::vector<std::string> prints;       ///< NAME[SLICES]@RANK
  std::vector<std::string> expectations; ///< NAME=FILE.npy
  std::vector<std::string> tolerances;   ///< ABSOLUTE,RELATIVE
  std::vector<std::string> results; ///< Names of what explorations compare; empty: what is written and printed, or all.
  std::vector<std::string> packages;     ///< Kernels are taken from these, not compiled.
  std::string trace;
  std::string explain;   ///< ExplainFile.h
  double boundWaits = 0; ///< Seconds; 0 for unbounded.
  double timeLimit = 0;  ///< Seconds; 0 for none.
  bool shareGpus = false;
  bool noBoundsCheck = false;
  bool noRaceCheck = false;
  bool noPublishWaits = false;
  bool cooperative = false;
  bool time = false;
  bool quiet = false;
};

class KernelRun {
public:
  /// With a jit, kernels are taken from it: those that it has compiled for an earlier run of the same options need not be again.
  KernelRun(const RunOptions &options, const Knobs &knobs, std::shared_ptr<jit::Jit> jit = nullptr)
      : options(options), knobs(knobs), progress(options.quiet), jit(std::move(jit)) {}

  /// Does everything; results and the summary go to stdout, progress and warnings to stderr.
  Status run();
  /// Runs and compares with what is expected, with nothing on the terminal (the options are quiet ones), and gives the arrays.
  RunOutcome runOnce();
  const std::shared_ptr<jit::Jit> &kernels() const { return jit; }
  /// The kernel files, once they have been read.
  std::vector<compiler::KernelSource> sources() const;
  /// Whether the error of run() is one of the kernel while it ran.
  bool hasKernelFailed() const { return kernelFailed; }
  /// Whether it is that a result is not the expected one.
  bool hasMismatch() const { return mismatched; }
  bool isSimulated() const { return world && world->machine(); }

private:
  struct Output {
    const RunArray *array;
    values::OutputText text;
  };

  /// Everything before the kernels run.
  Status prepare();
  Status makeWorld();
  Status loadKernels();
  Status bindArguments();
  Status bindOutputs();
  /// Refuses what could not be written, or would be written over, before anything runs.
  Status checkOutputFiles();
  /// Compiles and loads everything.
  Status compile();
  Status launch();
  /// Launches and waits; the error is the kernels'.
  Status execute();
  Status writeTrace();
  Status writeOutputs();
  Status print(const values::SliceText &slice);
  Status compareWithExpectations();
  /// Of every array, or of those that --out and --print name, if any do.
  Expected<std::vector<RunOutcome::Result>> downloadResults() const;
  /// How long the run took on the machine model or, on real GPUs, on the slowest rank.
  std::string deviceTime() const;
  void printSummary(double seconds);

  const RunOptions &options;
  const Knobs &knobs;
  Progress progress;
  std::unique_ptr<runtime::World> world;
  std::shared_ptr<jit::Jit> jit;
  std::unique_ptr<package::PackageProvider> packaged; ///< With --package: gives the kernels, and the jit does not.
  std::unique_ptr<RunArrays> arrays;
  std::vector<KernelStage> stages;
  compiler::CompileReport compileReport; ///< Of all variants, with the time that the driver took to load them.
  std::set<std::string> shownMessages;   ///< Warnings that were printed.
  std::FILE *listing = stdout;           ///< What people read: stderr when standard output takes an array or the trace.
  std::vector<Output> outputs;
  std::vector<values::SliceText> prints;
  std::vector<Expectation> expectations;
  std::vector<runtime::Event> begins, ends; ///< Around the launches on real GPUs.
  bool launchRefused = false;
  bool kernelFailed = false;
  bool mismatched = false;
};

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_KERNELRUN_H
