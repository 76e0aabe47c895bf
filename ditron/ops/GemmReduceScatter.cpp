//===- GemmReduceScatter.cpp - out = reduce_scatter(A * B), overlapped ------------------------------------------------===//
#include "ditron/ops/GemmReduceScatter.h"

#include "ditron/ops/CallSchedule.h"
#include "ditron/ops/KernelLaunch.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {
constexpr std::string_view operation = "GemmReduceScatter";
} // namespace

Expected<GemmReduceScatter> GemmReduceScatter::create(runtime::World &world, runtime::KernelProvider &kernels,
                                                      const Options &options) {
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, options.dtype));
  if (options.partialType && *options.partialType != options.dtype && *options.partialType != DataType::F32)
    return unsupported(fmt::format("{}: partial results of type {}; {} and fp32 are accepted", operation,
                                   ditron::toString(*options.partialType), ditron::toString(options.dtype)));
  DITRON_RETURN_IF_ERROR(options.tile.verify().withContext(operation));
  if (options.maxRows <= 0 || options.columns <= 0)
    return invalidArgument(fmt::format("{}: maxRows is {} and columns is {}; both must be positive", operation,
                                       options.maxRows, options.columns));
  DITRON_RETURN_IF_ERROR(verifyProduct(operation, options.maxRows, options.columns, 1, options.tile));
  DITRON_ASSIGN_OR_RETURN(const uint32_t nodes, nodesFor(operation, world, options.numNodes));

  GemmReduceScatter op;
  op.optionValues = options;
  op.optionValues.numNodes = nodes;
  op.world = &world;
  op.kernels = &kernels;
  DITRON_ASSIGN_OR_RETURN(op.words, CallWords::create(world, "gemm_rs", world.numRanks(), world.numRanks()));
  if (world.numNodes() > 1) {
    DITRON_ASSIGN_OR_RETURN(op.nodes,
                            NodeSums::create(world, "gemm_rs", op.partialType(), options.maxRows, options.columns));
  } else {
    int64_t slots = world.numRanks() * RowShards(options.maxRows, world.numRanks()).rowsPerRank;
    DITRON_ASSIGN_OR_RETURN(op.scatter,
                            world.allocateSymmetric(op.partialType(), slots * options.columns, "gemm_rs_scatter"));
    DITRON_ASSIGN_OR_RETURN(op.arrived, world.allocateSymmetric(DataType::I64, world.numRanks(), "gemm_rs_arrived"));
  }
  op.ranks.resize(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    op.ranks[id] = std::make_unique<PerRank>();
    PerRank &own = *op.ranks[id];
    DITRON_ASSIGN_OR_RETURN(own.side, runtime::SideStream::create(world.rank(id), "gemm_rs", op.nodes ? 2 : 1));
    DITRON_ASSIGN_OR_RETURN(
        own.partial, world.rank(id).allocate(op.partialType(), options.maxRows * options.columns, "gemm_rs_partial"));
  }
  if (options.oneLaunchRows != 0)
    DITRON_RETURN_IF_ERROR(op.allocateOneLaunch());
  op.keepPlans(world, operation, options.dtype);
  return op;
}

Status GemmReduceScatter::allocateOneLaunch() {
  DITRON_RETURN_IF_ERROR(world->requireOneNode(fmt::format("{}: one launch (oneLaunchRows)", operation)));
  constexpr int64_t most = 128; // rows of a tile: what a rank gets is a part of one
  int64_t &rows = optionValues.oneLaunchRows;
  if (rows < 0 || rows > most)
    return invalidArgument(fmt::format("{}: oneLaunchRows is {}; 0 to {} are accepted", operation, rows, most));
  if (optionValues.concurrentCalls == 0)
    return invalidArgument(fmt::format("{}: 0 concurrent calls; at least 1 is accepted", operation));
  if (optionValues.oneLaunchTile)
    DITRON_RETURN_IF_ERROR(optionValues.oneLaunchTile->verify().withContext(operation));
  oneLaunch = OneLaunch(*world, {.name = "gemm_rs",
                                 .dtype = optionValues.dtype,
                                 .partialType = partialType(),
                                 .columns = optionValues.columns,
                                 .weightOrder = optionValues.weightOrder,
                                 .precision = optionValues.precision,
                                 .concurrentCalls = optionValues.concurrentCalls,
                                 .tile = optionValues.oneLaunchTile});
  rows = oneLaunch.rowsUpTo(std::min(rows, optionValues.maxRows));
  if (optionValues.oneLaunchTile)
    rows = std::min<int64_t>(rows, optionValues.oneLaunchTile->tile.blockM);
  return rows > 0 ? oneLaunch.allocate(rows, /*sums=*/false) : Status::ok();
}

