//===- SimLoops.h - Loops notice the time limit -------------------------------------------------------------*- C++ -*-===//
//
// The simulator cannot interrupt a GPU thread: its fiber gives up control only in calls of the engine, and a loop may make none.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_SIM_SIMLOOPS_H
#define DITRON_TARGET_SIM_SIMLOOPS_H

#include "ditron/target/sim/SimCalls.h"

namespace ditron::target {

/// Makes every loop of a lowered kernel read the word that says whether the run's time limit has passed, once per turn.
void checkTimeInLoops(mlir::LLVM::LLVMFuncOp kernel, SimCalls &sim);

} // namespace ditron::target

#endif // DITRON_TARGET_SIM_SIMLOOPS_H
