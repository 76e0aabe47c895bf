//===- MergeCounters.cpp - Numbers that a loop carries and that are its counter --------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/transforms/Constants.h"
#include "ditron/transforms/loops/LoopArguments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_MERGECOUNTERS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// The value as a sum of one value, or none, and a constant.
struct Sum {
  Value term;
  uint64_t constant = 0;

  static Sum of(Value value) {
    if (std::optional<int64_t> number = constantOf(value))
      return {{}, static_cast<uint64_t>(*number)};
    Operation *op = value.getDefiningOp();
    const std::optional<int64_t> number =
        isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op) ? constantOf(op->getOperand(1)) : std::nullopt;
    if (!number)
      return {value};
    const Sum inner = of(op->getOperand(0));
    return {inner.term, isa<arith::AddIOp>(op) ? inner.constant + *number : inner.constant - *number};
  }
  bool operator==(const Sum &other) const { return term == other.term && constant == other.constant; }
};

/// Merges the carried numbers of one loop; true if there were any.
bool mergeCounters(scf::ForOp loop) {
  Value counter = loop.getInductionVar();
  const Sum step = Sum::of(loop.getStep()), begin = Sum::of(loop.getLowerBound());
  bool merged = false;
  for (BlockArgument carried : loop.getRegionIterArgs()) {
    auto add = loop.getTiedLoopYieldedValue(carried)->get().getDefiningOp<arith::AddIOp>();
    if (carried.getType() != counter.getType() || !add || add.getLhs() != carried || !(Sum::of(add.getRhs()) == step))
      continue;
    const Sum init = Sum::of(loop.getTiedLoopInit(carried)->get());
    if (init == begin) {
      carried.replaceAllUsesExcept(counter, add);
      merged = true;
    } else if (!step.term && init == Sum{begin.term, begin.constant - step.constant}) {
      add.getResult().replaceUsesWithIf(counter, [](OpOperand &use) { return !isa<scf::YieldOp>(use.getOwner()); });
      merged = true;
    }
  }
  return merged;
}

class MergeCountersPass : public impl::MergeCountersBase<MergeCountersPass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      if (mergeCounters(loop))
        removeDeadLoopArguments(loop);
  }
};

} // namespace
} // namespace ditron::transforms
