//===- VerifyInput.h - What passes may rely on in IR that somebody wrote --------------------------------*- C++ -*-===//
//
// The compiler makes its own IR, so passes assume of it what every module of the compiler has: numbers of warps and lanes that are
// powers of two, operations inside of functions, places in shared memory that exist. Text that is given to ditron-opt need not
// have them; this says so before the first pass runs.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_OPT_VERIFYINPUT_H
#define DITRON_TOOLS_DITRON_OPT_VERIFYINPUT_H

#include "mlir/Pass/Pass.h"

#include <memory>

namespace ditron {

std::unique_ptr<mlir::Pass> createVerifyInput();

} // namespace ditron
#endif // DITRON_TOOLS_DITRON_OPT_VERIFYINPUT_H
