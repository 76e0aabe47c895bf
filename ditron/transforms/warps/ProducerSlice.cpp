//===- ProducerSlice.cpp - What a producer warp must run of a kernel ------------------------------------------------------===//
//
// See ProducerSlice.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/warps/ProducerSlice.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/ProgramOrder.h"
#include "ditron/transforms/layouts/ElementValue.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "ditron/transforms/loops/LoopArguments.h"
#include "ditron/transforms/tensor_copies/TensorMaps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace ditron::transforms {

/// Bulk copies of a kernel's own. They write, but what they order is memory that only the kernel's own copies fill, and which no producer reads.
constexpr StringLiteral copyOut = "bulk_store";
static bool isOfBulkCopies(StringRef intrinsic) {
  return intrinsic.starts_with("bulk_") || intrinsic.starts_with("mbarrier_") || intrinsic == "fence_async_shared";
}

/// The address that an operation writes to; null for operations that write no global memory of the kernel's choice.
static Value writtenAddress(Operation *op) {
  auto intrinsic = dyn_cast<dist::IntrinsicOp>(op);
  if (intrinsic && intrinsic.getName() == copyOut)
    return op->getOperand(0);
  if (isa<tile::StoreOp, tile::AtomicRmwOp, tile::AtomicCasOp, dist::StOp, dist::StVectorOp, dist::MultimemStOp,
          dist::ThreadAtomicRmwOp, dist::ThreadAtomicCasOp, tile::DescriptorStoreOp>(op))
    return op->getOperand(0);
  return {};
}

/// Whether an address is one of shared memory that the kernel has asked for, where no tile of a producer is fetched from.
static bool isShared(Value address) {
  while (Operation *op = address.getDefiningOp()) {
    if (isa<dist::SharedAllocOp>(op))
      return true;
    if (!isa<tile::HintOp, tile::AddPtrOp, tile::PtrCastOp, tile::SplatOp, tile::BroadcastOp, tile::ExpandDimsOp>(op))
      return false;
    address = op->getOperand(0);
  }
  return false;
}

/// True for what the kernel synchronises or copies by itself: nobody knows which loads rely on it.
static bool synchronises(Operation *op) {
  if (auto load = dyn_cast<dist::LdOp>(op))
    return load.getOrder() == tile::MemoryOrder::Acquire || op->getParentOfType<scf::WhileOp>();
  if (auto intrinsic = dyn_cast<dist::IntrinsicOp>(op)) {
    StringRef name = intrinsic.getName();
    return name != "smid" && name != "globaltimer" && name != "clock64" && !name.starts_with("shared_") &&
           !name.starts_with("prefetch_") && !isOfBulkCopies(name);
  }
  return isa<dist::PutOp, dist::GetOp, dist::PutSignalOp, dist::SignalWaitUntilOp, dist::OrderOp, dist::TeamBarrierOp,
             dist::CollectiveOp>(op);
}

ProducerSlice::ProducerSlice(Operation *kernel) : kernel(kernel) {
  kernel->walk([&](Operation *op) {
    if (synchronises(op))
      synchronisations.push_back(op);
    if (Value address = writtenAddress(op); address && !isShared(address))
      writes.push_back(op);
  });
}

std::string ProducerSlice::whyNotAhead(Operation *reader, Value pointer, bool readsAfterWait) {
  BlockArgument read = argumentBehind(pointer);
  if (!read)
    return "it reads through a pointer that is no argument of the kernel";
  for (Operation *synchronisation : synchronisations)
    if (mayPrecede(synchronisation, reader))
      return ("the kernel synchronises by itself, with '" + synchronisation->getName().getStringRef() + "'").str();
  if (readsAfterWait)
    return {};
  for (Operation *write : writes) {
    Value address = writtenAddress(write);
    if (tile::MakeDescriptorOp descriptor = descriptorOf(address))
      address = descriptor.getBase();
    BlockArgument written = argumentBehind(address);
    if (!written || written == read)
      return ("'" + write->getName().getStringRef() + "' may write what it reads").str();
  }
  return {};
}

