//===- BuiltinArguments.cpp - Arguments of the distributed and thread-level functions ---------------------------------===//
//
// See BuiltinArguments.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/BuiltinArguments.h"

#include <fmt/format.h>

namespace ditron::frontend::builtins {

LangValue reject(Importer &importer, BuiltinCall &call, llvm::StringRef name, llvm::StringRef wanted) {
  return importer.emit.fail(call.rangeOf(name),
                            fmt::format("argument '{}' of {} must be {}, but got {}", name.str(),
                                        qualifiedName(*call.builtin), wanted.str(), call[name].describe()));
}

bool checkScalarPointer(Importer &importer, BuiltinCall &call, llvm::StringRef name) {
  if (!call[name].type().isBlock())
    return true;
  reject(importer, call, name, "a scalar pointer");
  return false;
}

bool checkSignalPointer(Importer &importer, BuiltinCall &call, llvm::StringRef name) {
  if (!checkScalarPointer(importer, call, name))
    return false;
  LangType word = call[name].type().pointee();
  if (word.isInt() && word.bitWidth() >= 32)
    return true;
  reject(importer, call, name, "a pointer to 32 or 64 bit integers");
  return false;
}

LangValue scalarInt(Importer &importer, BuiltinCall &call, llvm::StringRef name, const LangType &type) {
  Emitter &emit = importer.emit;
  const LangValue &value = call[name];
  if (value.isLiteral() && value.constant().isIntegral()) {
    // All ones may be written as 0xffffffff or as -1.
    bool fits = value.constant().getInt().fitsUnsigned(type.bitWidth()) ||
                value.constant().getInt().fitsSigned(type.bitWidth());
    if (fits)
      return emit.constantOf(value.constant(), type);
  }
  if (!value.isTensor() || value.type().isBlock() || !value.type().isInt())
    return reject(importer, call, name, fmt::format("a scalar integer that fits into {}", type.str()));
  return emit.cast(value, type, call.rangeOf(name));
}

LangValue scalarFor(Importer &importer, BuiltinCall &call, llvm::StringRef name, const LangType &element) {
  Emitter &emit = importer.emit;
  const LangValue &value = call[name];
  if (value.isLiteral() && !element.isPointer()) {
    if (!emit.checkLiteralFits(value.constant(), element, call.rangeOf(name)))
      return LangValue::poison();
    return emit.constantOf(value.constant(), element);
  }
  LangValue tensor = emit.toTensor(value, call.rangeOf(name));
  if (tensor.isPoison())
    return tensor;
  if (tensor.type().isBlock())
    return reject(importer, call, name, "a scalar");
  return emit.cast(tensor, element, call.rangeOf(name));
}

bool checkWritablePointer(Importer &importer, BuiltinCall &call, llvm::StringRef name) {
  if (!checkScalarPointer(importer, call, name))
    return false;
  if (!call[name].type().isConstPointer())
    return true;
  importer.emit.error(call.rangeOf(name), fmt::format("Cannot store to a constant pointer: {} through {}", qualifiedName(*call.builtin), call[name].type().str()));
  return false;
}

LangValue scalarAs(Importer &importer, const LangValue &value, const LangType &type, SourceRange range, llvm::StringRef what) {
  Emitter &emit = importer.emit;
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

LangValue scalarBits(Importer &importer, BuiltinCall &call, llvm::StringRef name, const LangType &type) {
  const LangValue &value = call[name];
  if (value.isTensor() && !value.type().isBlock() && value.type().bitWidth() == type.bitWidth() && !value.type().isPointer())
    return value.type() == type ? value : importer.emit.bitcast(value, type, call.rangeOf(name));
  if (value.isTensor() && value.type().isFloat())
    return reject(importer, call, name, fmt::format("a scalar of {} bits", type.bitWidth()));
  return scalarInt(importer, call, name, type);
}

} // namespace ditron::frontend::builtins
