//===- BuiltinArguments.cpp - Arguments of the distributed and thread-level functions ---------------------------------===//
//
// See BuiltinArguments.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/builtins/BuiltinArguments.h"

#include <fmt/format.h>

namespace ditron::frontend::builtins {

LangValue reject(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument, llvm::StringRef wanted) {
  return evaluator.emit.fail(argument.range,
                            fmt::format("argument '{}' of {} must be {}, but got {}", argument.name(),
                                        qualifiedName(*call.builtin), wanted.str(), argument.given->describe()));
}

bool checkScalarPointer(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument) {
  if (!argument.given->type().isBlock())
    return true;
  reject(evaluator, call, argument, "a scalar pointer");
  return false;
}

bool checkSignalPointer(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument) {
  if (!checkScalarPointer(evaluator, call, argument))
    return false;
  LangType word = argument.given->type().pointee();
  if (word.isInt() && word.bitWidth() >= 32)
    return true;
  reject(evaluator, call, argument, "a pointer to 32 or 64 bit integers");
  return false;
}

LangValue scalarInt(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument, const LangType &type) {
  Emitter &emit = evaluator.emit;
  const LangValue &value = *argument.given;
  if (value.isLiteral() && value.constant().isIntegral()) {
    // All ones may be written as 0xffffffff or as -1.
    bool fits = value.constant().getInt().fitsUnsigned(type.bitWidth()) ||
                value.constant().getInt().fitsSigned(type.bitWidth());
    if (fits)
      return emit.constantOf(value.constant(), type);
  }
  if (!value.isTensor() || value.type().isBlock() || !value.type().isInt())
    return reject(evaluator, call, argument, fmt::format("a scalar integer that fits into {}", type.str()));
  return emit.cast(value, type, argument.range);
}

LangValue scalarFor(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument, const LangType &element) {
  Emitter &emit = evaluator.emit;
  const LangValue &value = *argument.given;
  if (value.isLiteral() && !element.isPointer()) {
    if (!emit.checkLiteralFits(value.constant(), element, argument.range))
      return LangValue::poison();
    return emit.constantOf(value.constant(), element);
  }
  LangValue tensor = emit.toTensor(value, argument.range);
  if (tensor.isPoison())
    return tensor;
  if (tensor.type().isBlock())
    return reject(evaluator, call, argument, "a scalar");
  return emit.cast(tensor, element, argument.range);
}

bool checkWritablePointer(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument) {
  if (!checkScalarPointer(evaluator, call, argument))
    return false;
  if (!argument.given->type().isConstPointer())
    return true;
  evaluator.emit.error(argument.range, fmt::format("Cannot store to a constant pointer: {} through {}",
                                                  qualifiedName(*call.builtin), argument.given->type().str()));
  return false;
}

LangValue scalarAs(Evaluator &evaluator, const LangValue &value, const LangType &type, SourceRange range, llvm::StringRef what) {
  Emitter &emit = evaluator.emit;
  if (value.isPoison())
    return value;
  if (value.isLiteral() && !type.isPointer()) {
    if (type.isInt() && !value.constant().isIntegral())
      return emit.fail(range, fmt::format("{} must be a scalar {}, but got {}", what.str(), type.str(), value.describe()));
    if (!emit.checkLiteralFits(value.constant(), type, range))
      return LangValue::poison();
    return emit.constantOf(value.constant(), type);
  }
  if (!value.isTensor() || value.type().isBlock() || value.type().isPointer() != type.isPointer())
    return emit.fail(range, fmt::format("{} must be a scalar {}, but got {}", what.str(), type.str(), value.describe()));
  return emit.cast(value, type, range);
}

LangValue scalarBits(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument, const LangType &type) {
  const LangValue &value = *argument.given;
  if (value.isTensor() && !value.type().isBlock() && value.type().bitWidth() == type.bitWidth() && !value.type().isPointer())
    return value.type() == type ? value : evaluator.emit.bitcast(value, type, argument.range);
  if (value.isTensor() && value.type().isFloat())
    return reject(evaluator, call, argument, fmt::format("a scalar of {} bits", type.bitWidth()));
  return scalarInt(evaluator, call, argument, type);
}

tile::AtomicOp atomicKind(tile::AtomicOp op, const LangType &element) {
  bool isFloat = element.isFloat(), isSigned = element.isSigned();
  switch (op) {
  case tile::AtomicOp::Add: return isFloat ? tile::AtomicOp::FAdd : op;
  case tile::AtomicOp::Max: return isFloat ? tile::AtomicOp::FMax : isSigned ? op : tile::AtomicOp::UMax;
  case tile::AtomicOp::Min: return isFloat ? tile::AtomicOp::FMin : isSigned ? op : tile::AtomicOp::UMin;
  default: return op;
  }
}

} // namespace ditron::frontend::builtins
