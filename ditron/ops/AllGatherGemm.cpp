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
  DITRON_RETURN_IF_ERROR(world.requireOneNode(operation));
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, options.dtype));
  DITRON_RETURN_IF_ERROR(options.tile.verify().withContext(operation));
  if (options.maxRows <= 0 || options.depth <= 0)
    return invalidArgument(fmt::format("{}: maxRows is {} and depth is {}; both must be positive", operation,
                                       options.maxRows, options.depth));
  DITRON_RETURN_IF_ERROR(verifyProduct(operation, options.maxRows, 1, options.depth, options.tile));
  DITRON_RETURN_IF_ERROR(verifyNodes(operation, world.numRanks(), options.numNodes));
  constexpr uint32_t mostChunks = 64;
  if (options.chunksPerRank == 0 || options.chunksPerRank > mostChunks)
    return invalidArgument(
        fmt::format("{}: {} chunks per rank; 1 to {} are accepted", operation, options.chunksPerRank, mostChunks));

  AllGatherGemm op;
  op.optionValues = options;
  op.world = &world;
  op.kernels = &kernels;
  DITRON_ASSIGN_OR_RETURN(op.words, CallWords::create(world, "ag_gemm", 0));
  DITRON_ASSIGN_OR_RETURN(op.workspace,
                          world.allocateSymmetric(options.dtype, options.maxRows * options.depth, "ag_gemm_workspace"));
  DITRON_ASSIGN_OR_RETURN(
      op.ready, world.allocateSymmetric(DataType::I64, world.numRanks() * options.chunksPerRank, "ag_gemm_ready"));
  op.ranks.resize(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    op.ranks[id] = std::make_unique<PerRank>();
    DITRON_ASSIGN_OR_RETURN(op.ranks[id]->side, runtime::SideStream::create(world.rank(id), "ag_gemm"));
  }
  if (options.oneLaunchRows != 0)
    DITRON_RETURN_IF_ERROR(op.allocateOneLaunch());
  return op;
}

