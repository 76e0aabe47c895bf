//===- ExchangeAttr.h - Gathers that are known to be exchanges ---------------------------------------------*- C++ -*-===//
//
// An optional attribute of tile.gather for what its index operand also says: every element comes from the own position XOR a
// constant along the axis, in a source of the result's shape. Reversals and sorting networks are made of such gathers; with the
// attribute they cost a butterfly instead of a gather by run-time indices.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_DIALECT_TILE_EXCHANGEATTR_H
#define DITRON_DIALECT_TILE_EXCHANGEATTR_H

#include "ditron/dialect/tile/Tile.h"
#include <optional>

namespace ditron::tile {

inline constexpr llvm::StringLiteral exchangeMaskAttrName = "tile.exchange_mask";

/// The constant, if the gather is known to be an exchange.
inline std::optional<int64_t> exchangeMaskOf(GatherOp gather) {
  if (auto mask = gather->getAttrOfType<mlir::IntegerAttr>(exchangeMaskAttrName))
    return mask.getInt();
  return std::nullopt;
}

} // namespace ditron::tile

#endif // DITRON_DIALECT_TILE_EXCHANGEATTR_H