Status GemmReduceScatter::verifyShape(const ProductShape &shape) const {
  if (shape.rows < 1 || shape.rows > optionValues.maxRows)
    return invalidArgument(
        fmt::format("{}: {} rows; 1 to {} (maxRows) are accepted", operation, shape.rows, optionValues.maxRows));
  return verifyProduct(operation, shape.rows, optionValues.columns, shape.size, optionValues.tile);
}

Expected<ProductPlan::Parts> GemmReduceScatter::makeParts(runtime::Rank &rank, const OperandPointers &operands,
                                                          const ProductShape &shape) {
  const auto [a, b, out] = operands;
  const auto [rows, depth] = shape;
  ProductPlan::Parts parts;
  if (rows <= optionValues.oneLaunchRows) {
    const OneLaunchTile tile = *oneLaunch.tileFor(rows);
    DITRON_RETURN_IF_ERROR(verifyProduct(operation, rows, optionValues.columns, depth, tile.tile));
    DITRON_ASSIGN_OR_RETURN(
        OperandLaunch whole,
        OperandLaunch::create(*kernels, rank,
                              oneLaunch.call(rank, OneLaunchResult::Scattered, a, b, out, rows, depth, tile),
                              {{"a_ptr", Operand::A}, {"b_ptr", Operand::B}, {"out_ptr", Operand::Result}}));
    parts.sequence.launch(runtime::Lane::Main, whole.call.prepared());
    parts.launches.push_back(std::move(whole));
    return parts;
  }
  DITRON_ASSIGN_OR_RETURN(OperandLaunch enter, OperandLaunch::create(*kernels, rank, words.enter(rank), {}));
  DITRON_ASSIGN_OR_RETURN(OperandLaunch gemm, OperandLaunch::create(*kernels, rank, gemmCall(rank, a, b, rows, depth),
                                                                    {{"a_ptr", Operand::A}, {"b_ptr", Operand::B}}));
  using runtime::Lane;
  parts.sequence = runtime::CallSequence(ranks[rank.id()]->side);
  parts.sequence.launch(Lane::Main, enter.call.prepared());
  if (optionValues.schedule == Schedule::Unfused)
    parts.sequence.launch(Lane::Main, gemm.call.prepared());
  DITRON_RETURN_IF_ERROR(addExchange(rank, rows, parts.sequence));
  if (optionValues.schedule == Schedule::Overlapped)
    parts.sequence.launch(Lane::Main, gemm.call.prepared());
  parts.launches.push_back(std::move(gemm));
  std::optional<KernelCall> reduce;
  if (nodes)
    reduce = nodes->resultCall(rank, words, {ranks[rank.id()]->partial.pointer(), out}, rows);
  else if (RowShards(rows, rank.numRanks()).rowsOf(rank.id()) > 0)
    reduce = reduceCall(rank, out, rows);
  // A kernel that waits for other nodes may fill the GPU: the sums that they wait for come before it.
  if (nodes)
    parts.sequence.join(Lane::Main);
  if (reduce) {
    DITRON_ASSIGN_OR_RETURN(OperandLaunch last,
                            OperandLaunch::create(*kernels, rank, *reduce, {{"out_ptr", Operand::Result}}));
    parts.sequence.launch(Lane::Main, last.call.prepared());
    parts.launches.push_back(std::move(last));
  }
  if (!nodes)
    parts.sequence.join(Lane::Main);
  return parts;
}

