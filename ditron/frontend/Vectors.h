//===- Vectors.h - What makes a tuple a vector ---------------------------------------------------------------*- C++ -*-===//
//
// dl.vector is a tuple of scalars of one type whose class has no fields. The places that treat tuples ask here whether one is a
// vector: operators work on its elements, slices are vectors again, and it has member functions. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_VECTORS_H
#define DITRON_FRONTEND_VECTORS_H

#include "ditron/frontend/Emitter.h"

namespace ditron::frontend {

/// The class of vectors.
const std::shared_ptr<const ClassInfo> &vectorClass();
inline bool isVector(const LangValue &value) { return value.isTuple() && value.classInfo() == vectorClass().get(); }
/// + - * of vectors element by element, or of a vector and a number.
LangValue vectorArithmetic(Emitter &emit, BinaryOp op, const LangValue &a, const LangValue &b, SourceRange range);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_VECTORS_H
