//===- Options.h - What to compile, and how -------------------------------------------------------------*- C++ -*-===//
//
// Plain values of the compiler's interface, free of MLIR and LLVM, so that the rooms above the compiler (jit, ops) can
// name them without either.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_COMPILER_OPTIONS_H
#define DITRON_COMPILER_OPTIONS_H

#include "ditron/frontend/SourceText.h"
#include "ditron/support/Artifact.h"
#include "ditron/support/Knobs.h"

namespace ditron::compiler {

/// A kernel file: its text, the path by which messages name it, and where the files are that it imports.
struct KernelSource {
  std::string path;
  std::string text;
  std::vector<std::string> searchPaths = {}; ///< After the folder of the importing file.
  std::vector<SourceText> imported = {};     ///< Given, or as readImports found them; used instead of what is on disk.
  /// What the user says of names and expressions that only their machine knows (ImportOptions::defines).
  std::vector<std::pair<std::string, std::string>> defines = {};
  /// The variables of the environment that the texts name, as readImports found them: they may decide what is compiled.
  std::vector<std::pair<std::string, std::string>> environment = {};

  /// Reads a file from disk.
  static Expected<KernelSource> read(const std::string &path);
};

struct CompileOptions {
  std::string target = "sim:sm_80";
  uint32_t numWarps = 4;
  uint32_t numStages = 3;                                ///< Of loops that do not say their own.
  std::optional<uint32_t> residentBlocks = std::nullopt; ///< As of runtime::LaunchOptions; 1 to 32.
  bool debug = false;                                    ///< Assertions of kernels and integer overflow are checked.
  Knobs knobs;                                           ///< Optimisation level, dumps, verification.

  /// Ok, or which option is wrong and what is accepted.
  Status check() const;
  /// All that affects the compiled code, as text for cache keys.
  std::string key() const;
};

/// The parts of the way from a kernel's source to code that can be launched.
enum class Phase {
  Cache,     ///< Looking the kernel up among those on disk, and keeping it there.
  Frontend,  ///< Source to tile IR.
  Passes,    ///< To the LLVM dialect.
  Llvm,      ///< To PTX, or to an object for the host.
  Assembler, ///< ptxas, where DITRON_PTXAS asks for it.
  Load,      ///< Into this process or onto the GPU, by the linker or the driver, which assembles PTX.
};
/// "cache", "frontend", "passes", "LLVM", "assembler", "load".
std::string_view toString(Phase phase);

/// One stage of a compilation and how long it took.
struct StageTime {
  std::string name;
  double milliseconds = 0;
  Phase phase = Phase::Passes;
};

/// What a compilation has to tell besides its result.
struct CompileReport {
  std::vector<StageTime> times;
  std::string messages;     ///< Warnings, rendered; empty mostly.
  std::string remarks;      ///< What the passes did and did not do, and why; rendered.
  std::string printed;      ///< Output of tl.static_print.
  bool isFromCache = false; ///< Nothing was compiled: the kernel was found on disk.

  double totalMilliseconds() const;
  /// A table: a line for each phase, below it one for each of its stages, and the sum.
  std::string timesText() const;
};

} // namespace ditron::compiler
#endif // DITRON_COMPILER_OPTIONS_H
