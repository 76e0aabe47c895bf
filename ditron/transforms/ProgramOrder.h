//===- ProgramOrder.h - What may run before what ------------------------------------------------------------*- C++ -*-===//
//
// A coarse and safe answer for structured control flow: loops run again, branches exclude each other.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_PROGRAMORDER_H
#define DITRON_TRANSFORMS_PROGRAMORDER_H

#include "mlir/IR/Operation.h"

namespace ditron::transforms {

/// True if some run of `earlier` may come before a run of `later`: it stands before it, or a loop contains both.
bool mayPrecede(mlir::Operation *earlier, mlir::Operation *later);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_PROGRAMORDER_H
