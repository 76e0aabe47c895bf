//===- DotToLLVM.cpp - tile.dot ---------------------------------------------------------------------------------------------===//
//
// Decides by looking: if the layouts of A, B and C contain the fragments of the tensor core instruction for the operand
// width, the whole dot is one mma leaf, else every thread computes its own part of C with multiply-adds. Both look the
// registers up by the tensor bits they hold; no order of registers is assumed.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Patterns.h"
#include "ditron/target/common/ScalarOps.h"

using namespace mlir;
using namespace ditron::layout;

namespace ditron::target {
namespace {

class DotPattern : public TilePattern<tile::DotOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::DotOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Type operandType = tile::elementTypeOf(op.getA().getType()), resultType = tile::elementTypeOf(op.getType());
    DotLayouts layouts{dgpu::layoutOf(op.getA().getType()), dgpu::layoutOf(op.getB().getType()),
                       dgpu::layoutOf(op.getType())};
    std::optional<MmaKind> kind = mmaKindFor(operandType.getIntOrFloatBitWidth());
    bool hasMma = kind && !isa<Float8E4M3FNType, Float8E5M2Type>(operandType) &&
                  layoutsFitMma(*kind, matrixLayouts(layouts)) && sameBatches(layouts);

    // Accumulation is in 32 bits (or f64); a narrower C is widened around it.
    Type accumulator = resultType.isF16() ? Type(e.getF32Type()) : resultType;
    Values c(adaptor.getC().begin(), adaptor.getC().end());
    for (Value &value : c)
      value = convertScalar(e, target, value, resultType, accumulator);
    FailureOr<Values> result = hasMma ? emitMma(e, op, *kind, layouts, adaptor.getA(), adaptor.getB(), c)
                                      : emitFma(e, op, layouts, adaptor.getA(), adaptor.getB(), c, accumulator);
    if (failed(result))
      return result;
    for (Value &value : *result)
      value = convertScalar(e, target, value, accumulator, resultType);
    rewriter.replaceOpWithMultiple(op, {*result});
    return success();
  }

private:
  /// The layouts of one matrix of a batch.
  static DotLayouts matrixLayouts(const DotLayouts &layouts) {
    if (layouts.c.rank() == 2)
      return layouts;
    return {layouts.a.dropAxis(0), layouts.b.dropAxis(0), layouts.c.dropAxis(0)};
  }
  static bool sameBatches(const DotLayouts &layouts) {
    return layouts.c.rank() == 2 ||
           (sameThreadBits(layouts.a, 0, layouts.c, 0) && sameThreadBits(layouts.b, 0, layouts.c, 0));
  }

  /// The registers of all fragments, fragment after fragment, and the number of fragment rows.
  static std::pair<std::vector<int>, int> fragmentOrder(const DistributedLayout &layout, const Fragment &fragment) {
    std::vector<int> regs;
    std::vector<FragmentOrigin> origins = fragmentOrigins(layout, fragment);
    int rows = 0;
    for (size_t i = 0; i < origins.size(); ++i) {
      rows += i == 0 || origins[i].row != origins[i - 1].row;
      for (int reg : fragmentRegisters(layout, fragment, origins[i]))
        regs.push_back(reg);
    }
    return {regs, rows};
  }

  /// The tensor core's part, batch after batch.
  FailureOr<Values> emitMma(Emitter &e, tile::DotOp op, MmaKind kind, const DotLayouts &layouts, ValueRange a,
                            ValueRange b, ValueRange c) const {
    const DotLayouts matrices = matrixLayouts(layouts);
    if (layouts.c.rank() == 2)
      return emitMatrixMma(e, op, kind, matrices, a, b, c);
    // The registers of a batch's matrix, in the order of the matrix's layout.
    auto registersOf = [](const DistributedLayout &full, const DistributedLayout &matrix, int64_t batch) {
      SmallVector<int> registers;
      for (int reg = 0; reg < matrix.numRegs(); ++reg)
        registers.push_back(
            full.registerFor(matrix.applyDim(MachineDim::Reg, reg) | batch << matrix.numTensorBits()));
      return registers;
    };
    Values result(c.size());
    for (int64_t batch : registerPositions(layouts.c, 0)) {
      auto valuesOf = [&](const DistributedLayout &full, const DistributedLayout &matrix, ValueRange values) {
        Values picked;
        for (int reg : registersOf(full, matrix, batch))
          picked.push_back(values[reg]);
        return picked;
      };
      FailureOr<Values> sums =
          emitMatrixMma(e, op, kind, matrices, valuesOf(layouts.a, matrices.a, a), valuesOf(layouts.b, matrices.b, b),
                        valuesOf(layouts.c, matrices.c, c));
      if (failed(sums))
        return sums;
      for (auto [reg, value] : llvm::zip_equal(registersOf(layouts.c, matrices.c, batch), *sums))
        result[reg] = value;
    }
    return result;
  }

