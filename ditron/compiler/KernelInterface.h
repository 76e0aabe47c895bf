//===- KernelInterface.h - The parameters of a kernel as its file declares them -------------------------*- C++ -*-===//
//
// What has to be known of a kernel before any argument is: names, defaults, which parameters are compile-time, and
// which must not be specialised on. Needs only the parser.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_COMPILER_KERNELINTERFACE_H
#define DITRON_COMPILER_KERNELINTERFACE_H

#include "ditron/compiler/Options.h"
#include "ditron/frontend/Signature.h"

namespace ditron::compiler {

struct KernelParameter {
  std::string name;
  bool isConstexpr = false; ///< Annotated with tl.constexpr.
  std::string annotation;   ///< As written; empty without one.
  bool hasDefault = false;
  std::optional<frontend::ConstexprArgument> defaultValue; ///< Set when the default is a literal.
  bool specialiseValue = true;                             ///< An integer 1 becomes a compile-time value.
  bool specialiseAlignment = true;                         ///< Multiples of 16 are compiled as such.
};

struct KernelInterface {
  std::string name;
  std::vector<KernelParameter> parameters;

  std::optional<size_t> find(std::string_view parameter) const;
  std::vector<std::string> parameterNames() const;
};

/// Parses the source and finds the kernel. NotFound names the kernels that exist.
Expected<KernelInterface> describeKernel(const KernelSource &source, std::string_view kernel);

/// For each parameter of the kernel the item of the signature that it gets, or null for one that is left to its
/// default. Unnamed items belong to the parameters in order. Refuses unknown names, items left over, and parameters
/// without item or default.
Expected<std::vector<const frontend::ArgumentSpec *>> matchSignature(const KernelInterface &kernel,
                                                                     const frontend::KernelSignature &signature);

} // namespace ditron::compiler
#endif // DITRON_COMPILER_KERNELINTERFACE_H
