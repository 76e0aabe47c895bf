//===- KernelTemplate.h - Kernels as a context hands them out -------------------------------------------------*- C++ -*-===//
//
// A kernel function of which variants can be had, whether they are compiled when asked for or lie in a package. The library
// with the compiler and the one without differ in one function: makeCompiler.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_API_KERNELTEMPLATE_H
#define DITRON_API_KERNELTEMPLATE_H

#include "ditron/compiler/Options.h"
#include "ditron/runtime/KernelProvider.h"

#include <functional>

namespace ditron::api {

using runtime::CallArguments;
using runtime::LaunchOptions;

class KernelTemplate {
public:
  virtual ~KernelTemplate() = default;
  virtual const std::vector<std::string> &parameterNames() const = 0;
  virtual bool isConstexpr(std::string_view parameter) const = 0;
  virtual Expected<runtime::Specialisation> specialise(const CallArguments &arguments,
                                                       const LaunchOptions &options) = 0;
  /// What compile() takes for the variant that specialise() gives; empty where arguments alone choose it.
  virtual Expected<std::string> signatureOf(const CallArguments &arguments) const = 0;
  virtual Expected<runtime::Kernel> compile(std::string_view signature, const LaunchOptions &options) = 0;
  /// A stage of the compilation of a variant as text; names as ditron_variant_text's.
  virtual Expected<std::string> text(const runtime::Kernel &variant, std::string_view signature,
                                     const LaunchOptions &options, std::string_view stage) const = 0;
};

class Compiler {
public:
  virtual ~Compiler() = default;
  /// For operators.
  virtual runtime::KernelProvider &provider() = 0;
  virtual Expected<std::shared_ptr<KernelTemplate>> load(const compiler::KernelSource &source,
                                                         std::string_view kernel) = 0;
};

/// Receives one or several lines for the user.
using MessageSink = std::function<void(std::string_view lines)>;

/// The compiler for a target; `warnEach` tells each compilation. Unsupported in the library that has none.
Expected<std::shared_ptr<Compiler>> makeCompiler(const std::string &target, MessageSink messages, bool warnEach);
bool hasCompiler();

} // namespace ditron::api
#endif // DITRON_API_KERNELTEMPLATE_H
