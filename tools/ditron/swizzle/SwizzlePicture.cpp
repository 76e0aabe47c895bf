//===- SwizzlePicture.cpp - The order of tiles of an overlapped operator ----------------------------------------------===//
#include "swizzle/SwizzlePicture.h"

#include "base/Svg.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace ditron::tool {

namespace {

int64_t tileColumns(const SwizzleOptions &options) { return ops::ceilDivide(options.n, options.blockN); }
ops::RowShards shardsOf(const SwizzleOptions &options) { return ops::RowShards(options.m, options.ranks); }

std::string title(const SwizzleOptions &options) {
  const ops::RowShards shards = shardsOf(options);
  return fmt::format(
      "{}{}, {} ranks{}: {} rows, {} a rank, in tiles of {}; {} columns in tiles of {}",
      options.gathers ? "AllGather+GEMM" : "GEMM+ReduceScatter", options.plain ? " without swizzle" : "", options.ranks,
      options.nodes > 1 ? fmt::format(" on {} nodes of {}", options.nodes, options.ranks / options.nodes) : "",
      options.m, shards.rowsPerRank, options.blockM, options.n, options.blockN);
}

/// "3", or "3-5".
std::string rangeText(const ops::Range &range) {
  return range.first == range.last ? fmt::format("{}", range.first) : fmt::format("{}-{}", range.first, range.last);
}

std::string placeText(const SwizzleOptions &options, const ops::TilePlace &tile) {
  return tileColumns(options) == 1 ? fmt::format("{}", tile.row) : fmt::format("{},{}", tile.row, tile.column);
}

} // namespace

std::vector<std::vector<ops::TilePlace>> swizzledTiles(const SwizzleOptions &options) {
  const ops::RowShards shards = shardsOf(options);
  std::vector<std::vector<ops::TilePlace>> tiles;
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    std::vector<int64_t> rows(ops::ceilDivide(options.m, options.blockM));
    std::iota(rows.begin(), rows.end(), 0);
    if (!options.plain)
      rows = (options.gathers ? ops::allGatherTileRows : ops::reduceScatterTileRows)(shards, rank, options.ranks,
                                                                                     options.nodes, options.blockM);
    tiles.push_back(ops::tilesInOrder(rows, tileColumns(options), options.groupM));
  }
  return tiles;
}

std::string swizzleText(const SwizzleOptions &options) {
  const ops::RowShards shards = shardsOf(options);
  const auto tiles = swizzledTiles(options);
  size_t width = 1;
  for (const ops::TilePlace &tile : tiles.front())
    width = std::max({width, placeText(options, tile).size(),
                      rangeText(ops::segmentsOfTileRow(tile.row, shards, options.blockM)).size()});
  std::string text = title(options) + "\n";
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    std::string places, owners;
    for (const ops::TilePlace &tile : tiles[rank]) {
      places += fmt::format(" {:>{}}", placeText(options, tile), width);
      owners += fmt::format(" {:>{}}", rangeText(ops::segmentsOfTileRow(tile.row, shards, options.blockM)), width);
    }
    text +=
        fmt::format("rank {:>3}  tile{}\n          {:>4}{}\n", rank, places, options.gathers ? "from" : "for", owners);
  }
  return text;
}

std::string swizzleSvg(const SwizzleOptions &options) {
  constexpr double margin = 8, cellHeight = 16, fontSize = 8, left = 60, top = 44, nodeGap = 6;
  const ops::RowShards shards = shardsOf(options);
  const auto tiles = swizzledTiles(options);
  size_t characters = 1;
  for (const ops::TilePlace &tile : tiles.front())
    characters = std::max(characters, placeText(options, tile).size());
  const double cellWidth = 6 + 0.62 * fontSize * static_cast<double>(characters);
  Svg picture;
  picture.text(margin, margin + 11, 11, title(options));
  picture.text(margin, margin + 26, 9,
               fmt::format("colour: the rank {}; from left to right: the order in which a rank's blocks take its tiles",
                           options.gathers ? "whose rows they are" : "to which the rows go"));
  double y = top;
  for (uint32_t rank = 0; rank < options.ranks; ++rank, y += cellHeight) {
    if (rank > 0 && rank % (options.ranks / options.nodes) == 0)
      y += nodeGap;
    picture.text(margin, y + cellHeight - 5, 9, fmt::format("rank {}", rank));
    for (size_t step = 0; step < tiles[rank].size(); ++step) {
      const ops::TilePlace &tile = tiles[rank][step];
      const ops::Range owners = ops::segmentsOfTileRow(tile.row, shards, options.blockM);
      const int64_t firstRow = tile.row * options.blockM, endRow = std::min(firstRow + options.blockM, options.m);
      const std::string hint = fmt::format(
          "rank {}, step {}: tile {}, rows {} to {} {} rank{} {}", rank, step, placeText(options, tile), firstRow,
          endRow - 1, options.gathers ? "of" : "for", owners.first == owners.last ? "" : "s", rangeText(owners));
      const double x = left + static_cast<double>(step) * cellWidth;
      double part = x;
      for (int64_t owner = owners.first; owner <= owners.last; ++owner) {
        const int64_t first = std::max(firstRow, owner * shards.rowsPerRank),
                      end = std::min(endRow, (owner + 1) * shards.rowsPerRank);
        const double width =
            (cellWidth - 1) * static_cast<double>(end - first) / static_cast<double>(endRow - firstRow);
        picture.rectangle(part, y, width, cellHeight - 1, colourOf(static_cast<unsigned>(owner)), hint);
        part += width;
      }
      picture.text(x + cellWidth / 2, y + cellHeight - 5, fontSize, placeText(options, tile), "middle");
    }
  }
  y += nodeGap;
  picture.text(margin, y + cellHeight - 5, 9, options.gathers ? "rows of" : "rows for");
  for (uint32_t owner = 0; owner < options.ranks; ++owner) {
    const double x = left + owner * 26.0;
    picture.rectangle(x, y, 24, cellHeight - 1, colourOf(owner));
    picture.text(x + 12, y + cellHeight - 5, fontSize, fmt::format("{}", owner), "middle");
  }
  return picture.element();
}

} // namespace ditron::tool
