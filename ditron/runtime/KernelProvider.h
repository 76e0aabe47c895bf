//===- KernelProvider.h - Where compiled kernels come from ----------------------------------------------*- C++ -*-===//
//
// Host code says which kernel it wants and with which arguments; a KernelProvider has the variant that was compiled for such
// arguments. There are two: jit::Jit compiles it when it is first asked for, package::PackageProvider has it from a file that
// was made ahead of time, without a compiler. Operators (ditron/ops) know only this class, so that a program links the
// compiler or does not.
//
//   Expected<Specialisation> add = provider.specialise({.name = "vector.py", .path = path, .text = text, .kernel = "add"},
//                                                      {{x, y, z, 1000}, {{"BLOCK", 128}}}, {.numWarps = 4});
//   stream.launch(add->kernel, {.grid = {8, 1, 1}}, add->arguments);
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_KERNELPROVIDER_H
#define DITRON_RUNTIME_KERNELPROVIDER_H

#include "ditron/runtime/Kernel.h"

#include <span>

namespace ditron::runtime {

/// Arguments as Python's call f(positional..., name=value...) has them.
struct CallArguments {
  std::vector<Argument> positional;
  std::vector<std::pair<std::string, Argument>> keywords;
};

/// What a launch says besides its arguments, as Triton's launch keywords.
struct LaunchOptions {
  std::optional<uint32_t> numWarps;  ///< Unset: what the kernel's configuration says, else 4.
  std::optional<uint32_t> numStages; ///< The same, else 3.
  bool debug = false;                ///< Assertions of kernels and integer overflow are checked.
  /// For so many blocks a multiprocessor of a GPU shall have registers at once. With one, the compiler spends as many as loads that are on
  /// their way together can use; with more it spares them. Unset: one, but without products of tiles, where other warps must hide what loads take, as
  /// many as make up half of a multiprocessor's threads, if they need no more memory for what registers do not hold.
  std::optional<uint32_t> residentBlocks = std::nullopt;
  /// The configuration of the kernel's @triton.autotune, counted from 0. Unset: the first that can be compiled, unless the
  /// arguments give one of the parameters that configurations set.
  std::optional<uint32_t> config = std::nullopt;

  uint32_t warps() const { return numWarps.value_or(4); }
  uint32_t stages() const { return numStages.value_or(3); }
};

/// A compiled variant and the arguments that are left to pass at run time.
struct Specialisation {
  Kernel kernel;
  std::vector<Argument> arguments;
};

/// A file that the source of a kernel may import.
struct ImportableSource {
  std::string_view name; ///< As KernelReference::name.
  std::string_view path; ///< Imports lead to it as to a file that is there; none need be.
  std::string_view text;
};

/// Names a kernel.
struct KernelReference {
  std::string_view name; ///< Of its source, the same on every machine: "ditron:gemm" for a file of the library.
  std::string_view path; ///< Where the source is, or was when this program was built; for diagnostics and imports.
  std::string_view text; ///< The source's text; empty: it is what the file at `path` holds when the text is needed.
  std::string_view kernel;
  std::span<const ImportableSource> imports = {}; ///< Used in place of what is on disk at their paths.
};

class KernelProvider {
public:
  virtual ~KernelProvider() = default;

  /// What the kernels are compiled for: "sim:sm_90a".
  virtual const std::string &target() const = 0;
  /// The variant for these arguments. May be called from several threads.
  virtual Expected<Specialisation> specialise(const KernelReference &kernel, const CallArguments &arguments,
                                              const LaunchOptions &options) = 0;
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_KERNELPROVIDER_H
