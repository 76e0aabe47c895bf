//===- Ring.h - Tiles that a producer warp fetches together ---------------------------------------------------*- C++ -*-===//
//
// A ring of slots in shared memory, as WarpRings.h plans it and SpecializeWarps.cpp builds it.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_RING_H
#define DITRON_TRANSFORMS_RING_H

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ditron::transforms {

/// The dots that take a tile as A or B, through transposes, or without the outer dimensions of a fetched tile; nothing if something else uses it.
std::optional<llvm::SmallVector<tile::DotOp>> dotsOf(mlir::Value tile);

/// Loads of one block that are fetched together, and the dots that use them.
struct Ring {
  mlir::Block *block = nullptr;
  llvm::SmallVector<tile::DescriptorLoadOp> loads; ///< At least one.
  llvm::SmallVector<tile::DescriptorLoadOp> rows;  ///< That come with them; the consumer reads these itself.
  llvm::SmallVector<tile::LoadOp> gathers;         ///< Through pointers; by all threads of the producer.
  llvm::SmallVector<tile::DotOp> dots;             ///< In program order; in `block` or inside it.
  int64_t slots = 1;
  size_t group = 0;     ///< Rings of one group come one after the other, and use the same slots and mbarriers.
  bool isAsync = false; ///< One iteration's dots stay in flight during the next; all of them stand in `block` then.

  /// What tensor copies bring: `loads` and `rows`.
  llvm::SmallVector<tile::DescriptorLoadOp> copies() const;
  /// Where the producer copies them: at the last load of the block all offsets are known.
  mlir::Operation *lastLoad() const;
  /// What the consumer waits for a slot in front of: the first dot, or what has it inside, or the first row.
  mlir::Operation *firstRead() const;
  int64_t slotBytes() const;
  /// All slots of all buffers, with what lies empty between these.
  int64_t sharedBytes() const;
  /// Those that tensor copies bring.
  int64_t copiedBytes() const;
};

/// What either kind of load is copied to.
dgpu::BufferType bufferOf(mlir::Operation *load, int64_t slots);

/// True if all dots of the ring stand in loops and branches inside its block: a slot is used for many of them.
bool isForInnerLoops(const Ring &ring);

/// Slots that the author asks for. No loop, one slot; of what serves loops inside, the next tile is all that can be of use.
int64_t slotsWanted(const Ring &ring);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_RING_H
