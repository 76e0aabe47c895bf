//===- WarpgroupToLLVM.cpp - Warpgroup dots ---------------------------------------------------------------------------------===//
//
// A dot of the block is cut into instructions of m64nNk32B: each warpgroup has its rows (or columns) of C, by its number; a
// warpgroup with more than 64 rows or 256 columns does several, one after the other for each step of K. Operands in shared
// memory are named by descriptors: the address of the first row, or column, and how panels follow each other, read from the
// layout (layout/Wgmma.h). Registers go to the instruction in its own order, looked up by the elements that they hold.
//
// Dots that promote their sums (fp8) take one instruction's columns after the other, at most 128, so that what is added up fits into
// registers beside C: multiply promote_elems of K from zero, wait, add. Tensor cores meanwhile work for other warpgroups.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/LayoutIndex.h"
#include "ditron/target/common/Patterns.h"
#include "ditron/target/common/SharedAccess.h"

#include "ditron/layout/Wgmma.h"

using namespace mlir;
using namespace ditron::layout;

namespace ditron::target {

/// The accumulators of a thread: per instruction its registers, and where its tile begins in the warpgroup's part of C.
struct AccumulatorTile {
  FragmentOrigin origin;
  std::vector<int> registers;
};

static std::vector<AccumulatorTile> accumulatorTiles(const DistributedLayout &c, int columns) {
  Fragment fragment = wgmmaFragment(columns);
  std::vector<AccumulatorTile> tiles;
  for (FragmentOrigin origin : fragmentOrigins(c, fragment))
    tiles.push_back({origin, fragmentRegisters(c, fragment, origin)});
  return tiles;
}

namespace {

/// An operand in shared memory.
struct SharedOperand {
  WgmmaOperand view;
  Value base; ///< Of the slot, moved to the warpgroup's rows or columns.

  Value descriptor(Emitter &e, HopperLeaves &leaves, int64_t mn, int64_t k) const {
    return leaves.matrixDescriptor(e, e.addBytes(base, view.offsetBytes(mn, k)), view.leadingBytes, view.strideBytes,
                                   view.swizzleBytes);
  }
};

class WarpgroupDotPattern : public TilePattern<dgpu::WarpgroupDotOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::WarpgroupDotOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    HopperLeaves &leaves = *target.hopper();
    const DistributedLayout &c = dgpu::layoutOf(op.getC().getType());
    auto typeB = cast<dgpu::BufferType>(op.getB().getType());
    std::optional<SharedOperand> b =
        sharedOperand(e, typeB, adaptor.getB().front(), adaptor.getSlotB().front(), c, DotOperand::B);
    std::optional<SharedOperand> a;
    auto typeA = dyn_cast<dgpu::BufferType>(op.getA().getType());
    if (typeA)
      a = sharedOperand(e, typeA, adaptor.getA().front(), adaptor.getSlotA().front(), c, DotOperand::A);
    if (!b || (typeA && !a) || !containsWgmma(c))
      return op.emitOpError("has operands that the instruction cannot read");

