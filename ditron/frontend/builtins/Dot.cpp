//===- Dot.cpp - Matrix products -------------------------------------------------------------------------------------===//
//
// tl.dot: operand and result types, sizes, precision. Products of rank 4 and more are flattened to rank 3 here; what a
// precision means is the business of the passes.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/tile/Tile.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"
#include "ditron/frontend/builtins/Dots.h"

#include <fmt/format.h>
#include <numeric>

namespace ditron::frontend {
namespace {

std::string shapeText(llvm::ArrayRef<int64_t> shape) { return LangValue::shape(shape).display(); }

/// Why two blocks of these types have no product; empty if they have one.
std::string whyNoProduct(const LangType &a, const LangType &b) {
  const unsigned rank = a.rank();
  if (rank < 2 || b.rank() != rank)
    return fmt::format("tl.dot needs two blocks of the same rank, 2 or more: Both inputs must be either 2D or 3D; (lhs: {} vs "
                       "rhs: {})",
                       a.str(), b.str());
  if (a.is(ScalarKind::UInt8) || b.is(ScalarKind::UInt8))
    return fmt::format("only int8 supported! tl.dot does not multiply uint8 ({} and {})", a.str(), b.str());
  const LangType element = a.element();
  const bool isKnown = element.is(ScalarKind::Int8) || element.is(ScalarKind::FP16) || element.is(ScalarKind::BF16) ||
                       element.is(ScalarKind::FP32) || element.is(ScalarKind::FP64) || element.isFP8();
  if (!isKnown)
    return fmt::format("Unsupported lhs dtype {}: tl.dot needs operands of one type out of int8, fp16, bf16, fp32, fp64, or "
                       "two of fp8",
                       element.str());
  if (element != b.element() && !(element.isFP8() && b.isFP8()))
    return fmt::format("Both operands must be same dtype. Got {} and {}", element.str(), b.element().str());
  llvm::ArrayRef<int64_t> left = a.shape(), right = b.shape();
  if (left.drop_back(2) != right.drop_back(2))
    return fmt::format("the leading dimensions of tl.dot's operands must be the same, but the shapes are {} and {}",
                       shapeText(left), shapeText(right));
  if (left[rank - 1] != right[rank - 2])
    return fmt::format("First input shape ({}) and second input shape ({}) are not compatible for matmul: the inner sizes are "
                       "{} and {}",
                       shapeText(left), shapeText(right), left[rank - 1], right[rank - 2]);
  const int64_t leastK = 256 / element.bitWidth();
  if (left[rank - 1] < leastK)
    return fmt::format("Input shapes should have M >= 1, N >= 1 and K >= {} for elements of {} bits, but K is {}", leastK,
                       element.bitWidth(), left[rank - 1]);
  return {};
}

/// 8-bit floats that no instruction takes are multiplied as fp16.
LangValue withKnownElement(Emitter &emit, const LangValue &operand, SourceRange range) {
  const LangType element = operand.type().element();
  const bool isRare = element.isFloat() && element.bitWidth() == 8 && !element.isFP8();
  return isRare ? emit.cast(operand, ScalarKind::FP16, range) : operand;
}

} // namespace

LangValue emitDot(Emitter &emit, const LangValue &a, const LangValue &b, const LangValue &acc, const LangType &element,
                  const DotOptions &options) {
  const unsigned rank = a.type().rank();
  llvm::SmallVector<int64_t> shape(a.type().shape());
  shape.back() = b.type().shape().back();
  const LangType type = element.withShape(shape);
  LangValue c = acc.isTensor() ? acc : emit.constantOf(ConstValue::integer(0), type);
  auto flat = [&](const LangValue &value) {
    if (rank <= 3)
      return value;
    llvm::ArrayRef<int64_t> dims = value.type().shape();
    const int64_t batch = std::accumulate(dims.begin(), dims.end() - 2, int64_t(1), std::multiplies<>());
    return emit.reshape(value, {batch, dims[rank - 2], dims[rank - 1]});
  };
  const LangValue left = flat(a), right = flat(b), start = flat(c);
  mlir::IntegerAttr imprecise =
      options.maxImpreciseAcc ? emit.builder.getI32IntegerAttr(static_cast<int32_t>(*options.maxImpreciseAcc)) : mlir::IntegerAttr();
  auto op = emit.create<tile::DotOp>(start.ir().getType(), left.ir(), right.ir(), start.ir(), options.precision, imprecise);
  return emit.reshape(emit.wrap(op.getResult(), start.type()), shape);
}

namespace builtins {

LangValue dot(Evaluator &evaluator, BuiltinCall &call, ValueArg input, ValueArg other, ValueArg accArg,
              Arg<std::optional<llvm::StringRef>> inputPrecision, Arg<std::optional<bool>> allowTf32,
              Arg<std::optional<int64_t>> maxNumImpreciseAcc, Arg<std::optional<LangType>> outDtype) {
  Emitter &emit = evaluator.emit;
  const LangValue a = withKnownElement(emit, *input, input.range), b = withKnownElement(emit, *other, other.range);
  if (a.isPoison() || b.isPoison())
    return LangValue::poison();
  if (std::string reason = whyNoProduct(a.type(), b.type()); !reason.empty())
    return emit.fail(call.range, std::move(reason));
  const bool isRare = input->type().is(ScalarKind::FP8E4B15) || other->type().is(ScalarKind::FP8E4B15);
  if (isRare && evaluator.options.capability >= 90)
    emit.warning(call.range, "fp8e4b15 is deprecated on Hopper and later: it is multiplied as fp16; use fp8e4nv or fp8e5");
  const LangType element = a.type().element();
  const int64_t k = a.type().shape().back();

  // The result's type: out_dtype chooses between fp16 and fp32 where both exist, and is ignored elsewhere.
  LangType result = element.is(ScalarKind::Int8)   ? ScalarKind::Int32
                    : element.is(ScalarKind::FP64) ? ScalarKind::FP64
                                                   : ScalarKind::FP32;
  const bool mayBeHalf = element.is(ScalarKind::FP16) || element.isFP8();
  LangValue acc = *accArg;
  if (acc.isLiteral() && !acc.constant().isTrue())
    acc = LangValue::none();
  if (*outDtype) {
    const LangType wanted = **outDtype;
    if (wanted.is(ScalarKind::BF16))
      return emit.fail(outDtype.range, "out_dtype=bfloat16 is unsupported. Please use out_dtype=float32/float16 and "
                                       "cast with `.to(tl.bfloat16)`");
    if (mayBeHalf && wanted.is(ScalarKind::FP16))
      result = wanted;
    else if (wanted != result)
      emit.warning(outDtype.range,
                   fmt::format("out_dtype {} is ignored: tl.dot of {} gives {}", wanted.str(), element.str(), result.str()));
  } else if (mayBeHalf && acc.isTensor() && acc.type().is(ScalarKind::FP16)) {
    result = ScalarKind::FP16;
  }
  llvm::SmallVector<int64_t> shape(a.type().shape());
  shape.back() = b.type().shape().back();
  const LangType type = result.withShape(shape);
  if (!acc.isNone() && (!acc.isTensor() || acc.type() != type))
    return emit.fail(accArg.range, fmt::format("argument 'acc' of tl.dot must be {}, but got {}", type.str(), acc.describe()));

  DotOptions options;
  if (*inputPrecision) {
    auto read = dotPrecisionOf(evaluator, call, inputPrecision);
    if (!read)
      return LangValue::poison();
    if (allowTf32->has_value())
      return emit.fail(call.range, "Only one of input_precision and allow_tf32 can be specified");
    options.precision = *read;
  } else if (allowTf32->has_value() && !**allowTf32) {
    options.precision = tile::DotPrecision::IEEE;
  }
  if (!element.is(ScalarKind::FP32))
    options.precision = tile::DotPrecision::TF32;
  if (std::optional<int64_t> limit = *maxNumImpreciseAcc; limit && element.isFP8()) {
    if (*limit > k)
      return emit.fail(maxNumImpreciseAcc.range, fmt::format("max_num_imprecise_acc ({}) must be <= K ({})", *limit, k));
    if (*limit < 0)
      return emit.fail(maxNumImpreciseAcc.range, fmt::format("max_num_imprecise_acc ({}) must not be negative", *limit));
    options.maxImpreciseAcc = limit;
  }
  return emitDot(emit, a, b, acc, result, options);
}

} // namespace builtins
} // namespace ditron::frontend
