//===- CodeLoader.h - Compiled host objects into this process -------------------------------------------*- C++ -*-===//
//
// Links the relocatable objects of simulated targets with LLVM's ORC: calls of the simulator go to the engine in this
// process, mathematical functions to its libm. Each object gets a name space of its own, so that variants of one kernel
// can live side by side, and is unmapped when its last owner goes.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_JIT_CODELOADER_H
#define DITRON_JIT_CODELOADER_H

#include "ditron/runtime/Kernel.h"

namespace ditron::jit {

class CodeLoader {
public:
  static Expected<std::unique_ptr<CodeLoader>> create();
  ~CodeLoader();

  /// Links the artifact's code. The image keeps it mapped, also past the life of the loader.
  Expected<runtime::ModuleImage> load(const Artifact &artifact);

private:
  struct Session;
  explicit CodeLoader(std::shared_ptr<Session> session);
  std::shared_ptr<Session> session;
};

} // namespace ditron::jit
#endif // DITRON_JIT_CODELOADER_H
