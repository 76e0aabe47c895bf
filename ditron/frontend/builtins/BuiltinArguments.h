//===- BuiltinArguments.h - Arguments of the distributed and thread-level functions ---------------------------*- C++ -*-===//
//
// Checks and conversions that the handlers of these families share: scalar pointers, signal words, scalar values. Each reports
// what is wrong with an argument by its name. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_BUILTINARGUMENTS_H
#define DITRON_FRONTEND_BUILTINARGUMENTS_H

#include "ditron/dialect/tile/Tile.h"
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/Vectors.h"

namespace ditron::frontend::builtins {

/// Reports an argument that is not what is wanted; poison.
LangValue reject(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument, llvm::StringRef wanted);
/// A scalar pointer argument.
bool checkScalarPointer(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument);
/// A scalar pointer that may be written through.
bool checkWritablePointer(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument);
/// A pointer to signal words: 32 or 64 bit integers.
bool checkSignalPointer(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument);
/// A scalar int argument as a type.
LangValue scalarInt(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument, const LangType &type);
/// A scalar value converted to the type behind a pointer.
LangValue scalarFor(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument, const LangType &element);
/// Any scalar, or a part of one, converted to a type; `what` names it in messages.
LangValue scalarAs(Evaluator &evaluator, const LangValue &value, const LangType &type, SourceRange range, llvm::StringRef what);
/// The same bits of a scalar in another type of the same width.
LangValue scalarBits(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument, const LangType &type);

/// The operation of an atomic by the element's kind: Add, Max and Min have forms for floating point and unsigned numbers.
tile::AtomicOp atomicKind(tile::AtomicOp op, const LangType &element);

/// A vector of scalars that have one type.
LangValue makeVectorOf(std::vector<LangValue> elements);
/// The elements of a vector as another type: the same bits in consecutive elements. The total width must fit.
LangValue recastVector(Evaluator &evaluator, const LangValue &vector, const LangType &element, SourceRange range);

} // namespace ditron::frontend::builtins

#endif // DITRON_FRONTEND_BUILTINARGUMENTS_H
