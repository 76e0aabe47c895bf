//===- FusedExpertParallel.cpp - Products of experts beside the exchange of their tokens --------------------------------===//
#include "ditron/ops/expert_parallel/FusedExpertParallel.h"

#include "ditron/ops/KeptPlans.h"
#include "ditron/ops/SizeOptions.h"
#include "ditron/ops/collectives/Channels.h"
#include "ditron/ops/expert_parallel/ExchangeLimits.h"
#include "ditron/ops/expert_parallel/ExpertParallelProtocol.h"
#include "ditron/ops/moe/Routing.h"
#include "ditron/ops/plans/PlanAgreement.h"
#include "ditron/support/TargetName.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "expert_parallel_fused";
constexpr std::string_view kernelFile = "expert_parallel/fused";
/// NOTES of the device code.
constexpr int64_t notes = 6;
/// The words of PerRank::counters.
enum Counter : uint32_t { Meeting, Ready, DispatchCall, CombineCall, Arrivals, numCounters };

/// Steps along the depth of weights that lie across it must not reach into the next expert's.
TileConfig fitted(TileConfig tile, const GroupedGemmProblem &problem) {
  constexpr uint32_t least = 16;
  while (problem.order == MatrixOrder::Plain && tile.blockK > least && problem.k % tile.blockK != 0)
    tile.blockK /= 2;
  return tile;
}

void appendProduct(KernelCall &call, const GroupedGemmProblem &problem, const TileConfig &tile) {
  call.numWarps = tile.numWarps;
  call.numStages = tile.numStages;
  call.arguments.insert(
      call.arguments.end(),
      {{"N", problem.n},
       {"K", problem.k},
       {"rows", problem.maxRows},
       {"weight_rows", problem.experts * (problem.order == MatrixOrder::Transposed ? problem.n : problem.k)},
       {"BLOCK_M", tile.blockM},
       {"BLOCK_N", tile.blockN},
       {"BLOCK_K", tile.blockK},
       {"GROUP_M", tile.groupM},
       {"B_TRANSPOSED", problem.order == MatrixOrder::Transposed},
       {"PRECISION", std::string(toString(problem.precision))}});
}

/// Whether an operand has a row for each token.
bool isOfTokens(std::string_view parameter) {
  return parameter == "x_ptr" || parameter == "ids_ptr" || parameter == "out_ptr" || parameter == "addend_ptr" ||
         parameter == "weights_ptr";
}

} // namespace

GroupedGemmProblem dispatchProblemOf(const FusedExpertParallelOptions &options, uint32_t numRanks) {
  GroupedGemmProblem problem;
  const int64_t most = std::min(numRanks * options.maxTokens * options.topK,
                                options.experts * (options.capacity == 0 ? options.maxTokens : options.capacity));
  problem.maxRows = options.maxRows == 0 ? most : std::min(options.maxRows, most);
  problem.experts = options.experts / numRanks;
  problem.n = options.columns;
  problem.k = options.hidden;
  problem.dtype = problem.resultType = options.dtype;
  problem.order = options.dispatchOrder;
  problem.activation = options.activation;
  problem.precision = options.precision;
  return problem;
}

GroupedGemmProblem combineProblemOf(const FusedExpertParallelOptions &options, uint32_t numRanks) {
  GroupedGemmProblem problem = dispatchProblemOf(options, numRanks);
  problem.n = options.hidden;
  problem.k = options.depth;
  problem.order = options.combineOrder;
  problem.activation = Activation::None;
  return problem;
}

Status verifyFusedProducts(const FusedExpertParallelOptions &options, const FusedExpertParallelPlan &plan,
                           uint32_t numRanks) {
  for (const auto &[problem, tile] : {std::pair(dispatchProblemOf(options, numRanks), plan.dispatchTile),
                                      std::pair(combineProblemOf(options, numRanks), plan.combineTile)}) {
    GemmPlan product;
    product.movement = GemmMovement::Descriptors;
    product.tile = tile;
    DITRON_RETURN_IF_ERROR(verifyGroupedGemm(problem, product));
  }
  return Status::ok();
}

