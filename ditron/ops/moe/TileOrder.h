//===- TileOrder.h - Tiles of experts' rows in the order of the ranks whose tokens they have ---------------------*- C++ -*-===//
//
// Over several ranks the tokens of each come, and go, by themselves. A tile has rows of one expert, of tokens of perhaps several ranks: it can
// begin when the last of them are there, and is needed as soon as the first rank's sums are. The order is found on the device, since
// only it knows the rows (DITRON, appendix B). Device code: kernels/moe/tensor_parallel.py.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_MOE_TILEORDER_H
#define DITRON_OPS_MOE_TILEORDER_H

#include "ditron/ops/moe/GroupedGemm.h"
#include "ditron/ops/moe/Routing.h"

namespace ditron::ops {

/// A rank's rows of experts: where Routing has put them.
struct MoeRows {
  runtime::Pointer offsets, tiles, slotOfRow, rowOfSlot; ///< Routing's.
  runtime::Pointer slotWeights;                          ///< [tokens of all ranks, topK] fp32; null: ones.
  uint32_t experts = 0, topK = 0, blockM = 0;
  uint32_t firstRank = 0; ///< With whose tokens the order of the tokens began, as Routing was told.

  static MoeRows of(const Routing &routing, runtime::Pointer slotWeights, uint32_t firstRank = 0) {
    const RoutingOptions &options = routing.options();
    return {routing.offsets(),   routing.tiles(), routing.slotOfRow(),
            routing.rowOfSlot(), slotWeights,     options.experts,
            options.topK,        options.blockM,  firstRank};
  }
};

class TileOrder {
public:
  enum class By {
    Arrival,   ///< Own tokens first, then those of the next rank, and so on; by the last of a tile.
    Departure, ///< The next rank's first, the own last; by the first of a tile.
  };
  static Expected<TileOrder> create(runtime::Rank &rank, std::string_view name, int64_t maxRows, uint32_t experts,
                                    uint32_t blockM);

  /// Orders the tiles of a call with so many tokens of each rank, each rank's cut into `chunks` whose signals tiles wait for. `gates`, of
  /// Departure: [ranks] i64, by rank; those of ranks whose tokens have no rows are opened.
  Expected<PreparedCall> prepare(runtime::KernelProvider &kernels, runtime::Rank &rank, const MoeRows &rows, By by,
                                 int64_t tokensPerRank, uint32_t chunks, runtime::Pointer gates = {}) const;

  /// Like Routing::tiles.
  runtime::Pointer tiles() const { return ordered.pointer(); }
  /// [tiles, 2] int32: the first and the last chunk of each, counted from those of MoeRows::firstRank on.
  runtime::Pointer spans() const { return spansOf.pointer(); }
  /// [ranks] int32: tiles that have rows of each rank's tokens; of Departure.
  runtime::Pointer segmentTiles() const { return segments.pointer(); }

  /// The plan of a product of so many tokens of each rank: tiles in one group share no more turns than they must.
  static GemmPlan inOrder(GemmPlan plan, int64_t tokensPerRank, uint32_t topK);

private:
  int64_t mostTiles = 0;
  runtime::Buffer ordered, spansOf, segments;
};

} // namespace ditron::ops
#endif // DITRON_OPS_MOE_TILEORDER_H