Status GemmReduceScatter::addExchange(runtime::Rank &rank, int64_t rows, runtime::CallSequence &sequence) const {
  sequence.join(runtime::Lane::Side);
  if (nodes) {
    sequence.join(runtime::Lane::SecondSide);
    return nodes->appendExchange(*kernels, rank, words, {ranks[rank.id()]->partial.pointer(), {}}, rows, copyName,
                                 sequence);
  }
  const int64_t columns = optionValues.columns;
  // The own segment is not among them: the reduction reads it from the partial results.
  for (const auto &[source, segment, chunk, firstRow, count] :
       reduceScatterPushes(RowShards(rows, rank.numRanks()), rank.id(), rank.numRanks())) {
    const runtime::Pointer own = ranks[rank.id()]->partial.pointer() + firstRow * columns;
    // A segment to its owner, when its gate is open, and the owner's signal.
    sequence.signalWait(runtime::Lane::Side, words.gates(rank.id()) + segment, runtime::Compare::GreaterEqual, 1);
    sequence.copy(runtime::Lane::Side, runtime::Copy::of(scatter.on(segment) + rank.id() * count * columns, own,
                                                         count * columns, fmt::format("{} to {}", copyName, segment)));
    sequence.copy(runtime::Lane::Side, runtime::Copy::of(arrived.on(segment) + rank.id(), words.generation(rank.id()),
                                                         1, fmt::format("rs_arrived to {}", segment)));
  }
  return Status::ok();
}

KernelCall GemmReduceScatter::gemmCall(const runtime::Rank &rank, runtime::Pointer a, runtime::Pointer b, int64_t rows,
                                       int64_t depth) const {
  const TileConfig &tile = optionValues.tile;
  int64_t m = rows, n = optionValues.columns, k = depth;
  KernelCall call;
  call.source = "tensor_parallel_gemm";
  call.kernel = kernelName;
  call.numWarps = tile.numWarps;
  call.numStages = tile.numStages;
  // Blocks that stay until the end leave places for the sums of nodes.
  const uint32_t most = rank.attributes().multiprocessors -
                        (nodes && optionValues.schedule == Schedule::Overlapped ? NodeSums::blocks(rank) : 0);
  const int64_t tiles = ceilDivide(m, tile.blockM) * ceilDivide(n, tile.blockN);
  call.grid = {blocksFor(rank, tiles, most), 1, 1};
  call.arguments = {{"a_ptr", a},
                    {"b_ptr", b},
                    {"partial_ptr", ranks[rank.id()]->partial.pointer()},
                    {"counter_ptr", words.counters(rank.id())},
                    {"gate_ptr", words.gates(rank.id())},
                    {"M", m},
                    {"N", n},
                    {"K", k},
                    {"rows_per_rank", RowShards(rows, rank.numRanks()).rowsPerRank},
                    {"rank", rank.id()},
                    {"WORLD_SIZE", rank.numRanks()},
                    {"NUM_NODES", optionValues.numNodes}};
  call.arguments.emplace_back("B_TRANSPOSED", optionValues.weightOrder == MatrixOrder::Transposed);
  appendTileArguments(call, tile, optionValues.precision);
  return call;
}

KernelCall GemmReduceScatter::reduceCall(const runtime::Rank &rank, runtime::Pointer out, int64_t rows) const {
  RowShards shards(rows, rank.numRanks());
  int64_t ownRows = shards.rowsOf(rank.id());
  KernelCall call;
  call.source = "tensor_parallel_gemm";
  call.kernel = "reduce_segments";
  call.grid = {static_cast<uint32_t>(ceilDivide(ownRows, reduceBlockM)),
               static_cast<uint32_t>(ceilDivide(optionValues.columns, reduceBlockN)), 1};
  call.arguments = {
      {"partial_ptr", ranks[rank.id()]->partial.pointer() + shards.firstRowOf(rank.id()) * optionValues.columns},
      {"scatter_ptr", scatter.on(rank.id())},
      {"out_ptr", out},
      {"arrived_ptr", arrived.on(rank.id())},
      {"generation_ptr", words.generation(rank.id())},
      {"rows", ownRows},
      {"N", optionValues.columns},
      {"rank", rank.id()},
      {"WORLD_SIZE", rank.numRanks()},
      {"BLOCK_M", reduceBlockM},
      {"BLOCK_N", reduceBlockN}};
  return call;
}

} // namespace ditron::ops
