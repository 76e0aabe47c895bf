//===- VerifyPhases.cpp - Phase contracts ---------------------------------------------------------------------------------===//
//
// Passes that change nothing and fail when an earlier pass broke its promise, so that the mistake carries the name of the pass
// after which it showed. The messages say "compiler bug": no kernel can be blamed for them.
//
// tile-verify-import: Only operations that the passes know, and each says where in the kernel's file it comes from.
// dgpu-verify-layouts: Every tensor value has a #dgpu.layout with the shape of the tensor and the lane and warp bits of the
// module, and every operation relates the layouts of its operands and results as its lowering expects.
// dgpu-verify-allocation: Every buffer and every operation with scratch memory has offset_bytes, inside dgpu.shared_bytes;
// buffers begin where the swizzles of tensor copies begin.
// dgpu-verify-preparation: What the lowering believes is there: widths of accesses, boxes of tensor copies, guards of effects.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/analysis/Scratch.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dgpu/DiscardableAttrs.h"
#include "ditron/dialect/dgpu/ResidentBlocks.h"
#include "ditron/dialect/dist/DiscardableAttrs.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/layout/Wgmma.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "ditron/transforms/layouts/RegionValues.h"
#include "ditron/transforms/tensor_copies/TensorMaps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <bit>

namespace ditron::transforms {
#define GEN_PASS_DEF_VERIFYALLOCATION
#define GEN_PASS_DEF_VERIFYIMPORT
#define GEN_PASS_DEF_VERIFYLAYOUTS
#define GEN_PASS_DEF_VERIFYPREPARATION
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

InFlightDiagnostic compilerBug(Operation *op) { return op->emitError() << "compiler bug: "; }

/// Walks until `check` fails.
template <typename Check> bool holdsEverywhere(Operation *root, Check check) {
  return !root->walk([&](Operation *op) { return failed(check(op)) ? WalkResult::interrupt() : WalkResult::advance(); })
              .wasInterrupted();
}

class VerifyImportPass : public impl::VerifyImportBase<VerifyImportPass> {
  void runOnOperation() override {
    if (!holdsEverywhere(getOperation(), check))
      signalPassFailure();
  }

