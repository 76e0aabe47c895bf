//===- DebugToLLVM.cpp - tile.print and tile.assert ------------------------------------------------------------------------===//
//
// Both look at each element of a block once, in the thread that would store it. Of a scalar, and of a text alone, every thread
// prints a line, as in Triton; an assertion looks at it in the first one. A line of a print is formatted as C's printf does,
// from a format that is known now and the numbers of the grid, of the element and of the value.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/LayoutIndex.h"
#include "ditron/target/common/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include <fmt/format.h>

using namespace mlir;

namespace ditron::target {
namespace {

/// What printf takes for '%' in a text that is no format.
std::string escaped(StringRef text) {
  std::string result;
  for (char c : text)
    result += c == '%' ? std::string("%%") : std::string(1, c);
  return result;
}

/// The coordinates of an element, i32 each, from its packed index.
SmallVector<Value> coordinatesOf(Emitter &e, ArrayRef<int64_t> shape, Value packed) {
  SmallVector<Value> result;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    int lowest = layout::lowestBitOfAxis(shape, static_cast<int>(axis));
    result.push_back(e.bitAnd(e.lshr(packed, lowest), e.i32(shape[axis] - 1)));
  }
  return result;
}

/// Calls `visit` for each element of a scalar or tensor, in the one thread that stands for it: with the register and the coordinates.
void forEachElement(Emitter &e, TargetInfo &target, Operation *op, Type type, Value condition,
                    llvm::function_ref<Value(Emitter &, int)> conditionOf,
                    llvm::function_ref<void(Emitter &, int, ValueRange)> visit) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor) {
    Value mine = op->hasAttr(dist::perThreadAttrName) ? Value() : isFirstThread(e, target);
    Value when = conditionOf ? conditionOf(e, 0) : Value();
    emitIf(e, e.conjunction(e.conjunction(mine, condition), when), {}, [&](Emitter &inner) -> SmallVector<Value> {
      visit(inner, 0, {});
      return {};
    });
    return;
  }
  layout::DistributedLayout layout = dgpu::layoutOf(tensor);
  Value thread = threadPart(e, target, layout);
  Value mine = e.conjunction(isRepresentative(e, target, layout), condition);
  for (int reg = 0; reg < layout.numRegs(); ++reg) {
    Value when = conditionOf ? conditionOf(e, reg) : Value();
    emitIf(e, e.conjunction(mine, when), {}, [&](Emitter &inner) -> SmallVector<Value> {
      Value packed = inner.bitOr(thread, inner.i32(registerPart(layout, reg)));
      visit(inner, reg, coordinatesOf(inner, tensor.getShape(), packed));
      return {};
    });
  }
}

/// "(  0, 12)" as a format: aligned, as wide as the largest index of each dimension.
std::string indexFormat(ArrayRef<int64_t> shape, bool isAligned) {
  std::string text = "(";
  for (size_t axis = 0; axis < shape.size(); ++axis)
    text +=
        fmt::format("{}%{}u", axis ? ", " : "", isAligned ? std::to_string(std::to_string(shape[axis]).size()) : "");
  return text + ")";
}

class PrintPattern : public TilePattern<tile::PrintOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::PrintOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    SmallVector<Value> grid;
    for (int axis = 0; axis < 3; ++axis)
      grid.push_back(target.programId(e, axis));
    const std::string head = "pid (%u, %u, %u)", prefix = escaped(op.getPrefix());
    if (op.getArgs().empty())
      target.print(e, head + prefix + "\n", grid);
    for (auto [index, argument] : llvm::enumerate(op.getArgs())) {
      Type type = argument.getType(), element = tile::elementTypeOf(type);
      ValueRange registers = adaptor.getArgs()[index];
      const bool isSigned = op.getIsSigned()[index];
      std::string operand = op.getArgs().size() > 1 ? fmt::format("(operand {}) ", index) : "";
      auto printElement = [&, isSigned](Emitter &inner, int reg, ValueRange place) {
        auto [conversion, value] = formatted(inner, registers[reg], element, isSigned, op.getHex());
        SmallVector<Value> values(grid);
        values.append(place.begin(), place.end());
        values.push_back(value);
        target.print(inner,
                     head + " idx " + indexFormat(tile::shapeOf(type), /*isAligned=*/true) + prefix + operand +
                         conversion + "\n",
                     values);
      };
      if (isa<RankedTensorType>(type))
        forEachElement(e, target, op, type, Value(), nullptr, printElement);
      else
        printElement(e, 0, {});
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The conversion of printf for an element, and the element as printf wants it: i32, i64, f64 or a pointer.
  static std::pair<std::string, Value> formatted(Emitter &e, Value value, Type element, bool isSigned, bool hex) {
    if (isa<tile::PointerType>(element))
      return {"%p", value};
    if (auto floating = dyn_cast<FloatType>(element)) {
      Value wide = floating.isF64() ? value : arith::ExtFOp::create(e, e.getF64Type(), value);
      return {hex ? "%a" : "%f", wide};
    }
    unsigned width = value.getType().getIntOrFloatBitWidth();
    Type type = width > 32 ? e.getI64Type() : e.getI32Type();
    Value wide = isSigned && !hex ? e.sextOrTrunc(value, type) : e.zextOrTrunc(value, type);
    std::string length = width > 32 ? "ll" : "";
    if (hex)
      return {fmt::format("0x%0{}{}x", (width + 3) / 4, length), wide};
    return {"%" + length + (isSigned ? "d" : "u"), wide};
  }
};

class AssertPattern : public TilePattern<tile::AssertOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::AssertOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    ValueRange condition = adaptor.getCondition(), mask = adaptor.getMask();
    auto fails = [&](Emitter &inner, int reg) {
      Value isFalse = inner.bitXor(condition[reg], inner.i1(true));
      return mask.empty() ? isFalse : inner.bitAnd(isFalse, mask[reg]);
    };
    Type type = op.getCondition().getType();
    forEachElement(e, target, op, type, Value(), fails, [&](Emitter &inner, int, ValueRange place) {
      SmallVector<Value> values(place);
      std::string index = place.empty() ? "" : " at element " + indexFormat(tile::shapeOf(type), /*isAligned=*/false);
      target.assertionFailed(inner, escaped(op.getMessage()) + index, values);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void populateDebugPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<PrintPattern, AssertPattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
