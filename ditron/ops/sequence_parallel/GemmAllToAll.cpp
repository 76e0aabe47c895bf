//===- GemmAllToAll.cpp - Product before attention, its columns dealt out to the ranks --------------------------------------===//
#include "ditron/ops/sequence_parallel/GemmAllToAll.h"

#include "ditron/ops/Gemm.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {
constexpr std::string_view operation = "GemmAllToAll";
}

Expected<GemmAllToAll> GemmAllToAll::create(runtime::World &world, runtime::KernelProvider &kernels,
                                            const Options &options, int64_t depth, int64_t columns) {
  DITRON_RETURN_IF_ERROR(world.requireOneNode(operation));
  DITRON_RETURN_IF_ERROR(verifySequenceProduct(operation, options));
  if (options.epilogue.activation != Activation::None)
    return unsupported(
        fmt::format("{}: activation {}; none is accepted", operation, toString(options.epilogue.activation)));
  if (depth < 1 || columns < 1 || columns % world.numRanks() != 0)
    return invalidArgument(
        fmt::format("{}: depth {} and {} columns; positive ones are accepted, and columns that {} ranks divide",
                    operation, depth, columns, world.numRanks()));
  GemmAllToAll op;
  op.optionValues = options;
  op.depthValue = depth;
  op.columnCount = columns;
  op.world = &world;
  op.kernels = &kernels;
  op.planAgreement = PlanAgreement(world, operation);
  DITRON_RETURN_IF_ERROR(op.planAgreement.begin(
      world, fmt::format("{}, {} sequences, {} columns", toString(options.schedule), options.batch, columns)));
  DITRON_RETURN_IF_ERROR(
      verifyProduct(operation, options.batch * options.maxRows, columns, depth, op.tileFor(options.maxRows)));
  DITRON_ASSIGN_OR_RETURN(op.words, CallWords::create(world, "gemm_a2a", world.numRanks() + 1));
  DITRON_ASSIGN_OR_RETURN(op.gathered, world.allocateSymmetric(options.typeOfResult(),
                                                               options.batch * options.maxRows * op.columnsOfRank(),
                                                               "gemm_a2a_result"));
  DITRON_ASSIGN_OR_RETURN(op.arrived, world.allocateSymmetric(DataType::I64, world.numRanks(), "gemm_a2a_arrived"));
  op.staging.resize(world.numRanks());
  op.sides.resize(world.numRanks());
  if (options.schedule == Schedule::Unfused)
    for (uint32_t id : world.localRanks()) {
      const int64_t rows = options.batch * RowShards(options.maxRows, world.numRanks()).rowsPerRank;
      DITRON_ASSIGN_OR_RETURN(op.staging[id],
                              world.rank(id).allocate(options.typeOfResult(), rows * columns, "gemm_a2a_product"));
      DITRON_ASSIGN_OR_RETURN(op.sides[id], runtime::SideStream::create(world.rank(id), "gemm_a2a"));
    }
  op.keepPlans(world, operation, operandTypes(options.dtype, options.typeOfResult(), options.epilogue));
  return op;
}

TileConfig GemmAllToAll::tileFor(int64_t rows) const {
  if (optionValues.tile != libraryTile)
    return optionValues.tile;
  return chooseTile({.m = optionValues.batch * RowShards(rows, world->numRanks()).rowsPerRank,
                     .n = columnCount,
                     .k = depthValue,
                     .dtype = optionValues.dtype,
                     .resultType = optionValues.typeOfResult(),
                     .order = optionValues.weightOrder,
                     .epilogue = optionValues.epilogue},
                    *world);
}

