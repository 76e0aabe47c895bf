//===- AllGatherGemm.cpp - C = allgather(A) * B, overlapped -----------------------------------------------------------===//
#include "ditron/ops/tensor_parallel/AllGatherGemm.h"

#include "ditron/ops/CallSchedule.h"
#include "ditron/ops/KernelLaunch.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {
constexpr std::string_view operation = "AllGatherGemm";
}

Expected<AllGatherGemm> AllGatherGemm::create(runtime::World &world, runtime::KernelProvider &kernels,
                                              const Options &options) {
  DITRON_RETURN_IF_ERROR(
      verifyEpilogue(operation, options.dtype, options.typeOfResult(), options.epilogue, /*reduces=*/false));
  Expected<TensorParallelChoice> choice =
      TensorParallelChoice::create(world, "ag_gemm",
                                   {options.dtype, options.weightOrder, options.precision, options.tile, options.plan,
                                    options.gpu, options.resultType, options.epilogue});
  if (!choice.isOk())
    return choice.status().withContext(operation);
  if (options.maxRows <= 0 || options.depth <= 0)
    return invalidArgument(fmt::format("{}: maxRows is {} and depth is {}; both must be positive", operation,
                                       options.maxRows, options.depth));
  DITRON_ASSIGN_OR_RETURN(const uint32_t nodes, nodesFor(operation, world, options.numNodes));
  constexpr uint32_t mostChunks = 64;
  if (options.chunksPerRank > mostChunks)
    return invalidArgument(fmt::format("{}: {} chunks per rank; 1 to {} are accepted, or 0 for what the tables say",
                                       operation, options.chunksPerRank, mostChunks));

  AllGatherGemm op;
  op.optionValues = options;
  op.optionValues.numNodes = nodes;
  op.world = &world;
  op.kernels = &kernels;
  op.choice = std::move(choice).value();
  op.planAgreement = PlanAgreement(world, operation);
  op.chooseOptions();
  const TileConfig tile = op.tileFor(options.maxRows, 0);
  DITRON_RETURN_IF_ERROR(verifyTileDepth(operation, options.dtype, tile));
  DITRON_RETURN_IF_ERROR(verifyProduct(operation, options.maxRows, 1, options.depth, tile));
  const uint32_t chunks = op.optionValues.chunksPerRank;
  DITRON_RETURN_IF_ERROR(op.planAgreement.begin(
      world, fmt::format("one launch up to {} rows, {} chunks of a shard", *op.optionValues.oneLaunchRows, chunks)));
  DITRON_ASSIGN_OR_RETURN(op.words,
                          CallWords::create(world, "ag_gemm", 0, world.numNodes() > 1 ? world.numNodes() * chunks : 0));
  op.layout = GatheredRows(options.dtype, options.depth, options.epilogue.scalesA != Scaling::None);
  DITRON_ASSIGN_OR_RETURN(
      op.workspace, world.allocateSymmetric(options.dtype, options.maxRows * op.layout.stride, "ag_gemm_workspace"));
  DITRON_ASSIGN_OR_RETURN(op.ready, world.allocateSymmetric(DataType::I64, world.numRanks() * chunks, "ag_gemm_ready"));
  op.sides.resize(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    DITRON_ASSIGN_OR_RETURN(op.sides[id], runtime::SideStream::create(world.rank(id), "ag_gemm"));
  }
  op.keepPlans(world, operation, operandTypes(options.dtype, options.typeOfResult(), options.epilogue));
  if (*op.optionValues.oneLaunchRows != 0)
    DITRON_RETURN_IF_ERROR(op.allocateOneLaunch());
  DITRON_RETURN_IF_ERROR(op.makeCollective());
  if (options.plan && isOneLaunch(options.plan->form) && *op.optionValues.oneLaunchRows < options.maxRows)
    return unsupported(fmt::format("{}: '{}' takes at most {} rows here; maxRows is {}", operation,
                                   options.plan->text(), *op.optionValues.oneLaunchRows, options.maxRows));
  return op;
}

void AllGatherGemm::chooseOptions() {
  const std::optional<TensorParallelPlan> largest =
      choice.planFor({{"m", optionValues.maxRows}, {"k", optionValues.depth}});
  if (optionValues.chunksPerRank == 0 || (optionValues.plan && optionValues.plan->chunks))
    optionValues.chunksPerRank = largest && largest->chunks ? largest->chunks : 1;
  if (optionValues.plan && optionValues.plan->oneLaunchTile())
    optionValues.oneLaunchTile = optionValues.plan->oneLaunchTile();
  isOneLaunchByTables = !optionValues.oneLaunchRows || optionValues.plan;
  if (isOneLaunchByTables)
    optionValues.oneLaunchRows =
        choice.oneLaunchRows(std::min<int64_t>(optionValues.maxRows, OneLaunchGather::mostRows), otherSizes());
}

