//===- DotScaled.cpp - Matrix products of block-scaled operands ----------------------------------------------------===//
//
// tl.dot_scaled. No target so far multiplies scaled operands, so both are brought to bf16, or to fp16 where the other operand
// is fp16, and multiplied with tl.dot:
//
//   value(i, k) = element(i, k) * scale(i, k / 32)       in fp32, rounded once
//
// Two e2m1 numbers share a byte, the first one in the low half. An e8m0 scale s is 2^(s - 127), and NaN for 255.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/builtins/BuiltinHandlers.h"
#include "ditron/frontend/builtins/Dots.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace arith = mlir::arith;
namespace {

/// One side of the product: "lhs" or "rhs".
struct Side {
  llvm::StringRef name;
  SourceRange range, scaleRange, formatRange;
  LangValue value, scale; ///< The scale may be None.
  std::string format;
  bool isPackedAlongK = true;
  bool isLeft = true;
};

class ScaledDot {
public:
  ScaledDot(Evaluator &evaluator, BuiltinCall &call, const ValueArg &acc, bool isFast,
            const Arg<std::optional<LangType>> &outType)
      : emit(evaluator.emit), call(call), acc(acc), isFast(isFast), outType(outType) {}

  LangValue run(Side left, Side right) {
    for (Side *side : {&left, &right}) {
      if (!prepare(*side))
        return LangValue::poison();
    }
    const unsigned rank = left.value.type().rank();
    if (rank != right.value.type().rank())
      return emit.fail(call.range, fmt::format("Both inputs must be either 2D or 3D; (lhs: {} vs rhs: {})",
                                               left.value.type().str(), right.value.type().str()));
    const LangType compute =
        left.format == "fp16" || right.format == "fp16" ? LangType(ScalarKind::FP16) : LangType(ScalarKind::BF16);
    const LangValue a = upcast(left, compute), b = upcast(right, compute);
    if (a.isPoison() || b.isPoison())
      return LangValue::poison();
    llvm::ArrayRef<int64_t> m = a.type().shape(), n = b.type().shape();
    if (m[rank - 1] != n[rank - 2] || m.drop_back(2) != n.drop_back(2))
      return emit.fail(call.range, fmt::format("Reduction dimension should pack the same number of elements; (lhs: {} vs rhs: {})",
                                               a.type().str(), b.type().str()));
    if (m[rank - 1] < 16)
      return emit.fail(call.range,
                       fmt::format("Input shapes should have M >= 1, N >= 1 and K >= 16, but K is {}", m[rank - 1]));
    return product(a, b);
  }

private:
  /// Checks the operand's type and brings it to its logical shape: unpacked, elements of a floating point type.
  bool prepare(Side &side) {
    const std::string name = side.name.str();
    const LangType type = side.value.type();
    auto refuse = [&](std::string message) {
      emit.fail(side.range, std::move(message));
      return false;
    };
    if (type.rank() < 2 || type.rank() > 3)
      return refuse(fmt::format("Both inputs must be either 2D or 3D, but {} is {}", name, type.str()));
    static const std::pair<llvm::StringRef, ScalarKind> formats[] = {{"e4m3", ScalarKind::FP8E4NV},
                                                                     {"e5m2", ScalarKind::FP8E5},
                                                                     {"bf16", ScalarKind::BF16},
                                                                     {"fp16", ScalarKind::FP16}};
    if (side.format == "e2m1") {
      if (!type.is(ScalarKind::UInt8) && !type.is(ScalarKind::Int8))
        return refuse(fmt::format("{} of format e2m1 must be uint8, but it is {}", name, type.str()));
      side.value = unpack(side);
    } else {
      const auto *format = llvm::find_if(formats, [&](const auto &each) { return each.first == side.format; });
      if (format == std::end(formats)) {
        emit.fail(side.formatRange,
                  fmt::format("NYI: {}_format {}; known are e2m1, e4m3, e5m2, bf16 and fp16", name, side.format));
        return false;
      }
      if (!side.isPackedAlongK)
        return refuse(fmt::format("only mxfp4 inputs can be packed along a dimension different than K, but {} has format {}",
                                  name, side.format));
      const LangType wanted = format->second;
      const bool isBytes = type.is(ScalarKind::UInt8) || type.is(ScalarKind::Int8);
      if (type.element() != wanted && !(wanted.bitWidth() == 8 && isBytes))
        return refuse(fmt::format("Unexpected dtype for {}. Got {}, expected {}", side.format, type.element().str(), wanted.str()));
      if (type.element() != wanted)
        side.value = emit.bitcast(side.value, wanted, side.range);
    }
    return checkScale(side);
  }

