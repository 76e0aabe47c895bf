//===- InsertBarriers.cpp - Barriers for shared memory --------------------------------------------------------------------===//
//
// Puts dgpu.barrier where two accesses to the same bytes of shared memory, by different threads, would otherwise be unordered. Runs
// after allocation: what conflicts is decided by byte ranges, so that reuse of bytes by different buffers is covered.
//
// Forward analysis over byte ranges that were read or written since the last block barrier.
// 1. A read of a range that was written, or a write of one that was read or written, needs a barrier before it.
// 2. Operations with scratch memory write, have a barrier inside, and read: afterwards only their own reads are pending. With a
//    warp-level barrier inside both stay pending.
// 3. An asynchronous copy conflicts like a write with earlier reads and writes; its own write counts from the next async_wait
//    on. Ring buffers promise that no copy in flight goes to a slot that is read.
// 4. A warpgroup dot reads, and reads on until it was waited for: its reads count as done, by this thread, from the next
//    warpgroup_wait on. Tensor copies into rings are ordered by mbarriers, the reads of tensor stores by tma_store_wait: neither is
//    looked at, nor are producers, which write to rings only.
// 5. Branches are joined by union; loops are repeated until nothing new arrives on the back edge.
// 6. dgpu.barrier, dist.sync_threads and dist.notify clear the state.
//
// Example (rings A and B, three stages):      async_wait 1            writes {A, B} become visible to this thread
//                                             dgpu.barrier            <- inserted: the copy conflicts with them, and with the
//                                             async_copy to A            reads of A in the iteration before
//                                             buffer_load A           nothing pending: no second barrier
//
// Barriers are put before the operation that needs one, and stay while the analysis goes on; the state that enters a loop only
// grows, so none is inserted in vain because of a state that later shrinks.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/analysis/CheckLayouts.h"
#include "ditron/analysis/Scratch.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/transforms/Constants.h"
#include "ditron/transforms/loops/LoopResources.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <set>

namespace ditron::transforms {
#define GEN_PASS_DEF_INSERTBARRIERS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// Bytes [begin, end) of shared memory.
using Range = std::pair<int64_t, int64_t>;

/// A set of ranges, ordered so that states can be compared.
class Ranges {
public:
  void add(Range range) { ranges.insert(range); }
  void add(const Ranges &other) { ranges.insert(other.ranges.begin(), other.ranges.end()); }
  void clear() { ranges.clear(); }
  bool overlaps(Range range) const {
    return llvm::any_of(ranges, [&](Range other) { return range.first < other.second && other.first < range.second; });
  }
  bool operator==(const Ranges &) const = default;

private:
  std::set<Range> ranges;
};

/// What happened since the last block barrier.
struct PendingAccesses {
  Ranges reads, writes;
  Ranges inFlight;   ///< Written by asynchronous copies that nobody waited for; a barrier does not complete them.
  Ranges multiplied; ///< Read by warpgroup dots that nobody waited for.

