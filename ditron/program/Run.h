//===- Run.h - Runs a program once ----------------------------------------------------------------------*- C++ -*-===//
//
// Makes a world, the program's streams, events, buffers and operators in it, and runs its host code: on simulated GPUs interleaved by
// the simulator, on real ones in a thread each. A program can be run any number of times, with other options of the world (seeds of
// interleavings, say); the compiler is kept by whoever runs it.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PROGRAM_RUN_H
#define DITRON_PROGRAM_RUN_H

#include "ditron/program/Memory.h"

#include "ditron/compiler/Options.h"
#include "ditron/jit/Jit.h"

namespace ditron::program {

struct RunOptions {
  std::string target = "sim:sm_80";     ///< The program's own, where it has one, is up to the caller: targetOf().
  runtime::WorldOptions world;          ///< `sms` is the program's where it says.
  uint64_t dataSeed = 0;                ///< Of rand:.
  bool debug = false;                   ///< Assertions of kernels and integer overflow are checked.
  std::vector<std::string> searchPaths; ///< Where kernel files' imports are looked for, after their own folder.
  std::vector<std::pair<std::string, std::string>> defines; ///< KernelSource::defines.
  /// Takes what `print` steps say; standard output when there is none.
  std::function<void(const std::string &text)> print;
};

/// What became of a run.
struct Outcome {
  Status status;                       ///< Ok also when results are not as expected.
  bool hasStarted = false;             ///< The host code ran: an error is one of the running program.
  std::vector<std::string> mismatches; ///< One for each `expect` that was not met, with its place.
  uint64_t expectations = 0;           ///< How often something was compared.

  bool isGood() const { return status.isOk() && mismatches.empty(); }
};

class Run {
public:
  /// Makes everything that can be made before host code runs, and loads the kernels. The program and the compiler outlive the run.
  static Expected<std::unique_ptr<Run>> create(const Program &program, jit::Jit &jit, const RunOptions &options);
  ~Run();

  /// Runs the host code to its end; once.
  Outcome execute();

  runtime::World &world();
  /// A buffer as it is now: after the run, if it has not been freed.
  Expected<NpyArray> array(const std::string &name, uint32_t rank) const;
  /// The sources of the kernels, for messages.
  std::vector<const compiler::KernelSource *> sources() const;

  struct State;

private:
  explicit Run(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

/// The target that the program runs on: `wanted` if it is given, else the program's own, else sim:sm_80.
std::string targetOf(const Program &program, const std::optional<std::string> &wanted);

} // namespace ditron::program
#endif // DITRON_PROGRAM_RUN_H
