//===- SimIntrinsics.h - Simulated leaves: dist.intrinsic -------------------------------------------------*- C++ -*-===//
//
// What Intrinsics.def lists, as calls of the simulator.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_SIM_SIMINTRINSICS_H
#define DITRON_TARGET_SIM_SIMINTRINSICS_H

#include "ditron/target/common/HopperLeaves.h"
#include "ditron/target/sim/SimCalls.h"

namespace ditron::target {

/// Emits an intrinsic; reports what the machine lacks. `hopper` is null on machines without tensor copies.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> simIntrinsic(Emitter &e, SimCalls &sim, HopperLeaves *hopper, llvm::StringRef name,
                                                             mlir::ValueRange operands, mlir::DictionaryAttr options);

} // namespace ditron::target

#endif // DITRON_TARGET_SIM_SIMINTRINSICS_H
