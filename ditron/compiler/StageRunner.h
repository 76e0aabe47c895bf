//===- StageRunner.h - One compilation on its way through the stages ------------------------------------*- C++ -*-===//
//
// Runs the stages that Pipeline.cpp names, and does around each what is the same for all: measure the time, verify,
// write the IR into the dump folder, and on failure turn what was reported into a Status, with a reproducer when the
// compiler is to blame. The reproducer holds the kernel's file, the options, and the IR as it was before the stage that
// failed.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_COMPILER_STAGERUNNER_H
#define DITRON_COMPILER_STAGERUNNER_H

#include "ditron/compiler/Compiler.h"
#include "ditron/compiler/KernelMessages.h"
#include "ditron/target/common/StepClock.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/Pass.h"

#include <functional>

namespace ditron::compiler {

/// What is compiled: constant during a compilation.
struct CompileJob {
  const KernelSource &source;
  std::string kernel;
  const frontend::KernelSignature &signature;
  const CompileOptions &options;

  /// The command line that compiles the same.
  std::string commandLine() const;
};

class StageRunner {
public:
  StageRunner(const CompileJob &job, KernelMessages &messages, CompileReport &report);

  /// Runs passes over the module.
  Status passes(std::string_view stage, mlir::ModuleOp module, std::vector<std::unique_ptr<mlir::Pass>> passes);
  template <typename... Passes> Status passes(std::string_view stage, mlir::ModuleOp module, Passes... created) {
    std::vector<std::unique_ptr<mlir::Pass>> list;
    (list.push_back(std::move(created)), ...);
    return passes(stage, module, std::move(list));
  }
  /// Runs any other step under the stage's name; its errors pass through.
  Status step(std::string_view stage, Phase phase, const std::function<Status()> &body);
  /// Times that a step measured itself.
  void addTimes(Phase phase, const std::vector<target::StepTime> &steps);

  /// Writes a file NN-stage.extension into the dump folder, when this kernel is dumped.
  void dump(std::string_view stage, std::string_view extension, llvm::StringRef text);
  bool isDumping() const { return !dumpFolder.empty(); }
  const Knobs &knobs() const { return job.options.knobs; }

  /// The Internal error for a failure that is the compiler's, after writing a reproducer. `before` is the IR before the
  /// stage, `problem` what was reported.
  Status compilerBug(std::string_view stage, llvm::StringRef before, llvm::StringRef problem);

private:
  const CompileJob &job;
  KernelMessages &messages;
  CompileReport &report;
  std::string dumpFolder;
  unsigned dumpNumber = 0;
};

/// The text of a module without locations.
std::string printModule(mlir::ModuleOp module);

} // namespace ditron::compiler
#endif // DITRON_COMPILER_STAGERUNNER_H