  bool checkScale(Side &side) {
    if (side.scale.isNone())
      return true;
    const std::string name = side.name.str() + "_scale";
    const LangType type = side.scale.isTensor() ? side.scale.type() : LangType();
    if (!type.is(ScalarKind::UInt8) && !type.is(ScalarKind::Int8) && !type.is(ScalarKind::FP8E4NV)) {
      emit.fail(side.scaleRange,
                fmt::format("{} must be a block of uint8 (e8m0) or fp8e4nv, but got {}", name, side.scale.describe()));
      return false;
    }
    llvm::ArrayRef<int64_t> value = side.value.type().shape();
    const unsigned rank = value.size();
    const int64_t group = groupSize(type);
    llvm::SmallVector<int64_t> expected(value.drop_back(2));
    expected.push_back(side.isLeft ? value[rank - 2] : value[rank - 1]);
    expected.push_back((side.isLeft ? value[rank - 1] : value[rank - 2]) / group);
    if (type.shape() != llvm::ArrayRef<int64_t>(expected)) {
      emit.fail(side.scaleRange, fmt::format("{} must be a tensor of shape [..., {}, {}]. Got {}", name, expected[rank - 2],
                                             expected[rank - 1], LangValue::shape(type.shape()).display()));
      return false;
    }
    return true;
  }

  static int64_t groupSize(const LangType &scale) { return scale.is(ScalarKind::FP8E4NV) ? 16 : 32; }

  /// Bytes with two e2m1 numbers as one fp16 each, in the logical shape. The three bits of exponent and mantissa are the top
  /// bits of an fp16 number's, whose value is then 2^-14 of what they mean, subnormals included.
  LangValue unpack(const Side &side) {
    const LangValue bytes = side.value;
    const LangType word = LangType(ScalarKind::Int16).withShape(bytes.type().shape());
    const mlir::Value bits = emit.create<arith::ExtUIOp>(emit.ir(word), bytes.ir());
    auto constant = [&](int64_t value) { return emit.integerConstant(value, emit.ir(word)); };
    auto decoded = [&](mlir::Value nibble) {
      mlir::Value magnitude = emit.create<arith::ShLIOp>(emit.create<arith::AndIOp>(nibble, constant(7)), constant(9));
      mlir::Value sign = emit.create<arith::ShLIOp>(emit.create<arith::AndIOp>(nibble, constant(8)), constant(12));
      mlir::Value joined = emit.create<arith::OrIOp>(magnitude, sign);
      return joined;
    };
    const mlir::Value low = decoded(bits), high = decoded(emit.create<arith::ShRUIOp>(bits, constant(4)));
    // The new dimension follows the one along which the numbers are packed.
    llvm::ArrayRef<int64_t> shape = bytes.type().shape();
    const unsigned rank = shape.size();
    const unsigned packed = side.isLeft == side.isPackedAlongK ? rank - 1 : rank - 2;
    llvm::SmallVector<int64_t> pairs(shape);
    pairs.push_back(2);
    LangType pairType = LangType(ScalarKind::Int16).withShape(pairs);
    mlir::Value together = emit.create<tile::JoinOp>(emit.ir(pairType), low, high);
    if (packed + 1 != rank) {
      llvm::SmallVector<int32_t> order;
      for (unsigned dim = 0; dim < rank; ++dim) {
        order.push_back(dim);
        if (dim == packed)
          order.push_back(rank);
      }
      pairs.pop_back();
      pairs.insert(pairs.begin() + packed + 1, 2);
      pairType = LangType(ScalarKind::Int16).withShape(pairs);
      together = emit.create<tile::TransOp>(emit.ir(pairType), together, order);
    }
    llvm::SmallVector<int64_t> logical(shape);
    logical[packed] *= 2;
    const LangValue halves = emit.reshape(emit.wrap(together, pairType), logical);
    const LangValue tiny = emit.bitcast(halves, ScalarKind::FP16, side.range);
    return multiply(tiny, emit.wrap(emit.floatConstant(16384.0, tiny.ir().getType()), tiny.type()));
  }

  LangValue multiply(const LangValue &a, const LangValue &b) {
    return emit.wrap(emit.create<arith::MulFOp>(a.ir(), b.ir()), a.type());
  }

