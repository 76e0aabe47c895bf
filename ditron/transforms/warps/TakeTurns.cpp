//===- TakeTurns.cpp - Warpgroups that multiply and compute by turns ------------------------------------------------------===//
//
// Consumers of several warpgroups that compute between their dots, as the exponentials of attention, all want the tensor core at the
// same time and then leave it idle together. Here they take turns: a warpgroup starts its dots when the one before it has started all
// of its own, and computes while the others multiply. Works on the IR that dgpu-delay-dots leaves.
//
//   for i:                                     becomes       pass_turn first
//     mbarrier_wait ...                                      for i:
//     s0 = dot q, k[i]                                         mbarrier_wait ...; take_turn
//     acc0 = dot p, v[i - 1], scaled                           s0 = dot ...; acc0 = dot ...; pass_turn
//     s = warpgroup_wait 1, s0                                 s = warpgroup_wait 1, s0
//     ...                                                      ...
//                                                            take_turn first
// 1. Loops of a consumer of at least two warpgroups that start several dots before they wait for the first of them, and whose body uses
//    what that one gives. Others either only accumulate, and the tensor core's queue orders them well, or wait for each dot.
// 2. Who passes the turn to whom goes round; all warpgroups run every loop equally often, for what loops and branches depend on is uniform
//    in a block. The first turn comes from the last warpgroup at the partition's beginning, and the first one takes the last turn at its
//    end, so that nothing is left behind.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/layout/Wgmma.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_TAKETURNS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// The dots that a body starts before it waits for any of them.
SmallVector<dgpu::WarpgroupDotOp> dotsStartedTogether(Block *body) {
  SmallVector<dgpu::WarpgroupDotOp> dots;
  for (Operation &op : *body) {
    if (auto dot = dyn_cast<dgpu::WarpgroupDotOp>(op))
      dots.push_back(dot);
    if (isa<dgpu::WarpgroupWaitOp>(op))
      break;
  }
  return dots;
}

/// True if the body computes with the result of one of the dots.
bool usesResult(Block *body, ArrayRef<dgpu::WarpgroupDotOp> dots) {
  return llvm::any_of(dots, [&](dgpu::WarpgroupDotOp dot) {
    return llvm::any_of(dot->getUsers(), [&](Operation *user) {
      auto wait = dyn_cast<dgpu::WarpgroupWaitOp>(user);
      return wait && wait->getBlock() == body && llvm::any_of(wait->getUsers(), [&](Operation *reader) {
               return reader != body->getTerminator() && !isa<dgpu::WarpgroupDotOp, dgpu::WarpgroupWaitOp>(reader);
             });
    });
  });
}

class TakeTurnsPass : public impl::TakeTurnsBase<TakeTurnsPass> {
  void runOnOperation() override {
    if (dgpu::numWarpsOf(getOperation()) < 2 * layout::warpsPerGroup)
      return;
    getOperation().walk([](dgpu::WarpSpecializeOp partitions) {
      Block &consumer = partitions.getConsumer().front();
      bool takesTurns = false;
      consumer.walk([&](scf::ForOp loop) {
        SmallVector<dgpu::WarpgroupDotOp> dots = dotsStartedTogether(loop.getBody());
        if (dots.size() < 2 || !usesResult(loop.getBody(), dots))
          return;
        takesTurns = true;
        OpBuilder builder(dots.front());
        dgpu::TakeTurnOp::create(builder, dots.front().getLoc(), /*first=*/false);
        builder.setInsertionPointAfter(dots.back());
        dgpu::PassTurnOp::create(builder, dots.back().getLoc(), /*first=*/false);
        remark::passed(loop.getLoc(), remark::RemarkOpts::name("turns").category("dgpu-take-turns"))
            << "warpgroups multiply and compute by turns";
      });
      if (!takesTurns)
        return;
      OpBuilder builder = OpBuilder::atBlockBegin(&consumer);
      dgpu::PassTurnOp::create(builder, partitions.getLoc(), /*first=*/true);
      builder.setInsertionPointToEnd(&consumer);
      dgpu::TakeTurnOp::create(builder, partitions.getLoc(), /*first=*/true);
    });
  }
};

} // namespace
} // namespace ditron::transforms
