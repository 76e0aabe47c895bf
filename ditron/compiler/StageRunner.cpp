//===- StageRunner.cpp - One compilation on its way through the stages --------------------------------------------===//
//
// Times, dumps and reproducers. Nothing here decides what is compiled.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/compiler/StageRunner.h"

#include "ditron/support/OutputFile.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"

#include <chrono>
#include <fmt/format.h>

namespace ditron::compiler {

namespace {

/// Adds the time of its life to the report.
class StageClock {
public:
  StageClock(CompileReport &report, std::string_view stage, Phase phase)
      : report(report), stage(stage), phase(phase), start(std::chrono::steady_clock::now()) {}
  ~StageClock() {
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    report.times.push_back({std::string(stage), elapsed.count(), phase});
  }

private:
  CompileReport &report;
  std::string_view stage;
  Phase phase;
  std::chrono::steady_clock::time_point start;
};

/// Differs between variants of one kernel and is the same in every process.
std::string variantHash(const CompileJob &job) {
  return fmt::format("{:08x}", static_cast<uint32_t>(llvm::xxh3_64bits(job.signature.str() + job.options.key())));
}

/// The folder may be one that everybody writes to: a file there is a new one, which only this user can read. Gives its path.
Expected<std::string> writeReproducer(const std::string &stem, const std::string &text) {
  constexpr int mostReproducers = 100;
  Status last;
  for (int number = 1; number <= mostReproducers; ++number) {
    const std::string path = number == 1 ? stem + ".txt" : fmt::format("{}-{}.txt", stem, number);
    last = writePrivateFile(path, text);
    if (last.isOk())
      return path;
    if (!last.message().ends_with("File exists"))
      break;
  }
  return last;
}

} // namespace

std::string CompileJob::commandLine() const {
  return fmt::format("ditron compile '{}:{}' --target {} --num-warps {} --num-stages {} --signature '{}'", source.path,
                     kernel, options.target, options.numWarps, options.numStages, signature.str());
}

std::string printModule(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, mlir::OpPrintingFlags().elideLargeElementsAttrs(64));
  return text;
}

StageRunner::StageRunner(const CompileJob &job, KernelMessages &messages, CompileReport &report)
    : job(job), messages(messages), report(report) {
  const Knobs &knobs = job.options.knobs;
  if (knobs.dumpKernel != "*" && (knobs.dumpKernel.empty() || knobs.dumpKernel != job.kernel))
    return;
  llvm::SmallString<128> folder(knobs.dumpDir);
  llvm::sys::path::append(folder, fmt::format("{}-{}", job.kernel, variantHash(job)));
  if (std::error_code error = llvm::sys::fs::create_directories(folder)) {
    report.messages +=
        fmt::format("warning: cannot make the dump folder '{}': {}\n", folder.str().str(), error.message());
    return;
  }
  dumpFolder = folder.str().str();
  dump("source", "py", job.source.text);
  dump("command", "txt", job.commandLine() + "\n");
}

Status StageRunner::passes(std::string_view stage, mlir::ModuleOp module,
                           std::vector<std::unique_ptr<mlir::Pass>> list) {
  StageClock clock(report, stage, Phase::Passes);
  mlir::PassManager manager(module.getContext(), mlir::ModuleOp::getOperationName(),
                            mlir::OpPassManager::Nesting::Implicit);
  manager.enableVerifier(job.options.knobs.verifyPasses);
  for (std::unique_ptr<mlir::Pass> &pass : list)
    manager.addPass(std::move(pass));
  // A copy costs little; its text is needed only when the stage fails.
  mlir::OwningOpRef<mlir::ModuleOp> before = module.clone();
  if (mlir::failed(manager.run(module))) {
    if (messages.hasErrors() && !messages.hasCompilerBug())
      return Status(messages.areResourceLimits() ? StatusCode::ResourceExhausted : StatusCode::CompileError,
                    messages.errorText())
          .at(messages.errorLocation());
    return compilerBug(stage, printModule(*before), messages.errorText());
  }
  if (isDumping())
    dump(stage, "mlir", printModule(module));
  return Status::ok();
}

Status StageRunner::step(std::string_view stage, Phase phase, const std::function<Status()> &body) {
  StageClock clock(report, stage, phase);
  return body();
}

void StageRunner::addTimes(Phase phase, const std::vector<target::StepTime> &steps) {
  for (const target::StepTime &step : steps)
    report.times.push_back({step.name, step.milliseconds, phase});
}

void StageRunner::dump(std::string_view stage, std::string_view extension, llvm::StringRef text) {
  if (dumpFolder.empty())
    return;
  llvm::SmallString<128> path(dumpFolder);
  llvm::sys::path::append(path, fmt::format("{:02}-{}.{}", dumpNumber++, stage, extension));
  if (Status written = writeWholeFile(path.str().str(), text); !written.isOk()) {
    report.messages += fmt::format("warning: DITRON_DUMP: {}; no further stage is dumped\n", written.message());
    dumpFolder.clear();
  }
}

Status StageRunner::compilerBug(std::string_view stage, llvm::StringRef before, llvm::StringRef problem) {
  llvm::SmallString<128> path(job.options.knobs.reproducerDir);
  if (path.empty())
    llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, path);
  else
    (void)llvm::sys::fs::create_directories(path);
  llvm::sys::path::append(path, fmt::format("ditron-reproducer-{}-{}", job.kernel, variantHash(job)));
  const std::string text =
      fmt::format("Reproducer of a compiler bug in stage '{}'.\n\n"
                  "==== command\n{}\n==== problem\n{}\n==== kernel file {}\n{}\n"
                  "==== IR before the stage\n{}\n",
                  stage, job.commandLine(), problem.str(), job.source.path, job.source.text, before.str());
  const Expected<std::string> written = writeReproducer(path.str().str(), text);
  return internalError(
      fmt::format("compiler bug in stage '{}' while compiling kernel '{}':\n{}{}", stage, job.kernel, problem.str(),
                  written.isOk() ? fmt::format("note: reproducer written to {}", *written)
                                 : fmt::format("note: no reproducer: {}", written.status().message())));
}

} // namespace ditron::compiler
