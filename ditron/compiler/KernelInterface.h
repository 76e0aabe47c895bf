//===- KernelInterface.h - The parameters of a kernel as its file declares them -------------------------*- C++ -*-===//
//
// What has to be known of a kernel before any argument is: names, defaults, which parameters are compile-time, which must
// not be specialised on, and what its decorators say about configurations. Needs the parser and the frontend's interpreter.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_COMPILER_KERNELINTERFACE_H
#define DITRON_COMPILER_KERNELINTERFACE_H

#include "ditron/compiler/Options.h"
#include "ditron/frontend/Signature.h"
#include "ditron/frontend/TuningSpace.h"
#include <span>

namespace ditron::compiler {

struct KernelParameter {
  std::string name;
  bool isConstexpr = false; ///< Annotated with tl.constexpr.
  std::string annotation;   ///< As written; empty without one.
  bool hasDefault = false;
  std::optional<frontend::ConstexprArgument> defaultValue; ///< Set when the default is a number, string or dtype.
  bool specialiseValue = true;                             ///< An integer 1 becomes a compile-time value.
  bool specialiseAlignment = true;                         ///< Multiples of 16 are compiled as such.
};

struct KernelInterface {
  std::string name;
  std::vector<KernelParameter> parameters;
  frontend::TuningSpace tuning;

  std::optional<size_t> find(std::string_view parameter) const;
  std::vector<std::string> parameterNames() const;
};

/// What the frontend is told of a source. The target's compute capability may decide what the module level of a file makes.
frontend::ImportOptions importOptions(const KernelSource &source, std::string_view target);

/// Parses the source and finds the kernel. NotFound names the kernels that exist. Without a target, conditions of the module
/// level see the frontend's default.
Expected<KernelInterface> describeKernel(const KernelSource &source, std::string_view kernel, std::string_view target = {});

/// The names of the kernels of a source, in order.
Expected<std::vector<std::string>> kernelNames(const KernelSource &source);

/// The files to which the imports of a source lead, read now unless `imported` has their texts already; the result is the same
/// kernel even if they change later.
KernelSource readImports(KernelSource source);

/// The configuration that a call uses which gives these parameters: the wanted one, else the first that can be compiled unless
/// the call gives one of the tuned parameters itself. Null when none applies.
Expected<const frontend::TuningConfig *> chooseConfig(const KernelInterface &kernel, std::span<const std::string> given,
                                                      std::optional<uint32_t> wanted);
/// A line for each configuration, with its number and, for those that cannot be compiled, the reason.
std::string listConfigs(const KernelInterface &kernel);

/// For each parameter of the kernel the item of the signature that it gets, or null for one that is left to its
/// default. Unnamed items belong to the parameters in order. Refuses unknown names, items left over, and parameters
/// without item or default.
Expected<std::vector<const frontend::ArgumentSpec *>> matchSignature(const KernelInterface &kernel,
                                                                     const frontend::KernelSignature &signature);

} // namespace ditron::compiler
#endif // DITRON_COMPILER_KERNELINTERFACE_H