  void join(const PendingAccesses &other) {
    reads.add(other.reads);
    writes.add(other.writes);
    inFlight.add(other.inFlight);
    multiplied.add(other.multiplied);
  }
  void barrier() {
    reads.clear();
    writes.clear();
  }
  bool operator==(const PendingAccesses &) const = default;
};

/// Walks one kernel.
class BarrierInsertion {
public:
  void visit(Region &region, PendingAccesses &state) {
    if (!region.empty())
      for (Operation &op : llvm::make_early_inc_range(region.front()))
        visit(&op, state);
  }

private:
  void visit(Operation *op, PendingAccesses &state) {
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      PendingAccesses otherwise = state;
      visit(branch.getThenRegion(), state);
      visit(branch.getElseRegion(), otherwise);
      state.join(otherwise);
      return;
    }
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      // Zero iterations are possible: what enters also leaves.
      repeat(state, [&](PendingAccesses &inside) { visit(loop.getRegion(), inside); });
      return;
    }
    if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      // The condition part runs once more than the body, and last.
      PendingAccesses leaving;
      repeat(state, [&](PendingAccesses &inside) {
        visit(loop.getBefore(), inside);
        leaving = inside;
        visit(loop.getAfter(), inside);
      });
      state = leaving;
      return;
    }
    if (auto partitions = dyn_cast<dgpu::WarpSpecializeOp>(op)) {
      visit(partitions.getConsumer(), state);
      return;
    }
    access(op, state);
  }

  /// Runs `body` until what comes back adds nothing to what enters; leaves the joined state in `state`.
  template <typename Body> static void repeat(PendingAccesses &state, Body body) {
    while (true) {
      PendingAccesses inside = state;
      body(inside);
      PendingAccesses joined = state;
      joined.join(inside);
      if (joined == state)
        return;
      state = joined;
    }
  }

  static void need(Operation *op, PendingAccesses &state) {
    OpBuilder builder(op);
    dgpu::BarrierOp::create(builder, op->getLoc());
    state.barrier();
  }

  static void read(Operation *op, Range range, PendingAccesses &state) {
    if (state.writes.overlaps(range))
      need(op, state);
    state.reads.add(range);
  }

  static void checkWrite(Operation *op, Range range, PendingAccesses &state) {
    if (state.reads.overlaps(range) || state.writes.overlaps(range))
      need(op, state);
  }

  /// The bytes of one slot, or of the whole ring if the slot is not a constant.
  static Range slotRange(Value buffer, Value slot) {
    auto alloc = allocationOf(buffer).getDefiningOp<dgpu::BufferAllocOp>();
    int64_t begin = *alloc.getOffsetBytes();
    const std::optional<int64_t> number = constantOf(slot);
    if (!number)
      return {begin, begin + alloc.getType().getBytes()};
    begin += *number * alloc.getType().getSlotBytes();
    return {begin, begin + alloc.getType().getSlotBytes()};
  }

  static void access(Operation *op, PendingAccesses &state) {
    if (auto barrier = dyn_cast<dgpu::BarrierOp>(op); barrier && barrier.getWarpgroups()) {
      return; // orders nothing between warpgroups
    } else if (isa<dgpu::BarrierOp, dist::SyncThreadsOp, dist::NotifyOp>(op)) {
      state.barrier();
    } else if (auto load = dyn_cast<dgpu::BufferLoadOp>(op)) {
      read(op, slotRange(load.getBuffer(), load.getSlot()), state);
    } else if (auto store = dyn_cast<dgpu::BufferStoreOp>(op)) {
      if (store.getWarpgroups())
        return;
      Range range = slotRange(store.getBuffer(), store.getSlot());
      checkWrite(op, range, state);
      state.writes.add(range);
    } else if (auto copy = dyn_cast<dgpu::AsyncCopyOp>(op)) {
      Range range = slotRange(copy.getBuffer(), copy.getSlot());
      checkWrite(op, range, state);
      state.inFlight.add(range);
    } else if (auto wait = dyn_cast<dgpu::AsyncWaitOp>(op)) {
      state.writes.add(state.inFlight);
      if (wait.getPending() == 0)
        state.inFlight.clear();
    } else if (auto dot = dyn_cast<dgpu::WarpgroupDotOp>(op)) {
      if (dot.getSlotA())
        multiply(op, slotRange(dot.getA(), dot.getSlotA()), state);
      multiply(op, slotRange(dot.getB(), dot.getSlotB()), state);
    } else if (auto wait = dyn_cast<dgpu::WarpgroupWaitOp>(op)) {
      state.reads.add(state.multiplied);
      if (wait.getPending() == 0)
        state.multiplied.clear();
    } else if (isa<dgpu::MbarrierAllocOp, dgpu::BufferAllocOp>(op)) {
      return; // their offset is not scratch memory
    } else if (auto offset = op->getAttrOfType<IntegerAttr>(dgpu::offsetBytesAttrName)) {
      accessScratch(op, offset.getInt(), state);
    }
  }

  static void multiply(Operation *op, Range range, PendingAccesses &state) {
    if (state.writes.overlaps(range))
      need(op, state);
    state.multiplied.add(range);
  }

  static void accessScratch(Operation *op, int64_t offset, PendingAccesses &state) {
    std::optional<layout::BarrierScope> inside = analysis::scratchBarrier(op);
    if (!inside)
      return;
    Range range{offset, offset + analysis::scratchBytes(op)};
    checkWrite(op, range, state);
    if (*inside == layout::BarrierScope::Block)
      state.barrier();
    else
      state.writes.add(range);
    state.reads.add(range);
  }
};

class InsertBarriersPass : public impl::InsertBarriersBase<InsertBarriersPass> {
  void runOnOperation() override {
    if (failed(analysis::checkLayouts(getOperation(), "dgpu-insert-barriers")))
      return signalPassFailure();
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      PendingAccesses state;
      if (!kernel.isExternal())
        BarrierInsertion().visit(kernel.getBody(), state);
    }
  }
};

} // namespace
} // namespace ditron::transforms