std::string ProducerSlice::addControlAround(Operation *op) {
  for (Operation *around = op->getParentOp(); around != kernel; around = around->getParentOp()) {
    if (!controls.insert(around).second)
      return {};
    if (auto loop = dyn_cast<scf::ForOp>(around)) {
      for (Value bound : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
        if (std::string reason = addValue(bound); !reason.empty())
          return reason;
    } else if (auto branch = dyn_cast<scf::IfOp>(around)) {
      if (std::string reason = addValue(branch.getCondition()); !reason.empty())
        return reason;
    } else {
      return ("it stands in '" + around->getName().getStringRef() + "'").str();
    }
  }
  return {};
}

std::string ProducerSlice::addWait(Operation *wait) {
  if (!sliceEffects.insert(wait))
    return {};
  for (Value operand : wait->getOperands())
    if (std::string reason = addValue(operand); !reason.empty())
      return reason;
  return addControlAround(wait);
}

std::string ProducerSlice::addTokensOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto token = dyn_cast<dist::ConsumeTokenOp>(op))
      if (std::string reason = addValue(token.getToken()); !reason.empty())
        return reason;
    if (op->getNumOperands() == 0)
      break;
    value = op->getOperand(0);
  }
  return {};
}

/// What a loop hands on as its `index`-th carried value.
static SmallVector<Value> carriedSources(scf::ForOp loop, unsigned index) {
  return {loop.getInitArgs()[index], loop.getYieldedValues()[index]};
}

std::string ProducerSlice::addValue(Value start) {
  SmallVector<Value> worklist{start};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!values.insert(value).second)
      continue;
    if (isTensor(value))
      return "it depends on a tile";
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      Operation *parent = argument.getOwner()->getParentOp();
      if (parent == kernel)
        continue;
      auto loop = dyn_cast<scf::ForOp>(parent);
      if (!loop)
        return ("it depends on a value of '" + parent->getName().getStringRef() + "'").str();
      if (argument.getArgNumber() >= loop.getNumInductionVars())
        worklist.append(carriedSources(loop, argument.getArgNumber() - loop.getNumInductionVars()));
      continue;
    }
    Operation *op = value.getDefiningOp();
    const unsigned index = cast<OpResult>(value).getResultNumber();
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      worklist.append({loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
      worklist.append(carriedSources(loop, index));
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      worklist.append(
          {branch.getCondition(), branch.thenYield().getOperand(index), branch.elseYield().getOperand(index)});
    } else if (auto wait = dyn_cast<dist::WaitOp>(op)) {
      if (std::string reason = addWait(wait); !reason.empty())
        return reason;
    } else if (auto load = dyn_cast<tile::LoadOp>(op)) {
      if (std::string reason = whyNotAhead(load, load.getPtr(), /*readsAfterWait=*/false); !reason.empty())
        return "it depends on a load: " + reason;
      sliceEffects.insert(load);
      worklist.append(load->operand_begin(), load->operand_end());
    } else if (op->getNumRegions() == 0 && isMemoryEffectFree(op)) {
      worklist.append(op->operand_begin(), op->operand_end());
    } else {
      return ("it depends on '" + op->getName().getStringRef() + "'").str();
    }
    if (std::string reason = addControlAround(op); !reason.empty())
      return reason;
  }
  return {};
}

std::string ProducerSlice::addElements(Value tile) {
  SmallVector<Value> worklist{tile};
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (!isTensor(value)) {
      if (std::string reason = addValue(value); !reason.empty())
        return reason;
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!op)
      return "a loop carries tiles on";
    std::optional<SmallVector<Value>> operands = elementOperands(op);
    if (!operands)
      return ("it depends on '" + op->getName().getStringRef() + "'").str();
    if (auto load = dyn_cast<tile::LoadOp>(op))
      if (std::string reason = whyNotAhead(load, load.getPtr(), /*readsAfterWait=*/false); !reason.empty())
        return "it depends on a load: " + reason;
    worklist.append(*operands);
  }
  return {};
}

//===--------------------------------------------------------------------------------------------------------------===//
// Pruning
//===--------------------------------------------------------------------------------------------------------------===//

