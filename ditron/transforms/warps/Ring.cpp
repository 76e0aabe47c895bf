//===- Ring.cpp - Tiles that a producer warp fetches together -------------------------------------------------------------===//
//
// See Ring.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/warps/Ring.h"

#include "ditron/transforms/dots/WarpgroupDotRules.h"
#include "ditron/transforms/loops/LoopArguments.h"
#include "ditron/transforms/tensor_copies/TensorMaps.h"

using namespace mlir;

namespace ditron::transforms {

dgpu::BufferType bufferOf(Operation *load, int64_t slots) {
  return copyBufferType(cast<RankedTensorType>(load->getResult(0).getType()), slots);
}

SmallVector<tile::DescriptorLoadOp> Ring::copies() const {
  SmallVector<tile::DescriptorLoadOp> all(loads);
  all.append(rows);
  return all;
}

/// Of either kind.
static SmallVector<Operation *> allLoadsOf(const Ring &ring) {
  SmallVector<Operation *> all = llvm::to_vector_of<Operation *>(ring.copies());
  all.append(ring.gathers.begin(), ring.gathers.end());
  return all;
}

Operation *Ring::lastLoad() const {
  const SmallVector<Operation *> all = allLoadsOf(*this);
  return *llvm::max_element(all, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
}

Operation *Ring::firstRead() const {
  Operation *first = block->findAncestorOpInBlock(*dots.front());
  for (tile::DescriptorLoadOp row : rows)
    first = row->isBeforeInBlock(first) ? row : first;
  return first;
}

int64_t Ring::copiedBytes() const {
  int64_t bytes = 0;
  for (tile::DescriptorLoadOp load : copies())
    bytes += bufferOf(load, 1).getSlotBytes();
  return bytes;
}

int64_t Ring::slotBytes() const {
  int64_t bytes = 0;
  for (Operation *load : allLoadsOf(*this))
    bytes += bufferOf(load, 1).getSlotBytes();
  return bytes;
}

int64_t Ring::sharedBytes() const {
  int64_t bytes = 0;
  for (Operation *load : allLoadsOf(*this))
    bytes += llvm::alignTo(bufferOf(load, slots).getBytes(), bufferAlignment);
  return bytes;
}

std::optional<SmallVector<tile::DotOp>> dotsOf(Value value) {
  SmallVector<tile::DotOp> dots;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto dot = dyn_cast<tile::DotOp>(user); dot && use.getOperandNumber() < 2) {
      dots.push_back(dot);
    } else if (auto reshape = dyn_cast<tile::ReshapeOp>(user);
               isa<tile::TransOp>(user) ||
               (reshape && value.getDefiningOp<tile::DescriptorLoadOp>() && dropsOuterDimensions(reshape))) {
      std::optional<SmallVector<tile::DotOp>> further = dotsOf(user->getResult(0));
      if (!further)
        return std::nullopt;
      dots.append(*further);
    } else {
      return std::nullopt;
    }
  }
  return dots;
}

bool isForInnerLoops(const Ring &ring) {
  return llvm::none_of(ring.dots, [&](tile::DotOp dot) { return dot->getBlock() == ring.block; });
}

int64_t slotsWanted(const Ring &ring) {
  auto loop = dyn_cast<scf::ForOp>(ring.block->getParentOp());
  if (!loop)
    return 1;
  const int stages = std::max(1, pipelineStagesOf(loop));
  return isForInnerLoops(ring) ? std::min(stages, 2) : stages;
}

} // namespace ditron::transforms
