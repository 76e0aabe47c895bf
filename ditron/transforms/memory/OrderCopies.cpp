//===- OrderCopies.cpp - A store waits for the warps that load copies of what it overwrites -------------------------------===//
//
// Where a layout has fewer elements than threads, several warps hold copies of an element, and each warp loads its own. One thread stores.
// In the program both are single steps, the load first; but warps run apart from each other, and the one that stores may overwrite
// what another has still to load. So a dgpu.barrier comes between:
//
//     x = tl.load(p)            all warps load
//     dgpu.barrier              <- inserted
//     tl.store(p, x + 1)        one thread of warp 0 stores
//     ... x ...                 what every warp has of x is what was there first
//
// Forward analysis over loads of copies since the last block barrier.
// 1. A load counts if warps hold copies of its elements (a scalar: if the block has several warps), and if some warp may use a copy that
//    is not the one of the thread that stores: x that only goes, element by element, into stores of the same layout does not.
// 2. A store or atomic conflicts with those of the same object (PointerObjects.h), unless both are at constant distances from one argument,
//    and these differ. Two arguments are taken for two objects.
// 3. Barriers clear the state: of the block, of operations with scratch memory, of atomics that acquire or release, of waits.
// 4. A branch or loop that only some threads take has its barrier in front of it.
// 5. Branches are joined by union; loops are repeated until nothing new arrives on the back edge.
//
// Not ordered: stores before loads of copies (a race that the simulator reports), elements that the program itself moves from warp to warp by
// other addresses, arguments that the launch gives the same memory, single threads (they have __syncthreads).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/analysis/CheckLayouts.h"
#include "ditron/analysis/PointerObjects.h"
#include "ditron/analysis/Scratch.h"
#include "ditron/analysis/Uniformity.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/Constants.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"

#include <set>

namespace ditron::transforms {
#define GEN_PASS_DEF_ORDERCOPIES
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// Loads of copies since the last block barrier.
using Loads = std::set<Operation *>;

/// Where a scalar pointer is, if at a constant distance from an argument of the kernel.
struct Place {
  Value argument;
  int64_t elements = 0;
};

std::optional<Place> placeOf(Value pointer) {
  Place place;
  while (auto sum = pointer.getDefiningOp<tile::AddPtrOp>()) {
    const std::optional<int64_t> offset = constantOf(sum.getOffset());
    if (!offset)
      return std::nullopt;
    place.elements += *offset;
    pointer = sum.getPtr();
  }
  auto argument = dyn_cast<BlockArgument>(pointer);
  if (!argument || !isa<func::FuncOp>(argument.getOwner()->getParentOp()) || isa<RankedTensorType>(argument.getType()))
    return std::nullopt;
  place.argument = argument;
  return place;
}

/// Whether each element of the value is needed by no thread but the one that stores elements of this layout: it goes, element by element,
/// into nothing but stores.
bool isOnlyStored(Value value, Type pointers) {
  const auto haveSameOwners = [](Type a, Type b) {
    auto tensorA = dyn_cast<RankedTensorType>(a), tensorB = dyn_cast<RankedTensorType>(b);
    if (!tensorA || !tensorB)
      return !tensorA && !tensorB;
    return tensorA.getShape() == tensorB.getShape() && tensorA.getEncoding() == tensorB.getEncoding();
  };
  // Each value once: a program may double a value again and again.
  llvm::SetVector<Value> reached;
  reached.insert(value);
  for (size_t i = 0; i < reached.size(); ++i)
    for (Operation *user : reached[i].getUsers()) {
      if (auto store = dyn_cast<tile::StoreOp>(user)) {
        if (!haveSameOwners(store.getPtr().getType(), pointers))
          return false;
        continue;
      }
      if (!OpTrait::hasElementwiseMappableTraits(user) || !isMemoryEffectFree(user) || user->getNumResults() != 1 ||
          !haveSameOwners(user->getResult(0).getType(), pointers))
        return false;
      reached.insert(user->getResult(0));
    }
  return true;
}

/// Walks one kernel.
class CopyOrder {
public:
  CopyOrder(const analysis::PointerObjects &objects, const analysis::UniformityAnalysis &uniformity)
      : objects(objects), uniformity(uniformity) {}

  void run(func::FuncOp kernel) {
    Loads state;
    visit(kernel.getBody(), state);
    for (Operation *op : needs) {
      OpBuilder builder(op);
      dgpu::BarrierOp::create(builder, op->getLoc());
    }
  }

private:
  void visit(Region &region, Loads &state) {
    if (!region.empty())
      for (Operation &op : region.front())
        visit(&op, state);
  }

  void visit(Operation *op, Loads &state) {
    if (uniformity.ownCondition(op))
      return visitAsOne(op, state);
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      Loads otherwise = state;
      visit(branch.getThenRegion(), state);
      visit(branch.getElseRegion(), otherwise);
      state.merge(otherwise);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      // Zero iterations are possible: what enters also leaves.
      repeat(state, [&](Loads &inside) { visit(loop.getRegion(), inside); });
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      // The condition part runs once more than the body, and last.
      Loads leaving;
      repeat(state, [&](Loads &inside) {
        visit(loop.getBefore(), inside);
        leaving = inside;
        visit(loop.getAfter(), inside);
      });
      state = leaving;
    } else if (auto partitions = dyn_cast<dgpu::WarpSpecializeOp>(op)) {
      visit(partitions.getConsumer(), state); // producers load each tile once
    } else if (op->getNumRegions() != 0) {
      visitAsOne(op, state);
    } else {
      visitLeaf(op, state);
    }
  }

