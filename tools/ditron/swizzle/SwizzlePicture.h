//===- SwizzlePicture.h - The order of tiles of an overlapped operator ---------------------------------------*- C++ -*-===//
//
// What `ditron swizzle` draws: for each rank, in the order in which its blocks take them, the tiles of its product, and whose rows they have
// (DITRON, figures 11 to 15: a row for each rank, a column for each step). The orders are those by which the operators and
// predictions go (ditron/ops/CallSchedule.h); tests/e2e/tensor_parallel/swizzle_test.cpp holds them against running kernels.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_SWIZZLEPICTURE_H
#define DITRON_TOOLS_DITRON_SWIZZLEPICTURE_H

#include "ditron/ops/CallSchedule.h"

#include <string>

namespace ditron::tool {

struct SwizzleOptions {
  bool gathers = true; ///< AllGather+GEMM; else GEMM+ReduceScatter.
  int64_t m = 0;       ///< Rows of the product, of all ranks together.
  int64_t n = 0;       ///< Columns of one rank's product.
  uint32_t ranks = 8, nodes = 1;
  uint32_t blockM = 64, blockN = 64, groupM = 8;
  bool plain = false; ///< From the first row of tiles to the last on every rank, to compare with.
};

/// The tiles of each rank, in order.
std::vector<std::vector<ops::TilePlace>> swizzledTiles(const SwizzleOptions &options);

/// Two lines for each rank: numbers of the rows of tiles, with their columns where there are several; and the ranks with rows in them: whose they
/// are (AllGather+GEMM), or to whom they go.
std::string swizzleText(const SwizzleOptions &options);
/// The same as a picture: a cell for each tile with the colours of these ranks in the proportion of their rows, a row of cells for each rank.
std::string swizzleSvg(const SwizzleOptions &options);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_SWIZZLEPICTURE_H
