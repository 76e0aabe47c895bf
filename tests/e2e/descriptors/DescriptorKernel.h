//===- DescriptorKernel.h - Kernels that move tiles through tensor descriptors ------------------------------*- C++ -*-===//
//
// A kernel of several pieces, each of which goes through tiles of a tensor of its own: text, arguments and what must be in memory
// afterwards. Pieces are made at random or told by a test; the model knows positions and strides and nothing of layouts.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_E2E_DESCRIPTORKERNEL_H
#define DITRON_TESTS_E2E_DESCRIPTORKERNEL_H

#include "KernelTest.h"

#include <random>

namespace ditron::e2e {

/// A tensor and the tiles of it that a kernel goes through: tile t begins at first, and t blocks further along `walked`.
struct TiledTensor {
  DataType type = DataType::F32;
  std::vector<int64_t> sizes, strides, block, first;
  size_t walked = 0;
  bool isLiteral = false; ///< All numbers stand in the kernel's text, so that the compiler knows them; else some are arguments.
  std::vector<float> values; ///< The whole memory, with what lies between rows and behind the tensor.

  int64_t tileLength() const;
  /// Where an element of a tile (row-major) lies in `values`; nothing if it is outside of the tensor.
  std::optional<int64_t> place(int64_t tile, int64_t index) const;
  /// The same for an element of a row that is named.
  std::optional<int64_t> placeInRow(int64_t row, int64_t column) const;
  /// Strides of rows with so many elements between them, and values for all of the memory.
  void layOut(int64_t gap, std::mt19937_64 &random);
};

enum class Access { Copy, Store, Update, Gather, Scatter };

/// One thing that a kernel does with each tile.
struct Piece {
  Access access = Access::Store;
  TiledTensor source; ///< Of Copy and Gather.
  TiledTensor target; ///< Of all but Gather.
  bool sourceOfHost = false, targetOfHost = false;
  bool fillsNan = false;     ///< What lies outside of the source.
  bool readsBack = false;    ///< Copy: the kernel shows what it then finds in the target, not what it loaded.
  bool isTransposed = false; ///< Store and Update: the value is computed with its dimensions the other way round.
  std::string update;        ///< Of Update: add, min, max, and, or, xor.
  std::vector<int32_t> rows; ///< Of Gather and Scatter: different from each other.

  /// The tile that is accessed: the source's, else the target's.
  const TiledTensor &accessed() const { return access == Access::Copy || access == Access::Gather ? source : target; }
  /// Elements that the kernel has in registers for one tile.
  int64_t length() const;
};

void PrintTo(const Piece &piece, std::ostream *stream);

/// How a kernel goes through the tiles.
enum class Walk { Once, Range, Stages, Specialized, Static, Persistent };

struct DescriptorKernel {
  std::vector<Piece> pieces;
  Walk walk = Walk::Once;
  int64_t tilesPerProgram = 1;
  LaunchShape shape;
  uint64_t seed = 0; ///< Decides which numbers are arguments.

  static DescriptorKernel random(uint64_t seed);

  int64_t numTiles() const { return tilesPerProgram * shape.grid[0]; }
  /// The kernel, named `kernel`; `keywords` gets the numbers that it takes as arguments. Memory comes as x0 (source), y0 (target),
  /// z0 (tiles that the kernel shows) and r0 (rows), for each piece.
  std::string text(std::vector<std::pair<std::string, Argument>> &keywords) const;
};

/// What must be in memory: the target, and the tiles shown.
struct PieceResult {
  std::vector<float> target, shown;
};
PieceResult resultOf(const Piece &piece, int64_t numTiles);

/// The value of an element of a tile that a kernel computes itself.
int64_t computedValue(DataType type, int64_t tile, int64_t index);

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_DESCRIPTORKERNEL_H