FusedExpertParallelPlan fittedPlan(const FusedExpertParallelOptions &options, FusedExpertParallelPlan plan,
                                   uint32_t numRanks) {
  plan.dispatchTile = fitted(plan.dispatchTile, dispatchProblemOf(options, numRanks));
  plan.combineTile = fitted(plan.combineTile, combineProblemOf(options, numRanks));
  return plan;
}

/// Tiles as the products alone would have them for rows dealt out evenly.
FusedExpertParallelPlan FusedExpertParallel::choosePlan() const {
  const auto tileOf = [&](GroupedGemmProblem problem) {
    problem.maxRows = std::min(problem.maxRows, optionValues.maxTokens * optionValues.topK);
    return chooseGroupedGemmPlan(problem, world->target()).tile;
  };
  const Expected<TargetName> target = parseTargetName(world->target());
  FusedExpertParallelPlan plan;
  plan.dispatchTile = tileOf(dispatchProblemOf(optionValues, world->numRanks()));
  plan.combineTile = tileOf(combineProblemOf(optionValues, world->numRanks()));
  plan.combineTile.blockM = plan.dispatchTile.blockM;
  if (!target.isOk() || target->simulated) {
    plan.senders = 2;
    plan.unit = 4;
  }
  // A multiprocessor of H100 computes about as many elements of a tile, of any depth, as it could move bytes of rows of that depth 350 times.
  plan.pace = std::max<uint32_t>(plan.dispatchTile.blockM * plan.dispatchTile.blockN / 352, 1);
  return fittedPlan(optionValues, plan, world->numRanks());
}

Status FusedExpertParallel::verifyOptions() const {
  if (world->numNodes() > 1)
    return unsupported(fmt::format("{} on {} nodes; one is accepted", operation, world->numNodes()));
  return verifyExchange(operation, optionValues, world->numRanks());
}

Expected<FusedExpertParallel> FusedExpertParallel::create(runtime::World &world, runtime::KernelProvider &kernels,
                                                          const FusedExpertParallelOptions &options) {
  FusedExpertParallel op;
  op.optionValues = options;
  op.world = &world;
  op.kernels = &kernels;
  DITRON_RETURN_IF_ERROR(op.verifyOptions());
  FusedExpertParallelOptions &own = op.optionValues;
  if (own.capacity == 0)
    own.capacity = own.maxTokens;
  own.maxRows = dispatchProblemOf(own, world.numRanks()).maxRows;
  if (options.plan) {
    DITRON_ASSIGN_OR_RETURN(op.planValue, parseFusedExpertParallelPlan(options.plan->text()));
  } else {
    op.planValue = op.choosePlan();
  }
  DITRON_RETURN_IF_ERROR(verifyFusedProducts(own, op.planValue, world.numRanks()).withContext(operation));
  if (op.places() < 2)
    return invalidArgument(fmt::format("{}: {} calls at once leave each {} multiprocessors; one block that sends and "
                                       "one that multiplies must find a place",
                                       operation, own.concurrentCalls, op.places()));
  op.planValue.senders = std::min(op.planValue.senders, op.places() - 1);
  DITRON_RETURN_IF_ERROR(PlanAgreement(world, operation).begin(world, op.planValue.text()));
  DITRON_RETURN_IF_ERROR(op.allocate());
  DITRON_ASSIGN_OR_RETURN(op.report, TransferReport::create(world, "expert_parallel", "rows"));
  return op;
}

uint32_t FusedExpertParallel::places() const {
  return world->rank(world->localRanks().front()).attributes().multiprocessors / optionValues.concurrentCalls;
}

