//===- VerifyWaits.cpp - Waits that nothing depends on, and loops that never see a change -----------------------------===//
//
// The pass dist-verify-waits (docs/verifiers.md says what is checked and why).
//
// 1. A wait whose token has a name but reaches no consume_token, when a load is the next that touches memory: nothing says that
//    the load needs the wait, though the author meant to say it. A barrier, another wait or a fence in between says so for all
//    loads behind it; so does a wait as a statement of its own, whose token nobody takes.
// 2. A loop that does nothing but load what nobody in it writes, without volatile: it sees the same value for ever.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/Passes.h"
#include "ditron/analysis/Provenance.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/DiscardableAttrs.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

namespace ditron::analysis {
#define GEN_PASS_DEF_VERIFYWAITS
#include "ditron/analysis/AnalysisPasses.h.inc"
} // namespace ditron::analysis

using namespace mlir;
using namespace ditron::analysis;
namespace tile = ditron::tile;
namespace dist = ditron::dist;
namespace dgpu = ditron::dgpu;

namespace {

/// Whether a token gets to a consume_token whose result is used, or to something that is not looked through.
bool isConsumed(Value token) {
  llvm::DenseSet<Value> seen{token};
  SmallVector<Value> work{token};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      if (auto consume = dyn_cast<dist::ConsumeTokenOp>(use.getOwner())) {
        if (!consume.getResult().use_empty())
          return true;
        continue;
      }
      if (!isa<scf::ForOp, scf::WhileOp, scf::ConditionOp, scf::YieldOp>(use.getOwner()))
        return true;
      for (Value next : flowsTo(use))
        if (seen.insert(next).second)
          work.push_back(next);
    }
  }
  return false;
}

/// What comes next: nothing that matters, a load, or something that orders what follows it.
struct NextAccess {
  Operation *load = nullptr;
  bool isOrdered = false;
  bool isFound() const { return load || isOrdered; }
};

NextAccess nextAccess(Block::iterator begin, Block::iterator end);

NextAccess accessOf(Operation &op) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return load.getIsVolatile() ? NextAccess() : NextAccess{&op, false};
  if (isa<tile::DescriptorLoadOp>(op))
    return {&op, false};
  if (isa<dist::SyncThreadsOp, dist::WaitOp, dist::NotifyOp, dist::FenceOp, dist::OrderOp, dist::TeamBarrierOp, dgpu::BarrierOp, tile::AtomicRmwOp,
          tile::AtomicCasOp>(op))
    return {nullptr, true};
  NextAccess found;
  for (Region &region : op.getRegions())
    for (Block &block : region) {
      NextAccess inside = nextAccess(block.begin(), block.end());
      if (inside.load)
        return inside;
      found.isOrdered |= inside.isOrdered;
    }
  // A branch may be passed by.
  return found.isOrdered && isa<scf::WhileOp>(op) ? found : NextAccess();
}

NextAccess nextAccess(Block::iterator begin, Block::iterator end) {
  for (Operation &op : llvm::make_range(begin, end))
    if (NextAccess access = accessOf(op); access.isFound())
      return access;
  return {};
}

/// The same behind an operation, out of the branches and loops around it.
NextAccess accessBehind(Operation *op) {
  while (op && !isa<func::FuncOp>(op)) {
    NextAccess access = nextAccess(std::next(op->getIterator()), op->getBlock()->end());
    if (access.isFound())
      return access;
    op = op->getParentOp();
  }
  return {};
}

void verifyToken(dist::WaitOp wait, bool &failed) {
  if (wait->hasAttr(dist::tokenDroppedAttrName) || isConsumed(wait.getToken()))
    return;
  NextAccess next = accessBehind(wait);
  if (!next.load)
    return;
  failed = true;
  InFlightDiagnostic diagnostic = wait.emitError()
                                  << "the token of this wait is never consumed, and nothing else puts the load that follows behind the wait: load through "
                                     "dl.consume_token(pointer, token), or put a __syncthreads() between them";
  diagnostic.attachNote(next.load->getLoc()) << "the load is here";
  for (Operation *user : wait.getToken().getUsers())
    if (isa<dist::ConsumeTokenOp>(user))
      diagnostic.attachNote(user->getLoc()) << "the result of this consume_token is not used: loads through the old pointer are not behind the wait";
}

/// Warns of a loop that only loads, and always the same.
void checkSpin(scf::WhileOp loop) {
  Operation *load = nullptr;
  WalkResult walk = loop.walk([&](Operation *op) {
    if (op == loop || isa<scf::ConditionOp, scf::YieldOp, tile::KeepLoopOp>(op))
      return WalkResult::advance();
    if (auto plain = dyn_cast<tile::LoadOp>(op); plain && !plain.getIsVolatile()) {
      load = op;
      return WalkResult::advance();
    }
    return isMemoryEffectFree(op) ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (walk.wasInterrupted() || !load)
    return;
  // The condition: made of loads and of what is known before the loop, not of what changes from turn to turn.
  llvm::DenseSet<Value> seen;
  SmallVector<Value> work{loop.getConditionOp().getCondition()};
  bool hasLoad = false;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    bool isInside = loop.getBefore().isAncestor(value.getParentRegion());
    if (!seen.insert(value).second || !isInside)
      continue;
    Operation *definition = value.getDefiningOp();
    if (!definition || definition->getNumRegions() != 0)
      return;
    hasLoad |= isa<tile::LoadOp>(definition);
    llvm::append_range(work, definition->getOperands());
  }
  if (hasLoad)
    load->emitWarning("this loop waits for memory to change, but the load may be done once for all turns: use "
                      "tl.load(..., volatile=True), ld(..., semantic='acquire') or dl.wait");
}

struct VerifyWaitsPass : public ditron::analysis::impl::VerifyWaitsBase<VerifyWaitsPass> {
  void runOnOperation() override {
    bool failed = false;
    getOperation().walk([&](Operation *op) {
      if (auto wait = dyn_cast<dist::WaitOp>(op))
        verifyToken(wait, failed);
      else if (auto loop = dyn_cast<scf::WhileOp>(op))
        checkSpin(loop);
    });
    markAllAnalysesPreserved();
    if (failed)
      signalPassFailure();
  }
};

} // namespace
