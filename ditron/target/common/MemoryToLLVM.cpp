//===- MemoryToLLVM.cpp - tile.load and tile.store --------------------------------------------------------------------------===//
//
// Neighbouring registers are accessed together: dgpu-annotate-accesses has found along which dimension addresses are
// consecutive and how many elements one access may cover, given alignment and the constancy of the mask. Which registers
// these are comes from the layout. Stores run in the representative of each element only, scalar stores in thread 0 unless they
// are the work of single threads (dist::perThreadAttrName).
//
// dgpu.order_lanes is a leaf of the target's.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Exchange.h"
#include "ditron/target/common/LayoutIndex.h"
#include "ditron/target/common/Patterns.h"

using namespace mlir;
using ditron::layout::DistributedLayout;
using ditron::layout::MachineDim;

namespace ditron::target {

/// The registers of each access, in address order; together every register once.
static std::vector<SmallVector<int>> accessesOf(Operation *op, const DistributedLayout &layout) {
  auto axis = op->getAttrOfType<IntegerAttr>(dgpu::vectorAxisAttrName);
  auto elems = op->getAttrOfType<IntegerAttr>(dgpu::vectorElemsAttrName);
  int64_t count = axis && elems ? elems.getInt() : 1;
  std::vector<SmallVector<int>> accesses;
  int lowest = count > 1 ? layout::lowestBitOfAxis(layout.shape(), static_cast<int>(axis.getInt())) : 0;
  for (int reg = 0; reg < layout.numRegs(); ++reg) {
    int64_t first = registerPart(layout, reg);
    if (first & ((count - 1) << lowest))
      continue; // inside of an access that begins at another register
    SmallVector<int> regs;
    for (int64_t i = 0; i < count; ++i)
      regs.push_back(layout.registerFor(first + (i << lowest)));
    accesses.push_back(std::move(regs));
  }
  return accesses;
}

/// One access of one register for scalars.
static std::vector<SmallVector<int>> accessesOf(Operation *op, Type type) {
  if (isa<RankedTensorType>(type))
    return accessesOf(op, dgpu::layoutOf(type));
  return {{0}};
}

namespace {

class LoadPattern : public TilePattern<tile::LoadOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::LoadOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    GenericAddresses addresses(target, op);
    Type storage = target.storageType(tile::elementTypeOf(op.getType()));
    storage = isa<tile::PointerType>(storage) ? e.pointerType() : storage;
    ValueRange ptr = adaptor.getPtr(), mask = adaptor.getMask(), other = adaptor.getOther();

    // A volatile scalar load may be the body of a spin loop: it goes the way of ordered loads.
    if (op.getIsVolatile() && mask.empty() && !isa<RankedTensorType>(op.getType())) {
      Value loaded = target.orderedLoad(e, memoryType(storage), ptr.front(), tile::MemoryOrder::Relaxed,
                                        tile::MemoryScope::System, op->hasAttr(dist::spinAttrName));
      rewriter.replaceOpWithMultiple(op, {{fromMemory(e, loaded, storage)}});
      return success();
    }

    MemoryFlags flags{op.getCache(), op.getEvict(), op.getIsVolatile()};
    // What others change meanwhile is loaded once for all that hold copies: they take the same way behind it.
    const bool isLoadedOnce = op.getIsVolatile() && isa<RankedTensorType>(op.getType());
    Value loads = isLoadedOnce ? isRepresentative(e, target, dgpu::layoutOf(op.getType())) : Value();
    if (target.wantsRepresentatives() && !isLoadedOnce)
      flags.represents = isa<RankedTensorType>(op.getType()) ? isRepresentative(e, target, dgpu::layoutOf(op.getType()))
                         : op->hasAttr(dist::perThreadAttrName) ? Value()
                                                                : isFirstThread(e, target);
    Values results(ptr.size());
    for (const SmallVector<int> &regs : accessesOf(op, op.getType())) {
      Values fallback;
      for (int reg : regs)
        if (!other.empty())
          fallback.push_back(toMemory(e, other[other.size() == 1 ? 0 : reg]));
      Value predicate = mask.empty() ? Value() : mask[mask.size() == 1 ? 0 : regs.front()];
      Values loaded = target.loadVector(e, ptr[regs.front()], memoryType(storage), regs.size(),
                                        e.conjunction(loads, predicate), fallback, AddressSpace::Global, flags);
      for (auto [reg, value] : llvm::zip_equal(regs, loaded))
        results[reg] = fromMemory(e, value, storage);
    }
    if (isLoadedOnce && !op.getResult().use_empty()) {
      bool hadBarrier = false;
      FailureOr<Values> given =
          giveToCopies(e, target, op, dgpu::layoutOf(op.getType()), results, lowering.numThreads(op), hadBarrier);
      if (failed(given))
        return given;
      results = *given;
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

class StorePattern : public TilePattern<tile::StoreOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::StoreOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    GenericAddresses addresses(target, op);
    Type type = op.getPtr().getType();
    bool isTensor = isa<RankedTensorType>(type);
    Value writes; // null: every thread that gets here
    if (isTensor)
      writes = isRepresentative(e, target, dgpu::layoutOf(type));
    else if (!op->hasAttr(dist::perThreadAttrName))
      writes = isFirstThread(e, target);
    ValueRange ptr = adaptor.getPtr(), value = adaptor.getValue(), mask = adaptor.getMask();
    MemoryFlags flags{op.getCache(), op.getEvict(), op.getIsVolatile()};
    for (const SmallVector<int> &regs : accessesOf(op, type)) {
      Values elements;
      for (int reg : regs)
        elements.push_back(toMemory(e, value[value.size() == 1 ? 0 : reg]));
      Value predicate = mask.empty() ? Value() : mask[mask.size() == 1 ? 0 : regs.front()];
      target.storeVector(e, ptr[regs.front()], elements, e.conjunction(writes, predicate), AddressSpace::Global, flags);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

class OrderLanesPattern : public TilePattern<dgpu::OrderLanesOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::OrderLanesOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    auto addresses = [](ArrayRef<ValueRange> pointers) {
      return llvm::map_to_vector(pointers, [](ValueRange pointer) { return pointer.front(); });
    };
    target.orderLanes(e, addresses(adaptor.getLater()), addresses(adaptor.getEarlier()));
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void populateMemoryPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<LoadPattern, StorePattern, OrderLanesPattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
