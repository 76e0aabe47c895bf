//===- Patterns.h - The conversion patterns, one file per family of operations ----------------------------*- C++ -*-===//
//
// What the *ToLLVM.cpp files share: the type conversion, the base class of their patterns, and the functions by which
// DitronToLLVM.cpp collects them. A tensor becomes one scalar per register, in ascending order of the packed index of the
// registers; patterns look up which register holds what through the layout.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_PATTERNS_H
#define DITRON_TARGET_COMMON_PATTERNS_H

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dgpu/DiscardableAttrs.h"
#include "ditron/dialect/dist/DiscardableAttrs.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/target/common/TargetInfo.h"

#include "mlir/Transforms/DialectConversion.h"

namespace ditron::target {

/// Tensors to 2^registers scalars, pointers to !llvm.ptr, buffers to their address, floats that the target does not
/// compute in to integers.
class TileTypeConverter : public mlir::TypeConverter {
public:
  explicit TileTypeConverter(const TargetInfo &target);
};

/// What all patterns of one lowering know.
struct LoweringContext {
  TargetInfo &target;
  const TileTypeConverter &types;
  int numWarps;
  /// Threads that run an operation together: those of its partition, or all.
  int numThreads(mlir::Operation *op) const;
};

/// Base class of the patterns.
template <typename OpT> class TilePattern : public mlir::OpConversionPattern<OpT> {
public:
  using OneToNAdaptor = typename mlir::OpConversionPattern<OpT>::OneToNOpAdaptor;
  using Values = llvm::SmallVector<mlir::Value>;

  TilePattern(mlir::MLIRContext *mlirContext, const LoweringContext &lowering)
      : mlir::OpConversionPattern<OpT>(lowering.types, mlirContext), lowering(lowering), target(lowering.target) {}

protected:
  const LoweringContext &lowering;
  TargetInfo &target;
};

/// The scratch memory that shared-memory allocation gave an operation; reports at the operation when there is none.
mlir::FailureOr<int64_t> scratchOffset(mlir::Operation *op);

/// Calls `apply` with the operands of each register in turn, once per distinct tuple, and collects its results per register.
/// For pure operations. An operand of one value serves all registers.
llvm::SmallVector<llvm::SmallVector<mlir::Value>>
applyToRegisters(size_t numRegs, size_t numResults, llvm::ArrayRef<mlir::ValueRange> operands,
                 llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange)> apply);

/// Runs `body` only where `condition` is true (always when it is null), yielding its values, or poison elsewhere.
llvm::SmallVector<mlir::Value> emitIf(Emitter &e, mlir::Value condition, mlir::TypeRange types,
                                      llvm::function_ref<llvm::SmallVector<mlir::Value>(Emitter &)> body);

/// The declaration of a function that is linked later, made on the first call. A pure one neither reads nor writes memory.
mlir::LLVM::LLVMFuncOp declareLibraryFunction(Emitter &e, llvm::StringRef symbol, mlir::Type result, mlir::TypeRange operands, bool isPure);

/// True (i1) in thread 0 of the block.
mlir::Value isFirstThread(Emitter &e, TargetInfo &target);

/// Functions of device libraries, and assembly.
void populateCallPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
void populateElementwisePatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
void populateShapePatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
void populatePointerPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
void populateDebugPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
void populateMemoryPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
void populateAtomicPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
void populateReducePatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
void populateScanPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
/// map_elementwise.
void populateMapPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
/// Gathers and histograms.
void populateGatherPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
/// Sorting networks.
void populateSortPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
void populateConvertLayoutPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
void populateDotPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
void populateSharedPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
void populateDistPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
/// Wide accesses, fences, shared memory and intrinsics of the thread level.
void populateThreadPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
/// Puts, gets, signals and team operations.
void populateShmemPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
/// mbarriers and tensor copies.
void populateHopperPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
/// Fails with an error at the first operation that takes the leaves of HopperLeaves where the target has none.
mlir::LogicalResult checkHopper(mlir::ModuleOp module, TargetInfo &target);
/// Partitions of warps.
void populatePartitionPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
/// Warpgroup dots.
void populateWarpgroupPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);
/// Program ids, functions and structured control flow.
void populateControlPatterns(mlir::RewritePatternSet &patterns, const LoweringContext &lowering);

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_PATTERNS_H
