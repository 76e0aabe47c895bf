//===- AnnotateAccesses.cpp - How each access of memory is made -----------------------------------------------------------===//
//
// The pass dgpu-annotate-accesses. The conversion to one thread's program takes tensors apart, and analyses of tensors cannot be
// asked in it. What it has to know of an access is found before:
//   1. the dimension along which one instruction accesses neighbouring elements, and how many;
//   2. accesses through pointers that may come from shared memory;
//   3. scalar stores and assertions that are the work of every thread that reaches them;
//   4. loads that are all that a loop does.
// The answers are attributes (dialect/dgpu/DiscardableAttrs.h, dialect/dist/DiscardableAttrs.h) and not an analysis since the
// conversion clones accesses in scalar regions, once for each application.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/analysis/AxisInfo.h"
#include "ditron/analysis/CheckLayouts.h"
#include "ditron/analysis/Uniformity.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dgpu/DiscardableAttrs.h"
#include "ditron/dialect/dist/DiscardableAttrs.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/transforms/memory/SpinLoad.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_ANNOTATEACCESSES
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// Dimension and number of elements of the widest accesses for these pointers.
struct AccessShape {
  int axis = 0;
  int64_t elems = 1;
};

AccessShape widestAccess(const analysis::AxisInfoAnalysis &axes, int64_t mostBytes, Value ptr, Value mask) {
  const layout::DistributedLayout &registers = dgpu::layoutOf(ptr.getType());
  auto pointer = cast<tile::PointerType>(tile::elementTypeOf(ptr.getType()));
  AccessShape widest;
  for (int axis = 0; axis < registers.rank(); ++axis) {
    // The lowest bits of the axis that registers own: neighbours in the same thread.
    int64_t neighbours = 1;
    for (int bit : registers.axisBits(axis)) {
      if (registers.owner(bit).dim != layout::MachineDim::Reg)
        break;
      neighbours *= 2;
    }
    int64_t elems = std::min<int64_t>(
        {neighbours, axes.contiguousElements(ptr, axis), mostBytes / int64_t(pointer.getElementBytes())});
    if (mask && isa<RankedTensorType>(mask.getType()))
      elems = std::min<int64_t>(elems, axes.maskAlignment(mask, axis));
    if (elems > widest.elems)
      widest = {axis, elems};
  }
  return widest;
}

void annotateWidth(Operation *op, AccessShape shape) {
  OpBuilder builder(op->getContext());
  op->setAttr(dgpu::vectorAxisAttrName, builder.getI32IntegerAttr(shape.axis));
  op->setAttr(dgpu::vectorElemsAttrName, builder.getI32IntegerAttr(static_cast<int32_t>(shape.elems)));
}

/// Marks the accesses through pointers that may come from shared memory: what is computed from a dist.shared_alloc, through
/// branches and loops, without following what is loaded.
void annotateGeneric(ModuleOp module) {
  llvm::DenseSet<Value> reached;
  SmallVector<Value> work;
  auto reach = [&](Value value) {
    if (reached.insert(value).second)
      work.push_back(value);
  };
  module.walk([&](Operation *op) {
    auto intrinsic = dyn_cast<dist::IntrinsicOp>(op);
    if (isa<dist::SharedAllocOp>(op) || (intrinsic && intrinsic.getName() == "shared_pointer"))
      reach(op->getResult(0));
  });
  while (!work.empty()) {
    Value value = work.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (isa<tile::LoadOp, tile::StoreOp, tile::AtomicRmwOp, tile::AtomicCasOp, dist::LdOp, dist::StOp,
              dist::LdVectorOp, dist::StVectorOp, dist::ThreadAtomicRmwOp, dist::ThreadAtomicCasOp>(user)) {
        user->setAttr(dgpu::genericAttrName, UnitAttr::get(user->getContext()));
      } else if (isa<RegionBranchOpInterface>(user)) {
        // An operand of a loop is the argument of its body, and what the loop gives.
        if (auto loop = dyn_cast<LoopLikeOpInterface>(user)) {
          for (auto [init, argument] : llvm::zip(loop.getInits(), loop.getRegionIterArgs()))
            if (init == value)
              reach(argument);
          if (auto results = loop.getLoopResults(); results && results->size() == loop.getInits().size())
            for (auto [init, result] : llvm::zip(loop.getInits(), *results))
              if (init == value)
                reach(result);
        }
      } else if (isa<scf::YieldOp>(user)) {
        Operation *parent = user->getParentOp();
        if (auto loop = dyn_cast<scf::WhileOp>(parent))
          reach(loop.getBeforeArguments()[use.getOperandNumber()]);
        else
          reach(parent->getResult(use.getOperandNumber()));
        if (auto loop = dyn_cast<scf::ForOp>(parent))
          reach(loop.getRegionIterArgs()[use.getOperandNumber()]);
      } else if (auto condition = dyn_cast<scf::ConditionOp>(user)) {
        if (use.getOperandNumber() > 0) {
          auto loop = cast<scf::WhileOp>(user->getParentOp());
          reach(loop.getAfterArguments()[use.getOperandNumber() - 1]);
          reach(loop.getResult(use.getOperandNumber() - 1));
        }
      } else {
        for (Value result : user->getResults())
          reach(result);
      }
    }
  }
}

void annotateWidths(ModuleOp module, int64_t mostBytes) {
  analysis::AxisInfoAnalysis axes(module);
  module.walk([&](Operation *op) {
    if (auto load = dyn_cast<tile::LoadOp>(op); load && isa<RankedTensorType>(load.getPtr().getType()))
      annotateWidth(op, widestAccess(axes, mostBytes, load.getPtr(), load.getMask()));
    else if (auto store = dyn_cast<tile::StoreOp>(op); store && isa<RankedTensorType>(store.getPtr().getType()))
      annotateWidth(op, widestAccess(axes, mostBytes, store.getPtr(), store.getMask()));
    else if (auto copy = dyn_cast<dgpu::AsyncCopyOp>(op))
      annotateWidth(op, widestAccess(axes, mostBytes, copy.getPtr(), copy.getMask()));
  });
}

/// A scalar store or assertion is the work of the block's first thread, unless only some threads get there or what it works on
/// differs between threads.
void annotatePerThread(ModuleOp module) {
  analysis::UniformityAnalysis uniformity(module);
  module.walk([&](Operation *op) {
    auto store = dyn_cast<tile::StoreOp>(op);
    if (!isa<tile::AssertOp>(op) && (!store || isa<RankedTensorType>(store.getPtr().getType())))
      return;
    auto isVarying = [&](Value value) { return uniformity.isVarying(value); };
    if (uniformity.divergentCondition(op) ||
        (store ? isVarying(store.getPtr()) : llvm::any_of(op->getOperands(), isVarying)))
      op->setAttr(dist::perThreadAttrName, UnitAttr::get(op->getContext()));
  });
}

class AnnotateAccessesPass : public impl::AnnotateAccessesBase<AnnotateAccessesPass> {
  using AnnotateAccessesBase::AnnotateAccessesBase;

  void runOnOperation() override {
    if (failed(analysis::checkLayouts(getOperation(), "dgpu-annotate-accesses")))
      return signalPassFailure();
    annotateGeneric(getOperation());
    annotateWidths(getOperation(), maxVectorBytes);
    annotatePerThread(getOperation());
    getOperation().walk([](scf::WhileOp loop) {
      if (Operation *load = spinLoadOf(loop))
        load->setAttr(dist::spinAttrName, UnitAttr::get(load->getContext()));
    });
  }
};

} // namespace
} // namespace ditron::transforms
