//===- FusedExpertParallelPlan.cpp - The words of plans of fused expert parallelism -------------------------------------===//
#include "ditron/ops/expert_parallel/FusedExpertParallelPlan.h"

#include "ditron/ops/plans/PlanWords.h"

#include <bit>
#include <fmt/format.h>

namespace ditron::ops {

namespace {

std::string textOf(const TileConfig &tile) {
  return fmt::format("{}x{}x{} warps {} stages {} group {}", tile.blockM, tile.blockN, tile.blockK, tile.numWarps,
                     tile.numStages, tile.groupM);
}

/// The tile that stands behind the first word, with its names.
Expected<TileConfig> readTile(PlanWords &words) {
  constexpr uint32_t mostWarps = 16, mostStages = 8, mostGroup = 1024;
  DITRON_ASSIGN_OR_RETURN(TileConfig tile, words.tile());
  DITRON_RETURN_IF_ERROR(words.number("warps", 1, mostWarps, tile.numWarps));
  DITRON_RETURN_IF_ERROR(words.number("stages", 1, mostStages, tile.numStages));
  DITRON_RETURN_IF_ERROR(words.number("group", 1, mostGroup, tile.groupM));
  DITRON_RETURN_IF_ERROR(tile.verify());
  return tile;
}

} // namespace

std::string FusedExpertParallelPlan::text() const {
  return fmt::format("fused {} senders {} unit {} pace {} combine {}", textOf(dispatchTile), senders, unit, pace,
                     textOf(combineTile));
}

Expected<FusedExpertParallelPlan> parseFusedExpertParallelPlan(std::string_view text) {
  constexpr uint32_t mostSenders = 1024, mostUnit = 128, mostPace = 1 << 20;
  const auto understood = [&](const PlanWords &words, std::string_view first) -> Status {
    if (words.first() == first && words.hasTile())
      return Status::ok();
    return invalidArgument(
        fmt::format("plan '{}' is not understood; one is written like '{}'", text, FusedExpertParallelPlan().text()));
  };
  const size_t second = std::min(text.find(" combine"), text.size());
  PlanWords dispatch(text.substr(0, second)), combine(text.substr(second));
  DITRON_RETURN_IF_ERROR(understood(dispatch, "fused"));
  DITRON_RETURN_IF_ERROR(understood(combine, "combine"));
  FusedExpertParallelPlan plan;
  DITRON_ASSIGN_OR_RETURN(plan.dispatchTile, readTile(dispatch));
  DITRON_RETURN_IF_ERROR(dispatch.number("senders", 1, mostSenders, plan.senders));
  DITRON_RETURN_IF_ERROR(dispatch.number("unit", 1, mostUnit, plan.unit));
  DITRON_RETURN_IF_ERROR(dispatch.number("pace", 1, mostPace, plan.pace));
  DITRON_RETURN_IF_ERROR(dispatch.finish());
  DITRON_ASSIGN_OR_RETURN(plan.combineTile, readTile(combine));
  DITRON_RETURN_IF_ERROR(combine.finish());
  if (!std::has_single_bit(plan.unit))
    return invalidArgument(fmt::format("plan '{}': unit {}; powers of two are accepted", text, plan.unit));
  if (plan.dispatchTile.blockM != plan.combineTile.blockM)
    return invalidArgument(
        fmt::format("plan '{}': tiles of {} and of {} rows; both products have the same tiles of rows", text,
                    plan.dispatchTile.blockM, plan.combineTile.blockM));
  return plan;
}

} // namespace ditron::ops