bool AllGatherGemm::usesOneLaunch(int64_t rows) const {
  return rows <= *optionValues.oneLaunchRows && (!isOneLaunchByTables || choice.saysOneLaunch(rows, otherSizes()));
}

Schedule AllGatherGemm::scheduleFor(int64_t rows, int64_t columns) const {
  return scheduleOf(choice.planFor({{"m", rows}, {"n", columns}, {"k", optionValues.depth}}), optionValues.schedule);
}

bool AllGatherGemm::isSequence(int64_t rows) const {
  if (!exchange || rows % world->numRanks() != 0 ||
      rows / world->numRanks() * optionValues.depth > exchange->options().maxElements)
    return false;
  return scheduleOf(choice.agreedPlanFor(knownSizes(rows, optionValues.columns, optionValues.depth)),
                    optionValues.schedule) == Schedule::Unfused;
}

Status AllGatherGemm::makeCollective() {
  // Scales go with the rows, which the collective knows nothing of.
  if (world->numNodes() > 1 || optionValues.epilogue.scalesA != Scaling::None)
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(exchange,
                          collectiveOfUnfused(*world, *kernels, choice, optionValues, {{"k", optionValues.depth}},
                                              CollectiveKind::AllGather, optionValues.dtype, optionValues.depth));
  return Status::ok();
}

UnfusedProduct AllGatherGemm::unfusedProduct(const ProductShape &shape) const {
  return {.problem = {.m = shape.rows,
                      .n = shape.size,
                      .k = optionValues.depth,
                      .dtype = optionValues.dtype,
                      .resultType = optionValues.typeOfResult(),
                      .order = optionValues.weightOrder,
                      .strides = {optionValues.depth, shape.strides.b, shape.strides.c},
                      .precision = optionValues.precision,
                      .epilogue = optionValues.epilogue},
          .tile = choice.givenTileFor(shape.rows, shape.size, optionValues.depth)};
}

OverlappedProduct AllGatherGemm::overlappedProduct(const runtime::Rank &rank, const ProductShape &shape) const {
  return {.problem = unfusedProduct(shape).problem,
          .tile = tileFor(shape.rows, shape.size),
          .tailSplits = choice.tailSplitsFor(shape.rows, shape.size, optionValues.depth),
          .mostBlocks = rank.attributes().multiprocessors};
}

std::string AllGatherGemm::planText(int64_t rows, int64_t columns) const {
  TensorParallelPlan plan;
  if (usesOneLaunch(rows)) {
    plan.form = TensorParallelForm::OneLaunch;
    if (const std::optional<OneLaunchTile> tile = oneLaunch.tileFor(rows, columns)) {
      plan.tile = tile->tile;
      plan.splits = tile->splits;
    }
    return plan.text();
  }
  if (isSequence(rows))
    return fmt::format("{}, behind {}", textOf(unfusedProduct({rows, columns}), *world),
                       exchange->planFor(rows / world->numRanks() * optionValues.depth).text());
  if (scheduleFor(rows, columns) == Schedule::Unfused)
    plan.form = TensorParallelForm::Unfused;
  plan.tile = tileFor(rows, columns);
  const runtime::Rank &rank = world->rank(world->localRanks().front());
  if (plan.form == TensorParallelForm::Overlapped)
    plan.tailSplits = overlappedProduct(rank, {rows, columns}).partsOn(rank);
  plan.chunks = optionValues.chunksPerRank;
  return plan.text();
}

std::string AllGatherGemm::agreedPlan(const ProductShape &shape) const {
  // Ranks may have other columns, and so other tiles.
  return usesOneLaunch(shape.rows) ? "one launch"
         : isSequence(shape.rows)  ? "sequence"
                                   : fmt::format("copies of {} chunks of a shard", optionValues.chunksPerRank);
}

