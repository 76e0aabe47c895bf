//===- NvptxWait.h - Waits that say how long they last -----------------------------------------------------*- C++ -*-===//
//
// Between NvptxWait.cpp, which writes the loops of waits, NvptxLastingWait.cpp, which writes what a wait does that lasts, and
// NvptxEvents.cpp, which writes how it is noted for traces.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_NVPTX_NVPTXWAIT_H
#define DITRON_TARGET_NVPTX_NVPTXWAIT_H

#include "ditron/target/common/Emitter.h"

namespace ditron::target {

/// Functions of the module, off the path of a loop that polls. `visit` is called by a wait that has lasted for a while: it says
/// so on the board (abi/WaitBoard.h) and, where waits are bounded, asks whether to give up.
///   visit(world, slot, start, address, seen, wanted, line, column, comparison, bytes, kind) -> slot, or waitGivesUp
///   leave(world, slot)                        the wait is over
///   ditron_world_view() -> world              replaced by the kernel's last argument
inline constexpr llvm::StringLiteral visitName = "ditron_wait_visit", leaveName = "ditron_wait_leave",
                                     worldName = "ditron_world_view";
/// Instead of a slot (numbers from 1; 0: none): the wait ends without its value.
inline constexpr int32_t waitGivesUp = -1;
/// A younger wait does nothing but poll.
inline constexpr int64_t patienceNanoseconds = 50'000;
/// From one visit to the next.
inline constexpr int64_t visitNanoseconds = 1'000'000;

/// The GPU's clock.
mlir::Value nanoseconds(Emitter &e);
/// Line and column of the kernel's source that a location leads to; zeros when unknown.
std::pair<int64_t, int64_t> placeOf(mlir::Location loc);
/// 32-bit FNV-1a of the symbol of the module's kernel, by which the host finds it; 0 when there is none.
uint32_t kernelHash(mlir::ModuleOp module);
/// The stand-in for the world view, until resolveWorldView.
mlir::Value standInWorldView(Emitter &e);

} // namespace ditron::target

#endif // DITRON_TARGET_NVPTX_NVPTXWAIT_H