  template <typename Body> static void repeat(Loads &state, Body body) {
    while (true) {
      Loads inside = state;
      body(inside);
      const size_t before = state.size();
      state.merge(inside);
      if (state.size() == before)
        return;
    }
  }

  /// What has no barriers inside: a branch or loop of some threads, functions on scalars.
  void visitAsOne(Operation *op, Loads &state) {
    op->walk([&](Operation *inner) {
      if (conflicts(inner, state))
        need(op, state);
    });
    if (meets(op))
      state.clear();
    op->walk([&](Operation *inner) { add(inner, state); });
  }

  void visitLeaf(Operation *op, Loads &state) {
    if (beginsWithBarrier(op))
      state.clear();
    else if (conflicts(op, state))
      need(op, state);
    add(op, state);
    if (isa<dist::WaitOp>(op) || meets(op))
      state.clear();
  }

  static std::optional<tile::MemoryOrder> orderOf(Operation *op) {
    if (auto atomic = dyn_cast<tile::AtomicRmwOp>(op))
      return atomic.getOrder();
    if (auto atomic = dyn_cast<tile::AtomicCasOp>(op))
      return atomic.getOrder();
    return std::nullopt;
  }

  static bool beginsWithBarrier(Operation *op) {
    if (auto barrier = dyn_cast<dgpu::BarrierOp>(op))
      return !barrier.getWarpgroups();
    const std::optional<tile::MemoryOrder> order = orderOf(op);
    return isa<dist::SyncThreadsOp, dist::NotifyOp>(op) ||
           (order && (*order == tile::MemoryOrder::Release || *order == tile::MemoryOrder::AcquireRelease));
  }

  /// Whether all threads of the block meet in an operation.
  static bool meets(Operation *op) {
    const std::optional<tile::MemoryOrder> order = orderOf(op);
    if (order && (*order == tile::MemoryOrder::Acquire || *order == tile::MemoryOrder::AcquireRelease))
      return true;
    return op->hasAttr(dgpu::offsetBytesAttrName) && !isa<dgpu::MbarrierAllocOp, dgpu::BufferAllocOp>(op) &&
           analysis::scratchBarrier(op) == layout::BarrierScope::Block;
  }

  void need(Operation *op, Loads &state) {
    needs.insert(op);
    state.clear();
  }

  void add(Operation *op, Loads &state) const {
    auto load = dyn_cast<tile::LoadOp>(op);
    if (!load || dgpu::numWarpsOf(op) == 1 || analysis::PointerObjects::isWorldView(load.getPtr()))
      return;
    auto type = dyn_cast<RankedTensorType>(load.getPtr().getType());
    if (type && dgpu::layoutOf(type).freeMask(layout::MachineDim::Warp) == 0)
      return;
    if (!isOnlyStored(load.getResult(), load.getPtr().getType()))
      state.insert(op);
  }

  bool conflicts(Operation *op, const Loads &state) const {
    Value written;
    if (auto store = dyn_cast<tile::StoreOp>(op))
      written = store.getPtr();
    else if (auto atomic = dyn_cast<tile::AtomicRmwOp>(op))
      written = atomic.getPtr();
    else if (auto atomic = dyn_cast<tile::AtomicCasOp>(op))
      written = atomic.getPtr();
    else
      return false;
    return llvm::any_of(state, [&](Operation *load) { return mayMeet(cast<tile::LoadOp>(load).getPtr(), written); });
  }

  bool mayMeet(Value read, Value written) const {
    const analysis::ObjectSet left = objects.of(read), right = objects.of(written);
    if (left.anywhere || right.anywhere)
      return true;
    if (llvm::none_of(left.arguments, [&](unsigned argument) { return llvm::is_contained(right.arguments, argument); }))
      return false;
    const std::optional<Place> from = placeOf(read), to = placeOf(written);
    return !from || !to || from->argument != to->argument || from->elements == to->elements;
  }

  const analysis::PointerObjects &objects;
  const analysis::UniformityAnalysis &uniformity;
  llvm::SetVector<Operation *> needs;
};

class OrderCopiesPass : public impl::OrderCopiesBase<OrderCopiesPass> {
  void runOnOperation() override {
    if (failed(analysis::checkLayouts(getOperation(), "dgpu-order-copies")))
      return signalPassFailure();
    ModuleOp module = getOperation();
    const analysis::PointerObjects objects(module);
    const analysis::UniformityAnalysis uniformity(module);
    for (auto kernel : module.getOps<func::FuncOp>())
      if (!kernel.isExternal())
        CopyOrder(objects, uniformity).run(kernel);
  }
};

} // namespace
} // namespace ditron::transforms