Status AllGatherGemm::allocateOneLaunch() {
  DITRON_RETURN_IF_ERROR(world->requireOneNode(fmt::format("{}: one launch (oneLaunchRows)", operation)));
  int64_t &rows = *optionValues.oneLaunchRows;
  if (rows < 0 || rows > OneLaunchGather::mostRows)
    return invalidArgument(
        fmt::format("{}: oneLaunchRows is {}; 0 to {} are accepted", operation, rows, OneLaunchGather::mostRows));
  if (optionValues.concurrentCalls == 0)
    return invalidArgument(fmt::format("{}: 0 concurrent calls; at least 1 is accepted", operation));
  if (optionValues.oneLaunchTile) {
    DITRON_RETURN_IF_ERROR(optionValues.oneLaunchTile->verify().withContext(operation));
    DITRON_RETURN_IF_ERROR(verifyTileDepth(operation, optionValues.dtype, optionValues.oneLaunchTile->tile));
  }
  rows = std::min(rows, optionValues.maxRows);
  OneLaunchOptions common;
  common.name = "ag_gemm";
  common.dtype = optionValues.dtype;
  common.resultType = optionValues.typeOfResult();
  common.epilogue = optionValues.epilogue;
  common.weightOrder = optionValues.weightOrder;
  common.precision = optionValues.precision;
  common.concurrentCalls = optionValues.concurrentCalls;
  common.tile = optionValues.oneLaunchTile;
  common.tiles = choice.oneLaunchTiles(otherSizes());
  DITRON_ASSIGN_OR_RETURN(oneLaunch, OneLaunchGather::create(*world, std::move(common), rows, optionValues.depth));
  return Status::ok();
}

Expected<ProductPlan::Parts> AllGatherGemm::makeParts(runtime::Rank &rank, const OperandPointers &operands,
                                                      const ProductShape &shape) {
  const auto &[rows, columns, strides] = shape;
  const GemmEpilogue &epilogue = optionValues.epilogue;
  // The scales of A go with its rows, into the workspace.
  GemmEpilogue behindGather = epilogue;
  behindGather.scalesA = Scaling::None;
  OperandLaunch::Names shard = {{"shard_ptr", Operand::A}};
  if (epilogue.scalesA != Scaling::None)
    shard.emplace_back("shard_scale_ptr", Operand::ScalesA);
  const OperandLaunch::Names product =
      OperandLaunch::withEpilogue({{"b_ptr", Operand::B}, {"c_ptr", Operand::Result}}, behindGather);
  ProductPlan::Parts parts;
  if (usesOneLaunch(rows)) {
    const std::optional<OneLaunchTile> tile = oneLaunch.tileFor(rows, columns);
    if (!tile) {
      if (optionValues.oneLaunchTile)
        DITRON_RETURN_IF_ERROR(
            optionValues.oneLaunchTile->verifyPlaces(rows, columns, rank.attributes().multiprocessors)
                .withContext(operation));
      return unsupported(
          fmt::format("{}: {} rows and {} columns are too many tiles for one launch", operation, rows, columns));
    }
    DITRON_RETURN_IF_ERROR(verifyTile(shape, tile->tile));
    OperandLaunch::Names all = shard;
    all.insert(all.end(), product.begin(), product.end());
    DITRON_ASSIGN_OR_RETURN(OperandLaunch whole,
                            OperandLaunch::create(*kernels, rank,
                                                  oneLaunch.call(rank, operands[Operand::A], operands[Operand::B],
                                                                 operands[Operand::Result], operands.epilogue(), rows,
                                                                 columns, strides, *tile),
                                                  all));
    parts.sequence.launch(runtime::Lane::Main, whole.call.prepared());
    parts.launches.push_back(std::move(whole));
    return parts;
  }
  const TileConfig tile = tileFor(rows, columns);
  DITRON_RETURN_IF_ERROR(verifyTile(shape, tile));
  if (isSequence(rows))
    return makeCollectiveThenProduct(*kernels, rank, *exchange, gemmWorkspace(rank.id()), operands,
                                     {.product = unfusedProduct(shape),
                                      .gathered = workspace.on(rank.id()),
                                      .ownRows = rows / rank.numRanks(),
                                      .ownStride = strides.a});
  DITRON_ASSIGN_OR_RETURN(OperandLaunch enter,
                          OperandLaunch::create(*kernels, rank, enterCall(rank, operands, shape), shard));
  DITRON_ASSIGN_OR_RETURN(OperandLaunch gemm, overlappedProduct(rank, shape)
                                                  .launch(*kernels, rank, gemmCall(rank, operands, shape),
                                                          gemmWorkspace(rank.id()), product));
  using runtime::Lane;
  parts.sequence = runtime::CallSequence(sides[rank.id()]);
  parts.sequence.launch(Lane::Main, enter.call.prepared());
  parts.sequence.join(Lane::Side);
  addPushes(rank, rows, parts.sequence);
  const Schedule schedule = scheduleFor(rows, columns);
  if (schedule == Schedule::Overlapped)
    parts.sequence.launch(Lane::Main, gemm.call.prepared());
  parts.sequence.join(Lane::Main);
  if (schedule == Schedule::Unfused)
    parts.sequence.launch(Lane::Main, gemm.call.prepared());
  parts.launches.push_back(std::move(enter));
  parts.launches.push_back(std::move(gemm));
  return parts;
}

