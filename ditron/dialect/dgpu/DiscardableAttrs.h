//===- DiscardableAttrs.h - Attributes of dgpu that the module and operations of others carry -------------*- C++ -*-===//
//
// What passes leave for later stages. Those that the pipeline sets before the first pass are in Dgpu.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_DIALECT_DGPU_DISCARDABLEATTRS_H
#define DITRON_DIALECT_DGPU_DISCARDABLEATTRS_H

#include "llvm/ADT/StringRef.h"

namespace ditron::dgpu {

/// i32, of tile.load, tile.store and dgpu.async_copy of tensors: the dimension along which one instruction accesses neighbours ...
inline constexpr llvm::StringLiteral vectorAxisAttrName = "dgpu.vector_axis";
/// ... and i32: how many of them.
inline constexpr llvm::StringLiteral vectorElemsAttrName = "dgpu.vector_elems";
/// Unit, of accesses through pointers that may point into shared memory as well as into global memory.
inline constexpr llvm::StringLiteral genericAttrName = "dgpu.generic";

} // namespace ditron::dgpu

#endif // DITRON_DIALECT_DGPU_DISCARDABLEATTRS_H
