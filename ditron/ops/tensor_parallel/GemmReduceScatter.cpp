//===- GemmReduceScatter.cpp - out = reduce_scatter(A * B), overlapped ------------------------------------------------===//
#include "ditron/ops/tensor_parallel/GemmReduceScatter.h"

#include "ditron/ops/CallSchedule.h"
#include "ditron/ops/KernelLaunch.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {
constexpr std::string_view operation = "GemmReduceScatter";

bool isPushed(const std::optional<TensorParallelPlan> &plan) {
  return plan && plan->form == TensorParallelForm::Pushed;
}
} // namespace

Expected<GemmReduceScatter> GemmReduceScatter::create(runtime::World &world, runtime::KernelProvider &kernels,
                                                      const Options &options) {
  const DataType resultType = options.typeOfResult();
  DITRON_RETURN_IF_ERROR(verifyEpilogue(operation, options.dtype, resultType, options.epilogue, /*reduces=*/true));
  if (options.partialType && *options.partialType != resultType && *options.partialType != DataType::F32)
    return unsupported(fmt::format("{}: partial results of type {}; {} and fp32 are accepted", operation,
                                   ditron::toString(*options.partialType), ditron::toString(resultType)));
  Expected<TensorParallelChoice> choice =
      TensorParallelChoice::create(world, "gemm_rs",
                                   {options.dtype, options.weightOrder, options.precision, options.tile, options.plan,
                                    options.gpu, options.resultType, options.epilogue});
  if (!choice.isOk())
    return choice.status().withContext(operation);
  if (options.maxRows <= 0 || options.columns <= 0)
    return invalidArgument(fmt::format("{}: maxRows is {} and columns is {}; both must be positive", operation,
                                       options.maxRows, options.columns));
  DITRON_ASSIGN_OR_RETURN(const uint32_t nodes, nodesFor(operation, world, options.numNodes));

  GemmReduceScatter op;
  op.optionValues = options;
  op.optionValues.numNodes = nodes;
  op.world = &world;
  op.kernels = &kernels;
  op.choice = std::move(choice).value();
  op.planAgreement = PlanAgreement(world, operation);
  const TileConfig tile = op.tileFor(options.maxRows, 0);
  DITRON_RETURN_IF_ERROR(verifyTileDepth(operation, options.dtype, tile));
  DITRON_RETURN_IF_ERROR(verifyProduct(operation, options.maxRows, options.columns, 1, tile));
  DITRON_ASSIGN_OR_RETURN(
      op.words, CallWords::create(world, "gemm_rs", world.numRanks(), world.numNodes() > 1 ? world.numRanks() : 0));
  if (world.numNodes() > 1) {
    DITRON_ASSIGN_OR_RETURN(op.nodes,
                            NodeSums::create(world, "gemm_rs", op.partialType(), options.maxRows, options.columns));
  } else if (!isPushed(options.plan)) {
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
    if (!isPushed(options.plan)) {
      DITRON_ASSIGN_OR_RETURN(
          own.partial, world.rank(id).allocate(op.partialType(), options.maxRows * options.columns, "gemm_rs_partial"));
    }
  }
  DITRON_RETURN_IF_ERROR(op.allocateOneLaunch());
  DITRON_RETURN_IF_ERROR(op.makeCollective());
  DITRON_RETURN_IF_ERROR(op.makePushed());
  if (options.plan && isOneLaunch(options.plan->form) && *op.optionValues.oneLaunchRows < options.maxRows) {
    const runtime::DeviceAttributes &gpu = world.rank(world.localRanks().front()).attributes();
    if (const std::optional<OneLaunchTile> tile = options.plan->oneLaunchTile())
      DITRON_RETURN_IF_ERROR(
          tile->verifyPlaces(options.maxRows, options.columns, gpu.multiprocessors).withContext(operation));
    return unsupported(fmt::format("{}: '{}' takes at most {} rows here; maxRows is {}", operation,
                                   options.plan->text(), *op.optionValues.oneLaunchRows, options.maxRows));
  }
  op.keepPlans(world, operation, operandTypes(options.dtype, resultType, options.epilogue));
  return op;
}

