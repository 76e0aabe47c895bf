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

/// A variant with the arguments that are left for its launch.
struct Variant {
  runtime::Kernel kernel;
  std::vector<runtime::Argument> arguments;
  /// A stage of its compilation as text; names as ditron_variant_text's.
  std::function<Expected<std::string>(std::string_view stage)> text;
};

class KernelTemplate {
public:
  virtual ~KernelTemplate() = default;
  virtual const std::vector<std::string> &parameterNames() const = 0;
  virtual bool isConstexpr(std::string_view parameter) const = 0;
  virtual Expected<Variant> specialise(const CallArguments &arguments, const LaunchOptions &options) = 0;
  virtual Expected<Variant> compile(std::string_view signature, const LaunchOptions &options) = 0;
};

class Compiler {
public:
  virtual ~Compiler() = default;
  /// For operators.
  virtual runtime::KernelProvider &provider() = 0;
  virtual Expected<std::shared_ptr<KernelTemplate>> load(const compiler::KernelSource &source,
                                                         std::string_view kernel) = 0;
};

/// Receives a line for the user.
using MessageSink = std::function<void(const std::string &line)>;

/// The compiler for a target; `warnEach` tells each compilation. Unsupported in the library that has none.
Expected<std::shared_ptr<Compiler>> makeCompiler(const std::string &target, MessageSink messages, bool warnEach);
bool hasCompiler();

} // namespace ditron::api
#endif // DITRON_API_KERNELTEMPLATE_H
