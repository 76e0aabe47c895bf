//===- PushedProduct.h - Products whose tiles go to their owners as they are computed ----------------------------*- C++ -*-===//
//
// GEMM+ReduceScatter and GEMM+AllReduce of many rows without copies of partial results: each rank owns a part of the rows. A block stores
// a tile of another rank's rows into that rank's memory as soon as it has computed it, beside the next one; tiles of the own rows come when the other ranks'
// parts of them have come, and the blocks that compute them add. The rows are cut into chunks, each a launch: while parts of one are on their
// way, the product goes on with the next two. With Everywhere the copy engine of each rank then fetches the sums from their owners.
//
// No kernel waits for another rank, but for the meeting that begins a call: streams do. So calls of any number of operators may be under way
// at once. The layout of memory and the order of tiles are those of kernels/pushed_product; docs/ops/gemm_all_reduce.md has the protocol.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_TENSOR_PARALLEL_PUSHEDPRODUCT_H
#define DITRON_OPS_TENSOR_PARALLEL_PUSHEDPRODUCT_H

#include "ditron/ops/CallWords.h"
#include "ditron/ops/PlannedProduct.h"

namespace ditron::ops {

/// Who gets the sums.
enum class PushedResult {
  Scattered,  ///< Each rank its rows (RowShards).
  Everywhere, ///< All ranks all rows.
};

struct PushedProductOptions {
  std::string name; ///< Begins the names of buffers in reports.
  PushedResult result = PushedResult::Scattered;
  DataType dtype = DataType::BF16, resultType = DataType::BF16;
  DataType partialType = DataType::BF16; ///< Of partial results on their way.
  GemmEpilogue epilogue = {};
  int64_t maxRows = 0, columns = 0;
  MatrixOrder weightOrder = MatrixOrder::Plain;
  MultiplyPrecision precision = MultiplyPrecision::Tf32;
};

/// Of an operator; `options` are its own, `name` begins the names of its buffers.
template <typename Options>
PushedProductOptions pushedOptionsOf(const Options &options, std::string_view name, PushedResult result) {
  return {.name = std::string(name),
          .result = result,
          .dtype = options.dtype,
          .resultType = options.typeOfResult(),
          .partialType = options.partialType.value_or(options.typeOfResult()),
          .epilogue = options.epilogue,
          .maxRows = options.maxRows,
          .columns = options.columns,
          .weightOrder = options.weightOrder,
          .precision = options.precision};
}

class PushedProduct {
public:
  static constexpr std::string_view kernelName = "pushed_product";
  static constexpr uint32_t mostRanks = 8;                   ///< The kernel has a tensor map for each.
  static constexpr std::string_view copyName = "sums_fetch"; ///< Prefix of the copies' names in traces.

  /// Allocates buffers, signals and streams on all ranks.
  static Expected<PushedProduct> create(runtime::World &world, runtime::KernelProvider &kernels,
                                        const PushedProductOptions &options);

  /// How many chunks a call has that should have `wanted`: each has rows of tiles, and there are words for so many.
  uint32_t chunksFor(int64_t rows, const TileConfig &tile, uint32_t wanted) const;
  /// One rank's call. All ranks' calls have the same rows, tile and chunks; depths and strides may differ.
  Expected<ProductPlan::Parts> makeParts(runtime::Rank &rank, const OperandPointers &operands,
                                         const ProductShape &shape, const TileConfig &tile, uint32_t chunks) const;

  /// Of symmetric memory of a rank.
  uint64_t bytes() const { return scatter.bytes() + (reduced.isValid() ? reduced.bytes() : 0); }
  /// An address that stands for operands.
  runtime::Pointer any(uint32_t rank) const { return scatter.on(rank); }

private:
  /// The rows of a call, cut: rows of tiles of all segments alike, counted from where a segment begins.
  struct Cut {
    RowShards segments;
    int64_t blockM, tileRows, chunkTileRows; ///< tileRows: of the longest segment.
    uint32_t count;                          ///< Of chunks.

    Cut(int64_t rows, uint32_t ranks, const TileConfig &tile, uint32_t chunks);
    int64_t tileRowsOf(uint32_t chunk) const { return std::min(chunkTileRows, tileRows - chunk * chunkTileRows); }
    /// Of a rank's segment in a chunk; of the matrix.
    int64_t firstRowOf(uint32_t owner, uint32_t chunk) const {
      return segments.firstRowOf(owner) + chunk * chunkTileRows * blockM;
    }
    int64_t rowsOf(uint32_t owner, uint32_t chunk) const;
  };
  /// What the index-th launch computes: tiles of the other ranks' segments of otherChunk, and then those of the own segment of ownChunk.
  struct Launch {
    uint32_t index = 0;
    int64_t otherTiles = 0;
    uint32_t otherChunk = 0;
    int64_t ownTiles = 0;
    uint32_t ownChunk = 0;
  };

  std::vector<Launch> launchesOf(uint32_t rank, const Cut &cut, const TileConfig &tile) const;
  KernelCall call(const runtime::Rank &rank, const OperandPointers &operands, const ProductShape &shape,
                  const TileConfig &tile, const Cut &cut, const Launch &launch) const;
  /// Waits until all ranks' parts of the own segment of a chunk, which has rows of it, have come.
  void addArrivals(const runtime::Rank &rank, uint32_t chunk, runtime::Lane lane,
                   runtime::CallSequence &sequence) const;
  void addFetches(const runtime::Rank &rank, const Cut &cut, int64_t strideOut, runtime::CallSequence &sequence) const;
  /// Gates of `words.arrivals`: a rank's part of the own segment of a chunk has come; an owner's sums of a chunk can be fetched.
  int64_t partGate(uint32_t source, uint32_t chunk) const { return source * mostChunks + chunk; }
  int64_t sumGate(uint32_t owner, uint32_t chunk) const { return (world->numRanks() + owner) * mostChunks + chunk; }

  PushedProductOptions options;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  uint32_t mostChunks = 1; ///< By the number of ranks alone: the same on all, whatever their tables say.
  CallWords words;
  runtime::SymmetricBuffer scatter; ///< [ranks, rows of a segment, columns]: slot s is filled by rank s.
  runtime::SymmetricBuffer reduced; ///< [rows of a segment, columns]: sums of the own segment; Everywhere only.
  std::vector<std::shared_ptr<runtime::SideStream>> sides; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_TENSOR_PARALLEL_PUSHEDPRODUCT_H
