//===- AllGatherGemm.cpp - C = allgather(A) * B, overlapped -----------------------------------------------------------===//
#include "ditron/ops/AllGatherGemm.h"

#include "ditron/ops/CallSchedule.h"
#include "ditron/ops/KernelLaunch.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {
constexpr std::string_view operation = "AllGatherGemm";
}

Expected<AllGatherGemm> AllGatherGemm::create(runtime::World &world, runtime::KernelProvider &kernels,
                                              const Options &options) {
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, options.dtype));
  DITRON_RETURN_IF_ERROR(options.tile.verify().withContext(operation));
  if (options.maxRows <= 0 || options.depth <= 0)
    return invalidArgument(fmt::format("{}: maxRows is {} and depth is {}; both must be positive", operation,
                                       options.maxRows, options.depth));
  DITRON_RETURN_IF_ERROR(verifyProduct(operation, options.maxRows, 1, options.depth, options.tile));
  DITRON_ASSIGN_OR_RETURN(const uint32_t nodes, nodesFor(operation, world, options.numNodes));
  constexpr uint32_t mostChunks = 64;
  if (options.chunksPerRank == 0 || options.chunksPerRank > mostChunks)
    return invalidArgument(
        fmt::format("{}: {} chunks per rank; 1 to {} are accepted", operation, options.chunksPerRank, mostChunks));

  AllGatherGemm op;
  op.optionValues = options;
  op.optionValues.numNodes = nodes;
  op.world = &world;
  op.kernels = &kernels;
  DITRON_ASSIGN_OR_RETURN(op.words, CallWords::create(world, "ag_gemm", 0, world.numNodes() * options.chunksPerRank));
  DITRON_ASSIGN_OR_RETURN(op.workspace,
                          world.allocateSymmetric(options.dtype, options.maxRows * options.depth, "ag_gemm_workspace"));
  DITRON_ASSIGN_OR_RETURN(
      op.ready, world.allocateSymmetric(DataType::I64, world.numRanks() * options.chunksPerRank, "ag_gemm_ready"));
  op.sides.resize(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    DITRON_ASSIGN_OR_RETURN(op.sides[id], runtime::SideStream::create(world.rank(id), "ag_gemm"));
  }
  op.keepPlans(world, operation, options.dtype);
  if (options.oneLaunchRows != 0)
    DITRON_RETURN_IF_ERROR(op.allocateOneLaunch());
  return op;
}

Status AllGatherGemm::allocateOneLaunch() {
  DITRON_RETURN_IF_ERROR(world->requireOneNode(fmt::format("{}: one launch (oneLaunchRows)", operation)));
  int64_t &rows = optionValues.oneLaunchRows;
  if (rows < 0 || rows > OneLaunchGather::mostRows)
    return invalidArgument(
        fmt::format("{}: oneLaunchRows is {}; 0 to {} are accepted", operation, rows, OneLaunchGather::mostRows));
  if (optionValues.concurrentCalls == 0)
    return invalidArgument(fmt::format("{}: 0 concurrent calls; at least 1 is accepted", operation));
  if (optionValues.oneLaunchTile)
    DITRON_RETURN_IF_ERROR(optionValues.oneLaunchTile->verify().withContext(operation));
  rows = std::min(rows, optionValues.maxRows);
  OneLaunchOptions common;
  common.name = "ag_gemm";
  common.dtype = optionValues.dtype;
  common.weightOrder = optionValues.weightOrder;
  common.precision = optionValues.precision;
  common.concurrentCalls = optionValues.concurrentCalls;
  common.tile = optionValues.oneLaunchTile;
  DITRON_ASSIGN_OR_RETURN(oneLaunch, OneLaunchGather::create(*world, std::move(common), rows, optionValues.depth));
  return Status::ok();
}

Status AllGatherGemm::verifyShape(const ProductShape &shape) const {
  if (shape.rows < 1 || shape.rows > optionValues.maxRows)
    return invalidArgument(
        fmt::format("{}: {} rows; 1 to {} (maxRows) are accepted", operation, shape.rows, optionValues.maxRows));
  return verifyProduct(operation, shape.rows, shape.size, optionValues.depth, optionValues.tile);
}