void AllGatherGemm::addPushes(runtime::Rank &rank, int64_t rows, runtime::CallSequence &sequence) const {
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
                    runtime::Copy::of(workspace.on(push.peer) + push.firstRow * layout.stride,
                                      workspace.on(rank.id()) + push.firstRow * layout.stride,
                                      push.rows * layout.stride, fmt::format("{} to {}", copyName, push.peer)));
    // The signal's value is the generation word, copied behind the data: no host value is baked into a captured call.
    const runtime::Pointer signal = ready.on(push.peer) + (push.source * chunks + push.chunk);
    sequence.copy(runtime::Lane::Side,
                  runtime::Copy::of(signal, words.generation(rank.id()), 1, fmt::format("ag_ready to {}", push.peer)));
  }
}

KernelCall AllGatherGemm::enterCall(const runtime::Rank &rank, const OperandPointers &operands,
                                    const ProductShape &shape) const {
  const RowShards shards(shape.rows, rank.numRanks());
  const uint32_t id = rank.id();
  const int64_t ownRows = shards.rowsOf(id);
  const CopiedRows copied(ownRows, optionValues.depth, shape.strides.a, layout.stride);
  const runtime::Pointer own = workspace.on(id) + shards.firstRowOf(id) * layout.stride;
  const Scaling scales = optionValues.epilogue.scalesA;
  return words.enter(rank, ownSignals(id), optionValues.chunksPerRank,
                     {.destination = own,
                      .source = operands[Operand::A],
                      .rows = copied.rows,
                      .columns = copied.columns,
                      .destinationStride = layout.stride,
                      .sourceStride = shape.strides.a,
                      .scaleDestination = layout.scaleOf(own),
                      .scaleSource = operands[Operand::ScalesA],
                      .scales = scales == Scaling::None ? 0 : ownRows,
                      .scaleStride = layout.scaleStride,
                      .hasScaleOfEach = scales == Scaling::Vector,
                      .sentElements = ownRows * layout.stride,
                      .elementsPerChunk = rowsPerChunk(shards, optionValues.chunksPerRank) * layout.stride});
}

KernelCall AllGatherGemm::gemmCall(const runtime::Rank &rank, const OperandPointers &operands,
                                   const ProductShape &shape) const {
  const auto &[m, n, strides] = shape;
  const TileConfig tile = tileFor(m, n);
  const RowShards shards(m, rank.numRanks());
  const runtime::Pointer gathered = workspace.on(rank.id());
  KernelCall call;
  call.source = "tensor_parallel_gemm";
  call.kernel = kernelName;
  call.numWarps = tile.numWarps;
  call.numStages = tile.numStages;
  call.arguments = {{"a_ptr", gathered},
                    {"b_ptr", operands[Operand::B]},
                    {"c_ptr", operands[Operand::Result]},
                    {"ready_ptr", ready.on(rank.id())},
                    {"generation_ptr", words.generation(rank.id())},
                    {"M", m},
                    {"N", n},
                    {"K", optionValues.depth},
                    {"stride_a", layout.stride},
                    {"stride_b", strides.b},
                    {"stride_c", strides.c},
                    {"rows_per_rank", shards.rowsPerRank},
                    {"rows_per_chunk", rowsPerChunk(shards, optionValues.chunksPerRank)},
                    {"rank", rank.id()},
                    {"WORLD_SIZE", rank.numRanks()},
                    {"NUM_NODES", optionValues.numNodes},
                    {"CHUNKS", optionValues.chunksPerRank}};
  call.arguments.emplace_back("B_TRANSPOSED", optionValues.weightOrder == MatrixOrder::Transposed);
  appendTileArguments(call, tile, optionValues.precision);
  // Gathered, each row has a scale of its own.
  GemmEpilogue epilogue = optionValues.epilogue;
  if (epilogue.scalesA != Scaling::None)
    epilogue.scalesA = Scaling::Vector;
  appendEpilogue(call, epilogue, {layout.scaleOf(gathered), operands[Operand::ScalesB], operands[Operand::Bias]}, n);
  appendActivation(call, epilogue);
  call.arguments.emplace_back("stride_a_scale", layout.scaleStride);
  return call;
}

} // namespace ditron::ops
