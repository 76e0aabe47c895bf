//===- AxisPlans.h - Reduce and scan along an axis, in one canonical order ----------------------------------*- C++ -*-===//
//
// Reductions follow one canonical tree: the bits of the axis in ascending order, and the left operand is the side whose bit
// is 0. The expression tree then depends on the shape only and not on the layout: copies agree exactly, any associative
// combine is allowed (also one that is not commutative), and all targets can be compared bit for bit.
//
// Combines that give the same result in any order (integer sums, extremes) need no canonical tree: for them the levels inside
// a thread come first, so that less has to be exchanged. Which order a combine allows is the caller's knowledge.
//
// A reduction of 8 elements: bit 0 gives (01) (23) (45) (67), bit 1 (0123) (4567), bit 2 the result, wherever the bits live.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_LAYOUT_AXISPLANS_H
#define DITRON_LAYOUT_AXISPLANS_H

#include "ditron/layout/LinearLayout.h"

namespace ditron::layout {

/// One level of the tree.
///   Reg:  y[r] = combine(x[r with 0 inserted at position], x[r with 1 inserted at position]); halves the registers. The
///         position is in the register index of the current state, earlier levels' bits being removed.
///   Lane: p = shuffle_xor(x[r], 1 << position); y[r] = bit `position` of lane ? combine(p, x[r]) : combine(x[r], p).
///   Warp: the same with the value of warp ^ (1 << position), which comes through shared memory.
struct ReduceStep {
  int axisBit; ///< Bit of the position along the axis; ascending from 0 in the canonical order.
  MachineDim dim;
  int position;
};

enum class ReduceOrder {
  Canonical,   ///< The axis bits ascending: one expression tree for all layouts.
  NearestFirst ///< Registers, then lanes, then warps: fewest exchanges; the tree depends on the layout.
};

struct ReducePlan {
  DistributedLayout result; ///< source.dropAxis(axis)
  std::vector<ReduceStep> steps;
  bool needsSharedMemory() const;
};
ReducePlan makeReducePlan(const DistributedLayout &source, int axis, ReduceOrder order = ReduceOrder::Canonical);

/// One level of an inclusive scan: a place whose bit `position` of `dim` is 1 does
///   y = combine(x at (reg | regSet) & ~regClear, (lane | laneSet) & ~laneClear, (warp | warpSet) & ~warpClear, own x);
/// every other place keeps its value. The masks set all lower axis bits and clear this one, so the other operand is the sum
/// of the lower half. A reverse scan acts where the bit is 0, with set and clear swapped; the operands stay, as in a scan of the
/// reversed elements.
struct ScanStep {
  int axisBit;
  MachineDim dim;
  int position;
  uint32_t regSet = 0, laneSet = 0, warpSet = 0;
  uint32_t regClear = 0, laneClear = 0, warpClear = 0;
  bool crossesLanes() const { return (laneSet | laneClear) != 0; }
  bool crossesWarps() const { return (warpSet | warpClear) != 0; }
};
/// The levels of a scan; the result has the source's layout.
std::vector<ScanStep> makeScanPlan(const DistributedLayout &source, int axis);

} // namespace ditron::layout

#endif // DITRON_LAYOUT_AXISPLANS_H