void eraseDeadCode(Block &body, bool keepsScalars) {
  bool changed = true;
  while (changed) {
    changed = false;
    SmallVector<Operation *> order;
    body.walk<WalkOrder::PreOrder>([&](Operation *op) { order.push_back(op); });
    // Backward, so that users go first; operations inside an erased one come before it in this order.
    for (Operation *op : llvm::reverse(order)) {
      if (op->hasTrait<OpTrait::IsTerminator>())
        continue;
      if (isOpTriviallyDead(op)) {
        op->erase();
        changed = true;
      } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
        changed |= removeDeadLoopArguments(loop, keepsScalars) != loop;
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        changed |= removeDeadBranchResults(branch) != branch;
      }
    }
  }
}

namespace {

/// What the effects of a region depend on. Unlike the use lists it knows that values which loops hand from one to the other, and nobody else
/// reads, are not needed: sums that the dots of nested loops add up have uses in each of them.
class NeededValues {
public:
  explicit NeededValues(Block &body) : body(body) {
    body.walk([&](Operation *op) {
      if (op->getNumRegions() == 0 && !isMemoryEffectFree(op))
        need(op);
    });
    while (!worklist.empty())
      needSourcesOf(worklist.pop_back_val());
  }
  bool contains(Value value) const { return values.contains(value); }

private:
  void need(Value value) {
    if (values.insert(value).second)
      worklist.push_back(value);
  }
  /// Its operands, and what decides whether it runs.
  void need(Operation *op) {
    if (op->getNumRegions() == 0)
      for (Value operand : op->getOperands())
        need(operand);
    for (Operation *around = op; around && around->getBlock() != body.getParentOp()->getBlock();
         around = around->getParentOp())
      if (auto loop = dyn_cast<scf::ForOp>(around)) {
        for (Value bound : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
          need(bound);
      } else if (auto branch = dyn_cast<scf::IfOp>(around)) {
        need(branch.getCondition());
      } else if (around->getNumRegions() != 0 && around != body.getParentOp()) {
        around->walk([&](Operation *inner) {
          for (Value operand : inner->getOperands())
            need(operand);
        });
      }
  }
  void needCarried(scf::ForOp loop, unsigned index) {
    need(loop.getInitArgs()[index]);
    need(loop.getYieldedValues()[index]);
    need(Value(loop.getRegionIterArg(index)));
  }
  void needSourcesOf(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (loop && argument.getArgNumber() >= loop.getNumInductionVars())
        needCarried(loop, argument.getArgNumber() - loop.getNumInductionVars());
      return;
    }
    Operation *op = value.getDefiningOp();
    const unsigned index = cast<OpResult>(value).getResultNumber();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      needCarried(loop, index);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      for (scf::YieldOp yield : {branch.thenYield(), branch.elseYield()})
        need(yield.getOperand(index));
    need(op);
  }

  Block &body;
  llvm::DenseSet<Value> values;
  SmallVector<Value> worklist;
};

/// Cuts what loops carry and nothing needs, so that it is dead code.
void cutCarriedValues(Block &body) {
  const NeededValues needed(body);
  SmallVector<scf::ForOp> loops;
  body.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops)
    for (unsigned index = 0; index < loop.getNumResults(); ++index) {
      BlockArgument carried = loop.getRegionIterArg(index);
      if (needed.contains(carried) || needed.contains(loop.getResult(index)))
        continue;
      OpBuilder builder(loop);
      Value poison = ub::PoisonOp::create(builder, loop.getLoc(), carried.getType());
      carried.replaceAllUsesWith(poison);
      loop.getResult(index).replaceAllUsesWith(poison);
      loop.getBody()->getTerminator()->setOperand(index, poison);
    }
}

} // namespace

void pruneToSlice(Block &body, const llvm::DenseSet<Operation *> &kept) {
  SmallVector<Operation *> leaving;
  body.walk([&](Operation *op) {
    if (op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>() && !isMemoryEffectFree(op) &&
        !kept.contains(op))
      leaving.push_back(op);
  });
  // Whoever still uses what they gave is not needed either and goes as dead code.
  for (Operation *op : leaving) {
    OpBuilder builder(op);
    for (OpResult result : op->getResults())
      if (!result.use_empty())
        result.replaceAllUsesWith(ub::PoisonOp::create(builder, op->getLoc(), result.getType()));
    op->erase();
  }
  cutCarriedValues(body);
  eraseDeadCode(body);
}

} // namespace ditron::transforms
