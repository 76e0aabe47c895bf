//===- FatalErrors.cpp - What LLVM ends a process with ----------------------------------------------------------------===//
#include "ditron/compiler/FatalErrors.h"

#include "ditron/support/ToolProcess.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <string_view>

namespace ditron::compiler {

void reportFatalErrors() {
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { endWithoutMemory(); });
  llvm::install_fatal_error_handler([](void *, const char *reason, bool) {
    const std::string_view text = reason;
    if (text.find("IO failure on output stream") != std::string_view::npos)
      endProcess(ExitUserError, text);
    endProcess(ExitBug, "a bug of Ditron: LLVM gave up: " + std::string(text));
  });
}

} // namespace ditron::compiler
