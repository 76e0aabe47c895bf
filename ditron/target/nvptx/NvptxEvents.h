//===- NvptxEvents.h - How waits are noted for traces ------------------------------------------------------*- C++ -*-===//
//
// Between NvptxEvents.cpp, which writes what is noted, and NvptxWait.cpp, which writes the loops of waits. In modules for which
// defineEvents has been called.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_NVPTX_NVPTXEVENTS_H
#define DITRON_TARGET_NVPTX_NVPTXEVENTS_H

#include "ditron/target/common/Emitter.h"

namespace ditron::target {

/// A number for an event that this thread will record (i64); 0 when nobody gathers events.
mlir::Value claimEvent(Emitter &e);
/// The wait that began then has ended now. Nothing is recorded for the number 0.
void recordWait(Emitter &e, mlir::Value number, mlir::Value begin, mlir::Value address, mlir::Value wanted,
                int64_t compare);

} // namespace ditron::target

#endif // DITRON_TARGET_NVPTX_NVPTXEVENTS_H