Status FusedExpertParallel::allocate() {
  const FusedExpertParallelOptions &options = optionValues;
  const uint32_t numRanks = world->numRanks(), local = options.experts / numRanks, senders = planValue.senders;
  const int64_t maxSlots = options.maxTokens * options.topK, blockM = planValue.dispatchTile.blockM,
                width = powerOfTwoFor(options.experts);
  const auto symmetric = [&](runtime::SymmetricBuffer &buffer, DataType type, uint64_t count,
                             const std::string &name) -> Status {
    DITRON_ASSIGN_OR_RETURN(buffer, world->allocateSymmetric(type, count, name));
    return Status::ok();
  };
  DITRON_RETURN_IF_ERROR(symmetric(rowsOf, options.dtype, options.maxRows * options.hidden, "ep_fused_rows"));
  DITRON_RETURN_IF_ERROR(symmetric(origins, DataType::I32, options.maxRows, "ep_fused_origins"));
  DITRON_RETURN_IF_ERROR(symmetric(arrived, DataType::I64, ceilDivide(options.maxRows, blockM), "ep_fused_arrived"));
  DITRON_RETURN_IF_ERROR(symmetric(told, DataType::I64, 2 * numRanks * options.experts, "ep_fused_told"));
  DITRON_RETURN_IF_ERROR(symmetric(slots, options.dtype, maxSlots * options.hidden, "ep_fused_slots"));
  DITRON_RETURN_IF_ERROR(symmetric(done, DataType::I64, numRanks, "ep_fused_done"));
  DITRON_ASSIGN_OR_RETURN(std::vector<runtime::Buffer> counters,
                          allocateCounters(*world, numCounters, "ep_fused_counters"));
  ranks.resize(numRanks);
  for (uint32_t id : world->localRanks()) {
    PerRank &own = ranks[id];
    own.counters = std::move(counters[id]);
    for (const auto &[buffer, count, name] :
         {std::tuple(&own.counts, senders * width, "ep_fused_counts"),
          std::tuple(&own.notes, senders * notes * width, "ep_fused_notes"),
          std::tuple(&own.list, maxSlots, "ep_fused_list"), std::tuple(&own.places, maxSlots, "ep_fused_places"),
          std::tuple(&own.offsets, int64_t{local} + 1, "ep_fused_offsets"),
          std::tuple(&own.tiles, 1 + 2 * mostTilesOf(options.maxRows, local, blockM), "ep_fused_tiles")}) {
      DITRON_ASSIGN_OR_RETURN(*buffer, world->rank(id).allocate(DataType::I32, count, name));
    }
  }
  return Status::ok();
}

uint64_t FusedExpertParallel::workspaceBytes() const {
  return rowsOf.bytes() + origins.bytes() + arrived.bytes() + told.bytes() + slots.bytes() + done.bytes();
}

FusedExpertParallel::Named FusedExpertParallel::dispatchPointers(const DispatchOperands &operands) const {
  return {{"x_ptr", operands.x}, {"ids_ptr", operands.ids}, {"b_ptr", operands.b}, {"c_ptr", operands.c}};
}

FusedExpertParallel::Named FusedExpertParallel::combinePointers(const CombineOperands &operands) const {
  Named pointers = {{"a_ptr", operands.a}, {"b_ptr", operands.b}, {"out_ptr", operands.out}};
  if (operands.weights.address)
    pointers.emplace_back("weights_ptr", operands.weights);
  if (optionValues.addend)
    pointers.emplace_back("addend_ptr", operands.addend);
  return pointers;
}

