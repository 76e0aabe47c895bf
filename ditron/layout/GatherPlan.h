//===- GatherPlan.h - Elements chosen by indices along an axis ----------------------------------------------*- C++ -*-===//
//
// How result[.., i, ..] = source[.., index[.., i, ..], ..] finds its elements. The place of an element in the source follows from
// the index value, which gives the bits along the axis, and from the own position, which gives all others:
//   lane     = valueLanes(value) ^ ownLanes(position)
//   register = valueRegs(value) ^ ownRegs(position)       (position: the packed index of the result's element)
// where each map is a table of bases, one for each input bit. When no warp bit of the source depends on anything but the same bit
// of the own warp, every element is in the own warp, and shuffles fetch it: one for each register that it may be in. Otherwise the
// source goes through shared memory, in row-major order, and is read at offset valueOffsets(value) ^ ownOffsets(position).
//
// An exchange is a gather whose index is the own position XOR a constant: what reversal and bitonic networks are made of. It renames
// registers, takes one butterfly between lanes, and one round through shared memory only if bits of warps are set.
//
// Example: 64 elements, reg = {i0}, lane = [i1 .. i5], one warp, index of the same layout. valueRegs = [1 0 0 0 0 0]: the element
// is in register `value & 1` of lane `value >> 1`; two shuffles and a select for each register of the result.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_LAYOUT_GATHERPLAN_H
#define DITRON_LAYOUT_GATHERPLAN_H

#include "ditron/layout/LinearLayout.h"

namespace ditron::layout {

struct GatherPlan {
  bool isWithinWarp = false;
  std::vector<int64_t> valueLanes, ownLanes;
  std::vector<int64_t> valueRegs, ownRegs;
  std::vector<int64_t> valueOffsets, ownOffsets;
  /// Register bits of the source that are not known from the own register alone: each doubles the number of shuffles.
  std::vector<int> unknownRegBits;
  /// True if the element is always in the own lane, so that selects do without shuffles.
  bool isWithinThread = false;
};

/// `index` is the layout of the index and of the result. A gather within the warp that would take more than `maxShuffles` goes
/// through shared memory.
GatherPlan makeGatherPlan(const DistributedLayout &source, const DistributedLayout &index, int axis, int maxShuffles = 64);

/// The XOR masks of machine ids that belong to an XOR mask of positions along an axis.
struct ExchangeMasks {
  uint32_t regs = 0, lanes = 0, warps = 0, blocks = 0;
};
ExchangeMasks makeExchangeMasks(const DistributedLayout &layout, int axis, int64_t mask);

/// A layout like `source` whose last dimension, of size 2, is in registers: the machine bit that owns it takes a register's bit
/// instead, or becomes a copy. split() of the result exists.
DistributedLayout makeSplittable(const DistributedLayout &source);

} // namespace ditron::layout

#endif // DITRON_LAYOUT_GATHERPLAN_H
