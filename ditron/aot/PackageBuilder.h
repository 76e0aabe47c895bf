//===- PackageBuilder.h - Compiles kernels into a package ----------------------------------------------------*- C++ -*-===//
//
// The compiler's side of ahead-of-time packages: variants are asked for by signature or by a call, compiled (or found on disk
// by jit/DiskCache.h), and described so that package/CallMatch.h can compare calls with them. A variant that is asked for
// again takes the place of the earlier one.
//
// For GPUs a variant has PTX, and machine code besides where DITRON_PTXAS names an assembler.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_AOT_PACKAGEBUILDER_H
#define DITRON_AOT_PACKAGEBUILDER_H

#include "ditron/compiler/KernelInterface.h"
#include "ditron/jit/DiskCache.h"
#include "ditron/jit/Jit.h"
#include "ditron/package/Package.h"

namespace ditron::aot {

/// What to compile.
struct VariantOrder {
  compiler::KernelSource source;
  std::string
      sourceName; ///< As calls name it (runtime::KernelReference::name): "ditron:gemm", or the name of the file.
  std::string kernel;
  std::string target; ///< A full name.
  std::vector<std::pair<std::string, std::string>> importNames =
      {}; ///< Of files of source.imported, by path: ImportableSource::name.

  /// What a call of the kernel asks for.
  static VariantOrder of(const runtime::KernelReference &kernel, std::string target = "");
};

class PackageBuilder {
public:
  /// `compiler` is what the package says of it: name, version, commit.
  PackageBuilder(const Knobs &knobs, std::string compiler);

  /// Goes on from what a package has.
  void addTo(package::Package existing) { built = std::move(existing); }

  /// Compiles the variant of a signature; a configuration of @triton.autotune completes it.
  Status addSignature(const VariantOrder &order, std::string_view signature, const runtime::LaunchOptions &options);
  /// Compiles the variant that a call of these arguments would be compiled to. Gives what is left for run time.
  struct CallVariant {
    package::Variant *variant = nullptr; ///< Until the next variant is added.
    std::vector<runtime::Argument> arguments;
  };
  Expected<CallVariant> addCall(const VariantOrder &order, const runtime::CallArguments &arguments,
                                const runtime::LaunchOptions &options);
  void addPlan(package::OperatorPlan plan);

  /// Told of each variant before it is compiled, and afterwards what its compilation had to say.
  std::function<void(const std::string &kernel, const std::string &signature, const compiler::CompileReport *report)>
      observer;

  const package::Package &package() const { return built; }
  uint32_t compilations() const { return compiled; }

private:
  Expected<package::Kernel *> kernelFor(const VariantOrder &order, const compiler::KernelInterface &interface);
  Expected<package::Variant *> add(const VariantOrder &order, const compiler::KernelInterface &interface,
                                   const frontend::KernelSignature &signature, const runtime::LaunchOptions &options);
  Expected<package::Code> compile(const VariantOrder &order, const frontend::KernelSignature &signature,
                                  const compiler::CompileOptions &options, Artifact &described);

  const Knobs knobs;
  std::map<std::string, std::unique_ptr<jit::DiskCache>> caches; ///< By target and assembler.
  package::Package built;
  uint32_t compiled = 0;
};

/// What a variant of the signature is compiled for, place by place. Refuses what no package can say, such as a number of more
/// than 64 bits.
Expected<std::vector<package::Item>> describeSignature(const compiler::KernelInterface &interface,
                                                       const frontend::KernelSignature &signature);

} // namespace ditron::aot
#endif // DITRON_AOT_PACKAGEBUILDER_H