Status GemmReduceScatter::allocateOneLaunch() {
  constexpr int64_t most = 128; // rows of a tile: what a rank gets is a part of one
  const PlanSizes others = otherSizes();
  if (optionValues.plan && optionValues.plan->oneLaunchTile())
    optionValues.oneLaunchTile = optionValues.plan->oneLaunchTile();
  isOneLaunchByTables = !optionValues.oneLaunchRows || optionValues.plan;
  if (isOneLaunchByTables)
    optionValues.oneLaunchRows = choice.oneLaunchRows(std::min(optionValues.maxRows, most), others);
  int64_t &rows = *optionValues.oneLaunchRows;
  DITRON_RETURN_IF_ERROR(
      planAgreement.begin(*world, fmt::format("one launch up to {} rows, pushed up to {}", rows,
                                              choice.mostRows(optionValues.maxRows, others, isPushed))));
  if (rows == 0)
    return Status::ok();
  DITRON_RETURN_IF_ERROR(world->requireOneNode(fmt::format("{}: one launch (oneLaunchRows)", operation)));
  if (rows < 0 || rows > most)
    return invalidArgument(fmt::format("{}: oneLaunchRows is {}; 0 to {} are accepted", operation, rows, most));
  if (optionValues.concurrentCalls == 0)
    return invalidArgument(fmt::format("{}: 0 concurrent calls; at least 1 is accepted", operation));
  if (optionValues.oneLaunchTile) {
    DITRON_RETURN_IF_ERROR(optionValues.oneLaunchTile->verify().withContext(operation));
    DITRON_RETURN_IF_ERROR(verifyTileDepth(operation, optionValues.dtype, optionValues.oneLaunchTile->tile));
  }
  oneLaunch = OneLaunch(*world, {.name = "gemm_rs",
                                 .dtype = optionValues.dtype,
                                 .resultType = optionValues.typeOfResult(),
                                 .partialType = partialType(),
                                 .epilogue = optionValues.epilogue,
                                 .columns = optionValues.columns,
                                 .weightOrder = optionValues.weightOrder,
                                 .precision = optionValues.precision,
                                 .concurrentCalls = optionValues.concurrentCalls,
                                 .tile = optionValues.oneLaunchTile,
                                 .tiles = choice.oneLaunchTiles(others)});
  rows = oneLaunch.rowsUpTo(std::min(rows, optionValues.maxRows));
  while (rows > 0 && !usesOneLaunch(rows))
    --rows;
  return rows > 0 ? oneLaunch.allocate(std::array{OneLaunchCalls{OneLaunchResult::Scattered, rows}}) : Status::ok();
}

bool GemmReduceScatter::usesOneLaunch(int64_t rows) const {
  if (rows > *optionValues.oneLaunchRows || (isOneLaunchByTables && !choice.saysOneLaunch(rows, otherSizes())))
    return false;
  const std::optional<OneLaunchTile> tile = oneLaunch.tileFor(rows);
  return tile && tile->tile.blockM >= rows; // one row of tiles
}

bool GemmReduceScatter::isSequence(int64_t rows) const {
  return exchange && rows % world->numRanks() == 0 &&
         scheduleOf(agreedPlanFor(rows), optionValues.schedule) == Schedule::Unfused;
}

Status GemmReduceScatter::makeCollective() {
  // Sums have the type of what is sent.
  if (world->numNodes() > 1 || partialType() != optionValues.typeOfResult())
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(exchange, collectiveOfUnfused(*world, *kernels, choice, optionValues, otherSizes(),
                                                        CollectiveKind::ReduceScatter, optionValues.typeOfResult(),
                                                        optionValues.columns));
  return Status::ok();
}

Status GemmReduceScatter::makePushed() {
  if (isPushed(optionValues.plan)) {
    DITRON_RETURN_IF_ERROR(world->requireOneNode(fmt::format("{}: '{}'", operation, optionValues.plan->text())));
    DITRON_RETURN_IF_ERROR(CallWords::verifyChunks(*world, operation, optionValues.plan->chunks));
  }
  if (world->numNodes() > 1 || choice.mostRows(optionValues.maxRows, otherSizes(), isPushed) == 0)
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(
      pushed,
      PushedProduct::create(*world, *kernels, pushedOptionsOf(optionValues, "gemm_rs", PushedResult::Scattered)));
  return Status::ok();
}

std::optional<TensorParallelPlan> GemmReduceScatter::agreedPlanFor(int64_t rows) const {
  return choice.agreedPlanFor(knownSizes(rows, optionValues.columns, optionValues.depth));
}

std::optional<TensorParallelPlan> GemmReduceScatter::pushedPlan(int64_t rows) const {
  if (!pushed || (optionValues.schedule == Schedule::Unfused && !optionValues.plan))
    return std::nullopt;
  std::optional<TensorParallelPlan> plan = agreedPlanFor(rows);
  if (!isPushed(plan))
    return std::nullopt;
  plan->tile = choice.tileOf(plan, rows, optionValues.columns, optionValues.depth);
  plan->chunks = pushed->chunksFor(rows, *plan->tile, plan->chunks);
  return plan;
}

