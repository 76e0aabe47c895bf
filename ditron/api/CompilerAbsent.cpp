//===- CompilerAbsent.cpp - What libditron_runtime has instead of the compiler ------------------------------------===//
#include "ditron/api/KernelTemplate.h"

#include <ditron/ditron.h>

namespace ditron::api {

bool hasCompiler() { return false; }

Expected<std::shared_ptr<Compiler>> makeCompiler(const std::string &, MessageSink, bool) {
  return unsupported(
      "libditron_runtime has no compiler: take the kernel from a package (ditron_kernel_find), or link libditron");
}

} // namespace ditron::api

extern "C" int ditron_has_compiler(void) { return 0; }
