//===- GemmKernels.h - Device code and tiling shared by the overlapped GEMMs --------------------------------*- C++ -*-===//
//
// What AllGatherGemm and GemmReduceScatter have in common on the compute side: the tile configuration with its limits, and the checks of a matrix product's shape.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_GEMMKERNELS_H
#define DITRON_OPS_GEMMKERNELS_H

#include "ditron/ops/KernelLaunch.h"
#include "ditron/support/DataType.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace ditron::ops {

/// How a GEMM is cut into tiles. All blocks are powers of two of at least 16.
struct TileConfig {
  uint32_t blockM = 64;
  uint32_t blockN = 64;
  uint32_t blockK = 32;
  uint32_t groupM = 8; ///< Rows of tiles that are computed together, for reuse in the L2 cache.
  uint32_t numWarps = 4;
  uint32_t numStages = 3;

  bool operator==(const TileConfig &) const = default;
  Status verify() const;
};

/// For checks of sizes that do not know the tile yet.
inline constexpr TileConfig smallestTile = {.blockM = 16, .blockN = 16, .blockK = 16};
/// Stands in options for "the library chooses, call by call".
inline constexpr TileConfig libraryTile = {
    .blockM = 0, .blockN = 0, .blockK = 0, .groupM = 0, .numWarps = 0, .numStages = 0};

/// How B lies in memory.
enum class MatrixOrder {
  Transposed, ///< [N, K] row-major: the weight of a torch Linear, as in x @ weight.T.
  Plain,      ///< [K, N] row-major.
};

/// How fp32 operands are multiplied; no effect on 16-bit operands.
enum class MultiplyPrecision {
  Tf32, ///< Rounded to tf32, on the tensor cores.
  Ieee, ///< Full fp32, on the ordinary units.
};
std::string_view toString(MultiplyPrecision precision);

/// Whether communication runs beside the computation.
enum class Schedule {
  Overlapped, ///< Tiles start as soon as their rows are there; segments leave as soon as they are complete.
  Unfused, ///< All communication before (AllGather) or after (ReduceScatter) the whole GEMM: the floor to compare with.
};
std::string_view toString(Schedule schedule);

/// bf16, fp16 and fp32 are accepted.
Status verifyOperandType(std::string_view operation, DataType type);
/// Positive sizes whose in-tile offsets fit 32 bits.
Status verifyProduct(std::string_view operation, int64_t m, int64_t n, int64_t k, const TileConfig &tile);

/// How many nodes the order of tiles is for: those of the world, or, in a world of one, `asked`, which must divide its ranks. 0 asks for those
/// of the world.
Expected<uint32_t> nodesFor(std::string_view operation, const runtime::World &world, uint32_t asked);
/// The rank is one of the world that the operator was made for.
Status verifyRank(std::string_view operation, const runtime::World &world, const runtime::Rank &rank);
/// An operand given to a call has the operator's type, is not null, and is where elements of the type may be.
Status verifyPointerType(std::string_view operation, std::string_view name, runtime::Pointer pointer, DataType type);
/// The same of one whose address must be a multiple of planAlignment.
Status verifyAlignedPointer(std::string_view operation, std::string_view name, runtime::Pointer pointer, DataType type);
/// Blocks of a kernel whose program p computes the tiles p, p + blocks, ...: as many as run at once on GPUs with tensor copies, where
/// a block's next tile is fetched while it finishes one, but no more than `most`; else a block per tile.
uint32_t blocksFor(const runtime::Rank &rank, int64_t tiles, uint32_t most = UINT32_MAX);
/// Adds the compile-time arguments that every GEMM kernel takes: blocks, group, precision.
void appendTileArguments(KernelCall &call, const TileConfig &tile, MultiplyPrecision precision);

inline int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// Of a matrix.
inline int64_t tilesOf(const TileConfig &tile, int64_t rows, int64_t columns) {
  return ceilDivide(rows, tile.blockM) * ceilDivide(columns, tile.blockN);
}

/// How the rows of a matrix are dealt out: rank r has the rows from r * rowsPerRank on. When the ranks do not divide the rows,
/// the last shards are short or empty.
struct RowShards {
  int64_t rows;
  int64_t rowsPerRank;

  RowShards(int64_t rows, uint32_t numRanks) : rows(rows), rowsPerRank(ceilDivide(rows, numRanks)) {}
  int64_t firstRowOf(uint32_t rank) const { return std::min(rank * rowsPerRank, rows); }
  int64_t rowsOf(uint32_t rank) const { return std::min(rowsPerRank, rows - firstRowOf(rank)); }
};

} // namespace ditron::ops
#endif // DITRON_OPS_GEMMKERNELS_H
