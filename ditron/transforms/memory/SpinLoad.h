//===- SpinLoad.h - Loops that do nothing but test memory -------------------------------------------------*- C++ -*-===//
#ifndef DITRON_TRANSFORMS_MEMORY_SPINLOAD_H
#define DITRON_TRANSFORMS_MEMORY_SPINLOAD_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ditron::transforms {

/// The only load of a loop that does nothing but test memory, or null: no carried values, one ordered load, no other effect.
/// Each turn then differs from the one before only if the loaded word does.
mlir::Operation *spinLoadOf(mlir::scf::WhileOp loop);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_MEMORY_SPINLOAD_H
