//===- Emitter.cpp - Places, messages, constants and shapes -----------------------------------------------------------===//
//
// The part of the emitter that does not depend on operators: locations, error reporting, constants, broadcasting.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Emitter.h"

#include "ditron/dialect/tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include <cmath>
#include <fmt/format.h>

namespace ditron::frontend {

mlir::Type toIrType(const LangType &type, mlir::MLIRContext *context) {
  if (type.isBlock())
    return mlir::RankedTensorType::get(type.shape(), toIrType(type.element(), context));
  if (type.isPointer())
    return tile::PointerType::get(context, toIrType(type.pointee(), context));
  switch (type.kind()) {
  case ScalarKind::FP8E5: return mlir::Float8E5M2Type::get(context);
  case ScalarKind::FP8E4NV: return mlir::Float8E4M3FNType::get(context);
  case ScalarKind::FP8E4B15: return mlir::IntegerType::get(context, 8);
  case ScalarKind::FP16: return mlir::Float16Type::get(context);
  case ScalarKind::BF16: return mlir::BFloat16Type::get(context);
  case ScalarKind::FP32: return mlir::Float32Type::get(context);
  case ScalarKind::FP64: return mlir::Float64Type::get(context);
  case ScalarKind::Void: return mlir::NoneType::get(context);
  default: return mlir::IntegerType::get(context, type.bitWidth());
  }
}

Emitter::Emitter(mlir::MLIRContext &context, DiagnosticEngine &diagnostics)
    : builder(&context), diagnostics(diagnostics) {}

//===------------------------------------------------------------------------------------------------------------------===//
// Places and messages
//===------------------------------------------------------------------------------------------------------------------===//

mlir::Location Emitter::locationOf(SourceRange range) {
  const SourceManager &sources = diagnostics.sourceManager();
  auto plain = [&](SourceRange place) -> mlir::Location {
    if (!place.isValid())
      return mlir::UnknownLoc::get(context());
    LineColumn begin = sources.beginOf(place), end = sources.endOf(place);
    return mlir::FileLineColRange::get(builder.getStringAttr(sources.file(place.file).path()), begin.line, begin.column,
                                       end.line, end.column);
  };
  mlir::Location result = plain(range);
  for (SourceRange site : llvm::reverse(callSites))
    result = mlir::CallSiteLoc::get(result, plain(site));
  return result;
}

Diagnostic &Emitter::error(SourceRange range, std::string message) {
  // What is captured may be taken back, so that the next report of the same is the first.
  if (captures == 0 && !reported.insert({range.file, range.begin, range.end, message}).second) {
    repeated = Diagnostic();
    return repeated;
  }
  Diagnostic &diagnostic = diagnostics.error(range, std::move(message));
  // Of an endless recursion both ends are enough.
  constexpr size_t shown = 6;
  for (auto [index, site] : llvm::enumerate(llvm::reverse(callSites)))
    if (index < shown || index + shown >= callSites.size())
      diagnostic.note(site, "called from here");
  return diagnostic;
}

void Emitter::report(const Diagnostic &diagnostic) {
  if (captures == 0 && !reported
                            .insert({diagnostic.range.file, diagnostic.range.begin, diagnostic.range.end, diagnostic.message})
                            .second)
    return;
  Diagnostic &again = diagnostics.report(diagnostic.severity, diagnostic.range, diagnostic.message);
  again.notes = diagnostic.notes;
  again.exception = diagnostic.exception;
  again.raised = diagnostic.raised;
}

Diagnostic &Emitter::warning(SourceRange range, std::string message) {
  if (!reported.insert({range.file, range.begin, range.end, message}).second) {
    repeated = Diagnostic();
    return repeated;
  }
  return diagnostics.warning(range, std::move(message));
}

//===------------------------------------------------------------------------------------------------------------------===//
// Constants
//===------------------------------------------------------------------------------------------------------------------===//

mlir::Value Emitter::integerConstant(int64_t value, mlir::Type type) {
  mlir::Type element = mlir::getElementTypeOrSelf(type);
  auto number = builder.getIntegerAttr(element, llvm::APInt(element.getIntOrFloatBitWidth(), value, true, true));
  if (auto shaped = llvm::dyn_cast<mlir::ShapedType>(type))
    return create<mlir::arith::ConstantOp>(mlir::DenseElementsAttr::get(shaped, mlir::Attribute(number)));
  return create<mlir::arith::ConstantOp>(llvm::cast<mlir::TypedAttr>(mlir::Attribute(number)));
}

mlir::Value Emitter::floatConstant(double value, mlir::Type type) {
  auto element = llvm::cast<mlir::FloatType>(mlir::getElementTypeOrSelf(type));
  llvm::APFloat number(value);
  bool losesInfo = false;
  number.convert(element.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  auto attribute = mlir::FloatAttr::get(element, number);
  if (auto shaped = llvm::dyn_cast<mlir::ShapedType>(type))
    return create<mlir::arith::ConstantOp>(mlir::DenseElementsAttr::get(shaped, mlir::Attribute(attribute)));
  return create<mlir::arith::ConstantOp>(llvm::cast<mlir::TypedAttr>(mlir::Attribute(attribute)));
}

LangValue Emitter::constantOf(const ConstValue &value, const LangType &type) {
  mlir::Type irType = ir(type);
  if (type.isFloat()) {
    auto number = value.toDouble();
    if (type.is(ScalarKind::FP8E4B15)) {
      llvm::APFloat half(number.isOk() ? *number : INFINITY);
      bool losesInfo = false;
      half.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmTowardZero, &losesInfo);
      uint64_t bits = half.bitcastToAPInt().getZExtValue(), magnitude = std::min<uint64_t>(bits & 0x7fff, 0x3f00);
      return wrap(integerConstant(static_cast<int8_t>((bits >> 8 & 0x80) | (magnitude + 0x40) >> 7), irType), type);
    }
    return wrap(floatConstant(number.isOk() ? *number : INFINITY, irType), type);
  }
  if (type.isBool())
    return wrap(integerConstant(value.isTrue() ? -1 : 0, irType), type);
  BigInt number = value.isFloat() ? BigInt::fromDouble(value.getFloat()).value_or(BigInt(0)) : value.getInt();
  mlir::Attribute attribute = builder.getIntegerAttr(ir(type.element()), number.toAPInt(type.bitWidth()));
  if (auto shaped = llvm::dyn_cast<mlir::ShapedType>(irType))
    return wrap(create<mlir::arith::ConstantOp>(mlir::DenseElementsAttr::get(shaped, attribute)), type);
  return wrap(create<mlir::arith::ConstantOp>(llvm::cast<mlir::TypedAttr>(attribute)), type);
}

std::optional<LangType> Emitter::naturalType(const ConstValue &value) {
  if (value.isBool())
    return LangType(ScalarKind::Int1);
  if (value.isInt()) {
    BigInt number = value.getInt();
    if (number.fitsSigned(32))
      return LangType(ScalarKind::Int32);
    if (number.fitsUnsigned(32))
      return LangType(ScalarKind::UInt32);
    if (number.fitsSigned(64))
      return LangType(ScalarKind::Int64);
    if (number.fitsUnsigned(64))
      return LangType(ScalarKind::UInt64);
    return std::nullopt;
  }
  if (!value.isFloat())
    return std::nullopt;
  double magnitude = std::fabs(value.getFloat());
  bool isSingle = magnitude == 0 || !std::isfinite(magnitude) || (magnitude >= 0x1p-126 && magnitude <= 0x1.fffffep127);
  return LangType(isSingle ? ScalarKind::FP32 : ScalarKind::FP64);
}

LangValue Emitter::toTensor(const LangValue &value, SourceRange range) {
  if (value.isPoison() || value.isTensor())
    return value;
  if (value.isLiteral()) {
    auto type = naturalType(value.constant());
    if (!type)
      return fail(range, fmt::format("integer {} does not fit into 64 bits", value.constant().repr()));
    return constantOf(value.constant(), *type);
  }
  return fail(range, fmt::format("expected a number or a tensor, but got {}", value.describe()));
}

bool Emitter::checkLiteralFits(const ConstValue &value, const LangType &scalar, SourceRange range) {
  if (!value.isIntegral() || !scalar.isInt())
    return true;
  BigInt number = value.getInt();
  bool fits = scalar.isSigned() ? number.fitsSigned(scalar.bitWidth()) : number.fitsUnsigned(scalar.bitWidth());
  if (fits)
    return true;
  if (number.isNegative() && scalar.isUnsigned())
    error(range,
          fmt::format("negative number {} cannot be used with the unsigned type {}", value.repr(), scalar.str()));
  else
    error(range, fmt::format("number {} is out of range for type {}", value.repr(), scalar.str()));
  return false;
}

//===------------------------------------------------------------------------------------------------------------------===//
// Shapes
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Emitter::splat(const LangValue &scalar, llvm::ArrayRef<int64_t> shape) {
  if (scalar.isPoison() || shape.empty())
    return scalar;
  LangType type = scalar.type().withShape(shape);
  mlir::Type irType = ir(type);
  // A splatted number is a constant block, which every later pass understands best.
  if (auto constant = scalar.ir().getDefiningOp<mlir::arith::ConstantOp>()) {
    auto dense =
        mlir::DenseElementsAttr::get(llvm::cast<mlir::ShapedType>(irType), mlir::Attribute(constant.getValue()));
    return wrap(create<mlir::arith::ConstantOp>(dense), type);
  }
  return wrap(create<tile::SplatOp>(irType, scalar.ir()), type);
}

LangValue Emitter::expandDims(const LangValue &value, unsigned axis) {
  llvm::SmallVector<int64_t> shape(value.type().shape());
  shape.insert(shape.begin() + axis, 1);
  if (!value.type().isBlock())
    return splat(value, shape);
  LangType type = value.type().withShape(shape);
  return wrap(create<tile::ExpandDimsOp>(ir(type), value.ir(), builder.getI32IntegerAttr(axis)), type);
}

LangValue Emitter::reshape(const LangValue &value, llvm::ArrayRef<int64_t> shape) {
  if (value.type().shape() == shape)
    return value;
  if (!value.type().isBlock())
    return splat(value, shape);
  LangType type = value.type().withShape(shape);
  if (shape.empty())
    return wrap(create<tile::UnsplatOp>(ir(type), value.ir()), type);
  return wrap(create<tile::ReshapeOp>(ir(type), value.ir()), type);
}

LangValue Emitter::broadcastTo(const LangValue &value, llvm::ArrayRef<int64_t> shape) {
  if (value.isPoison() || value.type().shape() == shape)
    return value;
  if (!value.type().isBlock())
    return splat(value, shape);
  LangValue result = value;
  while (result.type().rank() < shape.size())
    result = expandDims(result, 0);
  if (result.type().shape() == shape)
    return result;
  LangType type = result.type().withShape(shape);
  return wrap(create<tile::BroadcastOp>(ir(type), result.ir()), type);
}

std::optional<llvm::SmallVector<int64_t>> Emitter::commonShape(llvm::ArrayRef<LangValue> values, SourceRange range) {
  llvm::SmallVector<int64_t> shape;
  for (const LangValue &value : values) {
    llvm::ArrayRef<int64_t> other = value.type().shape();
    if (other.size() > shape.size())
      shape.insert(shape.begin(), other.size() - shape.size(), 1);
    size_t offset = shape.size() - other.size();
    for (size_t i = 0; i < other.size(); ++i) {
      int64_t &size = shape[offset + i];
      if (size == 1)
        size = other[i];
      if (other[i] == 1 || other[i] == size)
        continue;
      std::string list;
      for (const LangValue &each : values)
        list += (list.empty() ? "" : " and ") + each.type().str();
      error(range, fmt::format("Cannot make_shape_compatible: incompatible dimensions at index {}: {} and {} (of {})", offset + i,
                               size, other[i], list))
          .hint("sizes must be equal, or one of them 1");
      return std::nullopt;
    }
  }
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  if (count > maxBlockElements) {
    error(range, fmt::format("the block has {} elements; at most {} are allowed", count, maxBlockElements));
    return std::nullopt;
  }
  return shape;
}

bool Emitter::broadcastTogether(llvm::MutableArrayRef<LangValue> values, SourceRange range) {
  if (llvm::any_of(values, [](const LangValue &value) { return value.isPoison(); }))
    return false;
  auto shape = commonShape(values, range);
  if (!shape)
    return false;
  for (LangValue &value : values)
    value = broadcastTo(value, *shape);
  return true;
}

} // namespace ditron::frontend