Status AllGatherGemm::allocateOneLaunch() {
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

Status AllGatherGemm::verifyShape(int64_t rows, int64_t columns) const {
  if (rows < 1 || rows > optionValues.maxRows)
    return invalidArgument(
        fmt::format("{}: {} rows; 1 to {} (maxRows) are accepted", operation, rows, optionValues.maxRows));
  return verifyProduct(operation, rows, columns, optionValues.depth, optionValues.tile);
}

struct AllGatherGemm::Plan::State {
  DataType dtype = DataType::BF16;
  PreparedCall enter, gemm;     ///< The same where one launch is the whole call.
  uint32_t a = 0, b = 0, c = 0; ///< Parameters: `a` of `enter`, the others of `gemm`.
  runtime::CallSequence sequence;
};

Expected<AllGatherGemm::Plan> AllGatherGemm::plan(runtime::Rank &rank, int64_t rows, int64_t columns) {
  DITRON_RETURN_IF_ERROR(verifyShape(rows, columns));
  // The workspace stands for the operands: only their type and alignment matter here, and all buffers are aligned alike.
  const runtime::Pointer any = workspace.on(rank.id());
  DITRON_ASSIGN_OR_RETURN(Plan plan, makePlan(rank, any, any, any, rows, columns));
  DITRON_RETURN_IF_ERROR(plan.state->sequence.record(rank).withContext(operation));
  return plan;
}

Expected<AllGatherGemm::Plan> AllGatherGemm::makePlan(runtime::Rank &rank, runtime::Pointer a, runtime::Pointer b,
                                                      runtime::Pointer c, int64_t rows, int64_t columns) {
  Plan plan;
  plan.state = std::make_shared<Plan::State>();
  Plan::State &state = *plan.state;
  state.dtype = optionValues.dtype;
  if (rows <= optionValues.oneLaunchRows) {
    const std::optional<OneLaunchTile> tile = oneLaunch.tileFor(rows, columns);
    if (!tile)
      return unsupported(
          fmt::format("{}: {} rows and {} columns are too many tiles for one launch", operation, rows, columns));
    DITRON_RETURN_IF_ERROR(verifyProduct(operation, rows, columns, optionValues.depth, tile->tile));
    DITRON_ASSIGN_OR_RETURN(state.gemm,
                            PreparedCall::create(*kernels, rank, oneLaunch.call(rank, a, b, c, rows, columns, *tile)));
    DITRON_ASSIGN_OR_RETURN(state.a, state.gemm.pointerParameter("shard_ptr"));
    DITRON_ASSIGN_OR_RETURN(state.b, state.gemm.pointerParameter("b_ptr"));
    DITRON_ASSIGN_OR_RETURN(state.c, state.gemm.pointerParameter("c_ptr"));
    state.enter = state.gemm;
    state.sequence.launch(runtime::Lane::Main, state.gemm.prepared());
    return plan;
  }
  DITRON_ASSIGN_OR_RETURN(state.enter, PreparedCall::create(*kernels, rank, enterCall(rank, a, rows)));
  DITRON_ASSIGN_OR_RETURN(state.a, state.enter.pointerParameter("shard_ptr"));
  DITRON_ASSIGN_OR_RETURN(state.gemm, PreparedCall::create(*kernels, rank, gemmCall(rank, b, c, rows, columns)));
  DITRON_ASSIGN_OR_RETURN(state.b, state.gemm.pointerParameter("b_ptr"));
  DITRON_ASSIGN_OR_RETURN(state.c, state.gemm.pointerParameter("c_ptr"));
  using runtime::Lane;
  state.sequence = runtime::CallSequence(ranks[rank.id()]->side);
  state.sequence.launch(Lane::Main, state.enter.prepared());
  state.sequence.join(Lane::Side);
  addPushes(rank, rows, state.sequence);
  if (optionValues.schedule == Schedule::Overlapped)
    state.sequence.launch(Lane::Main, state.gemm.prepared());
  state.sequence.join(Lane::Main);
  if (optionValues.schedule == Schedule::Unfused)
    state.sequence.launch(Lane::Main, state.gemm.prepared());
  return plan;
}

Status AllGatherGemm::prepare(runtime::Rank &rank, int64_t rows, int64_t columns) {
  DITRON_ASSIGN_OR_RETURN(Plan made, plan(rank, rows, columns));
  ranks[rank.id()]->plans.keep({rows, columns, planAlignment, planAlignment, planAlignment}, std::move(made));
  return Status::ok();
}

Status AllGatherGemm::enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer a, runtime::Pointer b,
                              runtime::Pointer c, int64_t rows, int64_t columns) {
  DITRON_RETURN_IF_ERROR(verifyShape(rows, columns));
  for (auto [name, pointer] : {std::pair("a", a), std::pair("b", b), std::pair("c", c)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, optionValues.dtype));
  DITRON_ASSIGN_OR_RETURN(Plan * found,
                          ranks[rank.id()]->plans.find(operation, stream,
                                                       {rows, columns, alignmentOf(a), alignmentOf(b), alignmentOf(c)},
                                                       [&] { return makePlan(rank, a, b, c, rows, columns); }));
  return found->enqueue(stream, a, b, c);
}

Status AllGatherGemm::Plan::enqueue(runtime::Stream &stream, runtime::Pointer a, runtime::Pointer b,
                                    runtime::Pointer c) {
  for (auto [name, pointer] : {std::pair("a", a), std::pair("b", b), std::pair("c", c)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, state->dtype));
  DITRON_RETURN_IF_ERROR(state->enter.setPointer(state->a, a));
  DITRON_RETURN_IF_ERROR(state->gemm.setPointer(state->b, b));
  DITRON_RETURN_IF_ERROR(state->gemm.setPointer(state->c, c));
  return state->sequence.enqueue(stream);
}

void AllGatherGemm::addPushes(runtime::Rank &rank, int64_t rows, runtime::CallSequence &sequence) const {
  const RowShards shards(rows, rank.numRanks());
  const int64_t depth = optionValues.depth;
  for (const Push &push : allGatherPushes(shards, rank.id(), rank.numRanks(), optionValues.chunksPerRank)) {
    if (push.rows > 0)
      sequence.copy(runtime::Lane::Side,
                    runtime::Copy::of(workspace.on(push.peer) + push.firstRow * depth,
                                      workspace.on(rank.id()) + push.firstRow * depth, push.rows * depth,
                                      fmt::format("{} to {}", copyName, push.peer)));
    // The signal's value is the generation word, copied behind the data: no host value is baked into a captured call.
    const runtime::Pointer signal = ready.on(push.peer) + (rank.id() * optionValues.chunksPerRank + push.chunk);
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
                      .elements = shards.rowsOf(rank.id()) * depth});
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
