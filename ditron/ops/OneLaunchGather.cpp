//===- OneLaunchGather.cpp - AllGather and product of few rows in the same launch -----------------------------------------===//
#include "ditron/ops/OneLaunchGather.h"

#include <bit>

namespace ditron::ops {

namespace {
/// Parts of a rank's rows, pushed by as many blocks; and elements that a block pushes at a time.
constexpr uint32_t pushes = 32, pushBlock = 2048;
} // namespace

Expected<OneLaunchGather> OneLaunchGather::create(runtime::World &world, OneLaunchOptions options, int64_t rows,
                                                  int64_t depth) {
  OneLaunchGather op;
  op.world = &world;
  // A tile's copy takes in rows beyond the last: they must not be the other half's, where peers may be writing.
  const int64_t tileRows =
      options.tile ? options.tile->tile.blockM : std::bit_ceil(uint64_t(std::max<int64_t>(rows, 16)));
  op.halfRows = ceilDivide(rows, tileRows) * tileRows;
  op.depth = depth;
  DITRON_ASSIGN_OR_RETURN(op.workspace,
                          world.allocateSymmetric(options.dtype, 2 * op.halfRows * depth, options.name + "_rows"));
  DITRON_ASSIGN_OR_RETURN(op.flags,
                          world.allocateSymmetric(DataType::I64, pushes * world.numRanks(), options.name + "_flags"));
  op.ranks.resize(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    runtime::Rank &rank = world.rank(id);
    PerRank &own = op.ranks[id];
    // Blocks that share tiles are at most as many as multiprocessors, whatever the columns.
    const int64_t partElements =
        options.tile ? rank.attributes().multiprocessors * options.tile->tile.blockM * options.tile->tile.blockN
                     : int64_t(rank.attributes().multiprocessors) * mostOneLaunchTileElements;
    DITRON_ASSIGN_OR_RETURN(own.splitParts, rank.allocate(DataType::F32, partElements, options.name + "_split_parts"));
    DITRON_ASSIGN_OR_RETURN(own.splitCounters,
                            rank.allocate(DataType::I32, mostOneLaunchTiles, options.name + "_split_counters"));
    DITRON_ASSIGN_OR_RETURN(own.call, rank.allocate(DataType::I64, 2, options.name + "_call"));
  }
  op.options = std::move(options);
  return op;
}

std::optional<OneLaunchTile> OneLaunchGather::tileFor(int64_t rows, int64_t columns) const {
  return rows <= halfRows ? oneLaunchTileFor(*world, options, rows, columns) : std::nullopt;
}

KernelCall OneLaunchGather::call(const runtime::Rank &rank, runtime::Pointer shard, runtime::Pointer b,
                                 runtime::Pointer c, int64_t rows, int64_t columns, const OneLaunchTile &shape) const {
  const uint32_t id = rank.id();
  const PerRank &own = ranks[id];
  const OneLaunchGrid grid = oneLaunchGrid(rank, options, shape, rows, columns, depth);
  KernelCall call;
  call.source = "gemm_all_reduce";
  call.kernel = kernelName;
  call.numWarps = shape.tile.numWarps;
  call.numStages = shape.tile.numStages;
  call.grid = {grid.blocks, 1, 1};
  call.arguments = {{"shard_ptr", shard},
                    {"a_ptr", workspace.on(id)},
                    {"push_ptr", workspace.on(id)},
                    {"b_ptr", b},
                    {"c_ptr", c},
                    {"split_ptr", own.splitParts.pointer()},
                    {"split_counter_ptr", own.splitCounters.pointer()},
                    {"flags_ptr", flags.on(id)},
                    {"call_ptr", own.call.pointer()},
                    {"generation_ptr", own.call.pointer()},
                    {"M", rows},
                    {"N", columns},
                    {"K", depth},
                    {"rows_per_rank", RowShards(rows, rank.numRanks()).rowsPerRank},
                    {"half_rows", halfRows},
                    {"all_rows", 2 * halfRows},
                    {"pushes", pushes},
                    {"splits", grid.splits},
                    {"rank", id},
                    {"WORLD_SIZE", rank.numRanks()},
                    {"SPLIT", grid.splits > 1},
                    {"BLOCK", pushBlock}};
  appendOneLaunchTile(call, rank, options, shape);
  return call;
}

} // namespace ditron::ops