FusedExpertParallel::Moves FusedExpertParallel::movesOf(const runtime::Rank &rank) const {
  const FusedExpertParallelOptions &options = optionValues;
  const TileConfig &tile = planValue.dispatchTile;
  const auto elementBytes = static_cast<int64_t>(sizeOf(options.dtype));
  constexpr int64_t bytesOfAccess = 16, leastChunk = 16;
  // STAGES of the device code share what the product's tiles, and its results on their way to the registers that store them, leave.
  constexpr int64_t sharedBytes = 227 * 1024, otherBytes = 4096, stages = 6, ahead = 4, leastBytes = 1024,
                    mostBytes = 7168;
  const int64_t resultColumns = options.activation == Activation::SwiGlu ? tile.blockN / 2 : tile.blockN;
  const int64_t left = sharedBytes - otherBytes -
                       tile.numStages * (tile.blockM + tile.blockN) * tile.blockK * elementBytes -
                       tile.blockM * resultColumns * elementBytes;
  const int64_t most = std::min(left / stages, mostBytes) / bytesOfAccess * bytesOfAccess;
  const uint32_t warpSize = rank.attributes().warpSize;
  const int64_t chunks = ceilDivide(options.hidden * elementBytes, std::max(most, bytesOfAccess));
  if (hasTensorCopies(world->target()) && most >= leastBytes && planValue.unit <= (tile.numWarps - 1) * warpSize &&
      planValue.unit * chunks >= ahead) {
    const int64_t elements = bytesOfAccess / elementBytes;
    return {ceilDivide(ceilDivide(options.hidden, chunks), elements) * elements, chunks};
  }
  // Elements of a row that a thread moves by so many accesses: the latency of memory is paid once for all of them.
  constexpr int64_t accesses = 8;
  const int64_t chunk = tile.numWarps * warpSize * accesses * bytesOfAccess / elementBytes / planValue.unit;
  return {std::clamp<int64_t>(powerOfTwoFor(options.hidden), leastChunk, std::max(chunk, leastChunk)), 0};
}

KernelCall FusedExpertParallel::dispatchCall(const runtime::Rank &rank, const Named &operands) const {
  const FusedExpertParallelOptions &options = optionValues;
  const uint32_t id = rank.id(), local = options.experts / world->numRanks();
  const int64_t maxSlots = options.maxTokens * options.topK;
  const PerRank &own = ranks[id];
  const GroupedGemmProblem problem = dispatchProblemOf(options, world->numRanks());
  const TileConfig &tile = planValue.dispatchTile;
  const int64_t tiles = mostTilesOf(options.maxRows, local, tile.blockM) * ceilDivide(problem.n, tile.blockN);
  constexpr int64_t slotsOfPart = 128;
  const Moves moves = movesOf(rank);
  const uint32_t width = powerOfTwoFor(options.experts);
  KernelCall call;
  call.source = kernelFile;
  call.kernel = "dispatch_gemm";
  call.grid = {static_cast<uint32_t>(std::min<int64_t>(places(), planValue.senders + std::max<int64_t>(tiles, 1))), 1,
               1};
  appendProduct(call, problem, tile);
  call.arguments.insert(
      call.arguments.end(),
      {{"rows_ptr", rowsOf.on(id)},
       {"push_ptr", rowsOf.on(id)},
       {"origins_ptr", origins.on(id)},
       {"arrived_ptr", arrived.on(id)},
       {"words_ptr", told.on(id)},
       {"counts_ptr", own.counts.pointer()},
       {"notes_ptr", own.notes.pointer()},
       {"list_ptr", own.list.pointer()},
       {"places_ptr", own.places.pointer()},
       {"offsets_ptr", own.offsets.pointer()},
       {"ends_ptr", own.offsets.pointer()},
       {"tiles_ptr", own.tiles.pointer()},
       {"table_ptr", own.tiles.pointer()},
       {"meeting_ptr", own.counters.pointer() + Meeting},
       {"ready_ptr", own.counters.pointer() + Ready},
       {"call_ptr", own.counters.pointer() + DispatchCall},
       {"combine_call_ptr", own.counters.pointer() + CombineCall},
       {"error_ptr", report.on(id)},
       {"tokens", i64Argument(0)},
       {"experts", i64Argument(options.experts)},
       {"capacity", i64Argument(options.capacity)},
       {"max_rows", i64Argument(options.maxRows)},
       {"max_slots", i64Argument(maxSlots)},
       {"rank", id},
       {"WORLD", world->numRanks()},
       {"TOP_K", options.topK},
       {"SENDERS", planValue.senders},
       {"PACE", planValue.pace},
       {"PART", std::min<int64_t>(slotsOfPart, powerOfTwoFor(ceilDivide(maxSlots, planValue.senders)))},
       {"EXPERTS", width},
       {"LOCAL", powerOfTwoFor(local)},
       {"UNIT", planValue.unit},
       {"CHUNK", moves.chunk},
       {"CHUNKS", moves.chunks},
       {"ACTIVATION", std::string(toString(problem.activation))}});
  for (const auto &[name, pointer] : operands)
    call.arguments.emplace_back(std::string(name), pointer);
  return call;
}

