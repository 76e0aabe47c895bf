//===- LinearLayout.h - How a tensor is spread over registers, lanes and warps ------------------------------*- C++ -*-===//
//
// DistributedLayout, the only register layout of Ditron. This file knows no MLIR; the attribute of the dgpu dialect wraps
// the value type declared here.
//
// The idea. An element of a tile with 2^n elements is named by n bits: its packed row-major index, in which the last
// dimension owns the low bits. A storage place is named by bits too: register, lane, warp and block bits. A layout says
// which machine bit owns which bit of the packed index. It goes machine -> tensor, since an element may live in several
// places: a machine bit that owns nothing (basis -1, printed `*`) holds copies. So a layout is a linear map over F2 whose
// every column has at most one set bit, and most questions about it are table look-ups.
//
// Example: a 4x8 tile (bits i1 i0 j2 j1 j0, high to low) on one warp of 8 lanes:
//   4x8, reg = {j0 i1}, lane = [j1 j2 i0], warp = []
// Element (1, 5) has i0 = 1, j2 = 1, j0 = 1: register bits (j0, i1) = (1, 0), so register 1; lane bits (j1, j2, i0) =
// (0, 1, 1), so lane 6. Transposed to 8x4 nothing moves, the bits get other names. Reduced over j, the lane bits of j turn
// into copies: `4, reg = {i1}, lane = [* * i0], warp = []`.
//
// Registers are a set: bases ascending, none zero. Their order carries no information, every lowering looks up the register
// that holds an element (registerFor), and so equality of layouts is equality of meaning. Not covered: sizes that are no
// powers of two, and XOR maps in registers (shared memory has them, see SharedLayout.h).
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_LAYOUT_LINEARLAYOUT_H
#define DITRON_LAYOUT_LINEARLAYOUT_H

#include "ditron/support/Status.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ditron::layout {

/// The dimensions of a storage place.
enum class MachineDim : uint8_t { Reg, Lane, Warp, Block };
inline constexpr int numMachineDims = 4;

/// "reg", "lane", "warp" or "block".
std::string_view toString(MachineDim dim);

/// The basis of a machine bit that owns no tensor bit: toggling it reaches a copy of the same element.
inline constexpr int zeroBasis = -1;

/// The most tensor dimensions that have a letter (i j k l m n o p) in the text form.
inline constexpr int maxRank = 8;

using Shape = std::vector<int64_t>;

/// The machine bit that owns a tensor bit.
struct BitOwner {
  MachineDim dim = MachineDim::Reg;
  int position = -1;
  bool operator==(const BitOwner &) const = default;
};

/// A register layout. An immutable value; see the head of this file. A value made from wrong bases can be inspected with
/// verify(); all other queries require a valid layout.
class DistributedLayout {
public:
  /// The layout of a scalar on one thread: rank 0, no bits.
  DistributedLayout();

  /// Takes one basis (position in the packed index, or zeroBasis) for each bit of every machine dimension. Register bases
  /// are made canonical: sorted, zero bases removed.
  DistributedLayout(Shape shape, std::vector<int> regs, std::vector<int> lanes, std::vector<int> warps,
                    std::vector<int> blocks = {});

  /// The same, refused with the reason when verify() fails.
  static Expected<DistributedLayout> get(Shape shape, std::vector<int> regs, std::vector<int> lanes,
                                         std::vector<int> warps, std::vector<int> blocks = {});

  /// Ok if sizes are powers of two, each basis is a bit of the packed index or zero, no tensor bit has two owners and each
  /// has one.
  Status verify() const;

  // Shape.
  const Shape &shape() const { return tileShape; }
  int rank() const { return static_cast<int>(tileShape.size()); }
  int64_t numElements() const { return int64_t(1) << tensorBits; }
  /// Number of bits of the packed index.
  int numTensorBits() const { return tensorBits; }

  // Machine side.
  const std::vector<int> &bases(MachineDim dim) const { return machineBases[static_cast<int>(dim)]; }
  int numBits(MachineDim dim) const { return static_cast<int>(bases(dim).size()); }
  int size(MachineDim dim) const { return 1 << numBits(dim); }
  int numRegs() const { return size(MachineDim::Reg); }
  int numLanes() const { return size(MachineDim::Lane); }
  int numWarps() const { return size(MachineDim::Warp); }
  int numBlocks() const { return size(MachineDim::Block); }

  /// The machine bit that owns a bit of the packed index.
  BitOwner owner(int bit) const { return owners[bit]; }
  /// The bits of `dim` that hold copies. A thread is the representative of its data when
  /// (lane & freeMask(Lane)) == 0 && (warp & freeMask(Warp)) == 0: only such threads may store or do atomics.
  uint32_t freeMask(MachineDim dim) const;
  /// The packed-index bits owned by `dim`, as a mask.
  int64_t ownedMask(MachineDim dim) const;

