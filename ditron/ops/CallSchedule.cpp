//===- CallSchedule.cpp - What an overlapped call does in which order -------------------------------------------------===//
#include "ditron/ops/CallSchedule.h"

namespace ditron::ops {

int64_t rowsPerChunk(const RowShards &shards, uint32_t chunksPerRank) {
  return ceilDivide(shards.rowsPerRank, chunksPerRank);
}

std::vector<Push> allGatherPushes(const RowShards &shards, uint32_t rank, uint32_t numRanks, uint32_t chunksPerRank,
                                  uint32_t numNodes) {
  const int64_t chunkRows = rowsPerChunk(shards, chunksPerRank);
  const uint32_t local = numRanks / numNodes, node = rank / local, place = rank % local;
  std::vector<Push> pushes;
  const auto push = [&](uint32_t source, uint32_t chunk, uint32_t step) {
    const int64_t shardRows = shards.rowsOf(source), firstRow = std::min(chunk * chunkRows, shardRows);
    // An empty last chunk is signalled too, since a tile may wait for the range that contains it.
    pushes.push_back({source, node * local + (place + local - step) % local, chunk,
                      shards.firstRowOf(source) + firstRow, std::min(chunkRows, shardRows - firstRow)});
  };
  for (uint32_t step = 1; step < local; ++step)
    for (uint32_t chunk = 0; chunk < chunksPerRank; ++chunk)
      push(rank, chunk, step);
  for (uint32_t distance = 1; distance < numNodes; ++distance)
    for (uint32_t chunk = 0; chunk < chunksPerRank; ++chunk)
      for (uint32_t step = 1; step < local; ++step)
        push((node + distance) % numNodes * local + place, chunk, step);
  return pushes;
}

std::vector<Push> reduceScatterPushes(const RowShards &shards, uint32_t rank, uint32_t numRanks) {
  std::vector<Push> pushes;
  // The own segment, last in the GEMM's order, is not sent; no tile opens the gate of an empty one, and its owner reduces nothing.
  for (uint32_t step = 1; step < numRanks; ++step)
    if (const uint32_t segment = (rank + step) % numRanks; shards.rowsOf(segment) > 0)
      pushes.push_back({rank, segment, 0, shards.firstRowOf(segment), shards.rowsOf(segment)});
  return pushes;
}

std::vector<NodeScatter> nodeScatters(const RowShards &shards, uint32_t rank, uint32_t numRanks, uint32_t numNodes) {
  const uint32_t local = numRanks / numNodes, node = rank / local;
  std::vector<NodeScatter> scatters;
  for (uint32_t visit = 1; visit <= numNodes; ++visit)
    for (uint32_t step = 1; step <= local; ++step) {
      const uint32_t place = (rank + step) % local, segment = (node + visit) % numNodes * local + place;
      if (shards.rowsOf(segment) > 0)
        scatters.push_back({segment, node * local + place, shards.firstRowOf(segment), shards.rowsOf(segment)});
    }
  return scatters;
}

TilePlace groupedTile(int64_t tile, int64_t tileRows, int64_t tileColumns, uint32_t groupM) {
  const int64_t tilesInGroup = groupM * tileColumns;
  const int64_t firstRow = tile / tilesInGroup * groupM;
  const int64_t groupRows = std::min<int64_t>(tileRows - firstRow, groupM);
  return {firstRow + tile % tilesInGroup % groupRows, tile % tilesInGroup / groupRows};
}

namespace {

/// The rows of tiles from begin to end, cyclically from `first` on.
void appendFrom(int64_t first, int64_t begin, int64_t end, std::vector<int64_t> &order) {
  for (int64_t i = 0; i < end - begin; ++i)
    order.push_back(begin + (i + std::max<int64_t>(first - begin, 0)) % (end - begin));
}

} // namespace

std::vector<int64_t> allGatherTileRows(const RowShards &shards, uint32_t rank, uint32_t numRanks, uint32_t numNodes,
                                       uint32_t blockM) {
  const uint32_t local = numRanks / numNodes, ownNode = rank / local;
  // Where the tiles of each node end. A tile that reaches into several nodes belongs to the one visited last, the own one being the first.
  std::vector<int64_t> ends = {0};
  for (uint32_t node = 0; node < numNodes; ++node) {
    const int64_t boundary = std::min((node + 1) * local * shards.rowsPerRank, shards.rows);
    const bool endsBehind = node + 1 == ownNode || node + 1 == numNodes;
    ends.push_back(std::max(ends.back(), endsBehind ? ceilDivide(boundary, blockM) : boundary / blockM));
  }
  ends.back() = ceilDivide(shards.rows, blockM);
  std::vector<int64_t> order;
  for (uint32_t visit = 0; visit < numNodes; ++visit) {
    const uint32_t node = (ownNode + visit) % numNodes;
    const int64_t ownRow = std::min((node * local + rank % local) * shards.rowsPerRank, shards.rows);
    appendFrom(ceilDivide(ownRow, blockM), ends[node], ends[node + 1], order);
  }
  return order;
}

std::vector<int64_t> reduceScatterTileRows(const RowShards &shards, uint32_t rank, uint32_t numRanks, uint32_t numNodes,
                                           uint32_t blockM) {
  const uint32_t local = numRanks / numNodes, ownNode = rank / local;
  // Where the tiles of each node begin. A tile that reaches into several nodes belongs to the one visited first, the next one being it.
  std::vector<int64_t> begins(numNodes + 1, ceilDivide(shards.rows, blockM));
  for (uint32_t node = numNodes; node-- > 0;) {
    const int64_t boundary = std::min(node * local * shards.rowsPerRank, shards.rows);
    begins[node] = std::min(begins[node + 1], node == ownNode + 1 ? boundary / blockM : ceilDivide(boundary, blockM));
  }
  std::vector<int64_t> order;
  for (uint32_t visit = 1; visit <= numNodes; ++visit) {
    const uint32_t node = (ownNode + visit) % numNodes;
    const int64_t nextRow = std::min((node * local + (rank % local + 1) % local) * shards.rowsPerRank, shards.rows);
    appendFrom(nextRow / blockM, begins[node], begins[node + 1], order);
  }
  return order;
}

std::vector<TilePlace> tilesInOrder(const std::vector<int64_t> &rows, int64_t tileColumns, uint32_t groupM) {
  const auto tileRows = static_cast<int64_t>(rows.size());
  std::vector<TilePlace> tiles;
  for (int64_t tile = 0; tile < tileRows * tileColumns; ++tile) {
    const TilePlace place = groupedTile(tile, tileRows, tileColumns, groupM);
    tiles.push_back({rows[place.row], place.column});
  }
  return tiles;
}

Range chunksOfTileRow(int64_t tileRow, const RowShards &shards, uint32_t chunksPerRank, uint32_t blockM) {
  const int64_t chunkRows = rowsPerChunk(shards, chunksPerRank);
  auto chunkOf = [&](int64_t row) {
    return row / shards.rowsPerRank * chunksPerRank + row % shards.rowsPerRank / chunkRows;
  };
  return {chunkOf(tileRow * blockM), chunkOf(std::min((tileRow + 1) * blockM, shards.rows) - 1)};
}

Range segmentsOfTileRow(int64_t tileRow, const RowShards &shards, uint32_t blockM) {
  return {tileRow * blockM / shards.rowsPerRank,
          (std::min((tileRow + 1) * blockM, shards.rows) - 1) / shards.rowsPerRank};
}

Range tileRowsOfSegment(int64_t segment, const RowShards &shards, uint32_t blockM) {
  return {segment * shards.rowsPerRank / blockM,
          (std::min((segment + 1) * shards.rowsPerRank, shards.rows) - 1) / blockM};
}

ReduceTiles reduceTiles(int64_t rows, int64_t columns, uint32_t multiprocessors) {
  const int64_t places = std::max<int64_t>(multiprocessors * 3 / 4, 1);
  constexpr uint32_t mostBlockM = 128; // with 256 columns 64 sums a thread of 16 warps
  ReduceTiles tiles;
  const auto count = [&] { return ceilDivide(rows, tiles.blockM) * ceilDivide(columns, tiles.blockN); };
  if (count() > places)
    tiles = {.blockN = 256, .numWarps = 16};
  while (count() > places && tiles.blockM < mostBlockM)
    tiles.blockM *= 2;
  tiles.blocks = static_cast<uint32_t>(std::min(count(), places));
  return tiles;
}

} // namespace ditron::ops