  /// The operand times its scales, in the type that is multiplied.
  LangValue upcast(const Side &side, const LangType &compute) {
    const SourceRange range = side.range;
    if (side.scale.isNone())
      return emit.cast(emit.cast(side.value, ScalarKind::FP32, range), compute, range);
    const LangValue scaled =
        multiply(emit.cast(side.value, ScalarKind::FP32, range), spread(factors(side), side));
    return emit.cast(scaled, compute, range);
  }

  /// The scales as fp32.
  LangValue factors(const Side &side) {
    const SourceRange range = side.range;
    if (side.scale.type().is(ScalarKind::FP8E4NV))
      return emit.cast(side.scale, ScalarKind::FP32, range);
    const LangType word = LangType(ScalarKind::Int32).withShape(side.scale.type().shape());
    auto constant = [&](int64_t value) { return emit.integerConstant(value, emit.ir(word)); };
    const mlir::Value exponent = emit.create<arith::ExtUIOp>(emit.ir(word), side.scale.ir());
    auto equals = [&](int64_t value) -> mlir::Value {
      return emit.create<arith::CmpIOp>(arith::CmpIPredicate::eq, exponent, constant(value));
    };
    mlir::Value bits = emit.create<arith::ShLIOp>(exponent, constant(23));
    bits = emit.create<arith::SelectOp>(equals(0), constant(0x00400000), bits); // 2^-127 is subnormal
    if (!isFast)
      bits = emit.create<arith::SelectOp>(equals(255), constant(0x7fc00000), bits);
    return emit.bitcast(emit.wrap(bits, word), ScalarKind::FP32, range);
  }

  /// Scales [.., rows, K/group] repeated for each element: to [.., rows, K], or [.., K, columns] for the right operand.
  LangValue spread(LangValue scale, const Side &side) {
    llvm::SmallVector<int64_t> shape(scale.type().shape());
    const unsigned rank = shape.size();
    if (!side.isLeft) {
      llvm::SmallVector<int32_t> order;
      for (unsigned dim = 0; dim < rank; ++dim)
        order.push_back(dim);
      std::swap(order[rank - 1], order[rank - 2]);
      std::swap(shape[rank - 1], shape[rank - 2]);
      const LangType type = scale.type().element().withShape(shape);
      scale = emit.wrap(emit.create<tile::TransOp>(emit.ir(type), scale.ir(), order), type);
    }
    const unsigned axis = side.isLeft ? rank - 1 : rank - 2;
    scale = emit.expandDims(scale, axis + 1);
    shape.insert(shape.begin() + axis + 1, groupSize(side.scale.type()));
    return emit.reshape(emit.broadcastTo(scale, shape), side.value.type().shape());
  }

  LangValue product(const LangValue &a, const LangValue &b) {
    const LangType result = outType->value_or(LangType(ScalarKind::FP32));
    if (!result.is(ScalarKind::FP32))
      return emit.fail(outType.range, fmt::format("tl.dot_scaled gives fp32, not {}", result.str()));
    llvm::SmallVector<int64_t> shape(a.type().shape());
    shape.back() = b.type().shape().back();
    LangValue start = *acc;
    if (start.isLiteral() && !start.constant().isTrue())
      start = LangValue::none();
    if (!start.isNone() && (!start.isTensor() || start.type() != result.withShape(shape)))
      return emit.fail(acc.range, fmt::format("argument 'acc' of tl.dot_scaled must be {}, but got {}",
                                              result.withShape(shape).str(), start.describe()));
    return emitDot(emit, a, b, start, result, {});
  }

  Emitter &emit;
  BuiltinCall &call;
  const ValueArg &acc;
  bool isFast;
  const Arg<std::optional<LangType>> &outType;
};

} // namespace

LangValue dotScaled(Evaluator &evaluator, BuiltinCall &call, ValueArg lhs, ValueArg lhsScale, Arg<llvm::StringRef> lhsFormat,
                    ValueArg rhs, ValueArg rhsScale, Arg<llvm::StringRef> rhsFormat, ValueArg acc, Arg<bool> fastMath,
                    Arg<bool> lhsKPack, Arg<bool> rhsKPack, Arg<std::optional<LangType>> outDtype) {
  Side left{"lhs", lhs.range, lhsScale.range, lhsFormat.range, *lhs, *lhsScale, lhsFormat->lower(), *lhsKPack, /*isLeft=*/true};
  Side right{"rhs",     rhs.range,          rhsScale.range, rhsFormat.range, *rhs,
             *rhsScale, rhsFormat->lower(), *rhsKPack,      /*isLeft=*/false};
  return ScaledDot(evaluator, call, acc, *fastMath, outDtype).run(std::move(left), std::move(right));
}

} // namespace ditron::frontend::builtins
