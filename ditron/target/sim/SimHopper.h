//===- SimHopper.h - Simulated leaves: tensor copies and warpgroup multiplies -----------------------------*- C++ -*-===//
//
// Each leaf is a call of the function of its name in abi/Simulator.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_SIM_SIMHOPPER_H
#define DITRON_TARGET_SIM_SIMHOPPER_H

#include "ditron/target/common/HopperLeaves.h"
#include "ditron/target/sim/SimCalls.h"

namespace ditron::target {

class SimHopper : public HopperLeaves {
public:
  explicit SimHopper(SimCalls &sim) : sim(sim) {}

  mlir::Value electLane(Emitter &e) override;

  void mbarrierInit(Emitter &e, mlir::Value bar, int count, mlir::Value predicate) override;
  void mbarrierInitFence(Emitter &e) override {}
  void mbarrierInvalidate(Emitter &e, mlir::Value bar, mlir::Value predicate) override;
  void mbarrierExpect(Emitter &e, mlir::Value bar, int64_t bytes, mlir::Value predicate) override;
  void mbarrierArrive(Emitter &e, mlir::Value bar, mlir::Value predicate) override;
  void mbarrierArriveCopied(Emitter &e, mlir::Value bar) override;
  void mbarrierArriveAtPeer(Emitter &e, mlir::Value bar, mlir::Value predicate) override {
    llvm_unreachable("there are no clusters");
  }
  void mbarrierWait(Emitter &e, mlir::Value bar, mlir::Value parity) override;

  void prefetchMap(Emitter &e, mlir::Value map, mlir::Value predicate) override {}
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

  /// Simulated blocks have none: each fetches whole tiles.
  bool hasClusters() const override { return false; }
  mlir::Value blockInCluster(Emitter &e) override { llvm_unreachable("there are no clusters"); }
  void clusterBarrier(Emitter &e) override { llvm_unreachable("there are no clusters"); }

  void namedBarrier(Emitter &e, mlir::Value id, int threads, NamedBarrierKind kind) override;
  void setMaxRegisters(Emitter &e, int count, bool isIncrease) override;

private:
  mlir::Value coordinateArray(Emitter &e, mlir::ValueRange coordinates);

  SimCalls &sim;
};

} // namespace ditron::target

#endif // DITRON_TARGET_SIM_SIMHOPPER_H
