//===- ScalarRegion.cpp - Regions on scalars: combine functions and functions applied to elements -------------------------===//
//
// See ScalarRegion.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/ScalarRegion.h"

#include "ditron/analysis/Scratch.h"
#include "ditron/target/common/Exchange.h"
#include "ditron/target/common/LayoutIndex.h"
#include "ditron/target/common/ScalarOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using ditron::layout::MachineDim;

namespace ditron::target {

//===------------------------------------------------------------------------------------------------------------------===//
// Application
//===------------------------------------------------------------------------------------------------------------------===//

static bool isOutsideConstant(Value value) { return value.getDefiningOp<arith::ConstantOp>() != nullptr; }

/// True if the region is arithmetic on its arguments and constants: one application is one instruction for each operation.
static bool isPlain(Region &region) {
  for (Operation &op : region.front()) {
    if (!isa<tile::YieldOp>(op) && !isScalarizable(&op))
      return false;
    for (Value operand : op.getOperands())
      if (operand.getParentRegion() != &region && !isOutsideConstant(operand))
        return false;
  }
  return true;
}

static SmallVector<Value> emitPlain(Emitter &e, TargetInfo &target, Block &block, IRMapping &mapping) {
  auto lowered = [&](Value value) {
    if (!mapping.contains(value)) {
      auto constant = value.getDefiningOp<arith::ConstantOp>();
      mapping.map(value, emitConstant(e, target, cast<TypedAttr>(constant.getValue())));
    }
    return mapping.lookup(value);
  };
  for (Operation &op : block.without_terminator()) {
    if (isa<arith::ConstantOp>(op))
      continue; // where it is used
    SmallVector<Value> operands = llvm::map_to_vector(op.getOperands(), lowered);
    mapping.map(op.getResults(), ValueRange(emitScalarOp(e, target, &op, operands)));
  }
  return llvm::map_to_vector(block.getTerminator()->getOperands(), lowered);
}

/// Clones the operations as they are: they are converted in their turn.
static SmallVector<Value> emitClones(Emitter &e, const LoweringContext &lowering, Block &block, IRMapping &mapping) {
  auto castTo = [&](Value value, Type type) -> Value {
    if (value.getType() == type)
      return value;
    return UnrealizedConversionCastOp::create(e, type, value).getResult(0);
  };
  for (BlockArgument argument : block.getArguments())
    mapping.map(argument, castTo(mapping.lookup(argument), argument.getType()));
  for (Operation &op : block.without_terminator())
    if (!isa<dgpu::PerformsOp>(op)) // known already
      e.clone(op, mapping);
  SmallVector<Value> results;
  for (Value yielded : block.getTerminator()->getOperands())
    results.push_back(castTo(mapping.lookupOrDefault(yielded), lowering.types.convertType(yielded.getType())));
  return results;
}

SmallVector<Value> applyRegion(Emitter &e, const LoweringContext &lowering, Operation *op, ValueRange arguments,
                               llvm::function_ref<Value()> performs) {
  Region &region = op->getRegion(0);
  Block &block = region.front();
  IRMapping mapping;
  mapping.map(block.getArguments(), arguments);
  for (auto asks : block.getOps<dgpu::PerformsOp>()) {
    Value condition = performs();
    mapping.map(asks.getResult(), condition ? condition : e.i1(true));
  }
  if (isPlain(region))
    return emitPlain(e, lowering.target, block, mapping);
  return emitClones(e, lowering, block, mapping);
}

LogicalResult shareWithCopies(Emitter &e, const LoweringContext &lowering, Operation *op,
                              const layout::DistributedLayout &layout, SmallVectorImpl<SmallVector<Value>> &values) {
  TargetInfo &target = lowering.target;
  uint32_t freeLanes = layout.freeMask(MachineDim::Lane), freeWarps = layout.freeMask(MachineDim::Warp);
  if (freeWarps != 0) {
    FailureOr<int64_t> offset = scratchOffset(op);
    if (failed(offset))
      return offset;
    SmallVector<analysis::WarpExchange> exchanges = analysis::warpExchangesOf(op);
    SmallVector<SharedSlots> groups;
    for (auto [value, valueOffset] : llvm::zip(values, exchanges.back().operandOffsets))
      groups.push_back({*offset + valueOffset, value});
    uint32_t freeThreads = freeLanes | freeWarps * static_cast<uint32_t>(target.warpSize());
    Value source = e.bitAnd(target.threadId(e), e.i32(static_cast<int32_t>(~freeThreads)));
    auto shared = exchangeThroughShared(e, target, groups, lowering.numThreads(op), source, Value());
    values.assign(shared.begin(), shared.end());
  } else if (freeLanes != 0) {
    Value source = e.bitAnd(target.laneId(e), e.i32(static_cast<int32_t>(~freeLanes)));
    for (SmallVector<Value> &value : values)
      value = shuffleValues(e, target, dist::ShuffleKind::Index, value, source);
  }
  return success();
}

//===------------------------------------------------------------------------------------------------------------------===//
// Maps
//===------------------------------------------------------------------------------------------------------------------===//

namespace {

/// `pack` neighbouring registers at a time. When a thread has fewer, the same element is given several times.
class MapElementwisePattern : public TilePattern<tile::MapElementwiseOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::MapElementwiseOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    const layout::DistributedLayout &layout = dgpu::layoutOf(op.getSources().front().getType());
    size_t pack = op.getPack(), registers = layout.numRegs();
    auto performs = [&] { return isRepresentative(e, target, layout); };
    SmallVector<Values> results(op.getNumResults());
    for (size_t begin = 0; begin < registers; begin += pack) {
      Values arguments;
      for (ValueRange source : adaptor.getSources())
        for (size_t i = 0; i < pack; ++i)
          arguments.push_back(source[std::min(begin + i, registers - 1)]);
      Values applied = applyRegion(e, lowering, op, arguments, performs);
      for (size_t result = 0; result < results.size(); ++result)
        for (size_t i = 0; i < pack && begin + i < registers; ++i)
          results[result].push_back(applied[result * pack + i]);
    }
    if (analysis::regionUsesEffects(op))
      if (LogicalResult shared = shareWithCopies(e, lowering, op, layout, results); failed(shared))
        return shared;
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

} // namespace

void populateMapPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<MapElementwisePattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