  static LogicalResult check(Operation *op) {
    if (isa<ModuleOp>(op))
      return success();
    if (!isa_and_nonnull<tile::TileDialect, dist::DistDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect,
                         func::FuncDialect, ub::UBDialect>(op->getDialect()))
      return compilerBug(op) << op->getName()
                             << " after import; tile, dist, arith, math, scf, func and ub are expected there";
    if (isa<UnknownLoc>(op->getLoc()))
      return compilerBug(op) << op->getName() << " does not say where in the kernel's file it comes from";
    return success();
  }
};

class VerifyLayoutsPass : public impl::VerifyLayoutsBase<VerifyLayoutsPass> {
  void runOnOperation() override {
    int lanes = dgpu::threadsPerWarpOf(getOperation()), warps = dgpu::numWarpsOf(getOperation());
    WalkResult result = getOperation().walk([&](Operation *op) {
      for (Value value : op->getResults())
        if (failed(checkType(op, value, lanes, warps)))
          return WalkResult::interrupt();
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (Value argument : block.getArguments())
            if (failed(checkType(op, argument, lanes, warps)))
              return WalkResult::interrupt();
      return failed(checkRelation(op)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  static LogicalResult checkType(Operation *op, Value value, int lanes, int warps) {
    if (!isTensor(value))
      return success();
    dgpu::LayoutAttr attribute = dgpu::layoutAttrOf(value.getType());
    if (!attribute)
      return compilerBug(op) << "a tensor has no layout after layout assignment: " << value.getType();
    const layout::DistributedLayout &layout = attribute.getLayout();
    if (layout.shape() != tensorShape(value) || layout.numLanes() != lanes || layout.numWarps() != warps)
      return compilerBug(op) << "the layout is not one for this tensor on " << warps << " warps of " << lanes
                             << " lanes: " << value.getType();
    return success();
  }

  static LogicalResult checkRelation(Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isTensor(operand.get()))
        continue;
      // Arguments of the function come after the operations in it.
      if (!dgpu::layoutAttrOf(operand.get().getType()))
        return compilerBug(op) << "a tensor has no layout after layout assignment: " << operand.get().getType();
      const layout::DistributedLayout &own = dgpu::layoutOf(operand.get().getType());
      std::optional<layout::DistributedLayout> wanted;
      if (op->getNumResults() != 0 && isTensor(op->getResult(0)))
        wanted = operandLayout(operand, dgpu::layoutOf(op->getResult(0).getType()));
      else if (isa<tile::StoreOp>(op))
        wanted = dgpu::layoutOf(op->getOperand(0).getType());
      if (wanted && !(*wanted == own))
        return compilerBug(op) << "operand " << operand.getOperandNumber() << " should have the layout "
                               << wanted->toString() << " but has " << own.toString();
      if (auto dot = dyn_cast<dgpu::WarpgroupDotOp>(op);
          dot && operand.get() == dot.getC() && !layout::containsWgmma(own))
        return compilerBug(op) << "the accumulator of a warpgroup dot has the layout " << own.toString();
      if (followsFirstOperand(op) && isTensor(op->getResult(0)) &&
          !(*resultLayout(operand, own) == dgpu::layoutOf(op->getResult(0).getType())))
        return compilerBug(op) << "the result of " << op->getName() << " should have the layout "
                               << resultLayout(operand, own)->toString();
      for (Value tied : valuesTiedTo(operand))
        if (tied.getType() != operand.get().getType())
          return compilerBug(op) << "operand " << operand.getOperandNumber() << " is carried with another type";
    }
    return success();
  }
};

class VerifyAllocationPass : public impl::VerifyAllocationBase<VerifyAllocationPass> {
  void runOnOperation() override {
    auto total = getOperation()->getAttrOfType<IntegerAttr>(dgpu::sharedBytesAttrName);
    if (!total) {
      compilerBug(getOperation()) << dgpu::sharedBytesAttrName << " is not set after shared-memory allocation";
      return signalPassFailure();
    }
    WalkResult result = getOperation().walk([&](Operation *op) {
      int64_t bytes = analysis::scratchBytes(op);
      if (auto buffer = dyn_cast<dgpu::BufferAllocOp>(op))
        bytes = buffer.getType().getBytes();
      else if (auto bars = dyn_cast<dgpu::MbarrierAllocOp>(op))
        bytes = bars.getType().getBytes();
      if (bytes == 0)
        return WalkResult::advance();
      auto offset = op->getAttrOfType<IntegerAttr>(dgpu::offsetBytesAttrName);
      if (!offset) {
        compilerBug(op) << "needs " << bytes << " bytes of shared memory and has no " << dgpu::offsetBytesAttrName;
        return WalkResult::interrupt();
      }
      if (offset.getInt() + bytes > total.getInt()) {
        compilerBug(op) << "ends at byte " << offset.getInt() + bytes << " of " << total.getInt();
        return WalkResult::interrupt();
      }
      if (isa<dgpu::BufferAllocOp>(op) && offset.getInt() % bufferAlignment != 0) {
        compilerBug(op) << "begins at byte " << offset.getInt() << ", not at a multiple of " << bufferAlignment;
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

class VerifyPreparationPass : public impl::VerifyPreparationBase<VerifyPreparationPass> {
  void runOnOperation() override {
    if (!holdsEverywhere(getOperation(), check))
      signalPassFailure();
  }

  static LogicalResult check(Operation *op) {
    if (auto load = dyn_cast<tile::LoadOp>(op))
      return checkWidth(op, load.getPtr().getType());
    if (auto store = dyn_cast<tile::StoreOp>(op))
      return checkWidth(op, store.getPtr().getType());
    if (auto copy = dyn_cast<dgpu::AsyncCopyOp>(op))
      return checkWidth(op, copy.getPtr().getType());
    if (auto load = dyn_cast<dgpu::TmaLoadOp>(op))
      return checkBox(load);
    if (auto store = dyn_cast<dgpu::TmaStoreOp>(op))
      return checkBox(store);
    if (auto split = dyn_cast<dgpu::WarpSpecializeOp>(op))
      return checkRegisters(split);
    if (isa<tile::ReduceOp, tile::ScanOp, tile::MapElementwiseOp>(op))
      return success(holdsEverywhere(op, checkGuard));
    return success();
  }

  static LogicalResult checkWidth(Operation *op, Type pointers) {
    auto tensor = dyn_cast<RankedTensorType>(pointers);
    if (!tensor)
      return success();
    auto axis = op->getAttrOfType<IntegerAttr>(dgpu::vectorAxisAttrName),
         elems = op->getAttrOfType<IntegerAttr>(dgpu::vectorElemsAttrName);
    if (!axis || !elems)
      return compilerBug(op) << "an access of a tensor does not say how wide it is (" << dgpu::vectorAxisAttrName
                             << ", " << dgpu::vectorElemsAttrName << ")";
    if (axis.getInt() < 0 || axis.getInt() >= tensor.getRank())
      return compilerBug(op) << dgpu::vectorAxisAttrName << " is " << axis.getInt() << " for a tensor of rank "
                             << tensor.getRank();
    if (elems.getInt() < 1 || elems.getInt() > tensor.getDimSize(axis.getInt()) ||
        !std::has_single_bit(uint64_t(elems.getInt())))
      return compilerBug(op) << dgpu::vectorElemsAttrName << " is " << elems.getInt() << "; a power of two up to "
                             << tensor.getDimSize(axis.getInt()) << " is expected";
    return success();
  }

  /// What a GPU would wait for for ever. Fewer than 8 consumer warps move none.
  static LogicalResult checkRegisters(dgpu::WarpSpecializeOp split) {
    constexpr int64_t ofMultiprocessor = 65536, granularity = 8, lanes = 32;
    const int64_t consumers = dgpu::numWarpsOf(split) * lanes, producers = split.getProducerWarps() * lanes;
    if (consumers < 8 * lanes && dgpu::residentBlocksOf(split) == 1)
      return success();
    const int64_t threads = consumers + producers, ofBlock = ofMultiprocessor / dgpu::residentBlocksOf(split),
                  has = ofBlock / threads / granularity * granularity * threads;
    const int64_t asked = split.getConsumerRegisters() * consumers + split.getProducerRegisters() * producers;
    if (asked > has)
      return compilerBug(split) << "the partitions ask for " << asked << " registers; a block of " << threads
                                << " threads begins with " << has;
    return success();
  }

  template <typename CopyOp> static LogicalResult checkBox(CopyOp copy) {
    if (!copy.getBox() || !copy.getSwizzleBytes())
      return compilerBug(copy) << "a tensor copy does not say the box and the swizzle of its map";
    if (copy.getBox()->size() != copy.getOffsets().size())
      return compilerBug(copy) << "a tensor copy with " << copy.getOffsets().size() << " offsets has a box of "
                               << copy.getBox()->size() << " dimensions";
    return success();
  }

  /// An effect in a region on scalars stands in a branch that only the performing thread takes.
  static LogicalResult checkGuard(Operation *op) {
    if (!analysis::isInScalarRegion(op) || !analysis::isScalarEffect(op))
      return success();
    auto branch = dyn_cast<scf::IfOp>(op->getParentOp());
    if (branch && branch.getCondition().getDefiningOp<dgpu::PerformsOp>() && op->hasAttr(dist::perThreadAttrName))
      return success();
    return compilerBug(op) << "the effect of " << op->getName()
                           << " would happen in every thread that computes the region";
  }
};

} // namespace
} // namespace ditron::transforms
