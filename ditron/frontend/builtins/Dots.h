//===- Dots.h - Emission of matrix products -------------------------------------------------------------------*- C++ -*-===//
//
// What tl.dot and tl.dot_scaled share. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_DOTS_H
#define DITRON_FRONTEND_DOTS_H

#include "ditron/dialect/tile/Tile.h"
#include "ditron/frontend/Evaluator.h"

namespace ditron::frontend {

struct DotOptions {
  tile::DotPrecision precision = tile::DotPrecision::TF32; ///< For fp32 operands.
  std::optional<int64_t> maxImpreciseAcc;                  ///< For fp8 operands.
};

/// a * b + acc on blocks of rank 2 or more that fit each other, with results of type `element`. `acc` is a block of the
/// result's type, or None for zero.
LangValue emitDot(Emitter &emit, const LangValue &a, const LangValue &b, const LangValue &acc, const LangType &element,
                  const DotOptions &options);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_DOTS_H