Expected<ProductPlan::Parts> GemmAllToAll::makeParts(runtime::Rank &rank, const OperandPointers &operands,
                                                     const ProductShape &shape) {
  DITRON_RETURN_IF_ERROR(verifyTile(shape, tileFor(shape.rows)));
  ProductPlan::Parts parts;
  DITRON_ASSIGN_OR_RETURN(PreparedCall enter, PreparedCall::create(*kernels, rank, words.enter(rank)));
  const OperandLaunch::Names names =
      OperandLaunch::withEpilogue({{"a_ptr", Operand::A}, {"b_ptr", Operand::B}}, optionValues.epilogue);
  DITRON_ASSIGN_OR_RETURN(OperandLaunch product,
                          OperandLaunch::create(*kernels, rank, productCall(rank, operands, shape), names));
  using runtime::Lane;
  if (optionValues.schedule == Schedule::Overlapped) {
    parts.sequence.launch(Lane::Main, enter.prepared());
    parts.sequence.launch(Lane::Main, product.call.prepared());
  } else {
    KernelCall wait;
    wait.source = "sequence_parallel/ulysses";
    wait.kernel = "wait_for_ranks";
    wait.arguments = {{"arrived_ptr", arrived.on(rank.id())},
                      {"generation_ptr", words.generation(rank.id())},
                      {"WORLD_SIZE", rank.numRanks()}};
    DITRON_ASSIGN_OR_RETURN(PreparedCall arrivals, PreparedCall::create(*kernels, rank, wait));
    parts.sequence = runtime::CallSequence(sides[rank.id()]);
    parts.sequence.launch(Lane::Main, enter.prepared());
    parts.sequence.launch(Lane::Main, product.call.prepared());
    parts.sequence.join(Lane::Side);
    addPushes(rank, shape.rows, parts.sequence);
    parts.sequence.launch(Lane::Main, arrivals.prepared());
    parts.sequence.join(Lane::Main);
  }
  parts.launches.push_back(std::move(product));
  return parts;
}

void GemmAllToAll::addPushes(const runtime::Rank &rank, int64_t rows, runtime::CallSequence &sequence) const {
  const uint32_t id = rank.id(), ranks = rank.numRanks();
  const RowShards shards(rows, ranks);
  const int64_t columns = columnsOfRank(), own = shards.rowsOf(id);
  for (uint32_t step = 1; step <= ranks; ++step) {
    const uint32_t peer = (id + step) % ranks;
    for (int64_t sequenceId = 0; sequenceId < optionValues.batch && own > 0; ++sequenceId)
      sequence.copy(runtime::Lane::Side,
                    runtime::Copy::of(gathered.on(peer) + (sequenceId * rows + shards.firstRowOf(id)) * columns,
                                      staging[id].pointer() + (peer * optionValues.batch + sequenceId) * own * columns,
                                      own * columns, fmt::format("a2a to {}", peer)));
    sequence.copy(runtime::Lane::Side, runtime::Copy::of(arrived.on(peer) + id, words.generation(id), 1,
                                                         fmt::format("a2a_ready to {}", peer)));
  }
}

KernelCall GemmAllToAll::productCall(const runtime::Rank &rank, const OperandPointers &operands,
                                     const ProductShape &shape) const {
  const uint32_t id = rank.id(), ranks = rank.numRanks();
  const RowShards shards(shape.rows, ranks);
  const TileConfig tile = tileFor(shape.rows);
  const int64_t own = shards.rowsOf(id), batch = optionValues.batch, columns = columnsOfRank();
  const bool toPeers = optionValues.schedule == Schedule::Overlapped;
  const int64_t tiles = batch * ceilDivide(own, tile.blockM) * ceilDivide(columns, tile.blockN) * ranks;
  KernelCall call;
  call.source = "sequence_parallel/ulysses";
  call.kernel = "gemm_all_to_all";
  call.numWarps = tile.numWarps;
  call.numStages = tile.numStages;
  // Without tokens there is still somebody to wait for the others'.
  call.grid = {std::max<uint32_t>(blocksFor(rank, tiles), toPeers ? 1 : 0), 1, 1};
  call.arguments = {{"a_ptr", operands[Operand::A]},
                    {"b_ptr", operands[Operand::B]},
                    {"result_ptr", toPeers ? gathered.on(id) : staging[id].pointer()},
                    {"counter_ptr", words.counters(id)},
                    {"arrived_ptr", arrived.on(id)},
                    {"generation_ptr", words.generation(id)},
                    {"batch", batch},
                    {"rows", shape.rows},
                    {"own_rows", own},
                    {"rows_per_rank", shards.rowsPerRank},
                    {"all_own_rows", std::max<int64_t>(batch * own, 1)},
                    {"N", columns},
                    {"all_columns", columnCount},
                    {"K", depthValue},
                    {"stride_a", shape.strides.a},
                    {"stride_b", shape.strides.b},
                    {"rank", id},
                    {"WORLD_SIZE", ranks},
                    {"TO_PEERS", toPeers},
                    {"B_TRANSPOSED", optionValues.weightOrder == MatrixOrder::Transposed}};
  appendTileArguments(call, tile, MultiplyPrecision::Tf32);
  appendEpilogue(call, optionValues.epilogue, operands.epilogue(), columnCount);
  return call;
}

} // namespace ditron::ops
