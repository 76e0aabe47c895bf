//===- OneLaunchGather.cpp - AllGather and product of few rows in the same launch -----------------------------------------===//
#include "ditron/ops/tensor_parallel/OneLaunchGather.h"

#include <bit>

namespace ditron::ops {

namespace {
/// Parts of a rank's rows, pushed by as many blocks; and elements that a block pushes at a time.
constexpr uint32_t pushes = 32, pushBlock = 2048;
} // namespace

GatheredRows::GatheredRows(DataType dtype, int64_t depth, bool hasScales) {
  constexpr int64_t multiple = 16; // elements
  const int64_t bytes = sizeOf(dtype), scaleBytes = sizeOf(DataType::F32);
  scaleOffset = ceilDivide(depth * bytes, scaleBytes) * scaleBytes;
  const int64_t rowBytes = hasScales ? scaleOffset + scaleBytes : depth * bytes;
  stride = ceilDivide(ceilDivide(rowBytes, bytes), multiple) * multiple;
  scaleStride = stride * bytes / scaleBytes;
}

CopiedRows::CopiedRows(int64_t rows, int64_t depth, int64_t strideFrom, int64_t strideTo) : rows(rows), columns(depth) {
  if (rows > 1 && strideFrom == depth && strideTo == depth) {
    this->rows = 1;
    columns = rows * depth;
  }
}

Expected<OneLaunchGather> OneLaunchGather::create(runtime::World &world, OneLaunchOptions options, int64_t rows,
                                                  int64_t depth) {
  OneLaunchGather op;
  op.world = &world;
  // A tile's copy takes in rows beyond the last: they must not be the other half's, where peers may be writing.
  int64_t tileRows = options.tile ? options.tile->tile.blockM : std::bit_ceil(uint64_t(std::max<int64_t>(rows, 16)));
  for (const OneLaunchRows &each : options.tiles)
    if (each.tile)
      tileRows = std::max<int64_t>(tileRows, each.tile->tile.blockM);
  op.halfRows = ceilDivide(rows, tileRows) * tileRows;
  op.depth = depth;
  op.layout = GatheredRows(options.dtype, depth, options.epilogue.scalesA != Scaling::None);
  DITRON_ASSIGN_OR_RETURN(
      op.workspace, world.allocateSymmetric(options.dtype, 2 * op.halfRows * op.layout.stride, options.name + "_rows"));
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
    DITRON_ASSIGN_OR_RETURN(own.splitParts,
                            rank.allocate(sumType(options.dtype), partElements, options.name + "_split_parts"));
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
                                 runtime::Pointer c, const EpilogueOperands &extras, int64_t rows, int64_t columns,
                                 const RowStrides &strides, const OneLaunchTile &shape) const {
  const uint32_t id = rank.id();
  const PerRank &own = ranks[id];
  const RowShards shards(rows, rank.numRanks());
  const CopiedRows pushed(shards.rowsOf(id), depth, strides.a, layout.stride);
  const bool hasScales = options.epilogue.scalesA != Scaling::None;
  const OneLaunchGrid grid = oneLaunchGrid(rank, options, shape, rows, columns, depth);
  KernelCall call;
  call.source = "one_launch";
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
                    {"stride_shard", strides.a},
                    {"stride_a", layout.stride},
                    {"stride_b", strides.b},
                    {"stride_c", strides.c},
                    {"push_rows", pushed.rows},
                    {"push_columns", pushed.columns},
                    {"rows_per_rank", shards.rowsPerRank},
                    {"half_rows", halfRows},
                    {"all_rows", 2 * halfRows},
                    {"pushes", pushes},
                    {"splits", grid.splits},
                    {"rank", id},
                    {"WORLD_SIZE", rank.numRanks()},
                    {"SPLIT", grid.splits > 1},
                    {"BLOCK", pushBlock}};
  appendOneLaunchTile(call, rank, options, shape);
  // Gathered, each row has a scale of its own.
  GemmEpilogue gathered = options.epilogue;
  gathered.scalesA = hasScales ? Scaling::Vector : Scaling::None;
  appendEpilogue(call, gathered, {layout.scaleOf(workspace.on(id)), extras.scalesB, extras.bias}, columns);
  appendActivation(call, options.epilogue);
  call.arguments.emplace_back("stride_a_scale", layout.scaleStride);
  call.arguments.emplace_back("shard_scale_ptr", orNone(hasScales, extras.scalesA));
  call.arguments.emplace_back("SHARD_SCALES", options.epilogue.scalesA == Scaling::Vector);
  return call;
}

} // namespace ditron::ops