KernelCall FusedExpertParallel::combineCall(const runtime::Rank &rank, const Named &operands) const {
  const FusedExpertParallelOptions &options = optionValues;
  const uint32_t id = rank.id();
  const PerRank &own = ranks[id];
  const TileConfig &tile = planValue.combineTile;
  // Of all slots of a token together a thread has so many accesses on their way.
  constexpr int64_t accesses = 8, bytesOfAccess = 16, leastChunk = 16;
  const int64_t chunk = tile.numWarps * rank.attributes().warpSize *
                        std::max<int64_t>(accesses / powerOfTwoFor(options.topK), 1) * bytesOfAccess /
                        static_cast<int64_t>(sizeOf(options.dtype));
  KernelCall call;
  call.source = kernelFile;
  call.kernel = "gemm_combine";
  call.grid = {places(), 1, 1};
  appendProduct(call, combineProblemOf(options, world->numRanks()), tile);
  call.arguments.insert(call.arguments.end(), {{"offsets_ptr", own.offsets.pointer()},
                                               {"tiles_ptr", own.tiles.pointer()},
                                               {"origins_ptr", origins.on(id)},
                                               {"places_ptr", own.places.pointer()},
                                               {"slots_ptr", slots.on(id)},
                                               {"words_ptr", done.on(id)},
                                               {"arrivals_ptr", own.counters.pointer() + Arrivals},
                                               {"call_ptr", own.counters.pointer() + CombineCall},
                                               {"dispatch_call_ptr", own.counters.pointer() + DispatchCall},
                                               {"tokens", i64Argument(0)},
                                               {"max_slots", i64Argument(options.maxTokens * options.topK)},
                                               {"rank", id},
                                               {"WORLD", world->numRanks()},
                                               {"TOP_K", options.topK},
                                               {"CHUNK", std::clamp<int64_t>(powerOfTwoFor(options.hidden), leastChunk,
                                                                             std::max(chunk, leastChunk))}});
  for (const auto &[name, pointer] : operands)
    call.arguments.emplace_back(std::string(name), pointer);
  for (std::string_view name : {"weights_ptr", "addend_ptr"})
    if (std::ranges::none_of(operands, [&](const auto &operand) { return operand.first == name; }))
      call.arguments.emplace_back(std::string(name), runtime::Argument(runtime::None()));
  return call;
}

Expected<FusedExpertParallel::Call> FusedExpertParallel::makeCall(runtime::Rank &rank, const KernelCall &call,
                                                                  const Named &operands) const {
  Call made;
  DITRON_ASSIGN_OR_RETURN(made.call, PreparedCall::create(*kernels, rank, call));
  for (size_t i = 0; i < operands.size(); ++i) {
    DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, made.call.pointerParameter(operands[i].first));
    made.pointers.emplace_back(parameter, i);
  }
  DITRON_ASSIGN_OR_RETURN(made.tokens, made.call.integerParameter("tokens"));
  return made;
}