Expected<ProductPlan::Parts> AllGatherGemm::makeParts(runtime::Rank &rank, const OperandPointers &operands,
                                                      const ProductShape &shape) {
  const auto [a, b, c] = operands;
  const auto [rows, columns] = shape;
  ProductPlan::Parts parts;
  if (rows <= optionValues.oneLaunchRows) {
    const std::optional<OneLaunchTile> tile = oneLaunch.tileFor(rows, columns);
    if (!tile)
      return unsupported(
          fmt::format("{}: {} rows and {} columns are too many tiles for one launch", operation, rows, columns));
    DITRON_RETURN_IF_ERROR(verifyProduct(operation, rows, columns, optionValues.depth, tile->tile));
    DITRON_ASSIGN_OR_RETURN(
        OperandLaunch whole,
        OperandLaunch::create(*kernels, rank, oneLaunch.call(rank, a, b, c, rows, columns, *tile),
                              {{"shard_ptr", Operand::A}, {"b_ptr", Operand::B}, {"c_ptr", Operand::Result}}));
    parts.sequence.launch(runtime::Lane::Main, whole.call.prepared());
    parts.launches.push_back(std::move(whole));
    return parts;
  }
  DITRON_ASSIGN_OR_RETURN(OperandLaunch enter,
                          OperandLaunch::create(*kernels, rank, enterCall(rank, a, rows), {{"shard_ptr", Operand::A}}));
  DITRON_ASSIGN_OR_RETURN(OperandLaunch gemm,
                          OperandLaunch::create(*kernels, rank, gemmCall(rank, b, c, rows, columns),
                                                {{"b_ptr", Operand::B}, {"c_ptr", Operand::Result}}));
  using runtime::Lane;
  parts.sequence = runtime::CallSequence(sides[rank.id()]);
  parts.sequence.launch(Lane::Main, enter.call.prepared());
  parts.sequence.join(Lane::Side);
  addPushes(rank, rows, parts.sequence);
  if (optionValues.schedule == Schedule::Overlapped)
    parts.sequence.launch(Lane::Main, gemm.call.prepared());
  parts.sequence.join(Lane::Main);
  if (optionValues.schedule == Schedule::Unfused)
    parts.sequence.launch(Lane::Main, gemm.call.prepared());
  parts.launches.push_back(std::move(enter));
  parts.launches.push_back(std::move(gemm));
  return parts;
}

void AllGatherGemm::addPushes(runtime::Rank &rank, int64_t rows, runtime::CallSequence &sequence) const {
  const int64_t depth = optionValues.depth;
  const uint32_t chunks = optionValues.chunksPerRank;
  std::optional<std::pair<uint32_t, uint32_t>> arrived;
  for (const Push &push :
       allGatherPushes(RowShards(rows, rank.numRanks()), rank.id(), rank.numRanks(), chunks, world->numNodes())) {
    // A chunk from another node goes on to the others of this one when it is here.
    if (const std::pair chunk(push.source, push.chunk); push.source != rank.id() && arrived != chunk) {
      arrived = chunk;
      sequence.signalWait(runtime::Lane::Side,
                          words.arrivals(rank.id()) + (world->nodeOf(push.source) * chunks + push.chunk),
                          runtime::Compare::GreaterEqual, 1);
    }
    if (push.rows > 0)
      sequence.copy(runtime::Lane::Side,
                    runtime::Copy::of(workspace.on(push.peer) + push.firstRow * depth,
                                      workspace.on(rank.id()) + push.firstRow * depth, push.rows * depth,
                                      fmt::format("{} to {}", copyName, push.peer)));
    // The signal's value is the generation word, copied behind the data: no host value is baked into a captured call.
    const runtime::Pointer signal = ready.on(push.peer) + (push.source * chunks + push.chunk);
    sequence.copy(runtime::Lane::Side,
                  runtime::Copy::of(signal, words.generation(rank.id()), 1, fmt::format("ag_ready to {}", push.peer)));
  }
}

KernelCall AllGatherGemm::enterCall(const runtime::Rank &rank, runtime::Pointer a, int64_t rows) const {
  const RowShards shards(rows, rank.numRanks());
  const int64_t depth = optionValues.depth;
  return words.enter(rank, ownSignals(rank.id()), optionValues.chunksPerRank,
                     {.destination = workspace.on(rank.id()) + shards.firstRowOf(rank.id()) * depth,
                      .source = a,
                      .elements = shards.rowsOf(rank.id()) * depth,
                      .elementsPerChunk = rowsPerChunk(shards, optionValues.chunksPerRank) * depth});
}

KernelCall AllGatherGemm::gemmCall(const runtime::Rank &rank, runtime::Pointer b, runtime::Pointer c, int64_t rows,
                                   int64_t columns) const {
  const TileConfig &tile = optionValues.tile;
  int64_t m = rows, n = columns, k = optionValues.depth;
  KernelCall call;
  call.source = "tensor_parallel_gemm";
  call.kernel = kernelName;
  call.numWarps = tile.numWarps;
  call.numStages = tile.numStages;
  call.grid = {blocksFor(rank, ceilDivide(m, tile.blockM) * ceilDivide(n, tile.blockN)), 1, 1};
  call.arguments = {{"a_ptr", workspace.on(rank.id())},
                    {"b_ptr", b},
                    {"c_ptr", c},
                    {"ready_ptr", ready.on(rank.id())},
                    {"generation_ptr", words.generation(rank.id())},
                    {"M", m},
                    {"N", n},
                    {"K", k},
                    {"rows_per_rank", RowShards(rows, rank.numRanks()).rowsPerRank},
                    {"rows_per_chunk", rowsPerChunk(RowShards(rows, rank.numRanks()), optionValues.chunksPerRank)},
                    {"rank", rank.id()},
                    {"WORLD_SIZE", rank.numRanks()},
                    {"NUM_NODES", optionValues.numNodes},
                    {"CHUNKS", optionValues.chunksPerRank}};
  call.arguments.emplace_back("B_TRANSPOSED", optionValues.weightOrder == MatrixOrder::Transposed);
  appendTileArguments(call, tile, optionValues.precision);
  return call;
}

} // namespace ditron::ops