  FailureOr<Values> emitMatrixMma(Emitter &e, tile::DotOp op, MmaKind kind, const DotLayouts &layouts, ValueRange a,
                                  ValueRange b, ValueRange c) const {
    const Fragment &fragmentA = mmaFragment(kind, DotOperand::A), &fragmentB = mmaFragment(kind, DotOperand::B),
                   &fragmentC = mmaFragment(kind, DotOperand::C);
    auto [regsA, rowsA] = fragmentOrder(layouts.a, fragmentA);
    auto [regsB, rowsB] = fragmentOrder(layouts.b, fragmentB);
    auto [regsC, rowsC] = fragmentOrder(layouts.c, fragmentC);
    MmaDot dot;
    dot.kind = kind;
    dot.operandType = tile::elementTypeOf(op.getA().getType());
    dot.mTiles = rowsC;
    dot.nTiles = static_cast<int>(regsC.size()) / fragmentC.numRegs() / rowsC;
    dot.kTiles = rowsB;
    if (rowsA != dot.mTiles || static_cast<int>(regsA.size()) != dot.mTiles * dot.kTiles * fragmentA.numRegs() ||
        static_cast<int>(regsB.size()) != dot.nTiles * dot.kTiles * fragmentB.numRegs())
      return op.emitOpError("has operand layouts whose fragments do not match: a ")
             << layouts.a.toString() << "; b " << layouts.b.toString() << "; c " << layouts.c.toString();
    for (int reg : regsA)
      dot.a.push_back(a[reg]);
    for (int reg : regsB)
      dot.b.push_back(b[reg]);
    for (int reg : regsC)
      dot.c.push_back(c[reg]);
    Values sums = target.mma(e, dot), result(sums.size());
    for (auto [reg, value] : llvm::zip_equal(regsC, sums))
      result[reg] = value;
    return result;
  }

  /// The positions along `axis` that the registers of a thread hold, relative to the thread's own part.
  static std::vector<int64_t> registerPositions(const DistributedLayout &layout, int axis) {
    std::vector<int64_t> positions{0};
    for (int bit : layout.axisBits(axis)) {
      if (layout.owner(bit).dim != MachineDim::Reg)
        continue;
      for (size_t i = 0, count = positions.size(); i < count; ++i)
        positions.push_back(positions[i] | int64_t(1) << layout.bitInAxis(bit));
    }
    return positions;
  }

  /// The packed-index bits of `axis` that a lane or a warp owns, as a list of (bit in axis, owner).
  static bool sameThreadBits(const DistributedLayout &x, int axisX, const DistributedLayout &y, int axisY) {
    std::vector<int> bitsX = x.axisBits(axisX), bitsY = y.axisBits(axisY);
    if (bitsX.size() != bitsY.size())
      return false;
    for (size_t i = 0; i < bitsX.size(); ++i) {
      BitOwner ownerX = x.owner(bitsX[i]), ownerY = y.owner(bitsY[i]);
      if (ownerX.dim != ownerY.dim || (ownerX.dim != MachineDim::Reg && !(ownerX == ownerY)))
        return false;
    }
    return true;
  }

  FailureOr<Values> emitFma(Emitter &e, tile::DotOp op, const DotLayouts &layouts, ValueRange a, ValueRange b,
                            ValueRange c, Type accumulator) const {
    int rank = layouts.c.rank(), row = rank - 2, col = rank - 1;
    const DistributedLayout &la = layouts.a, &lb = layouts.b, &lc = layouts.c;
    std::vector<int64_t> ms = registerPositions(lc, row), ns = registerPositions(lc, col),
                         ks = registerPositions(la, col);
    bool fits = sameThreadBits(la, row, lc, row) && sameThreadBits(lb, col, lc, col) &&
                static_cast<int64_t>(ks.size()) == la.shape()[col] && registerPositions(lb, row).size() == ks.size();
    for (int axis = 0; axis < rank - 2; ++axis)
      fits &= sameThreadBits(la, axis, lc, axis) && sameThreadBits(lb, axis, lc, axis);
    if (!fits)
      return op.emitOpError("has operand layouts that fit neither tensor cores nor multiply-adds: a ")
             << la.toString() << "; b " << lb.toString() << "; c " << lc.toString();

    // Leading dimensions are batches: one product per batch element that this thread holds.
    std::vector<std::vector<int64_t>> batches{{}};
    for (int axis = 0; axis < rank - 2; ++axis) {
      std::vector<std::vector<int64_t>> longer;
      for (const std::vector<int64_t> &batch : batches)
        for (int64_t position : registerPositions(lc, axis)) {
          longer.push_back(batch);
          longer.back().push_back(position);
        }
      batches = std::move(longer);
    }
    auto registerAt = [](const DistributedLayout &layout, std::vector<int64_t> batch, int64_t i, int64_t j) {
      batch.push_back(i);
      batch.push_back(j);
      return layout.registerFor(layout.pack(batch));
    };
    Type typeA = tile::elementTypeOf(op.getA().getType()), typeB = tile::elementTypeOf(op.getB().getType());
    Values result(c.size());
    for (const std::vector<int64_t> &batch : batches) {
      FmaDot dot{accumulator, int(ms.size()), int(ns.size()), int(ks.size()), {}, {}, {}};
      for (int64_t m : ms)
        for (int64_t k : ks)
          dot.a.push_back(convertScalar(e, target, a[registerAt(la, batch, m, k)], typeA, accumulator));
      for (int64_t k : ks)
        for (int64_t n : ns)
          dot.b.push_back(convertScalar(e, target, b[registerAt(lb, batch, k, n)], typeB, accumulator));
      for (int64_t m : ms)
        for (int64_t n : ns)
          dot.c.push_back(c[registerAt(lc, batch, m, n)]);
      Values sums = target.fmaDot(e, dot);
      size_t next = 0;
      for (int64_t m : ms)
        for (int64_t n : ns)
          result[registerAt(lc, batch, m, n)] = sums[next++];
    }
    return result;
  }
};

} // namespace

void populateDotPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<DotPattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
