//===- SimLoops.cpp - Loops notice the time limit ---------------------------------------------------------------------------===//
//
//   ^head(%i: i32):                ^head(%i: i32):
//     ...                            %late = load volatile %timed_out
//     br ^head(%j)            =>     cond_br %late, ^out, ^rest
//                                  ^out: call ditron_sim_time_out; unreachable
//                                  ^rest: ...
//                                    br ^head(%j)
//
// The call does not return, so it costs the loop neither registers nor knowledge about memory. The volatile load also keeps LLVM
// from removing a loop that has no other effect: one that never ends must end in the time limit's message.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/sim/SimLoops.h"

#include "ditron/abi/Simulator.h"

#include "mlir/IR/Dominance.h"
#include "llvm/ADT/MapVector.h"

#include <cstddef>

using namespace mlir;

namespace ditron::target {

void checkTimeInLoops(LLVM::LLVMFuncOp kernel, SimCalls &sim) {
  llvm::MapVector<Block *, Location> heads; // with the place of a branch back
  DominanceInfo dominance(kernel);
  for (Block &block : kernel.getBody())
    for (Block *successor : block.getSuccessors())
      if (dominance.dominates(successor, &block))
        heads.insert({successor, block.getTerminator()->getLoc()});
  if (heads.empty())
    return;

  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  Emitter entry(kernel.getLoc(), builder);
  Value thread = sim.call(entry, "self", {});
  auto word = LLVM::LoadOp::create(entry, entry.pointerType(),
                                   entry.addBytes(thread, int64_t(offsetof(DitronSimThread, timedOut))));
  word.setInvariant(true);
  for (auto [head, location] : heads) {
    Block *rest = head->splitBlock(head->begin());
    Block *out = builder.createBlock(rest);
    Emitter leave(location, builder);
    sim.call(leave, "time_out", {thread, sim.site(leave)});
    LLVM::UnreachableOp::create(leave);
    builder.setInsertionPointToEnd(head);
    Emitter e(location, builder);
    auto value = LLVM::LoadOp::create(e, e.getI32Type(), word, /*alignment=*/4, /*isVolatile=*/true);
    Value isLate = LLVM::ICmpOp::create(e, LLVM::ICmpPredicate::ne, value, LLVM::ZeroOp::create(e, e.getI32Type()));
    auto branch = LLVM::CondBrOp::create(e, isLate, out, rest);
    branch.setWeights({1, 1 << 20});
  }
}

} // namespace ditron::target