Status FusedExpertParallel::prepare(runtime::Rank &rank) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  PerRank &own = ranks[rank.id()];
  if (own.unweighted) // graphs may have its kernels
    return Status::ok();
  // Any buffers stand for the caller's: only types and alignment matter.
  const runtime::Pointer values = slots.on(rank.id()), words = own.list.pointer();
  const Named dispatched = dispatchPointers({.x = values, .ids = words, .b = values, .c = values});
  DITRON_ASSIGN_OR_RETURN(own.dispatch, makeCall(rank, dispatchCall(rank, dispatched), dispatched));
  CombineOperands operands = {
      .a = values, .b = values, .out = values, .weights = words.as(DataType::F32), .addend = values};
  const Named weighted = combinePointers(operands);
  DITRON_ASSIGN_OR_RETURN(own.combine, makeCall(rank, combineCall(rank, weighted), weighted));
  operands.weights = {};
  const Named unweighted = combinePointers(operands);
  KernelCall skip;
  skip.source = kernelFile;
  skip.kernel = "skip_combine";
  skip.numWarps = 1;
  skip.arguments = {{"call_ptr", own.counters.pointer() + CombineCall},
                    {"dispatch_call_ptr", own.counters.pointer() + DispatchCall}};
  DITRON_ASSIGN_OR_RETURN(own.skip, PreparedCall::create(*kernels, rank, skip));
  DITRON_ASSIGN_OR_RETURN(own.unweighted, makeCall(rank, combineCall(rank, unweighted), unweighted));
  return Status::ok();
}

Status FusedExpertParallel::enqueue(std::string_view name, runtime::Rank &rank, runtime::Stream &stream,
                                    std::optional<Call> &call, const Named &operands, int64_t tokens) {
  DITRON_RETURN_IF_ERROR(verifyTokenCount(name, tokens, 0, optionValues.maxTokens));
  for (const auto &[parameter, pointer] : operands) {
    if (isOfTokens(parameter) && tokens == 0)
      continue;
    const std::string_view shown = parameter.substr(0, parameter.size() - std::string_view("_ptr").size());
    if (parameter == "ids_ptr" || parameter == "weights_ptr")
      DITRON_RETURN_IF_ERROR(
          verifyPointerType(name, shown, pointer, parameter == "ids_ptr" ? DataType::I32 : DataType::F32));
    else
      DITRON_RETURN_IF_ERROR(verifyAlignedPointer(name, shown, pointer, optionValues.dtype));
  }
  if (!call) {
    DITRON_RETURN_IF_ERROR(beginUnprepared(name, stream, fmt::format("{} tokens", tokens)));
    DITRON_RETURN_IF_ERROR(prepare(rank));
  }
  for (const auto &[parameter, operand] : call->pointers)
    DITRON_RETURN_IF_ERROR(call->call.setPointer(parameter, operands[operand].second));
  DITRON_RETURN_IF_ERROR(call->call.setInteger(call->tokens, tokens));
  return call->call.enqueue(stream);
}

Status FusedExpertParallel::dispatchGemm(runtime::Rank &rank, runtime::Stream &stream,
                                         const DispatchOperands &operands) {
  const std::string name = fmt::format("{}: dispatch", operation);
  DITRON_RETURN_IF_ERROR(verifyRank(name, *world, rank));
  PerRank &own = ranks[rank.id()];
  if (own.isDispatched)
    return invalidArgument(fmt::format("{}: the one before was not combined yet; enqueue its gemmCombine first", name));
  DITRON_RETURN_IF_ERROR(enqueue(name, rank, stream, own.dispatch, dispatchPointers(operands), operands.tokens));
  own.isDispatched = true;
  return Status::ok();
}

Status FusedExpertParallel::gemmCombine(runtime::Rank &rank, runtime::Stream &stream, const CombineOperands &operands) {
  const std::string name = fmt::format("{}: combine", operation);
  DITRON_RETURN_IF_ERROR(verifyRank(name, *world, rank));
  PerRank &own = ranks[rank.id()];
  if (!own.isDispatched)
    return invalidArgument(fmt::format("{}: nothing was dispatched that is not combined", name));
  DITRON_RETURN_IF_ERROR(enqueue(name, rank, stream, operands.weights.address ? own.combine : own.unweighted,
                                 combinePointers(operands), operands.tokens));
  own.isDispatched = false;
  return Status::ok();
}

Status FusedExpertParallel::skipCombine(runtime::Rank &rank, runtime::Stream &stream) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  PerRank &own = ranks[rank.id()];
  if (!own.isDispatched)
    return invalidArgument(fmt::format("{}: nothing was dispatched that is not combined", operation));
  own.isDispatched = false;
  return own.skip.enqueue(stream);
}

} // namespace ditron::ops
