//===- AxisPlans.h - Reduce and scan along an axis, level by level -------------------------------------------*- C++ -*-===//
//
// A reduction has one level per bit of the axis, and the left operand is the side whose bit is 0. Two orders of the levels:
//
//   NearestFirst  registers, then lanes, then warps. Few values are left when they have to travel. The expression tree follows
//                 from the layout, so the combine must be associative and commutative.
//   Canonical     the bits of the axis in ascending order. The tree depends on the shape only: any associative combine is allowed
//                 (also one that is not commutative), and all layouts and targets can be compared bit for bit.
//
// In both, copies agree exactly. Which order a reduction takes is the caller's knowledge. Scans keep the order of the elements and
// have one tree for all layouts.
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

/// Neighbouring levels of a reduction that lie across warps, done with one round trip through shared memory. Of the threads that
/// hold copies by then one stores its values. Of the levels' 2^levels values a thread loads 2^localLevels() and combines them: those
/// are the first levels. For the others, lanes that hold copies load the value of one warp each and combine like lanes.
struct WarpRound {
  int step;                      ///< The first of its levels in ReducePlan::steps.
  int levels;                    ///< How many.
  int registers;                 ///< That a thread holds at these levels.
  uint32_t copyLanes, copyWarps; ///< Bits of the ids that make no difference before these levels.
  std::vector<int> laneBits;     ///< Of copyLanes: lane bit i stands for the warp bit of level localLevels() + i.
  int localLevels() const { return levels - static_cast<int>(laneBits.size()); }
};
/// The rounds of a reduction's plan for its source, in order; together they do all levels across warps.
std::vector<WarpRound> warpRoundsOf(const ReducePlan &plan, const DistributedLayout &source);

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
