//===- LowerWorld.cpp - The world view of a kernel ------------------------------------------------------------------------===//
//
// Replaces the operations that ask where a kernel runs by reads of the world view, an array of i64 words in global memory whose
// address is the hidden last argument of every kernel: [0] rank, [1] num_ranks, [2 + r] base address of rank r's symmetric
// heap. Signals (dist.wait, dist.notify) stay; a notify's own address translation belongs to its lowering, which finds the world
// view as the last argument.
//
// 1. Append one last argument `!tile.ptr<i64>` to every func with the attribute `tile.kernel`, used or not: the world view
//    [rank, num_ranks, base of rank 0, base of rank 1, ...].
// 2. Read word 0 and word 1 at the top of the kernel when dist.rank or dist.num_ranks occur; replace those by the words as i32.
// 3. dist.symm_at(p, r) becomes p - base(own rank) + base(r) on addresses. The own base is read once at the top, base(r) where
//    the op stands, behind a check of r. Heap bases are aligned, which is said with tile.hint so that vector accesses survive.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_LOWERWORLD
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// Reads the words of one kernel's world view; the words that do not depend on a peer are read once, at the top.
class WorldView {
public:
  WorldView(func::FuncOp kernel, Value pointer)
      : top(&kernel.getBody().front(), kernel.getBody().front().begin()), pointer(pointer) {}

  Value rank() {
    return atTop(rankWord, [&] { return toI32(word(top, pointer.getLoc(), constant(top, 0))); });
  }
  Value numRanks() {
    return atTop(numRanksWord, [&] { return toI32(word(top, pointer.getLoc(), constant(top, 1))); });
  }

  /// The heap base of a rank, as an address.
  Value base(OpBuilder &builder, Location loc, Value ofRank) {
    Value two = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(2));
    Value address = word(builder, loc, arith::AddIOp::create(builder, loc, ofRank, two));
    auto aligned = builder.getDenseI64ArrayAttr({symmetricHeapAlignmentBytes});
    return tile::HintOp::create(builder, loc, address.getType(), address, aligned, DenseI64ArrayAttr(),
                                DenseI64ArrayAttr());
  }
  Value ownBase() {
    Value own = rank();
    return atTop(ownBaseWord, [&] { return base(top, pointer.getLoc(), own); });
  }

private:
  Value atTop(Value &slot, llvm::function_ref<Value()> make) {
    if (!slot)
      slot = make();
    return slot;
  }
  Value constant(OpBuilder &builder, int32_t value) {
    return arith::ConstantOp::create(builder, pointer.getLoc(), builder.getI32IntegerAttr(value));
  }
  Value word(OpBuilder &builder, Location loc, Value index) {
    Value address = tile::AddPtrOp::create(builder, loc, pointer.getType(), pointer, index);
    return tile::LoadOp::create(builder, loc, address, Value(), Value());
  }
  Value toI32(Value wide) { return arith::TruncIOp::create(top, pointer.getLoc(), top.getI32Type(), wide); }

  OpBuilder top;
  Value pointer;
  Value rankWord, numRanksWord, ownBaseWord;
};

class LowerWorldPass : public impl::LowerWorldBase<LowerWorldPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr("tile.kernel") && !function.isExternal())
        lowerKernel(function);
  }

  void lowerKernel(func::FuncOp kernel) {
    auto pointerType = tile::PointerType::get(IntegerType::get(&getContext(), 64));
    unsigned position = kernel.getNumArguments();
    if (failed(kernel.insertArgument(position, pointerType, {}, kernel.getLoc())))
      return signalPassFailure();
    WorldView world(kernel, kernel.getArgument(position));

    SmallVector<Operation *> questions;
    kernel.walk([&](Operation *op) {
      if (isa<dist::RankOp, dist::NumRanksOp, dist::SymmAtOp>(op))
        questions.push_back(op);
    });
    for (Operation *op : questions)
      op->getResult(0).replaceAllUsesWith(answer(op, world));
    // Not earlier: the first of them may be the place where the world view is read.
    for (Operation *op : questions)
      op->erase();
  }

  static Value answer(Operation *op, WorldView &world) {
    if (isa<dist::RankOp>(op))
      return world.rank();
    if (isa<dist::NumRanksOp>(op))
      return world.numRanks();
    auto symmAt = cast<dist::SymmAtOp>(op);
    OpBuilder builder(op);
    Location loc = op->getLoc();
    Type i64 = builder.getI64Type();
    Value numRanks = world.numRanks();
    dist::CheckRankOp::create(builder, loc, symmAt.getRank(), numRanks);
    Value ownBase = world.ownBase();
    Value address = tile::PtrToIntOp::create(builder, loc, i64, symmAt.getPtr());
    Value distance = arith::SubIOp::create(builder, loc, world.base(builder, loc, symmAt.getRank()), ownBase);
    Value there = arith::AddIOp::create(builder, loc, address, distance);
    return tile::IntToPtrOp::create(builder, loc, symmAt.getType(), there);
  }
};

} // namespace
} // namespace ditron::transforms
