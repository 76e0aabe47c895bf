//===- HopperLeaves.h - Leaves of targets with tensor copies and warpgroup multiplies ---------------------*- C++ -*-===//
//
// What NVIDIA's compute capability 9.0 adds to TargetInfo: mbarriers, tensor copies (TMA) and the asynchronous matrix multiply
// of warpgroups (wgmma). TargetInfo::hopper() gives the interface, or null. The meaning of each leaf is that of the function
// of the same name in abi/Simulator.h. Conventions are those of TargetInfo: storage types, a null predicate means always.
//
// Addresses (`bar`, `shared`) are pointers into shared memory as lowering makes them. `map` points at a tensor map.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_HOPPERLEAVES_H
#define DITRON_TARGET_COMMON_HOPPERLEAVES_H

#include "ditron/dialect/tile/Tile.h"
#include "ditron/target/common/Emitter.h"

namespace ditron::target {

/// Products of one warpgroup of 64 rows: c += a * b, kSteps instructions one after the other.
struct WarpgroupDot {
  mlir::Type operandType; ///< Semantic element type of A and B.
  int n = 8;              ///< Columns: a multiple of 8, at most 256.
  int kSteps = 1;
  /// The A fragments of the thread, step by step, elements of a storage type in the order of mma.sync's operand; empty: A is
  /// in shared memory.
  llvm::SmallVector<mlir::Value> a;
  /// Matrix descriptors of the first step, i64 (HopperLeaves::matrixDescriptor), and the bytes from step to step.
  mlir::Value aDescriptor, bDescriptor;
  int64_t aStepBytes = 0, bStepBytes = 0;
  /// The operand's contiguous dimension is M (or N) and not K; 16-bit types only.
  bool isAMnMajor = false, isBMnMajor = false;
  /// The thread's n / 2 accumulators.
  llvm::SmallVector<mlir::Value> c;
  /// i1: false where the first step does not read c; null: always reads it.
  mlir::Value accumulate;
};

enum class NamedBarrierKind { Sync, Arrive };

class HopperLeaves {
public:
  virtual ~HopperLeaves() = default;

  /// True (i1) in one lane of the warp, the same each time.
  virtual mlir::Value electLane(Emitter &e) = 0;

  //===--- mbarriers ------------------------------------------------------------------------------------------------===//

  virtual void mbarrierInit(Emitter &e, mlir::Value bar, int count, mlir::Value predicate) = 0;
  /// After the initialisations and before the block barrier that lets others use them.
  virtual void mbarrierInitFence(Emitter &e) = 0;
  virtual void mbarrierInvalidate(Emitter &e, mlir::Value bar, mlir::Value predicate) = 0;
  /// Expects bytes and arrives once.
  virtual void mbarrierExpect(Emitter &e, mlir::Value bar, int64_t bytes, mlir::Value predicate) = 0;
  virtual void mbarrierArrive(Emitter &e, mlir::Value bar, mlir::Value predicate) = 0;
  /// At the same mbarrier of the other block of the cluster.
  virtual void mbarrierArriveAtPeer(Emitter &e, mlir::Value bar, mlir::Value predicate) = 0;
  /// Once, when the asynchronous copies that this thread has started are complete; does not wait.
  virtual void mbarrierArriveCopied(Emitter &e, mlir::Value bar) = 0;
  /// Until the phase of this parity (i32, 0 or 1) is complete.
  virtual void mbarrierWait(Emitter &e, mlir::Value bar, mlir::Value parity) = 0;

  //===--- Tensor copies --------------------------------------------------------------------------------------------===//

  /// Hints that copies by this map will follow.
  virtual void prefetchMap(Emitter &e, mlir::Value map, mlir::Value predicate) = 0;
  /// Coordinates are i32, the contiguous dimension first. `evict` is a hint for the L2 cache.
  virtual void tmaLoad(Emitter &e, mlir::Value map, mlir::ValueRange coordinates, mlir::Value shared, mlir::Value bar,
                       mlir::Value predicate, tile::EvictionPolicy evict = tile::EvictionPolicy::Normal,
                       bool toCluster = false) = 0;
  virtual void tmaStore(Emitter &e, mlir::Value map, mlir::ValueRange coordinates, mlir::Value shared,
                        mlir::Value predicate) = 0;
  virtual void tmaStoreCommit(Emitter &e) = 0;
  /// `onlyRead`: until the sources may be overwritten; else until the data is visible.
  virtual void tmaStoreWait(Emitter &e, int pending, bool onlyRead) = 0;
  /// Between ordinary writes to shared memory and tensor stores or multiplies that read them.
  virtual void fenceAsync(Emitter &e) = 0;
  /// Between ordinary accesses to global memory (those of others included, once acquired) and tensor copies of the same data.
  virtual void fenceAsyncGlobal(Emitter &e) = 0;

  //===--- Warpgroup multiply ---------------------------------------------------------------------------------------===//

  /// The i64 that describes an operand in shared memory. swizzleBytes is 0, 32, 64 or 128.
  virtual mlir::Value matrixDescriptor(Emitter &e, mlir::Value shared, int64_t leadingBytes, int64_t strideBytes,
                                       int swizzleBytes) = 0;
  virtual void wgmmaFence(Emitter &e) = 0;
  /// Starts the multiplies. The results may only be used as c of another one, or after wgmmaWait.
  virtual llvm::SmallVector<mlir::Value> wgmma(Emitter &e, const WarpgroupDot &dot) = 0;
  virtual void wgmmaCommit(Emitter &e) = 0;
  /// Registers with any content, for accumulators that the first multiply does not read: nothing is executed for them.
  virtual llvm::SmallVector<mlir::Value> wgmmaUnset(Emitter &e, mlir::TypeRange types) = 0;
  /// Waits until at most `pending` of the newest groups are incomplete. Gives `values` (accumulators in flight) back; those
  /// whose group is complete may then be used. `kept`: elements of operands that multiplies read from registers, which nobody may
  /// overwrite before. `computed`: values of 32 bits that are to be computed before, beside the multiplies.
  virtual llvm::SmallVector<mlir::Value> wgmmaWait(Emitter &e, int pending, mlir::ValueRange values,
                                                   mlir::ValueRange kept = {}, mlir::ValueRange computed = {}) = 0;

  //===--- Clusters of two blocks -----------------------------------------------------------------------------------===//

  /// Where this is false, nothing that follows is called, and no copy goes to a cluster.
  virtual bool hasClusters() const = 0;
  /// The number of this block in its cluster, i32.
  virtual mlir::Value blockInCluster(Emitter &e) = 0;
  /// All threads of the cluster that have not ended meet; whole warps get here.
  virtual void clusterBarrier(Emitter &e) = 0;

  //===--- Warp specialisation --------------------------------------------------------------------------------------===//

  /// Barrier `id` (1 to 15) of `threads` threads.
  virtual void namedBarrier(Emitter &e, mlir::Value id, int threads, NamedBarrierKind kind) = 0;
  /// Registers per thread of the calling warpgroup from here on: a multiple of 8 from 24 to 256.
  virtual void setMaxRegisters(Emitter &e, int count, bool isIncrease) = 0;
};

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_HOPPERLEAVES_H
