//===- TileOrder.cpp - Tiles of experts' rows in the order of the ranks whose tokens they have -----------------------------===//
#include "ditron/ops/moe/TileOrder.h"

#include <bit>
#include <fmt/format.h>

namespace ditron::ops {

Expected<TileOrder> TileOrder::create(runtime::Rank &rank, std::string_view name, int64_t maxRows, uint32_t experts,
                                      uint32_t blockM) {
  TileOrder order;
  order.mostTiles = std::max<int64_t>(mostTilesOf(maxRows, experts, blockM), 1);
  const auto allocate = [&](runtime::Buffer &buffer, int64_t count, std::string_view part) -> Status {
    DITRON_ASSIGN_OR_RETURN(buffer, rank.allocate(DataType::I32, count, fmt::format("{}_{}", name, part)));
    return Status::ok();
  };
  DITRON_RETURN_IF_ERROR(allocate(order.ordered, 1 + 2 * order.mostTiles, "ordered_tiles"));
  DITRON_RETURN_IF_ERROR(allocate(order.spansOf, 2 * order.mostTiles, "tile_spans"));
  DITRON_RETURN_IF_ERROR(allocate(order.segments, rank.numRanks(), "segment_tiles"));
  return order;
}

Expected<PreparedCall> TileOrder::prepare(runtime::KernelProvider &kernels, runtime::Rank &rank, const MoeRows &rows,
                                          By by, int64_t tokensPerRank, uint32_t chunks, runtime::Pointer gates) const {
  const uint32_t ranks = rank.numRanks(), turns = std::bit_ceil(ranks);
  const int64_t tiles = std::clamp<int64_t>(8192 / turns, 64, 1024);
  const int64_t most = std::max<int64_t>(mostTilesOf(tokensPerRank * ranks * rows.topK, rows.experts, rows.blockM), 1);
  KernelCall call;
  call.source = "moe/tensor_parallel";
  call.kernel = "order_tiles";
  call.numWarps = 8;
  call.grid = {static_cast<uint32_t>(ceilDivide(std::min(most, mostTiles), tiles)), 1, 1};
  call.arguments = {{"offsets_ptr", rows.offsets},
                    {"tiles_ptr", rows.tiles},
                    {"slot_of_row_ptr", rows.slotOfRow},
                    {"ordered_ptr", ordered.pointer()},
                    {"spans_ptr", spansOf.pointer()},
                    {"segment_tiles_ptr", orNone(by == By::Departure, segments.pointer())},
                    {"gate_ptr", orNone(by == By::Departure, gates)},
                    {"tokens_per_rank", tokensPerRank},
                    {"tokens_per_chunk", ceilDivide(tokensPerRank, chunks)},
                    {"first_rank", rows.firstRank},
                    {"rank", rank.id()},
                    {"WORLD_SIZE", ranks},
                    {"TURNS", turns},
                    {"CHUNKS", chunks},
                    {"TOP_K", rows.topK},
                    {"TILES", tiles},
                    {"BLOCK_M", rows.blockM},
                    {"ARRIVAL", by == By::Arrival}};
  return PreparedCall::create(kernels, rank, call);
}

GemmPlan TileOrder::inOrder(GemmPlan plan, int64_t tokensPerRank, uint32_t topK) {
  const int64_t tilesOfTurn = ceilDivide(tokensPerRank * topK, plan.tile.blockM);
  plan.tile.groupM = std::min(plan.tile.groupM, static_cast<uint32_t>(std::clamp<int64_t>(tilesOfTurn, 2, UINT32_MAX)));
  return plan;
}

} // namespace ditron::ops
