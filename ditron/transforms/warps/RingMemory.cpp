//===- RingMemory.cpp - How many slots rings get of shared memory -----------------------------------------------------------===//
//
// See WarpRings.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/Scratch.h"
#include "ditron/dialect/dgpu/DiscardableAttrs.h"
#include "ditron/layout/Wgmma.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "ditron/transforms/tensor_copies/TensorMaps.h"
#include "ditron/transforms/warps/WarpRings.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace mlir;

namespace ditron::transforms {

/// Bytes kept for mbarriers and small scratch memory.
static constexpr int64_t reservedBytes = 1024;

/// True if the rings have buffers of the same types for as many copies as both have.
static bool haveTheSameBuffers(ArrayRef<tile::DescriptorLoadOp> a, ArrayRef<tile::DescriptorLoadOp> b) {
  return llvm::all_of(llvm::zip(a, b), [](auto loads) {
    auto [one, other] = loads;
    return bufferOf(one, 1) == bufferOf(other, 1);
  });
}

/// True if ring `a` is over when `b` begins, in each run of the block in which both stand.
static bool comesBeforeInBlock(const Ring &a, const Ring &b) {
  Operation *firstLoad = *llvm::min_element(
      b.loads, [](tile::DescriptorLoadOp one, tile::DescriptorLoadOp other) { return one->isBeforeInBlock(other); });
  return llvm::all_of(
      a.dots, [&](tile::DotOp dot) { return a.block->findAncestorOpInBlock(*dot)->isBeforeInBlock(firstLoad); });
}

/// True if the rings have the same tiles, perhaps beside other rows, and one is over when the other one begins: in loops of which one follows
/// the other, or, if `inOneBlock`, in one block that keeps them for the loops of two phases. Tiles of the block's own dots never share: a dot
/// that is delayed into the next turn reads its tile behind the next turn's first one.
static bool canShareSlots(const Ring &a, const Ring &b, bool inOneBlock) {
  if (!a.gathers.empty() || !b.gathers.empty())
    return false; // whose arrivals are counted loop by loop
  if (a.slots != b.slots || a.loads.size() != b.loads.size() || !haveTheSameBuffers(a.loads, b.loads) ||
      !haveTheSameBuffers(a.rows, b.rows))
    return false;
  if (a.block == b.block)
    return inOneBlock && isForInnerLoops(a) && isForInnerLoops(b) && comesBeforeInBlock(a, b);
  auto first = dyn_cast<scf::ForOp>(a.block->getParentOp()), second = dyn_cast<scf::ForOp>(b.block->getParentOp());
  return first && second && !first->isAncestor(second) && !second->isAncestor(first) &&
         isForInnerLoops(a) == isForInnerLoops(b);
}

/// Loops over the same tiles, one masked and one not, would take shared memory twice. A cluster's blocks must go through a ring in step,
/// which is asked loop by loop: no groups there.
void RingPlan::groupRings(bool inOneBlock) {
  const bool hasClusters =
      kernel
          .walk([](scf::ForOp loop) {
            return loop->hasAttr("tile.cluster_blocks") ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
  groups = 0;
  for (Ring &ring : plannedRings) {
    ring.group = groups;
    for (size_t group = 0; group < groups && !hasClusters && ring.group == groups; ++group)
      if (llvm::all_of(ArrayRef(plannedRings.begin(), &ring), [&](const Ring &other) {
            return other.group != group || canShareSlots(other, ring, inOneBlock);
          }))
        ring.group = group;
    groups = std::max(groups, ring.group + 1);
  }
}

//===--------------------------------------------------------------------------------------------------------------===//
// Slots
//===--------------------------------------------------------------------------------------------------------------===//

/// True for loops whose threads compute with what a dot gives before the next one starts.
static bool computesBetweenDots(const Ring &ring) {
  return isa<scf::ForOp>(ring.block->getParentOp()) && !isForInnerLoops(ring) && !ring.isAsync;
}

void RingPlan::chooseResidentBlocks() {
  constexpr int64_t ofBlock = 1024; // bytes that the hardware keeps for itself, of each block
  const auto hasArgument = [&](StringRef name) {
    return llvm::any_of(llvm::seq(kernel.getNumArguments()), [&](unsigned i) { return kernel.getArgAttr(i, name); });
  };
  if (warps != layout::warpsPerGroup || isSilent || !hasArgument(dgpu::numProgramsAttrName))
    return;
  RingPlan half(kernel, warps, (limitBytes + ofBlock) / 2 - ofBlock);
  half.isSilent = true;
  RingPlan whole(kernel, warps, limitBytes);
  whole.isSilent = true;
  if (!whole.plan() || whole.producerWarps() > 1 || llvm::none_of(whole.plannedRings, computesBetweenDots))
    return;
  const bool fits = half.plan() && llvm::all_of(half.plannedRings, [](const Ring &ring) {
                      return ring.slots > 1 || slotsWanted(ring) == 1 || isForInnerLoops(ring);
                    });
  const auto options = [] { return remark::RemarkOpts::name("resident").category("dgpu-specialize-warps"); };
  if (!fits) {
    remark::missed(kernel.getLoc(), options())
        << "one block on each multiprocessor: rings of two slots do not fit half of shared memory";
    return;
  }
  remark::passed(kernel.getLoc(), options())
      << "two blocks on each multiprocessor: the one warpgroup of each computes between its dots";
  resident = 2;
  limitBytes = half.limitBytes;
}

static int64_t tileBytes(Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  return type.getNumElements() * analysis::sharedElementBytes(type.getElementType());
}

/// True for a tile that the author has put into a row for its store, as the threads hold it: the store reorders nothing.
static bool isInRegisterOrder(Value tile) {
  auto row = tile.getDefiningOp<tile::ReshapeOp>();
  return row && cast<RankedTensorType>(tile.getType()).getRank() == 1 && row.getSource().getDefiningOp<tile::TransOp>();
}

/// What the rest of the kernel needs: a buffer for each shape of tensor stores, and scratch memory to reorder the largest tile
/// that is stored otherwise.
int64_t RingPlan::bytesOfStores() {
  llvm::SmallDenseSet<Type> staged;
  int64_t bytes = 0, largest = 0;
  kernel.walk([&](Operation *op) {
    if (auto store = dyn_cast<tile::DescriptorStoreOp>(op)) {
      auto descriptor = cast<tile::DescriptorType>(store.getDescriptor().getType());
      if (!whyNoTensorCopy(store.getDescriptor(), store.getOffsets(), /*isStore=*/true).empty())
        largest = std::max(largest, tileBytes(store.getValue()));
      else if (dgpu::BufferType type = copyBufferType(descriptor, 1); staged.insert(type).second)
        bytes += type.getBytes();
    } else if (auto store = dyn_cast<tile::StoreOp>(op);
               store && isTensor(store.getValue()) && !isInRegisterOrder(store.getValue())) {
      largest = std::max(largest, tileBytes(store.getValue()));
    }
  });
  return bytes + largest;
}

bool RingPlan::fitSlots() {
  const int64_t others = bytesOfStores() + reservedBytes;
  auto total = [&] {
    // Rings of a group have the same tiles; one of them may have more rows.
    SmallVector<int64_t> ofGroups(groups);
    for (const Ring &ring : plannedRings)
      ofGroups[ring.group] = std::max(ofGroups[ring.group], ring.sharedBytes());
    return std::accumulate(ofGroups.begin(), ofGroups.end(), others);
  };
  // The next phase's tiles could come while the last one's are still read; that is worth less than slots of a loop.
  if (total() > limitBytes)
    groupRings(/*inOneBlock=*/true);
  while (total() > limitBytes) {
    // What serves loops inside is waited for least often, and gives up its second slot first.
    auto order = [](const Ring &ring) { return std::pair(ring.slots > 1 && isForInnerLoops(ring), ring.slots); };
    Ring &deepest = *std::max_element(plannedRings.begin(), plannedRings.end(),
                                      [&](const Ring &a, const Ring &b) { return order(a) < order(b); });
    if (deepest.slots == 1)
      return false;
    const size_t group = deepest.group;
    for (Ring &ring : plannedRings)
      if (ring.group == group) {
        --ring.slots;
        ring.isAsync &= ring.slots > 1;
      }
  }
  // Dots of one block stay in flight together or not at all.
  for (Ring &ring : plannedRings)
    for (const Ring &other : plannedRings)
      if (ring.block == other.block && !other.isAsync)
        ring.isAsync = false;
  if (isSilent)
    return true;
  llvm::SmallDenseSet<size_t> told;
  for (const Ring &ring : plannedRings) {
    const bool isReduced = ring.slots < slotsWanted(ring), isNew = told.insert(ring.group).second;
    remark::passed(ring.loads.front()->getLoc(),
                   remark::RemarkOpts::name("specialize").category("dgpu-specialize-warps"))
        << llvm::formatv("a producer warp loads {0} tile(s) into {5} ring of {1} slots of {2} bytes{3}{4}",
                         ring.loads.size() + ring.rows.size() + ring.gathers.size(), ring.slots, ring.slotBytes(),
                         ring.isAsync ? ", dots stay in flight" : "",
                         isReduced ? "; num_stages would not fit shared memory" : "", isNew ? "a" : "an earlier loop's")
               .str();
  }
  return true;
}

} // namespace ditron::transforms