Schedule GemmReduceScatter::scheduleFor(int64_t rows, int64_t depth) const {
  return scheduleOf(choice.planFor(knownSizes(rows, optionValues.columns, depth)), optionValues.schedule);
}

UnfusedProduct GemmReduceScatter::unfusedProduct(const ProductShape &shape, bool addsBias) const {
  return {.problem = addedProductOf(optionValues, shape, addsBias),
          .tile = choice.givenTileFor(shape.rows, optionValues.columns, shape.size)};
}

OverlappedProduct GemmReduceScatter::overlappedProduct(const runtime::Rank &rank, const ProductShape &shape) const {
  // Blocks that stay until the end leave places for the sums of nodes.
  const bool besideSums = nodes && scheduleFor(shape.rows, shape.size) == Schedule::Overlapped;
  return {.problem = unfusedProduct(shape).problem,
          .tile = tileFor(shape.rows, shape.size),
          .tailSplits = choice.tailSplitsFor(shape.rows, optionValues.columns, shape.size),
          .mostBlocks = rank.attributes().multiprocessors - (besideSums ? NodeSums::blocks(rank) : 0)};
}

std::string GemmReduceScatter::planText(int64_t rows, int64_t depth) const {
  TensorParallelPlan plan;
  if (usesOneLaunch(rows)) {
    plan.form = TensorParallelForm::OneLaunch;
    const OneLaunchTile tile = *oneLaunch.tileFor(rows);
    plan.tile = tile.tile;
    plan.splits = tile.splits;
    return plan.text();
  }
  if (const std::optional<TensorParallelPlan> each = pushedPlan(rows))
    return each->text();
  if (isSequence(rows))
    return fmt::format("{}, then {}", textOf(unfusedProduct({rows, depth}), *world),
                       exchange->planFor(rows / world->numRanks() * optionValues.columns).text());
  if (scheduleFor(rows, depth) == Schedule::Unfused)
    plan.form = TensorParallelForm::Unfused;
  plan.tile = tileFor(rows, depth);
  const runtime::Rank &rank = world->rank(world->localRanks().front());
  if (plan.form == TensorParallelForm::Overlapped)
    plan.tailSplits = overlappedProduct(rank, {rows, depth}).partsOn(rank);
  return plan.text();
}

std::string GemmReduceScatter::agreedPlan(const ProductShape &shape) const {
  // Ranks may have other depths, and so other tiles; those of one launch are numbered alike on all.
  return usesOneLaunch(shape.rows) || pushedPlan(shape.rows) ? planText(shape.rows, shape.size)
         : isSequence(shape.rows)                            ? "sequence"
                                                             : "segments";
}

