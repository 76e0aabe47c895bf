//===- MoeReduction.cpp - Rows of experts times their weights, added by token and over the ranks, overlapped ---------------===//
#include "ditron/ops/moe/MoeReduction.h"

#include "ditron/ops/SizeOptions.h"

#include <cmath>
#include <fmt/format.h>

namespace ditron::ops {

namespace {

/// Multiprocessors that add and send while the others multiply: as many as move the bytes of all sums but the last while the product runs, at
/// most one of eight. Estimates for Hopper: what a multiprocessor adds in a microsecond, and what a GPU multiplies.
uint32_t multiprocessorsOfSums(const runtime::Rank &rank, const GroupedGemmProblem &product, int64_t tokens) {
  constexpr double bytesOfMultiprocessor = 40e3, flopsOfGpu = 600e6;
  constexpr uint32_t least = 4, most = 8;
  const uint32_t ranks = rank.numRanks(), all = rank.attributes().multiprocessors;
  const auto rows = static_cast<double>(product.maxRows);
  const double columns = static_cast<double>(product.n) * static_cast<double>(sizeOf(product.resultType)),
               bytes = (rows + static_cast<double>(tokens)) * columns * (ranks - 1) / ranks,
               microseconds = 2 * rows * static_cast<double>(product.n) * static_cast<double>(product.k) / flopsOfGpu;
  const auto wanted = static_cast<uint32_t>(std::ceil(bytes / (microseconds * bytesOfMultiprocessor)));
  const uint32_t limit = std::max(1u, all / most);
  return std::clamp(wanted, std::min(least, limit), limit);
}

/// Of what adds and fetches the ranks' sums, as GEMM+AllReduce's: long rows, many bytes on their way.
constexpr uint32_t exchangeM = 16, exchangeN = 256, exchangeWarps = 8, mostExchangeBlocks = 128;

/// The operands of a call by number.
enum OperandNumber : size_t { Rows, Weights, Result, RowScales, WeightScales };

std::string_view nameOf(MoeResult result) {
  return result == MoeResult::Scattered ? "MoeReduceScatter" : "MoeAllReduce";
}

} // namespace

std::string_view toString(MoeResult result) { return result == MoeResult::Scattered ? "moe_rs" : "moe_ar"; }

Expected<MoeReduction> MoeReduction::create(runtime::World &world, runtime::KernelProvider &kernels,
                                            const Options &options, const std::vector<MoeRows> &rows) {
  const std::string_view operation = nameOf(options.result);
  const std::string name(toString(options.result));
  const uint32_t numRanks = world.numRanks();
  DITRON_RETURN_IF_ERROR(world.requireOneNode(operation));
  DITRON_RETURN_IF_ERROR(verifySizeOptions(
      operation, {{"depth", options.depth}, {"hidden", options.hidden}, {"maxTokens", options.maxTokens}}));
  if (options.partialType && *options.partialType != options.resultType && *options.partialType != DataType::F32)
    return unsupported(fmt::format("{}: partial results of type {}; {} and fp32 are accepted", operation,
                                   ditron::toString(*options.partialType), ditron::toString(options.resultType)));
  if (rows.size() != numRanks)
    return invalidArgument(
        fmt::format("{}: rows of {} ranks are given; there are {}", operation, rows.size(), numRanks));
  const MoeRows &any = rows[world.localRanks().front()];
  for (uint32_t id : world.localRanks())
    if (std::tuple(rows[id].experts, rows[id].topK, rows[id].blockM) != std::tuple(any.experts, any.topK, any.blockM) ||
        rows[id].firstRank >= numRanks)
      return invalidArgument(fmt::format("{}: rank {} has rows of {} experts, topK {}, tiles of {} rows, from rank {} "
                                         "on; the first rank here has {}, {} "
                                         "and {}, which all must have, and ranks are 0 to {}",
                                         operation, id, rows[id].experts, rows[id].topK, rows[id].blockM,
                                         rows[id].firstRank, any.experts, any.topK, any.blockM, numRanks - 1));
  MoeReduction op;
  op.optionValues = options;
  op.world = &world;
  op.kernels = &kernels;
  op.experts = any.experts;
  op.topK = any.topK;
  op.planAgreement = PlanAgreement(world, operation);
  op.agreement = std::make_shared<runtime::CallAgreement>(std::string(operation), numRanks);
  const GroupedGemmProblem largest = op.problemFor(options.maxTokens);
  op.plan = options.plan ? *options.plan : chooseGroupedGemmPlan(largest, world.target());
  if (!options.plan && op.plan.tile.blockM != any.blockM) {
    TileConfig &tile = op.plan.tile;
    tile.blockM = any.blockM;
    tile.blockN = std::min(tile.blockN, 128u);
    tile.numWarps = tile.blockM >= 128 ? std::max(tile.numWarps, 8u) : std::min(tile.numWarps, 4u);
  }
  if (op.plan.tile.blockM != any.blockM)
    return invalidArgument(fmt::format("{}: tiles of {} rows; the rows are cut into tiles of {}", operation,
                                       op.plan.tile.blockM, any.blockM));
  DITRON_RETURN_IF_ERROR(verifyGroupedGemm(largest, op.plan).withContext(operation));
  DITRON_RETURN_IF_ERROR(op.planAgreement.begin(
      world, fmt::format("{} of {} tokens of {} elements of {}, sums of {}", name, options.maxTokens, options.hidden,
                         ditron::toString(options.resultType), ditron::toString(op.partialType()))));
  DITRON_ASSIGN_OR_RETURN(op.words, CallWords::create(world, name, numRanks));
  const int64_t shard = RowShards(options.maxTokens, numRanks).rowsPerRank * options.hidden;
  const auto allocate = [&](runtime::SymmetricBuffer &buffer, DataType type, int64_t count,
                            std::string_view part) -> Status {
    DITRON_ASSIGN_OR_RETURN(buffer, world.allocateSymmetric(type, count, name + std::string(part)));
    return Status::ok();
  };
  DITRON_RETURN_IF_ERROR(allocate(op.scatter, op.partialType(), numRanks * shard, "_scatter"));
  DITRON_RETURN_IF_ERROR(allocate(op.arrived, DataType::I64, numRanks, "_arrived"));
  if (options.result == MoeResult::Everywhere) {
    DITRON_RETURN_IF_ERROR(allocate(op.reduced, options.resultType, shard, "_reduced"));
    DITRON_RETURN_IF_ERROR(allocate(op.finished, DataType::I64, numRanks * mostExchangeBlocks, "_finished"));
  }
  op.ranks.resize(numRanks);
  for (uint32_t id : world.localRanks()) {
    runtime::Rank &rank = world.rank(id);
    auto own = std::make_unique<PerRank>();
    own->rows = rows[id];
    DITRON_ASSIGN_OR_RETURN(own->side, runtime::SideStream::create(rank, name));
    DITRON_ASSIGN_OR_RETURN(own->products, rank.allocate(options.resultType, largest.maxRows * options.hidden,
                                                         fmt::format("{}_products", name)));
    DITRON_ASSIGN_OR_RETURN(own->order, TileOrder::create(rank, name, largest.maxRows, op.experts, any.blockM));
    op.ranks[id] = std::move(own);
  }
  return op;
}

GroupedGemmProblem MoeReduction::problemFor(int64_t tokens) const {
  GroupedGemmProblem problem;
  problem.maxRows = tokens * topK;
  problem.experts = experts;
  problem.n = optionValues.hidden;
  problem.k = optionValues.depth;
  problem.dtype = optionValues.dtype;
  problem.resultType = optionValues.resultType;
  problem.order = optionValues.weightOrder;
  problem.blockScales = optionValues.blockScales;
  problem.precision = optionValues.precision;
  return problem;
}

Status MoeReduction::verifyTokens(int64_t tokens) const {
  return verifyTokenCount(nameOf(optionValues.result), tokens, 1, optionValues.maxTokens);
}

int64_t MoeReduction::slotOffset(int64_t tokens, uint32_t source, uint32_t owner) const {
  const RowShards shards(tokens, world->numRanks());
  // As what adds the slots has them.
  const int64_t slotTokens = optionValues.result == MoeResult::Scattered ? shards.rowsOf(owner) : shards.rowsPerRank;
  return source * slotTokens * optionValues.hidden;
}

Expected<PreparedCall> MoeReduction::productCall(runtime::Rank &rank, int64_t tokens) {
  const uint32_t id = rank.id();
  const PerRank &own = *ranks[id];
  // Any buffers stand for the caller's: only their types and alignment matter.
  const runtime::Pointer any = own.products.pointer();
  GroupedGemmOperands operands;
  operands.a = operands.b = any.as(optionValues.dtype);
  operands.c = own.products.pointer();
  operands.offsets = own.rows.offsets;
  operands.tiles = own.order->tiles();
  if (optionValues.blockScales)
    operands.aScale = operands.bScale = any.as(DataType::F32);
  operands.ranks = {.spans = own.order->spans(),
                    .segmentTiles = own.order->segmentTiles(),
                    .counters = words.counters(id),
                    .gates = words.gates(id),
                    .firstRank = own.rows.firstRank};
  if (optionValues.schedule == Schedule::Overlapped && rank.numRanks() > 1)
    operands.ranks.freeMultiprocessors = optionValues.sumMultiprocessors
                                             ? optionValues.sumMultiprocessors
                                             : multiprocessorsOfSums(rank, problemFor(tokens), tokens);
  return prepareGroupedGemm(*kernels, rank, problemFor(tokens), operands,
                            TileOrder::inOrder(plan, RowShards(tokens, rank.numRanks()).rowsPerRank, topK));
}

Status MoeReduction::addSums(runtime::Rank &rank, int64_t tokens, MoeCall &call) {
  using runtime::Lane;
  const uint32_t id = rank.id(), numRanks = rank.numRanks();
  const PerRank &own = *ranks[id];
  const RowShards shards(tokens, numRanks);
  for (uint32_t step = 1; step <= numRanks; ++step) {
    const uint32_t owner = (id + step) % numRanks;
    if (shards.rowsOf(owner) == 0)
      continue;
    const int64_t firstSlot = shards.firstRowOf(owner) * topK;
    call.sequence.signalWait(Lane::Side, words.gates(id) + owner, runtime::Compare::GreaterEqual, 1);
    DITRON_ASSIGN_OR_RETURN(
        PreparedCall sum,
        prepareSlotSum(*kernels, rank, {shards.rowsOf(owner), optionValues.hidden, topK}, own.products.pointer(),
                       own.rows.rowOfSlot + firstSlot,
                       own.rows.slotWeights.address ? own.rows.slotWeights + firstSlot : runtime::Pointer(),
                       scatter.on(id) + slotOffset(tokens, id, owner),
                       owner == id ? std::nullopt : std::optional(owner)));
    DITRON_RETURN_IF_ERROR(call.launch(Lane::Side, std::move(sum)));
    // Behind the sums the generation word: no host value is baked into a captured call.
    if (owner != id)
      call.sequence.copy(Lane::Side,
                         runtime::Copy::of(arrived.on(owner) + id, words.generation(id), 1,
                                           fmt::format("{}_arrived to {}", toString(optionValues.result), owner)));
  }
  return Status::ok();
}

Status MoeReduction::addReduction(runtime::Rank &rank, int64_t tokens, MoeCall &call) {
  using runtime::Lane;
  const uint32_t id = rank.id();
  const int64_t columns = optionValues.hidden, ownTokens = RowShards(tokens, rank.numRanks()).rowsOf(id);
  if (optionValues.result == MoeResult::Everywhere) {
    for (const std::string_view kernel : {"reduce_rows", "gather_rows"}) {
      DITRON_ASSIGN_OR_RETURN(PreparedCall part,
                              PreparedCall::create(*kernels, rank, exchangeCall(rank, kernel, tokens)));
      DITRON_RETURN_IF_ERROR(call.launch(Lane::Main, std::move(part), {{"out_ptr", Result}}));
    }
    return Status::ok();
  }
  if (ownTokens == 0)
    return Status::ok();
  KernelCall reduce;
  reduce.source = "moe/tensor_parallel";
  reduce.kernel = "add_ranks";
  reduce.numWarps = exchangeWarps;
  reduce.grid = {exchangeBlocks(rank, ownTokens), 1, 1};
  reduce.arguments = {{"slots_ptr", scatter.on(id)},
                      {"out_ptr", ranks[id]->products.pointer()},
                      {"arrived_ptr", arrived.on(id)},
                      {"generation_ptr", words.generation(id)},
                      {"tokens", ownTokens},
                      {"columns", columns},
                      {"rank", id},
                      {"WORLD_SIZE", rank.numRanks()},
                      {"BLOCK_M", exchangeM},
                      {"BLOCK_N", exchangeN}};
  DITRON_ASSIGN_OR_RETURN(PreparedCall prepared, PreparedCall::create(*kernels, rank, reduce));
  return call.launch(Lane::Main, std::move(prepared), {{"out_ptr", Result}});
}

uint32_t MoeReduction::exchangeBlocks(const runtime::Rank &rank, int64_t tokens) const {
  const int64_t tiles = ceilDivide(tokens, exchangeM) * ceilDivide(optionValues.hidden, exchangeN);
  // Some multiprocessors stay free for another operator, for which ranks may be waiting that these blocks wait for.
  return static_cast<uint32_t>(
      std::clamp<int64_t>(rank.attributes().multiprocessors * 3 / 4, 1, std::min<int64_t>(tiles, mostExchangeBlocks)));
}

KernelCall MoeReduction::exchangeCall(const runtime::Rank &rank, std::string_view kernel, int64_t tokens) const {
  const uint32_t id = rank.id();
  const int64_t columns = optionValues.hidden;
  KernelCall call;
  call.source = "gemm_all_reduce";
  call.kernel = kernel;
  call.numWarps = exchangeWarps;
  call.grid = {exchangeBlocks(rank, RowShards(tokens, rank.numRanks()).rowsPerRank), 1, 1}; // as many on all ranks
  if (kernel == "reduce_rows")
    call.arguments = {{"partial_ptr", scatter.on(id)}, // the own sums are in their slot
                      {"scatter_ptr", scatter.on(id)},
                      {"arrived_ptr", arrived.on(id)},
                      {"gate_ptr", words.gates(id)}};
  for (auto &argument :
       std::vector<std::pair<std::string, runtime::Argument>>{{"reduced_ptr", reduced.on(id)},
                                                              {"out_ptr", ranks[id]->products.pointer()},
                                                              {"finished_ptr", finished.on(id)},
                                                              {"generation_ptr", words.generation(id)},
                                                              {"chunk", 0},
                                                              {"M", tokens},
                                                              {"N", columns},
                                                              {"stride_out", columns},
                                                              {"chunk_rows", tokens},
                                                              {"rank", id},
                                                              {"WORLD_SIZE", rank.numRanks()},
                                                              {"CHUNKS", 1},
                                                              {"BLOCKS", mostExchangeBlocks},
                                                              {"EXCHANGE_M", exchangeM},
                                                              {"EXCHANGE_N", exchangeN}})
    call.arguments.push_back(std::move(argument));
  return call;
}

Expected<MoeCall> MoeReduction::makeCall(runtime::Rank &rank, int64_t tokens) {
  using runtime::Lane;
  const uint32_t id = rank.id();
  const PerRank &own = *ranks[id];
  MoeCall call(own.side);
  DITRON_ASSIGN_OR_RETURN(PreparedCall enter, PreparedCall::create(*kernels, rank, words.enter(rank)));
  DITRON_RETURN_IF_ERROR(call.launch(Lane::Main, std::move(enter)));
  DITRON_ASSIGN_OR_RETURN(PreparedCall order,
                          own.order->prepare(*kernels, rank, own.rows, TileOrder::By::Departure,
                                             RowShards(tokens, rank.numRanks()).rowsPerRank, 1, words.gates(id)));
  DITRON_RETURN_IF_ERROR(call.launch(Lane::Main, std::move(order)));
  DITRON_ASSIGN_OR_RETURN(PreparedCall product, productCall(rank, tokens));
  MoeCall::Names names = {{"a_ptr", Rows}, {"b_ptr", Weights}};
  if (optionValues.blockScales)
    names.insert(names.end(), {{"a_scale_ptr", RowScales}, {"b_scale_ptr", WeightScales}});
  const bool overlaps = optionValues.schedule == Schedule::Overlapped;
  if (!overlaps)
    DITRON_RETURN_IF_ERROR(call.launch(Lane::Main, product, names));
  call.sequence.join(Lane::Side);
  DITRON_RETURN_IF_ERROR(addSums(rank, tokens, call));
  if (overlaps)
    DITRON_RETURN_IF_ERROR(call.launch(Lane::Main, product, names));
  // What waits for the other ranks' sums may fill the GPU: the own ones, which they wait for, come before it.
  call.sequence.join(Lane::Main);
  DITRON_RETURN_IF_ERROR(addReduction(rank, tokens, call));
  call.sequence.setAgreedCall({agreement, id, fmt::format("{} tokens", tokens)});
  return call;
}

Status MoeReduction::prepare(runtime::Rank &rank, int64_t tokens) {
  const std::string_view operation = nameOf(optionValues.result);
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  Status made = verifyTokens(tokens);
  if (made.isOk())
    made = MoeCall::prepare(ranks[rank.id()]->kept, {tokens}, rank, operation, [&] { return makeCall(rank, tokens); });
  DITRON_RETURN_IF_ERROR(planAgreement.reach(rank, made, fmt::format("a call of {} tokens", tokens), "segments"));
  return made;
}

Status MoeReduction::verify(const MoeReductionOperands &operands) const {
  const std::string_view operation = nameOf(optionValues.result);
  std::vector<std::tuple<std::string_view, runtime::Pointer, DataType>> given = {
      {"rows", operands.rows, optionValues.dtype},
      {"weights", operands.weights, optionValues.dtype},
      {"result", operands.result, optionValues.resultType}};
  if (optionValues.blockScales)
    given.insert(given.end(), {{"rowScales", operands.rowScales, DataType::F32},
                               {"weightScales", operands.weightScales, DataType::F32}});
  for (const auto &[name, pointer, type] : given)
    DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operation, name, pointer, type));
  return Status::ok();
}

Status MoeReduction::enqueue(runtime::Rank &rank, runtime::Stream &stream, const MoeReductionOperands &operands,
                             int64_t tokens) {
  const std::string_view operation = nameOf(optionValues.result);
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  DITRON_RETURN_IF_ERROR(verifyTokens(tokens));
  DITRON_RETURN_IF_ERROR(verify(operands));
  const auto describe = [&] { return fmt::format("{} tokens", tokens); };
  DITRON_ASSIGN_OR_RETURN(MoeCall * found, ranks[rank.id()]->kept.find(operation, stream, {tokens}, describe,
                                                                       [&] { return makeCall(rank, tokens); }));
  return found->enqueue(stream,
                        {operands.rows, operands.weights, operands.result, operands.rowScales, operands.weightScales});
}

} // namespace ditron::ops
