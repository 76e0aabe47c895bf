//===- Shadow.h - Who touched a word last ---------------------------------------------------------------*- C++ -*-===//
//
// Sixteen bytes beside every four bytes of memory that kernels touch: the last write and the reads since. Accesses are
// exact to the byte: masks say which of the four bytes they touched, and a word whose bytes were touched by different
// threads gets a cell for each half, and those for each byte where they must. Zero means that nobody has touched the word, so that shadow memory comes from the
// system as it is, and only pages that are touched cost anything.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_RACE_SHADOW_H
#define DITRON_SIM_RACE_SHADOW_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ditron::sim::race {

constexpr uint64_t wordBytes = 4;

/// How an access synchronises, in five bits: 0 for an ordinary one.
struct Strength {
  uint8_t bits = 0;

  static Strength ordinary() { return {}; }
  /// Atomic or with an order: scope as DitronSimScope, 1 to 8 bytes.
  static Strength strong(uint32_t scope, uint32_t bytes) {
    const uint32_t log2 = bytes >= 8 ? 3 : bytes >= 4 ? 2 : bytes >= 2 ? 1 : 0;
    return {static_cast<uint8_t>(1 | scope << 1 | log2 << 3)};
  }
  /// A put of one word: atomic for those who poll it, and no better than ordinary beside another put.
  static Strength put(uint32_t bytes) { return strong(putScope, bytes); }
  bool isStrong() const { return bits & 1; }
  bool isPut() const { return isStrong() && scope() == putScope; }
  uint32_t scope() const { return bits >> 1 & 3; }
  uint32_t log2Bytes() const { return bits >> 3; }

private:
  static constexpr uint32_t putScope = 3; ///< Reaches as far as system scope.
};

/// See the top of the file. `write` and `reads` are strands (Strand.h); with `manyReaders` set, `reads` is a list of readers.
/// Each of the two has a half of its own, which is compared and copied as one number.
struct Cell {
  uint32_t write = 0;
  uint16_t writeSite = 0;
  uint16_t writeLane : 6 = 0, writeMask : 4 = 0, writeStrength : 5 = 0;
  uint16_t isSplit : 1 = 0; ///< The halves of the bytes have a cell each; `write` is their place in the table.
  uint32_t reads = 0;
  uint16_t readSite = 0;
  uint16_t readLane : 6 = 0; ///< Of several readers: the lane of those that are in the list as `cellLane`.
  uint16_t readMask : 4 = 0, readStrength : 5 = 0;
  uint16_t manyReaders : 1 = 0;
};
static_assert(sizeof(Cell) == 16);

/// The cells of a range of memory: zero at first, given back when the object goes.
class Shadow {
public:
  /// Null cells when the system refuses.
  explicit Shadow(uint64_t memoryBytes);
  ~Shadow();
  Shadow(const Shadow &) = delete;
  Shadow &operator=(const Shadow &) = delete;

  Cell *cells() const { return memory; }

private:
  Cell *memory = nullptr;
  size_t bytes = 0;
};

/// A lane that is not said here: it is that of the cell.
constexpr uint8_t cellLane = 0xfe;

/// One of several that have read a word since it was written. Each lane of a warp reads words of its own of a tile, and the same lane of other
/// blocks reads them too: with the lane in the cell, lists of 32 words are one.
struct Reader {
  uint32_t strand = 0;
  uint16_t site = 0;
  uint8_t lane = 0; ///< Or cellLane. One that is a number is another than the lane of any cell that has the list.
  uint8_t strength = 0;
  uint32_t mask = 0;
  uint64_t others = 0; ///< Further lanes that have read the same bytes, a bit each.
  bool operator==(const Reader &) const = default;
};

} // namespace ditron::sim::race

#endif // DITRON_SIM_RACE_SHADOW_H
