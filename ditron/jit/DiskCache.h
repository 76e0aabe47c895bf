//===- DiskCache.h - Compiled kernels of earlier processes ---------------------------------------------------*- C++ -*-===//
//
// What the jit asks before it compiles. A kernel's key is a hash of everything that its code and its description depend on: the
// text and the path of its file and of all files that it imports, directly or through others, the kernel's name, the
// signature with all compile-time values, the options and the knobs that affect code, and the compiler (compiler/Identity.h).
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_JIT_DISKCACHE_H
#define DITRON_JIT_DISKCACHE_H

#include "ditron/cache/KernelStore.h"
#include "ditron/compiler/Options.h"
#include "ditron/frontend/Signature.h"

namespace ditron::jit {

/// One variant of a kernel, as asked for.
struct VariantRequest {
  const compiler::KernelSource &source;
  const std::string &kernel;
  std::string signature;
  const compiler::CompileOptions &options;
};

class DiskCache {
public:
  /// Opens the folder that the knobs name. Null when they name none, when it cannot be used (which is said once per process,
  /// on stderr), and when every stage is to be looked at, since then the kernel must be compiled.
  static std::unique_ptr<DiskCache> open(const Knobs &knobs, std::string_view target);

  /// The kernel as an earlier process compiled it. The report receives the time and what that compilation had to say.
  std::optional<Artifact> find(const VariantRequest &request, compiler::CompileReport &report);
  /// Keeps a kernel that was just compiled. A full disk is no reason to fail: then it is not kept.
  void keep(const VariantRequest &request, const Artifact &artifact, compiler::CompileReport &report);

private:
  DiskCache(std::unique_ptr<cache::KernelStore> store, std::string identity)
      : store(std::move(store)), identity(std::move(identity)) {}
  std::string keyOf(const VariantRequest &request) const;

  const std::unique_ptr<cache::KernelStore> store;
  const std::string identity; ///< Of the compiler.
};

/// The kernel from the cache, which may be null, or from the compiler, and then for the cache; report.isFromCache says which.
Expected<Artifact> findOrCompile(DiskCache *cache, const VariantRequest &request,
                                 const frontend::KernelSignature &signature, compiler::CompileReport &report);

} // namespace ditron::jit

#endif // DITRON_JIT_DISKCACHE_H
