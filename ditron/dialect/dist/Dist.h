//===- Dist.h - The dist dialect -------------------------------------------------------------------------*- C++ -*-===//
//
// Distributed and thread-level operations of the kernel language. The definitions are in the .td files beside this header.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_DIALECT_DIST_DIST_H
#define DITRON_DIALECT_DIST_DIST_H

#include "ditron/dialect/tile/Tile.h"

#include "ditron/dialect/dist/DistDialect.h.inc"
#include "ditron/dialect/dist/DistEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ditron/dialect/dist/DistAttrs.h.inc"

#define GET_OP_CLASSES
#include "ditron/dialect/dist/DistOps.h.inc"

#endif // DITRON_DIALECT_DIST_DIST_H
