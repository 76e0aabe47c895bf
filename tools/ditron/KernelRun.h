//===- KernelRun.h - One launch of a kernel on every rank -----------------------------------------------*- C++ -*-===//
//
// The work behind `ditron run`: makes the ranks and the arguments, compiles, launches once on every rank, waits, and
// gives the arrays back.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_KERNELRUN_H
#define DITRON_TOOLS_DITRON_KERNELRUN_H

#include "ArgumentText.h"
#include "Command.h"
#include "GridExpression.h"
#include "Progress.h"

#include "ditron/jit/Jit.h"
#include "ditron/runtime/World.h"

#include <set>

namespace ditron::tool {

/// The command line of `ditron run`, as text.
struct RunOptions {
  std::string kernel; ///< FILE.py:KERNEL
  std::string target = "sim:sm_80";
  uint32_t ranks = 1;
  std::string grid = "1";
  SourceOptions source;              ///< How the file is read.
  std::optional<uint32_t> config;    ///< Of the kernel's @triton.autotune.
  std::optional<uint32_t> numWarps;  ///< Unset: the configuration's, or 4.
  std::optional<uint32_t> numStages; ///< The same, or 3.
  bool debug = false;
  uint64_t seed = 0;
  uint32_t sms = 8;
  std::vector<std::string> slowRanks;  ///< RANK:FACTOR
  std::vector<std::string> arguments;  ///< NAME=SPEC
  std::vector<std::string> constexprs; ///< NAME=VALUE
  std::vector<std::string> outputs;    ///< NAME=FILE.npy
  std::vector<std::string> prints;     ///< NAME
  std::string trace;
  double boundWaits = 0; ///< Seconds; 0 for unbounded.
  double timeLimit = 0;  ///< Seconds; 0 for none.
  bool shareGpus = false;
  bool noBoundsCheck = false;
  bool cooperative = false;
  bool time = false;
  bool quiet = false;
};

class KernelRun {
public:
  KernelRun(const RunOptions &options, const Knobs &knobs) : options(options), knobs(knobs), progress(options.quiet) {}

  /// Does everything; results and the summary go to stdout, progress and warnings to stderr.
  Status run();
  /// Whether the error of run() is one of the kernel while it ran.
  bool hasKernelFailed() const { return kernelFailed; }

private:
  /// An array argument on all ranks.
  struct Array {
    std::string name;
    DataType type = DataType::F32;
    std::vector<std::vector<int64_t>> shapes; ///< Per rank.
    std::vector<runtime::Buffer> buffers;     ///< Per rank, unless symmetric.
    runtime::SymmetricBuffer symmetric;

    std::vector<int64_t> block; ///< Not empty: the kernel gets a tensor descriptor for tiles of this shape.
    bool fillNan = false;

    runtime::Pointer on(uint32_t rank) const {
      return symmetric.isValid() ? symmetric.on(rank) : buffers[rank].pointer();
    }
    runtime::Argument argument(uint32_t rank) const {
      if (block.empty())
        return on(rank);
      return runtime::TensorDescriptor{on(rank), shapes[rank], {}, block, fillNan};
    }
    Expected<std::vector<std::byte>> download(uint32_t rank) const;
  };
  struct Output {
    const Array *array;
    OutputText text;
  };

  Status makeWorld();
  Status bindArguments();
  /// One --arg or --constexpr, which may be a tuple.
  Status bindArgument(const std::string &text, bool isConstexpr);
  Status checkAssignment(const std::string &name, const std::string &value, bool isConstexpr);
  void addScalar(const std::string &name, runtime::Argument value);
  /// The arguments as a rank's kernel gets them.
  jit::CallArguments callOn(uint32_t rank) const;
  /// Adds what the kernel's configuration and heuristics give.
  Status tune();
  Status makeArray(const std::string &name, const ArrayText &text);
  Status bindOutputs();
  Status launch();
  Status writeOutputs();
  Status printArray(const Array &array);
  Status checkKnown(std::string_view option, const std::string &name) const;
  const Array *findArray(std::string_view name) const;
  /// How long the run took on the machine model or, on real GPUs, the slowest rank's launch.
  std::string deviceTime() const;
  void printSummary(double seconds);

  const RunOptions &options;
  const Knobs &knobs;
  Progress progress;
  std::unique_ptr<runtime::World> world;
  std::unique_ptr<jit::Jit> jit;
  compiler::KernelSource source;
  jit::LaunchOptions launchOptions;
  jit::KernelFunction function;
  compiler::CompileReport compileReport; ///< Of all variants, with the time that the driver took to load them.
  /// An argument, in the order of the command line, which is that of the fields of named tuples.
  struct Given {
    std::string name;              ///< Of an element of a tuple its path: "t.0".
    runtime::Argument value;       ///< The same on all ranks.
    std::optional<size_t> array;   ///< Else one of `arrays`.
  };
  std::vector<Given> given;
  std::set<std::string> assigned; ///< Parameters that have their value.
  std::vector<Array> arrays;
  std::vector<Output> outputs;
  IntegerNames integers;
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::vector<runtime::Event> begins, ends; ///< Around the launches on real GPUs.
  bool kernelFailed = false;
};

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_KERNELRUN_H