  // Maps. A packed index is one number; bits owned by different machine dimensions are disjoint, so XOR = OR = ADD.
  /// The part of the packed index given by one machine dimension.
  int64_t applyDim(MachineDim dim, int id) const;
  /// The packed index of the element held in a place.
  int64_t apply(int reg, int lane, int warp, int block = 0) const;
  /// The register that holds the element, in the threads that hold it. Only register-owned bits of `packed` are looked at.
  int registerFor(int64_t packed) const;
  /// The id in `dim` of the first (free bits zero) holder of the element.
  int idFor(MachineDim dim, int64_t packed) const;
  std::vector<int64_t> coordinates(int64_t packed) const;
  int64_t pack(std::span<const int64_t> coordinates) const;

  // Bits and axes.
  /// The packed-index bits of an axis, ascending. Axis position p has bit p of `axisBits` entries.
  std::vector<int> axisBits(int axis) const;
  /// The axis of a packed-index bit.
  int axisOf(int bit) const;
  /// The bit's position within its axis.
  int bitInAxis(int bit) const;
  /// For example "j3": bit 3 of the position along dimension 1.
  std::string bitName(int bit) const;

  // Transformations. Each gives the layout of the result of a tensor operation for which no data moves between threads.
  // Preconditions (valid axes, equal number of elements) are the caller's and are asserted: ops are verified before.
  /// Result dimension d is source dimension order[d] (tl.trans). Registers are renumbered: see RegisterMaps.h.
  DistributedLayout permute(std::span<const int> order) const;
  /// Other shape, same packed index; the bases do not change.
  DistributedLayout reshape(Shape newShape) const;
  /// Inserts a dimension of size 1 before `axis` (axis in [0, rank]).
  DistributedLayout expandDims(int axis) const;
  /// The result of a reduction along `axis`: the axis vanishes, its lane, warp and block owners become copies, its
  /// register owners disappear.
  DistributedLayout dropAxis(int axis) const;
  /// The result of broadcasting size-1 dimensions (same rank). New tensor bits claim free lane bits first, then free warp
  /// bits (never block bits), then new registers; so nothing moves.
  DistributedLayout broadcastTo(Shape newShape) const;
  /// The layout that the source (same rank, some dimensions of size 1) of a broadcast should have, for a result in this
  /// layout: owners of the broadcast bits become copies. The broadcast then only aliases registers.
  DistributedLayout dropBroadcast(Shape srcShape) const;
  /// The result of joining two tensors of this layout in a new last dimension of size 2: a new lowest register bit.
  DistributedLayout join() const;
  /// The result of splitting the last dimension of size 2; nothing when its bit is not in registers.
  std::optional<DistributedLayout> split() const;

  /// `64x32, reg = {j0 j1 i5}, lane = [j2 j3 j4 i0 i1], warp = [i2 i3 i4 *]`; `block = [...]` follows if there are block
  /// bits. The shape of a rank-0 layout is printed as `scalar`.
  std::string toString() const;
  /// Reads the text form; the result is verified.
  static Expected<DistributedLayout> parse(std::string_view text);

  /// A picture: one row of cells `warp.lane:reg` per line of the last dimension (`lane:reg` when there is one warp), the
  /// first holder of each element. Higher dimensions follow each other with a heading. At most `maxElements` elements.
  std::string toTable(int64_t maxElements = 4096) const;

  size_t hash() const;
  bool operator==(const DistributedLayout &other) const {
    return tileShape == other.tileShape && machineBases == other.machineBases;
  }

private:
  void computeOwners();

  Shape tileShape;
  std::array<std::vector<int>, numMachineDims> machineBases;
  std::vector<BitOwner> owners; // derived: for each tensor bit
  int tensorBits = 0;           // derived
};

/// log2 of a power of two.
int log2Exact(int64_t value);
bool isPowerOfTwo(int64_t value);
/// The strides of the packed index are powers of two; this is the lowest packed bit of `axis` in `shape`.
int lowestBitOfAxis(const Shape &shape, int axis);
/// The name of a packed-index bit of a shape, for example "j3".
std::string bitName(const Shape &shape, int bit);
/// "64x32", or "scalar".
std::string shapeToString(const Shape &shape);

} // namespace ditron::layout

template <> struct std::hash<ditron::layout::DistributedLayout> {
  size_t operator()(const ditron::layout::DistributedLayout &layout) const { return layout.hash(); }
};

#endif // DITRON_LAYOUT_LINEARLAYOUT_H
