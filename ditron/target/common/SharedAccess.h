//===- SharedAccess.h - Tiles between registers and shared memory -----------------------------------------*- C++ -*-===//
//
// Emits the accesses of a layout::OffsetPlan: how each thread writes or reads its registers of a tile in shared memory.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_SHAREDACCESS_H
#define DITRON_TARGET_COMMON_SHAREDACCESS_H

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/layout/SharedLayout.h"
#include "ditron/target/common/TargetInfo.h"

namespace ditron::target {

/// The address of a slot of a lowered buffer.
mlir::Value slotAddress(Emitter &e, dgpu::BufferType type, mlir::Value buffer, mlir::Value slot);

/// The addresses of a plan's accesses, for a tile at `base`.
llvm::SmallVector<mlir::Value> sharedAddresses(Emitter &e, TargetInfo &target, const layout::OffsetPlan &plan,
                                               mlir::Value base, int elementBytes);

/// Writes registers (of a storage type) of a layout where `predicate`, null for always, is true.
void storeTile(Emitter &e, TargetInfo &target, const layout::OffsetPlan &plan, mlir::Value base,
               mlir::ValueRange registers, mlir::Value predicate, const layout::DistributedLayout &layout);
/// Reads the registers (of a storage type) of a layout.
llvm::SmallVector<mlir::Value> loadTile(Emitter &e, TargetInfo &target, const layout::OffsetPlan &plan,
                                        mlir::Value base, mlir::Type storage, const layout::DistributedLayout &layout);

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_SHAREDACCESS_H
