//===- WarpRings.h - Which tiles a producer warp fetches ----------------------------------------------------*- C++ -*-===//
//
// The decisions of dgpu-specialize-warps, taken on the kernel as it is; SpecializeWarps.cpp then builds what was decided.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_WARPRINGS_H
#define DITRON_TRANSFORMS_WARPRINGS_H

#include "ditron/analysis/AxisInfo.h"
#include "ditron/transforms/warps/ProducerSlice.h"
#include "ditron/transforms/warps/Ring.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ditron::transforms {

/// True on targets where a producer warp can fetch tiles for dots: that have tensor copies, and warpgroup dots, which read from shared memory.
inline bool hasProducers(mlir::ModuleOp module) {
  return module->hasAttr(dgpu::wgmmaAttrName) && module->hasAttr(dgpu::tmaAttrName);
}

/// Plans the rings of one kernel.
class RingPlan {
public:
  RingPlan(mlir::func::FuncOp kernel, int warps, int64_t limitBytes)
      : kernel(kernel), warps(warps), limitBytes(limitBytes), slice(kernel) {}

  /// True if there is something to fetch; else, and for each load that stays, remarks say why. Loops whose author asked for warp
  /// specialisation in vain get a warning.
  bool run();

  /// Instead of run, and without remarks: true if run would find tiles to fetch in a loop.
  bool servesLoops();

  /// After either: whether the load is left to the producer, and if not, why; empty if it was not considered.
  bool fetches(mlir::Operation *load) const { return loads.contains(load); }
  std::string whyNotFetched(mlir::Operation *load) const;

  /// Warps that a producer needs: a tensor copy is started by one thread.
  int producerWarps() const;
  /// Blocks that a multiprocessor shall have registers and shared memory for at once; run chooses.
  int residentBlocks() const { return resident; }
  llvm::MutableArrayRef<Ring> rings() { return plannedRings; }
  size_t numGroups() const { return groups; }
  /// The operations with side effects that the producer runs beside the copies.
  llvm::ArrayRef<mlir::Operation *> producerEffects() const { return slice.effects().getArrayRef(); }
  /// The dots of rings in a block, in order.
  llvm::SmallVector<tile::DotOp> ringDotsIn(mlir::Block *block) const;

private:
  struct Refusal {
    mlir::Operation *op;
    std::string reason;
  };

  bool plan();
  void refuse(mlir::Operation *op, const llvm::Twine &reason);
  void warnInVain();
  std::string whyNotOperand(tile::DescriptorLoadOp load);
  std::string whyNotCopiedAhead(tile::DescriptorLoadOp load);
  std::string whyNotCopiedWith(tile::DescriptorLoadOp row, const Ring &ring);
  std::string whyNotGathered(tile::LoadOp load, const analysis::AxisInfoAnalysis &axes);
  std::string whyNotMultiplied(tile::DotOp dot);
  void findCandidates();
  void findGathers();
  void formRings();
  void addRows();
  void groupRings(bool inOneBlock);
  bool dotsMayStayInFlight(mlir::Block *block) const;
  bool isFetched(mlir::Value operand) const;
  std::string collectSlice();
  int64_t bytesOfStores();
  void chooseResidentBlocks();
  bool fitSlots();

  mlir::func::FuncOp kernel;
  int warps;
  int64_t limitBytes;
  ProducerSlice slice;
  llvm::SetVector<mlir::Operation *> loads; ///< tile.descriptor_load and tile.load, in program order, rows behind them.
  llvm::SmallVector<tile::DescriptorLoadOp> rows; ///< That may come with tiles.
  llvm::SmallVector<Ring, 0> plannedRings;
  size_t groups = 0;
  llvm::SmallVector<Refusal> refusals;
  int resident = 1;
  bool isSilent = false; ///< No remarks.
};

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_WARPRINGS_H