    int64_t depth = typeB.getShape()[0];
    const int stepElements = b->view.stepElements;
    int64_t panelSteps = b->view.stepsPerPanel;
    if (a)
      panelSteps = std::min(panelSteps, a->view.stepsPerPanel);
    const std::optional<uint32_t> promotion = op.getPromoteElems();
    constexpr int mostPromotedColumns = 128;
    WarpgroupDot dot;
    dot.operandType = typeB.getElementType();
    dot.n = promotion ? std::min(wgmmaColumns(c), mostPromotedColumns) : wgmmaColumns(c);
    dot.bStepBytes = b->view.stepBytes;
    dot.isBMnMajor = b->view.isMnMajor;
    if (a) {
      dot.aStepBytes = a->view.stepBytes;
      dot.isAMnMajor = a->view.isMnMajor;
    }
    // Starts the multiplies of K from `from` to `to` into dot.c, which the first one reads if `accumulate` (null: always).
    auto multiply = [&](const AccumulatorTile &tile, int64_t from, int64_t to, Value accumulate) {
      for (int64_t k = from; k < to; k += int64_t(dot.kSteps) * stepElements) {
        dot.kSteps = static_cast<int>(std::min((to - k) / stepElements, panelSteps - k / stepElements % panelSteps));
        dot.bDescriptor = b->descriptor(e, leaves, tile.origin.col, k);
        if (a)
          dot.aDescriptor = a->descriptor(e, leaves, tile.origin.row, k);
        else
          dot.a = registerOperand(op, adaptor.getA(), tile.origin.row, k, dot.kSteps);
        dot.accumulate = k == from ? accumulate : Value();
        dot.c = leaves.wgmma(e, dot);
      }
    };
    Values results(adaptor.getC().size());
    if (!promotion)
      leaves.wgmmaFence(e);
    for (const AccumulatorTile &tile : accumulatorTiles(c, dot.n)) {
      Values sums;
      for (int reg : tile.registers)
        sums.push_back(adaptor.getC()[reg]);
      if (promotion) {
        for (int64_t k = 0; k < depth; k += *promotion) {
          leaves.wgmmaFence(e);
          dot.c = leaves.wgmmaUnset(e, ValueRange(sums).getTypes());
          multiply(tile, k, std::min<int64_t>(depth, k + *promotion), e.i1(false));
          leaves.wgmmaCommit(e);
          for (auto [sum, part] : llvm::zip_equal(sums, leaves.wgmmaWait(e, 0, dot.c)))
            sum = LLVM::FAddOp::create(e, sum, part);
        }
      } else {
        Value accumulate = op.getAccumulate() ? adaptor.getAccumulate().front() : Value();
        const bool isUnread = accumulate && e.constantOf(accumulate) == 0;
        dot.c = isUnread ? leaves.wgmmaUnset(e, ValueRange(sums).getTypes()) : sums;
        multiply(tile, 0, depth, accumulate);
        sums = dot.c;
      }
      for (auto [reg, value] : llvm::zip_equal(tile.registers, sums))
        results[reg] = value;
    }
    if (!promotion)
      leaves.wgmmaCommit(e);
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  std::optional<SharedOperand> sharedOperand(Emitter &e, dgpu::BufferType type, Value buffer, Value slot,
                                             const DistributedLayout &c, DotOperand operand) const {
    std::optional<WgmmaOperand> view = wgmmaOperand(type.getLayout().getLayout(), operand);
    if (!view)
      return std::nullopt;
    // Where the number of the warpgroup moves the tile.
    SmallVector<int64_t> bases;
    int64_t columns = c.shape()[1];
    for (auto [position, basis] : llvm::enumerate(c.bases(MachineDim::Warp))) {
      int64_t packed = position < 2 || basis == zeroBasis ? 0 : int64_t(1) << basis;
      bases.push_back(view->offsetBytes(operand == DotOperand::A ? packed / columns : packed % columns, 0));
    }
    Value base = slotAddress(e, type, buffer, slot);
    if (llvm::any_of(bases, [](int64_t basis) { return basis != 0; }))
      base = e.addBytes(base, e.zextOrTrunc(mapBits(e, target.warpId(e), bases), e.getI64Type()));
    return SharedOperand{*view, base};
  }

  /// The fragments of so many steps of A.
  static Values registerOperand(dgpu::WarpgroupDotOp op, ValueRange a, int64_t row, int64_t k, int steps) {
    const DistributedLayout &layout = dgpu::layoutOf(op.getA().getType());
    Type element = tile::elementTypeOf(op.getA().getType());
    const Fragment &fragment = mmaFragment(*mmaKindFor(element.getIntOrFloatBitWidth()), DotOperand::A);
    Values values;
    for (int step = 0; step < steps; ++step)
      for (int reg : fragmentRegisters(layout, fragment, {row, k + int64_t(step) * fragment.cols}))
        values.push_back(a[reg]);
    return values;
  }
};

class WarpgroupWaitPattern : public TilePattern<dgpu::WarpgroupWaitOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::WarpgroupWaitOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    // Accumulators, one after the other, each in the order of its instruction. Other matrices are operands that stay what they are;
    // what is no matrix is to be computed before.
    Values inFlight, kept, computed;
    for (auto [source, values] : llvm::zip_equal(op.getSources(), adaptor.getSources())) {
      if (isAccumulator(source))
        for (const AccumulatorTile &tile : tilesOf(source))
          for (int reg : tile.registers)
            inFlight.push_back(values[reg]);
      else if (dgpu::layoutOf(source.getType()).rank() == 2)
        kept.append(values.begin(), values.end());
      else
        computed.append(values.begin(), values.end());
    }
    Values waited = target.hopper()->wgmmaWait(e, static_cast<int>(op.getPending()), inFlight, kept, computed);
    SmallVector<Values> results;
    size_t next = 0;
    for (auto [source, values] : llvm::zip_equal(op.getSources(), adaptor.getSources())) {
      Values &result = results.emplace_back(values);
      if (isAccumulator(source))
        for (const AccumulatorTile &tile : tilesOf(source))
          for (int reg : tile.registers)
            result[reg] = waited[next++];
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }

private:
  /// An A of 16 bits in registers has the layout of an accumulator, too.
  static bool isAccumulator(Value source) {
    return tile::elementTypeOf(source.getType()).getIntOrFloatBitWidth() == 32 &&
           containsWgmma(dgpu::layoutOf(source.getType()));
  }
  static std::vector<AccumulatorTile> tilesOf(Value source) {
    const DistributedLayout &layout = dgpu::layoutOf(source.getType());
    return accumulatorTiles(layout, wgmmaColumns(layout));
  }
};

} // namespace

void populateWarpgroupPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<WarpgroupDotPattern, WarpgroupWaitPattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
