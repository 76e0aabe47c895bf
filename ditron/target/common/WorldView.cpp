//===- WorldView.cpp - The words that tell a kernel where it runs ---------------------------------------------------------===//
//
// See WorldView.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/WorldView.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using LLVM::ICmpPredicate;

namespace ditron::target {

Value worldView(Operation *op) {
  Block::BlockArgListType arguments = op->getParentOfType<FunctionOpInterface>().getFunctionBody().getArguments();
  return !arguments.empty() && isa<LLVM::LLVMPointerType>(arguments.back().getType()) ? arguments.back() : Value();
}

Value loadWorldWord(Emitter &e, TargetInfo &target, Value world, Value index) {
  Value address = e.addBytes(world, e.mul(e.sextOrTrunc(index, e.getI64Type()), e.i64(8)));
  return target.loadVector(e, address, e.getI64Type(), 1, Value(), {}, AddressSpace::Global, {})[0];
}

Value peerAddress(Emitter &e, TargetInfo &target, Value world, Value ptr, Value rank) {
  Value own = loadWorldWord(e, target, world, DITRON_WORLD_RANK);
  Value from = loadWorldWord(e, target, world, e.add(own, e.i64(DITRON_WORLD_HEAPS)));
  Value to = loadWorldWord(e, target, world, e.add(e.sextOrTrunc(rank, e.getI64Type()), e.i64(DITRON_WORLD_HEAPS)));
  return e.addBytes(ptr, e.sub(to, from));
}

static Value divide(Emitter &e, Value a, Value b) { return LLVM::UDivOp::create(e, a, b); }

Team::Team(Emitter &e, TargetInfo &target, Value world, Value number) {
  auto word = [&](int index) { return e.sextOrTrunc(loadWorldWord(e, target, world, index), e.getI32Type()); };
  rank = word(DITRON_WORLD_RANK);
  numRanks = word(DITRON_WORLD_NUM_RANKS);
  Value given = word(DITRON_WORLD_RANKS_PER_NODE);
  nodeSize = e.select(e.isZero(given), numRanks, given);
  Value isWorld = e.compare(ICmpPredicate::eq, number, e.i32(0)), isAcross = e.compare(ICmpPredicate::eq, number, e.i32(3));
  isValid = e.compare(ICmpPredicate::ule, number, e.i32(3));
  Value place = LLVM::URemOp::create(e, rank, nodeSize);
  first = e.select(isWorld, e.i32(0), e.select(isAcross, place, e.sub(rank, place)));
  stride = e.select(isAcross, nodeSize, e.i32(1));
  Value all = e.select(isWorld, numRanks, e.select(isAcross, divide(e, numRanks, nodeSize), nodeSize));
  size = e.select(isValid, all, e.i32(-1));
}

Value Team::member(Emitter &e, Value index) const { return e.add(first, e.mul(index, stride)); }

Value Team::indexOf(Emitter &e, Value pe) const {
  Value distance = e.sub(pe, first);
  Value index = divide(e, distance, stride);
  // A negative distance is a large number without sign.
  Value inside = e.bitAnd(e.compare(ICmpPredicate::eq, e.mul(index, stride), distance), e.compare(ICmpPredicate::ult, index, size));
  return e.select(e.bitAnd(inside, isValid), index, e.i32(-1));
}

} // namespace ditron::target
