//===- Vector.cpp - Vectors of each thread --------------------------------------------------------------------------===//
//
// dl.vector: so many scalars of one type as one value, each thread's own. In the IR it is its scalars; here it is a tuple of a
// class without fields, so that indexing, slicing, iteration, loops and branches treat it as a tuple.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/Dist.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include <fmt/format.h>

namespace ditron::frontend {

const std::shared_ptr<const ClassInfo> &vectorClass() {
  static const std::shared_ptr<const ClassInfo> cls = [] {
    auto info = std::make_shared<ClassInfo>();
    info->name = "vector";
    info->isNamedTuple = true;
    return info;
  }();
  return cls;
}

LangValue vectorArithmetic(Emitter &emit, BinaryOp op, const LangValue &a, const LangValue &b, SourceRange range) {
  auto count = [](const LangValue &value) { return value.isTuple() ? value.elements().size() : 1; };
  size_t size = std::max(count(a), count(b));
  auto fits = [&](const LangValue &value) { return !value.isTuple() || value.elements().size() == size; };
  if (!fits(a) || !fits(b))
    return emit.fail(range, fmt::format("vectors of {} and {} elements cannot be combined", count(a), count(b)));
  std::vector<LangValue> results;
  for (size_t i = 0; i < size; ++i) {
    results.push_back(emit.binary(op, a.isTuple() ? a.elements()[i] : a, b.isTuple() ? b.elements()[i] : b, range));
    if (results.back().isPoison())
      return LangValue::poison();
  }
  return builtins::makeVectorOf(std::move(results));
}

namespace builtins {
namespace arith = mlir::arith;

LangValue makeVectorOf(std::vector<LangValue> elements) {
  return LangValue(TupleValue{std::make_shared<const std::vector<LangValue>>(std::move(elements)), vectorClass()});
}

LangValue recastVector(Evaluator &evaluator, const LangValue &vector, const LangType &element, SourceRange range) {
  Emitter &emit = evaluator.emit;
  const std::vector<LangValue> &from = vector.elements();
  LangType source = from.front().type();
  if (source.isPointer() || element.isPointer() || element.isVoid() || element.isBool() || source.isBool())
    return emit.fail(range, fmt::format("a vector of {} cannot be seen as one of {}", source.str(), element.str()));
  unsigned sourceBits = source.bitWidth(), targetBits = element.bitWidth();
  size_t bits = from.size() * sourceBits;
  if (bits % targetBits != 0)
    return emit.fail(range, fmt::format("a vector of {} {} has {} bits, which is no whole number of {}", from.size(), source.str(), bits,
                                        element.str()));
  // Through integers: the lowest bits come first in memory.
  auto asInteger = [&](const LangValue &value) {
    LangType type(integerKind(value.type().bitWidth(), /*isSigned=*/false));
    return value.type() == type ? value : emit.bitcast(value, type, range);
  };
  std::vector<LangValue> to;
  for (size_t i = 0; i < bits / targetBits; ++i) {
    mlir::Type word = emit.builder.getIntegerType(targetBits);
    mlir::Value value;
    if (sourceBits >= targetBits) {
      size_t perSource = sourceBits / targetBits;
      value = asInteger(from[i / perSource]).ir();
      if (i % perSource != 0)
        value = emit.create<arith::ShRUIOp>(value, emit.integerConstant(int64_t(i % perSource * targetBits), value.getType()));
      if (sourceBits != targetBits)
        value = emit.create<arith::TruncIOp>(word, value);
    } else {
      size_t perTarget = targetBits / sourceBits;
      for (size_t part = 0; part < perTarget; ++part) {
        mlir::Value piece = emit.create<arith::ExtUIOp>(word, asInteger(from[i * perTarget + part]).ir());
        if (part != 0)
          piece = emit.create<arith::ShLIOp>(piece, emit.integerConstant(int64_t(part * sourceBits), word));
        value = value ? mlir::Value(emit.create<arith::OrIOp>(value, piece)) : piece;
      }
    }
    LangValue result = emit.wrap(value, integerKind(targetBits, /*isSigned=*/false));
    to.push_back(result.type() == element ? result : emit.bitcast(result, element, range));
  }
  return makeVectorOf(std::move(to));
}

/// A vector argument.
static bool checkVector(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument) {
  if (isVector(*argument.given))
    return true;
  reject(evaluator, call, argument, "a vector (dl.make_vector)");
  return false;
}

LangValue makeVector(Evaluator &evaluator, BuiltinCall &call, ValueArg values) {
  Emitter &emit = evaluator.emit;
  if (!values->isTuple() || values->elements().empty())
    return reject(evaluator, call, values, "a list of scalars");
  // The type of the first run-time element, or what the first number takes by itself.
  std::optional<LangType> type;
  for (const LangValue &value : values->elements())
    if (value.isTensor() && !type)
      type = value.type();
  if (!type && values->elements().front().isLiteral())
    type = emit.naturalType(values->elements().front().constant());
  if (!type || type->isBlock())
    return reject(evaluator, call, values, "a list of scalars");
  std::vector<LangValue> elements;
  for (const LangValue &value : values->elements()) {
    if (value.isTensor() && value.type() != *type)
      return emit.fail(values.range, fmt::format("the elements of a vector have one type, but these are {} and {}", type->str(),
                                                 value.type().str()));
    elements.push_back(scalarAs(evaluator, value, *type, values.range, "an element of a vector"));
    if (elements.back().isPoison())
      return LangValue::poison();
  }
  return makeVectorOf(std::move(elements));
}

LangValue zerosVector(Evaluator &evaluator, BuiltinCall &call, Arg<int64_t> size, Arg<LangType> type) {
  if (*size < 1 || *size > 256)
    return evaluator.emit.fail(size.range, fmt::format("a vector has 1 to 256 elements, not {}", *size));
  if (type->isPointer() || type->isVoid() || type->isBlock())
    return reject(evaluator, call, type, "a number type");
  return makeVectorOf(std::vector<LangValue>(*size, evaluator.emit.constantOf(ConstValue::integer(0), *type)));
}

LangValue vectorTo(Evaluator &evaluator, BuiltinCall &call, ValueArg self, Arg<LangType> dtype) {
  if (!checkVector(evaluator, call, self))
    return LangValue::poison();
  std::vector<LangValue> elements;
  for (const LangValue &element : self->elements()) {
    elements.push_back(evaluator.emit.cast(element, *dtype, call.range));
    if (elements.back().isPoison())
      return LangValue::poison();
  }
  return makeVectorOf(std::move(elements));
}

LangValue vectorRecast(Evaluator &evaluator, BuiltinCall &call, ValueArg self, Arg<LangType> dtype) {
  if (!checkVector(evaluator, call, self))
    return LangValue::poison();
  return recastVector(evaluator, *self, *dtype, call.range);
}

LangValue packVector(Evaluator &evaluator, BuiltinCall &call, ValueArg vec, Arg<LangType> dstType) {
  if (!checkVector(evaluator, call, vec))
    return LangValue::poison();
  LangValue packed = recastVector(evaluator, *vec, *dstType, call.range);
  return !packed.isPoison() && packed.elements().size() == 1 ? packed.elements().front() : packed;
}

LangValue unpackScalar(Evaluator &evaluator, BuiltinCall &call, ValueArg scalar, Arg<LangType> dstType) {
  if (isVector(*scalar))
    return recastVector(evaluator, *scalar, *dstType, call.range);
  if (!scalar->isTensor() || scalar->type().isBlock())
    return reject(evaluator, call, scalar, "a run-time scalar");
  return recastVector(evaluator, makeVectorOf({*scalar}), *dstType, call.range);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Accesses
//===------------------------------------------------------------------------------------------------------------------===//

/// A pointer that one access of so many elements can go through.
static bool checkWidth(Evaluator &evaluator, BuiltinCall &call, const ValueArg &pointer, int64_t count) {
  LangType element = pointer->type().pointee();
  int64_t bytes = count * (element.isBool() ? 8 : element.bitWidth()) / 8;
  if (count >= 1 && (bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16))
    return true;
  evaluator.emit.error(call.range, fmt::format("one access moves 2, 4, 8 or 16 bytes, but {} elements of {} have {}", count, element.str(), bytes));
  return false;
}

LangValue vectorLoad(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, Arg<int64_t> count, Arg<llvm::StringRef> scopeArg,
                     Arg<llvm::StringRef> semantic) {
  Emitter &emit = evaluator.emit;
  if (!checkScalarPointer(evaluator, call, pointer) || !checkWidth(evaluator, call, pointer, *count))
    return LangValue::poison();
  auto scope = memoryScopeOf(evaluator, call, scopeArg, tile::MemoryScope::Gpu);
  auto order = memoryOrderOf(evaluator, call, semantic, tile::MemoryOrder::Relaxed);
  if (!scope || !order)
    return LangValue::poison();
  if (*order != tile::MemoryOrder::Acquire && *order != tile::MemoryOrder::Relaxed)
    return emit.fail(semantic.range, fmt::format("a load is 'acquire' or 'relaxed', not '{}'", semantic->str()));
  LangType element = pointer->type().pointee();
  auto op =
      emit.create<dist::LdVectorOp>(llvm::SmallVector<mlir::Type>(*count, emit.ir(element)), *order, *scope, pointer->ir());
  std::vector<LangValue> elements;
  for (mlir::Value value : op.getResults())
    elements.push_back(emit.wrap(value, element));
  return makeVectorOf(std::move(elements));
}

LangValue vectorStore(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, ValueArg vec, Arg<llvm::StringRef> scopeArg,
                      Arg<llvm::StringRef> semantic) {
  Emitter &emit = evaluator.emit;
  if (!checkVector(evaluator, call, vec) || !checkWritablePointer(evaluator, call, pointer) ||
      !checkWidth(evaluator, call, pointer, int64_t(vec->elements().size())))
    return LangValue::poison();
  auto scope = memoryScopeOf(evaluator, call, scopeArg, tile::MemoryScope::Gpu);
  auto order = memoryOrderOf(evaluator, call, semantic, tile::MemoryOrder::Relaxed);
  if (!scope || !order)
    return LangValue::poison();
  if (*order != tile::MemoryOrder::Release && *order != tile::MemoryOrder::Relaxed)
    return emit.fail(semantic.range, fmt::format("a store is 'release' or 'relaxed', not '{}'", semantic->str()));
  llvm::SmallVector<mlir::Value> values;
  for (const LangValue &element : vec->elements()) {
    LangValue value = scalarAs(evaluator, element, pointer->type().pointee(), vec.range, "an element of 'vec'");
    if (value.isPoison())
      return value;
    values.push_back(value.ir());
  }
  emit.create<dist::StVectorOp>(*order, *scope, pointer->ir(), values);
  return LangValue::none();
}

} // namespace builtins
} // namespace ditron::frontend
