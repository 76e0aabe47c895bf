//===- SharedLayout.h - Tiles in shared memory, XOR swizzles and bank conflicts -----------------------------*- C++ -*-===//
//
// A tile in shared memory is an invertible linear map over F2 from the bits of the element offset to the bits of the packed
// tensor index. Unlike register layouts its columns may have several set bits: an XOR swizzle. Everything is computed with
// matrices of at most 32 columns held in words; Gauss on words, no library.
//
// Example, a 8x64 tile of 16-bit elements with the 128-byte swizzle: a row is 128 bytes, that is 8 chunks of 16 bytes; chunk
// c of row r lies at place c ^ r, so that the same chunk of 8 rows lies in 8 different bank groups:
//   8x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5]
//
// The file also holds the solver that chooses a swizzle for a given writer and reader, the brute-force bank counter that
// checks it, and OffsetPlan, from which a lowering emits addresses. Padded layouts (an addition with carry) are not linear
// and not here.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_LAYOUT_SHAREDLAYOUT_H
#define DITRON_LAYOUT_SHAREDLAYOUT_H

#include "ditron/layout/LinearLayout.h"

namespace ditron::layout {

//===------------------------------------------------------------------------------------------------------------------===//
// Matrices over F2
//===------------------------------------------------------------------------------------------------------------------===//

/// A matrix as its columns: column i is the image of input bit i.
using F2Matrix = std::vector<uint32_t>;

namespace f2 {
/// The image of a vector: XOR of the columns of its set bits.
uint32_t apply(const F2Matrix &matrix, uint32_t vector);
/// outer o inner.
F2Matrix compose(const F2Matrix &outer, const F2Matrix &inner);
int rank(std::span<const uint32_t> vectors);
F2Matrix identity(int bits);
/// The inverse of a square matrix; nothing if it is singular.
std::optional<F2Matrix> invert(const F2Matrix &matrix);
/// Some x with matrix x = target, free variables zero; nothing if there is none.
std::optional<uint32_t> solve(const F2Matrix &matrix, uint32_t target);
/// Unit vectors that extend the span of `vectors` to all of F2^bits, ascending.
F2Matrix independentComplement(std::span<const uint32_t> vectors, int bits);
/// Direct sum: the low inputs and outputs are `low`'s (which has lowOutputs output bits).
F2Matrix directSum(const F2Matrix &low, int lowOutputs, const F2Matrix &high);
} // namespace f2

//===------------------------------------------------------------------------------------------------------------------===//
// Shared layouts
//===------------------------------------------------------------------------------------------------------------------===//

/// A tile in shared memory. An immutable value.
class SharedLayout {
public:
  /// A rank-0 tile of one 32-bit element.
  SharedLayout();
  /// `offsetBases[i]` is the packed tensor index (several bits may be set) at element offset 1 << i. elementBits is 8, 16,
  /// 32, 64 or 128.
  SharedLayout(Shape shape, int elementBits, F2Matrix offsetBases);
  static Expected<SharedLayout> get(Shape shape, int elementBits, F2Matrix offsetBases);
  /// Ok if sizes are powers of two, the width is known, and the matrix is square and invertible.
  Status verify() const;

  const Shape &shape() const { return tileShape; }
  int elementBits() const { return width; }
  int elementBytes() const { return width / 8; }
  int numTensorBits() const { return static_cast<int>(offsetBases.size()); }
  int64_t bytes() const { return (int64_t(1) << offsetBases.size()) * elementBytes(); }
  const F2Matrix &bases() const { return offsetBases; }
  /// For each bit of the packed tensor index, its XOR contribution to the element offset.
  const F2Matrix &inverse() const { return offsetOfTensorBit; }

  /// The element offset of a packed tensor index.
  int64_t offsetOf(int64_t packed) const { return f2::apply(offsetOfTensorBit, static_cast<uint32_t>(packed)); }
  /// The packed tensor index at an element offset.
  int64_t tensorAt(int64_t offset) const { return f2::apply(offsetBases, static_cast<uint32_t>(offset)); }

  /// The same bytes seen transposed (result dimension d is source dimension order[d]).
  SharedLayout permute(std::span<const int> order) const;
  /// The same bytes in another shape with the same packed index.
  SharedLayout reshape(Shape newShape) const;

  /// `8x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5]`.
  std::string toString() const;
  static Expected<SharedLayout> parse(std::string_view text);

