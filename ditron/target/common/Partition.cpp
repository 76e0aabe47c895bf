//===- Partition.cpp - Warp-specialised kernels ---------------------------------------------------------------------------===//
//
// See Partition.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Partition.h"

#include "ditron/dialect/dgpu/ResidentBlocks.h"
#include "ditron/target/common/Patterns.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ditron::target {

std::optional<Partition> partitionAt(Block *block) {
  for (Operation *parent = block ? block->getParentOp() : nullptr; parent;
       block = parent->getBlock(), parent = parent->getParentOp()) {
    auto warps = parent->getAttrOfType<IntegerAttr>(dgpu::partitionsAttrName);
    if (!warps)
      continue;
    int consumers = static_cast<int>(warps.getInt());
    bool isProducer = block->getParent()->getRegionNumber() == 1;
    if (!isProducer)
      return Partition{0, consumers};
    return Partition{consumers,
                     static_cast<int>(parent->getAttrOfType<IntegerAttr>(dgpu::activeWarpsAttrName).getInt())};
  }
  return std::nullopt;
}

int launchWarpsOf(ModuleOp module) {
  if (auto warps = module->getAttrOfType<IntegerAttr>(dgpu::launchWarpsAttrName))
    return static_cast<int>(warps.getInt());
  int warps = dgpu::numWarpsOf(module);
  module.walk([&](dgpu::WarpSpecializeOp op) {
    warps = dgpu::numWarpsOf(module) + static_cast<int>(op.getProducerWarps());
    return WalkResult::interrupt();
  });
  return warps;
}

namespace {

/// The regions become the arms of a branch. Regions are converted after the operation that holds them, so that leaves of what is inside
/// find the branch.
class WarpSpecializePattern : public TilePattern<dgpu::WarpSpecializeOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::WarpSpecializeOp op, OneToNAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    const int consumers = lowering.numWarps;
    // Through a shuffle, so that an assembler sees one value for the whole warp.
    Value own = target.warpId(e), word = e.zextOrTrunc(own, e.getIntegerType(target.shuffleBits()));
    Value first = target.shuffle(e, dist::ShuffleKind::Index, word, e.i32(0), Value());
    Value warp = e.zextOrTrunc(first, e.getI32Type());
    Value isConsumer = e.compare(LLVM::ICmpPredicate::ult, warp, e.i32(consumers));
    auto branch = scf::IfOp::create(e, TypeRange(), isConsumer, /*withElseRegion=*/true);
    const int active = static_cast<int>(op.getActiveWarps());
    branch->setAttr(dgpu::partitionsAttrName, e.getI32IntegerAttr(consumers));
    branch->setAttr(dgpu::activeWarpsAttrName, e.getI32IntegerAttr(active));
    // With fewer warps there are registers enough for all.
    bool movesRegisters = consumers >= 8 || dgpu::residentBlocksOf(op) > 1;
    auto take = [&](Region &from, Block *to) {
      rewriter.inlineBlockBefore(&from.front(), to, to->getTerminator()->getIterator());
    };
    e.setInsertionPoint(branch.thenBlock()->getTerminator());
    if (movesRegisters)
      target.hopper()->setMaxRegisters(e, static_cast<int>(op.getConsumerRegisters()), /*isIncrease=*/true);
    take(op.getConsumer(), branch.thenBlock());
    e.setInsertionPoint(branch.elseBlock()->getTerminator());
    if (movesRegisters)
      target.hopper()->setMaxRegisters(e, static_cast<int>(op.getProducerRegisters()), /*isIncrease=*/false);
    Value isProducer = e.compare(LLVM::ICmpPredicate::ult, warp, e.i32(consumers + active));
    auto producer = scf::IfOp::create(e, TypeRange(), isProducer, /*withElseRegion=*/false);
    take(op.getProducer(), producer.thenBlock());
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void populatePartitionPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<WarpSpecializePattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
