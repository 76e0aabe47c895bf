//===- LayoutIndex.cpp - Which element do I hold? -------------------------------------------------------------------------===//
//
// See LayoutIndex.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/LayoutIndex.h"

#include <map>

using namespace mlir;
using ditron::layout::DistributedLayout;
using ditron::layout::MachineDim;

namespace ditron::target {

Value mapBits(Emitter &e, Value id, ArrayRef<int64_t> bases) {
  std::map<int, uint32_t> sourcesOfDistance; // distance moved (left is positive) -> mask of input bits
  for (auto [position, basis] : llvm::enumerate(bases))
    for (int bit = 0; bit < 32; ++bit)
      if (basis >> bit & 1)
        sourcesOfDistance[bit - static_cast<int>(position)] |= 1u << position;
  Value result = e.i32(0);
  for (auto [distance, sources] : sourcesOfDistance) {
    Value bits = e.bitAnd(id, e.i32(static_cast<int32_t>(sources)));
    bits = distance >= 0 ? e.shl(bits, distance) : e.lshr(bits, -distance);
    result = e.bitXor(result, bits);
  }
  return result;
}

static SmallVector<int64_t> basisMasks(const DistributedLayout &layout, MachineDim dim) {
  SmallVector<int64_t> masks;
  for (int basis : layout.bases(dim))
    masks.push_back(basis == layout::zeroBasis ? 0 : int64_t(1) << basis);
  return masks;
}

Value threadPart(Emitter &e, TargetInfo &target, const DistributedLayout &layout) {
  Value lanes = e.i32(0), warps = e.i32(0);
  if (layout.ownedMask(MachineDim::Lane) != 0)
    lanes = mapBits(e, target.laneId(e), basisMasks(layout, MachineDim::Lane));
  if (layout.ownedMask(MachineDim::Warp) != 0)
    warps = mapBits(e, target.warpId(e), basisMasks(layout, MachineDim::Warp));
  return e.bitOr(lanes, warps);
}

int64_t registerPart(const DistributedLayout &layout, int reg) { return layout.applyDim(MachineDim::Reg, reg); }

Value isRepresentative(Emitter &e, TargetInfo &target, const DistributedLayout &layout) {
  uint32_t freeLanes = layout.freeMask(MachineDim::Lane), freeWarps = layout.freeMask(MachineDim::Warp);
  Value result;
  if (freeLanes)
    result = e.isZero(e.bitAnd(target.laneId(e), e.i32(static_cast<int32_t>(freeLanes))));
  if (freeWarps)
    result = e.conjunction(result, e.isZero(e.bitAnd(target.warpId(e), e.i32(static_cast<int32_t>(freeWarps)))));
  return result;
}

} // namespace ditron::target
