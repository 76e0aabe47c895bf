//===- TileAddresses.cpp - Addresses and bounds of a tile of a tensor ------------------------------------------------------===//
//
// See TileAddresses.h. All arithmetic is in 64 bits, as the language says; the form is one in which the axis analysis sees
// contiguity and divisibility.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/builtins/TileAddresses.h"

#include "ditron/dialect/tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace ditron::frontend {
namespace arith = mlir::arith;
namespace {

/// A vector along one dimension, repeated along all others.
LangValue alongDimension(Emitter &emit, LangValue vector, unsigned dim, llvm::ArrayRef<int64_t> shape) {
  for (unsigned axis = 0; axis < shape.size(); ++axis)
    if (axis != dim)
      vector = emit.expandDims(vector, axis);
  return emit.broadcastTo(vector, shape);
}

/// 0, 1, ... as int64.
LangValue steps(Emitter &emit, int64_t count) {
  LangType narrow = LangType(ScalarKind::Int32).withShape({count}), wide = LangType(ScalarKind::Int64).withShape({count});
  mlir::Value range = emit.create<tile::ArangeOp>(emit.ir(narrow), 0, static_cast<uint32_t>(count));
  return emit.wrap(emit.create<arith::ExtSIOp>(emit.ir(wide), range), wide);
}

LangValue multiply(Emitter &emit, const LangValue &a, const LangValue &b) {
  return emit.wrap(emit.create<arith::MulIOp>(a.ir(), b.ir()), a.type());
}

LangValue add(Emitter &emit, const LangValue &a, const LangValue &b) {
  return a.isPoison() ? b : emit.wrap(emit.create<arith::AddIOp>(a.ir(), b.ir()), a.type());
}

LangValue offsetPointer(Emitter &emit, const LangValue &pointer, const LangValue &distance) {
  return emit.wrap(emit.create<tile::AddPtrOp>(pointer.ir().getType(), pointer.ir(), distance.ir()), pointer.type());
}

} // namespace

LangValue tilePointers(Emitter &emit, const StridedTile &tile) {
  LangValue origin, inside; // poison: nothing yet
  for (unsigned dim = 0; dim < tile.shape.size(); ++dim) {
    const LangValue &position = tile.positions[dim], &stride = tile.strides[dim];
    const bool isListed = position.type().isBlock();
    if (!isListed)
      origin = add(emit, origin, multiply(emit, position, stride));
    if (!isListed && tile.shape[dim] == 1)
      continue;
    LangValue along = isListed ? position : steps(emit, tile.shape[dim]);
    along = multiply(emit, along, emit.splat(stride, along.type().shape()));
    inside = add(emit, inside, alongDimension(emit, along, dim, tile.shape));
  }
  LangValue first = origin.isPoison() ? tile.base : offsetPointer(emit, tile.base, origin);
  LangValue pointers = emit.splat(first, tile.shape);
  return inside.isPoison() ? pointers : offsetPointer(emit, pointers, inside);
}

LangValue tileMask(Emitter &emit, const StridedTile &tile, llvm::ArrayRef<int64_t> dims) {
  LangValue mask;
  for (int64_t dim : dims) {
    LangValue coordinate = tile.positions[dim];
    if (!coordinate.type().isBlock()) {
      LangValue along = steps(emit, tile.shape[dim]);
      coordinate = add(emit, emit.splat(coordinate, along.type().shape()), along);
    }
    // Sizes are not negative, so one unsigned comparison excludes both ends.
    mlir::Value limit = emit.splat(tile.sizes[dim], coordinate.type().shape()).ir();
    mlir::Value inRange = emit.create<arith::CmpIOp>(arith::CmpIPredicate::ult, coordinate.ir(), limit);
    LangValue all = alongDimension(
        emit, emit.wrap(inRange, LangType(ScalarKind::Int1).withShape(coordinate.type().shape())), dim, tile.shape);
    mask = mask.isPoison() ? all : emit.wrap(emit.create<arith::AndIOp>(mask.ir(), all.ir()), all.type());
  }
  return mask;
}

} // namespace ditron::frontend
