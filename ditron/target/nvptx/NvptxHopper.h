//===- NvptxHopper.h - NVIDIA leaves: tensor copies and warpgroup multiplies ------------------------------*- C++ -*-===//
//
// The leaves of HopperLeaves.h as inline PTX, for sm_90a.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_NVPTX_NVPTXHOPPER_H
#define DITRON_TARGET_NVPTX_NVPTXHOPPER_H

#include "ditron/target/common/HopperLeaves.h"

#include <limits>

namespace ditron::target {

/// The number of dots that a wait leaves in flight which waits for nothing: no instruction, it only keeps LLVM from moving or merging its values.
inline constexpr int waitsForNothing = std::numeric_limits<int>::max();

class NvptxHopper : public HopperLeaves {
public:
  /// Waits give up after a time limit and report.
  void setBoundsWaits(bool bounds) { boundsWaits = bounds; }

  mlir::Value electLane(Emitter &e) override;

  void mbarrierInit(Emitter &e, mlir::Value bar, int count, mlir::Value predicate) override;
  void mbarrierInitFence(Emitter &e) override;
  void mbarrierInvalidate(Emitter &e, mlir::Value bar, mlir::Value predicate) override;
  void mbarrierExpect(Emitter &e, mlir::Value bar, int64_t bytes, mlir::Value predicate) override;
  void mbarrierArrive(Emitter &e, mlir::Value bar, mlir::Value predicate) override;
  void mbarrierArriveCopied(Emitter &e, mlir::Value bar) override;
  void mbarrierArriveAtPeer(Emitter &e, mlir::Value bar, mlir::Value predicate) override;
  void mbarrierWait(Emitter &e, mlir::Value bar, mlir::Value parity) override;

  void prefetchMap(Emitter &e, mlir::Value map, mlir::Value predicate) override;
  void tmaLoad(Emitter &e, mlir::Value map, mlir::ValueRange coordinates, mlir::Value shared, mlir::Value bar,
               mlir::Value predicate, tile::EvictionPolicy evict, bool toCluster) override;
  void tmaStore(Emitter &e, mlir::Value map, mlir::ValueRange coordinates, mlir::Value shared,
                mlir::Value predicate) override;
  void tmaStoreCommit(Emitter &e) override;
  void tmaStoreWait(Emitter &e, int pending, bool onlyRead) override;
  void fenceAsync(Emitter &e) override;
  void fenceAsyncGlobal(Emitter &e) override;

  mlir::Value matrixDescriptor(Emitter &e, mlir::Value shared, int64_t leadingBytes, int64_t strideBytes,
                               int swizzleBytes) override;
  void wgmmaFence(Emitter &e) override;
  llvm::SmallVector<mlir::Value> wgmma(Emitter &e, const WarpgroupDot &dot) override;
  void wgmmaCommit(Emitter &e) override;
  llvm::SmallVector<mlir::Value> wgmmaUnset(Emitter &e, mlir::TypeRange types) override;
  llvm::SmallVector<mlir::Value> wgmmaWait(Emitter &e, int pending, mlir::ValueRange values, mlir::ValueRange kept = {},
                                           mlir::ValueRange computed = {}) override;

  bool hasClusters() const override { return true; }
  mlir::Value blockInCluster(Emitter &e) override;
  void clusterBarrier(Emitter &e) override;

  void namedBarrier(Emitter &e, mlir::Value id, int threads, NamedBarrierKind kind) override;
  void setMaxRegisters(Emitter &e, int count, bool isIncrease) override;

private:
  bool boundsWaits = false;
};

} // namespace ditron::target

#endif // DITRON_TARGET_NVPTX_NVPTXHOPPER_H
