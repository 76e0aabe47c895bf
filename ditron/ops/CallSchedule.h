//===- CallSchedule.h - What an overlapped call does in which order -------------------------------------*- C++ -*-===//
//
// The order of an overlapped GEMM's work, as plain functions of its sizes: what a rank sends to whom in which order, which tile comes
// when, which chunks a tile waits for, how many tiles complete a segment. The operators enqueue by it, and predictions
// (ditron/predict) run it in virtual time. The orders of tiles are those of the device code (kernels/tensor_parallel_gemm), which has
// the reasons; tests/e2e/tensor_parallel/swizzle_test.cpp holds both against each other.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_CALLSCHEDULE_H
#define DITRON_OPS_CALLSCHEDULE_H

#include "ditron/ops/GemmKernels.h"

#include <vector>

namespace ditron::ops {

/// One chunk of a rank's shard for one peer, or one segment of its partial result for the segment's owner.
struct Push {
  uint32_t source = 0; ///< Whose chunk it is.
  uint32_t peer = 0;
  uint32_t chunk = 0;
  int64_t firstRow = 0; ///< Of the whole matrix.
  int64_t rows = 0;     ///< 0: nothing to copy, only a signal to raise.
};

/// Rows of a chunk when a shard has `chunksPerRank`.
int64_t rowsPerChunk(const RowShards &shards, uint32_t chunksPerRank);

/// AllGather: first the rank below, which computes these rows right after its own; and so on downwards. Where there are several nodes, to the
/// ranks of the own one only; and then what comes from the ranks with this one's place on the others, the next node's first, chunk by chunk.
std::vector<Push> allGatherPushes(const RowShards &shards, uint32_t rank, uint32_t numRanks, uint32_t chunksPerRank,
                                  uint32_t numNodes = 1);
/// ReduceScatter: the segments in the order in which the GEMM completes them, without the own one and empty ones.
std::vector<Push> reduceScatterPushes(const RowShards &shards, uint32_t rank, uint32_t numRanks);

/// Where there are several nodes: a segment with rows, which goes to the rank of the own node that has its owner's place.
struct NodeScatter {
  uint32_t segment = 0;
  uint32_t peer = 0; ///< May be the rank itself, which keeps its part.
  int64_t firstRow = 0, rows = 0;
};
/// In the order in which the GEMM completes them: the next node's first and the own node's last, of each the next place's first and the own last.
std::vector<NodeScatter> nodeScatters(const RowShards &shards, uint32_t rank, uint32_t numRanks, uint32_t numNodes);

/// A place in the order of rows of tiles. `grouped_tile` of the device code.
struct TilePlace {
  int64_t row = 0, column = 0;
};
TilePlace groupedTile(int64_t tile, int64_t tileRows, int64_t tileColumns, uint32_t groupM);

/// The rows of tiles in the order in which a rank computes them: `swizzle_all_gather` and `swizzle_reduce_scatter` of the device code
/// for every index.
std::vector<int64_t> allGatherTileRows(const RowShards &shards, uint32_t rank, uint32_t numRanks, uint32_t numNodes,
                                       uint32_t blockM);
std::vector<int64_t> reduceScatterTileRows(const RowShards &shards, uint32_t rank, uint32_t numRanks, uint32_t numNodes,
                                           uint32_t blockM);

/// All tiles of a rank's product in the order in which its blocks take them: `rows`, one of the two orders above, in groups of groupM.
std::vector<TilePlace> tilesInOrder(const std::vector<int64_t> &rows, int64_t tileColumns, uint32_t groupM);

/// First and last, both included.
struct Range {
  int64_t first = 0, last = 0;
};
/// The chunks, counted through all shards, that hold the rows of a row of tiles.
Range chunksOfTileRow(int64_t tileRow, const RowShards &shards, uint32_t chunksPerRank, uint32_t blockM);
/// The segments that have rows in a row of tiles.
Range segmentsOfTileRow(int64_t tileRow, const RowShards &shards, uint32_t blockM);
/// The rows of tiles that have rows of a segment; the segment must not be empty.
Range tileRowsOfSegment(int64_t segment, const RowShards &shards, uint32_t blockM);

/// Tile of sums that are made while others are on their way, which are bound by memory: rows of whole cache lines.
constexpr uint32_t reduceBlockM = 16, reduceBlockN = 128;

/// The reduction that ends a ReduceScatter.
struct ReduceTiles {
  uint32_t blockM = reduceBlockM, blockN = reduceBlockN, numWarps = 4;
  uint32_t blocks = 1;
};
/// Tiles of `rows` x `columns` for blocks that wait for other ranks: at most three of four multiprocessors have one, since ranks may be waiting
/// for a product that finds a place only on the others. Few blocks take larger tiles: what a block has in its registers it adds as it arrives.
ReduceTiles reduceTiles(int64_t rows, int64_t columns, uint32_t multiprocessors);

} // namespace ditron::ops
#endif // DITRON_OPS_CALLSCHEDULE_H