Expected<ProductPlan::Parts> GemmReduceScatter::makeParts(runtime::Rank &rank, const OperandPointers &operands,
                                                          const ProductShape &shape) {
  const auto &[rows, depth, strides] = shape;
  const runtime::Pointer a = operands[Operand::A], b = operands[Operand::B], out = operands[Operand::Result];
  const OperandLaunch::Names factors =
      OperandLaunch::withEpilogue({{"a_ptr", Operand::A}, {"b_ptr", Operand::B}}, optionValues.epilogue);
  ProductPlan::Parts parts;
  if (usesOneLaunch(rows)) {
    const OneLaunchTile tile = *oneLaunch.tileFor(rows);
    DITRON_RETURN_IF_ERROR(verifyTile(shape, tile.tile));
    OperandLaunch::Names all = factors;
    all.emplace_back("out_ptr", Operand::Result);
    DITRON_ASSIGN_OR_RETURN(OperandLaunch whole,
                            OperandLaunch::create(*kernels, rank,
                                                  oneLaunch.call(rank, OneLaunchResult::Scattered, a, b, out,
                                                                 operands.epilogue(), rows, depth, strides, tile),
                                                  all));
    parts.sequence.launch(runtime::Lane::Main, whole.call.prepared());
    parts.launches.push_back(std::move(whole));
    return parts;
  }
  if (const std::optional<TensorParallelPlan> plan = pushedPlan(rows)) {
    DITRON_RETURN_IF_ERROR(verifyTile(shape, *plan->tile));
    return pushed->makeParts(rank, operands, shape, *plan->tile, plan->chunks);
  }
  const TileConfig tile = tileFor(rows, depth);
  DITRON_RETURN_IF_ERROR(verifyTile(shape, tile));
  if (isSequence(rows))
    return makeProductThenCollective(*kernels, rank, *exchange, gemmWorkspace(rank.id()), operands,
                                     {.product = unfusedProduct(shape, rank.id() == 0),
                                      .partial = ranks[rank.id()]->partial.pointer(),
                                      .elements = rows / rank.numRanks() * optionValues.columns,
                                      .resultRows = rows / rank.numRanks(),
                                      .resultStride = strides.c});
  const Schedule schedule = scheduleFor(rows, depth);
  DITRON_ASSIGN_OR_RETURN(OperandLaunch enter, OperandLaunch::create(*kernels, rank, words.enter(rank), {}));
  DITRON_ASSIGN_OR_RETURN(OperandLaunch gemm, overlappedProduct(rank, shape)
                                                  .launch(*kernels, rank, gemmCall(rank, operands, shape),
                                                          gemmWorkspace(rank.id()), factors));
  using runtime::Lane;
  parts.sequence = runtime::CallSequence(ranks[rank.id()]->side);
  parts.sequence.launch(Lane::Main, enter.call.prepared());
  if (schedule == Schedule::Unfused)
    parts.sequence.launch(Lane::Main, gemm.call.prepared());
  DITRON_RETURN_IF_ERROR(addExchange(rank, rows, parts.sequence));
  if (schedule == Schedule::Overlapped)
    parts.sequence.launch(Lane::Main, gemm.call.prepared());
  parts.launches.push_back(std::move(gemm));
  std::optional<KernelCall> reduce;
  if (nodes)
    reduce = nodes->resultCall(rank, words, ranks[rank.id()]->partial.pointer(), out, strides.c, rows);
  else if (RowShards(rows, rank.numRanks()).rowsOf(rank.id()) > 0)
    reduce = reduceCall(rank, out, shape);
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
    return nodes->appendExchange(*kernels, rank, words, ranks[rank.id()]->partial.pointer(), rows, copyName, sequence);
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

KernelCall GemmReduceScatter::gemmCall(const runtime::Rank &rank, const OperandPointers &operands,
                                       const ProductShape &shape) const {
  const int64_t m = shape.rows, n = optionValues.columns, k = shape.size;
  const TileConfig tile = tileFor(m, k);
  KernelCall call;
  call.source = "tensor_parallel_gemm";
  call.kernel = kernelName;
  call.numWarps = tile.numWarps;
  call.numStages = tile.numStages;
  call.arguments = {{"a_ptr", operands[Operand::A]},
                    {"b_ptr", operands[Operand::B]},
                    {"partial_ptr", ranks[rank.id()]->partial.pointer()},
                    {"counter_ptr", words.counters(rank.id())},
                    {"gate_ptr", words.gates(rank.id())},
                    {"M", m},
                    {"N", n},
                    {"K", k},
                    {"stride_a", shape.strides.a},
                    {"stride_b", shape.strides.b},
                    {"rows_per_rank", RowShards(m, rank.numRanks()).rowsPerRank},
                    {"rank", rank.id()},
                    {"WORLD_SIZE", rank.numRanks()},
                    {"NUM_NODES", optionValues.numNodes}};
  call.arguments.emplace_back("B_TRANSPOSED", optionValues.weightOrder == MatrixOrder::Transposed);
  appendTileArguments(call, tile, optionValues.precision);
  appendEpilogue(call, optionValues.epilogue, operands.epilogue(), rank.id() == 0 ? n : 0);
  return call;
}

KernelCall GemmReduceScatter::reduceCall(const runtime::Rank &rank, runtime::Pointer out,
                                         const ProductShape &shape) const {
  RowShards shards(shape.rows, rank.numRanks());
  int64_t ownRows = shards.rowsOf(rank.id());
  const ReduceTiles tiles = reduceTiles(ownRows, optionValues.columns, rank.attributes().multiprocessors);
  KernelCall call;
  call.source = "tensor_parallel_gemm";
  call.kernel = "reduce_segments";
  call.numWarps = tiles.numWarps;
  call.grid = {tiles.blocks, 1, 1};
  call.arguments = {
      {"partial_ptr", ranks[rank.id()]->partial.pointer() + shards.firstRowOf(rank.id()) * optionValues.columns},
      {"scatter_ptr", scatter.on(rank.id())},
      {"out_ptr", out},
      {"arrived_ptr", arrived.on(rank.id())},
      {"generation_ptr", words.generation(rank.id())},
      {"rows", ownRows},
      {"N", optionValues.columns},
      {"stride_out", shape.strides.c},
      {"rank", rank.id()},
      {"WORLD_SIZE", rank.numRanks()},
      {"BLOCK_M", tiles.blockM},
      {"BLOCK_N", tiles.blockN}};
  return call;
}

} // namespace ditron::ops
