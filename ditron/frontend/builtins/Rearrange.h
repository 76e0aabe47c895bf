//===- Rearrange.h - Moves of elements that several families of functions are made of ---------------------*- C++ -*-===//
//
// Joining and splitting along a last dimension of size 2, and exchanges between elements at a distance along an axis.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_REARRANGE_H
#define DITRON_FRONTEND_REARRANGE_H

#include "ditron/frontend/Evaluator.h"

namespace ditron::frontend {

/// The elements of `a` and `b`, of one type, side by side in a new last dimension of size 2.
LangValue joinPair(Emitter &emit, const LangValue &a, const LangValue &b);
/// The two halves along the last dimension, of size 2.
std::pair<LangValue, LangValue> splitPair(Emitter &emit, const LangValue &value);
/// result dimension i is dimension order[i] of the value.
LangValue permuteDims(Emitter &emit, const LangValue &value, llvm::ArrayRef<int32_t> order);
/// The position along an axis of every element of a shape, as int32.
LangValue positionsAlong(Emitter &emit, llvm::ArrayRef<int64_t> shape, unsigned axis);
/// For each element the one whose position along the axis is the own XOR `mask`. `positions` are those along the axis.
LangValue exchangeAlong(Emitter &emit, const LangValue &value, const LangValue &positions, unsigned axis, int64_t mask);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_REARRANGE_H