  size_t hash() const;
  bool operator==(const SharedLayout &other) const {
    return tileShape == other.tileShape && width == other.width && offsetBases == other.offsetBases;
  }

private:
  Shape tileShape;
  int width = 32;
  F2Matrix offsetBases;
  F2Matrix offsetOfTensorBit; // derived; empty if the matrix is singular
};

/// No swizzle: the dimensions in `order`, fastest first.
SharedLayout plainShared(const Shape &shape, std::span<const int> order, int elementBits);

/// A rank-2 (or, with leading batch dimensions slowest in `order`, higher) tile with the hardware's XOR swizzle of 32, 64 or
/// 128 bytes (0: none), the same map that TMA and wgmma use. The fastest dimension of `order` is cut into panels of
/// swizzleBytes; within a panel rows follow each other, and address bits 4.. are XORed with address bits 7.. (one, two or
/// three bits). Conflict-free for 16-byte accesses along a row and for fragment reads of 8 rows by 16 bytes. The fastest
/// dimension must have at least swizzleBytes; fewer rows than the pattern needs give a smaller pattern.
SharedLayout swizzledShared(const Shape &shape, std::span<const int> order, int elementBits, int swizzleBytes);
/// The largest of 128, 64, 32 that a row of the fastest dimension fills, or 0.
int largestSwizzle(const Shape &shape, std::span<const int> order, int elementBits);

//===------------------------------------------------------------------------------------------------------------------===//
// Addresses
//===------------------------------------------------------------------------------------------------------------------===//

/// One access of a thread: consecutive elements.
struct SharedAccess {
  int64_t offset;        ///< Element offset, to be XORed with the thread part.
  std::vector<int> regs; ///< Registers holding elements offset, offset + 1, ...: vecElems of them.
};

/// How each thread reaches its elements of a tile in shared memory. The element offset of an access is
///   access.offset ^ (XOR of laneBases[b] for set bits b of the lane id) ^ (the same of warpBases and the warp id).
/// When (access.offset & threadMask()) == 0, XOR is an addition and the backend can fold the constant.
struct OffsetPlan {
  int vecElems = 1;
  std::vector<int64_t> laneBases;
  std::vector<int64_t> warpBases;
  std::vector<SharedAccess> accesses; ///< Together every register once.

  int64_t threadOffset(int lane, int warp) const;
  /// All bits that the thread part may set.
  int64_t threadMask() const;
};

/// The widest accesses (at most maxVecBits) for a register layout and a shared layout of the same shape. Low offset bits that
/// are register bits, untouched by any other tensor bit, make a vector.
OffsetPlan makeOffsetPlan(const DistributedLayout &registers, const SharedLayout &shared, int maxVecBits = 128);

//===------------------------------------------------------------------------------------------------------------------===//
// Choosing a swizzle
//===------------------------------------------------------------------------------------------------------------------===//

/// The number of register bits common to both layouts, at most maxVecBits worth: both sides may access 1 << this elements
/// at once.
int commonVectorBits(const DistributedLayout &src, const DistributedLayout &dst, int elementBits, int maxVecBits = 128);

/// A shared layout through which data goes from `src` to `dst` registers, vectorised by the register bits that both sides
/// share (commonVectorBits) and free of bank conflicts when both sides access so many elements at once. elementBits as in
/// SharedLayout; banks are 4 bytes wide, their number a power of two.
SharedLayout chooseSwizzle(const DistributedLayout &src, const DistributedLayout &dst, int elementBits, int banks = 32,
                           int maxVecBits = 128);

/// What a warp's accesses cost. Memory serves 4 * banks bytes per wavefront; when lanes times the access width (at least a
/// word) is more, consecutive lanes are served in phases; in a phase every bank gives one word to any number of lanes.
struct BankConflicts {
  int worst = 1;          ///< The most words that one bank must give in one phase: 1 means free of conflicts.
  int64_t wavefronts = 0; ///< Over all accesses of all warps.
  int64_t ideal = 0;      ///< The number of phases: wavefronts if there were no conflicts.
};

/// Counts by brute force, for every warp and every access of the offset plan. An oracle for tests and for ditron-layout.
BankConflicts countBankConflicts(const DistributedLayout &registers, const SharedLayout &shared, int banks = 32,
                                 int maxVecBits = 128);

} // namespace ditron::layout

template <> struct std::hash<ditron::layout::SharedLayout> {
  size_t operator()(const ditron::layout::SharedLayout &layout) const { return layout.hash(); }
};

#endif // DITRON_LAYOUT_SHAREDLAYOUT_H
