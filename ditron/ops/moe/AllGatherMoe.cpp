//===- AllGatherMoe.cpp - The tokens of all ranks times the weights of their experts, overlapped ---------------------------===//
#include "ditron/ops/moe/AllGatherMoe.h"

#include "ditron/ops/CallSchedule.h"
#include "ditron/ops/SizeOptions.h"
#include "ditron/ops/tensor_parallel/OneLaunchGather.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "AllGatherMoe";
/// Programs that exchange the choices; each waits for those of its number, so that all must find a place. And slots of one at a time.
constexpr uint32_t mostSharing = 16, sharedBlock = 1024;
constexpr uint32_t mostChunks = 64;

/// The operands of a call by number.
enum OperandNumber : size_t { Tokens, Ids, SlotWeights, Weights, Rows, TokenScales, WeightScales };
std::vector<runtime::Pointer> inOrder(const AllGatherMoeOperands &operands) {
  return {operands.tokens, operands.ids,         operands.slotWeights, operands.weights,
          operands.rows,   operands.tokenScales, operands.weightScales};
}

} // namespace

Expected<AllGatherMoe> AllGatherMoe::create(runtime::World &world, runtime::KernelProvider &kernels,
                                            const Options &options) {
  DITRON_RETURN_IF_ERROR(world.requireOneNode(operation));
  DITRON_RETURN_IF_ERROR(verifySizeOptions(
      operation,
      {{"hidden", options.hidden}, {"columns", options.columns}, {"maxTokensPerRank", options.maxTokensPerRank}}));
  if (options.topK == 0 || options.topK > mostTopK)
    return invalidArgument(fmt::format("{}: topK is {}; 1 to {} are accepted", operation, options.topK, mostTopK));
  if (options.chunksPerRank == 0 || options.chunksPerRank > mostChunks)
    return invalidArgument(
        fmt::format("{}: {} chunks per rank; 1 to {} are accepted", operation, options.chunksPerRank, mostChunks));
  AllGatherMoe op;
  op.optionValues = options;
  op.world = &world;
  op.kernels = &kernels;
  op.planAgreement = PlanAgreement(world, operation);
  op.agreement = std::make_shared<runtime::CallAgreement>(std::string(operation), world.numRanks());
  const GroupedGemmProblem largest = op.problemFor(options.maxTokensPerRank);
  op.plan = options.plan.value_or(chooseGroupedGemmPlan(largest, world.target()));
  DITRON_RETURN_IF_ERROR(verifyGroupedGemm(largest, op.plan).withContext(operation));
  DITRON_RETURN_IF_ERROR(op.planAgreement.begin(
      world,
      fmt::format("{} tokens of {} elements of {}{}, top {} of {} experts, {} chunks of a rank's tokens",
                  options.maxTokensPerRank, options.hidden, toString(options.dtype),
                  options.blockScales ? " with scales" : "", options.topK, options.experts, options.chunksPerRank)));
  DITRON_ASSIGN_OR_RETURN(op.words, CallWords::create(world, "ag_moe", 0));
  const uint32_t numRanks = world.numRanks();
  const int64_t tokens = options.maxTokensPerRank * numRanks, slots = tokens * options.topK;
  const auto allocate = [&](runtime::SymmetricBuffer &buffer, DataType type, int64_t count,
                            std::string_view name) -> Status {
    DITRON_ASSIGN_OR_RETURN(buffer, world.allocateSymmetric(type, count, name));
    return Status::ok();
  };
  DITRON_RETURN_IF_ERROR(allocate(op.workspace, options.dtype, tokens * options.hidden, "ag_moe_workspace"));
  if (options.blockScales)
    DITRON_RETURN_IF_ERROR(allocate(op.scales, DataType::F32, tokens * op.scalesPerToken(), "ag_moe_scales"));
  DITRON_RETURN_IF_ERROR(allocate(op.ready, DataType::I64, numRanks * options.chunksPerRank, "ag_moe_ready"));
  DITRON_RETURN_IF_ERROR(allocate(op.allIds, DataType::I32, slots, "ag_moe_ids"));
  DITRON_RETURN_IF_ERROR(allocate(op.allWeights, DataType::F32, slots, "ag_moe_slot_weights"));
  DITRON_RETURN_IF_ERROR(allocate(op.shared, DataType::I64, mostSharing * numRanks, "ag_moe_shared"));
  op.ranks.resize(numRanks);
  for (uint32_t id : world.localRanks()) {
    runtime::Rank &rank = world.rank(id);
    auto own = std::make_unique<PerRank>();
    DITRON_ASSIGN_OR_RETURN(own->side, runtime::SideStream::create(rank, "ag_moe"));
    DITRON_ASSIGN_OR_RETURN(
        own->routing, Routing::create(rank, kernels, {options.experts, options.topK, tokens, op.plan.tile.blockM}));
    DITRON_ASSIGN_OR_RETURN(own->order, TileOrder::create(rank, "ag_moe", slots, options.experts, op.plan.tile.blockM));
    op.ranks[id] = std::move(own);
  }
  return op;
}

GroupedGemmProblem AllGatherMoe::problemFor(int64_t tokensPerRank) const {
  GroupedGemmProblem problem;
  problem.maxRows = mostRows(tokensPerRank);
  problem.experts = optionValues.experts;
  problem.n = optionValues.columns;
  problem.k = optionValues.hidden;
  problem.dtype = optionValues.dtype;
  problem.resultType = optionValues.resultType;
  problem.order = optionValues.weightOrder;
  problem.activation = optionValues.activation;
  problem.slots = optionValues.topK;
  problem.blockScales = optionValues.blockScales;
  problem.precision = optionValues.precision;
  return problem;
}

MoeRows AllGatherMoe::rows(uint32_t rank) const {
  return MoeRows::of(*ranks[rank]->routing, allWeights.on(rank), rank);
}

Status AllGatherMoe::verifyTokens(int64_t tokensPerRank, int64_t ownTokens) const {
  if (tokensPerRank < 1 || tokensPerRank > optionValues.maxTokensPerRank)
    return invalidArgument(fmt::format("{}: {} tokens of each rank; 1 to {} (maxTokensPerRank) are accepted", operation,
                                       tokensPerRank, optionValues.maxTokensPerRank));
  if (ownTokens < 0 || ownTokens > tokensPerRank)
    return invalidArgument(
        fmt::format("{}: {} own tokens; 0 to {} (tokensPerRank) are accepted", operation, ownTokens, tokensPerRank));
  return Status::ok();
}

KernelCall AllGatherMoe::enterCall(const runtime::Rank &rank, int64_t tokensPerRank, int64_t ownTokens) const {
  const uint32_t id = rank.id();
  const int64_t hidden = optionValues.hidden;
  const CopiedRows copied(ownTokens, hidden, hidden, hidden);
  CallWords::OwnCopy copy = {.destination = workspace.on(id) + id * tokensPerRank * hidden,
                             .source = workspace.on(id),
                             .rows = copied.rows,
                             .columns = copied.columns,
                             .destinationStride = hidden,
                             .sourceStride = hidden};
  if (optionValues.blockScales) {
    copy.scaleDestination = scales.on(id) + id * tokensPerRank * scalesPerToken();
    copy.scaleSource = scales.on(id);
    copy.scales = ownTokens * scalesPerToken();
    copy.hasScaleOfEach = true;
  }
  return words.enter(rank, ready.on(id), optionValues.chunksPerRank, copy);
}

KernelCall AllGatherMoe::shareCall(const runtime::Rank &rank, int64_t tokensPerRank, int64_t ownTokens) const {
  const uint32_t id = rank.id();
  const int64_t programs = std::clamp<int64_t>(ceilDivide(tokensPerRank * optionValues.topK, sharedBlock), 1,
                                               std::min(mostSharing, rank.attributes().multiprocessors));
  KernelCall call;
  call.source = "moe/tensor_parallel";
  call.kernel = "share_choices";
  call.grid = {static_cast<uint32_t>(programs), 1, 1};
  call.arguments = {{"ids_ptr", allIds.on(id)},
                    {"weights_ptr", allWeights.on(id)},
                    {"all_ids_ptr", allIds.on(id)},
                    {"all_weights_ptr", allWeights.on(id)},
                    {"shared_ptr", shared.on(id)},
                    {"generation_ptr", words.generation(id)},
                    {"tokens_per_rank", tokensPerRank},
                    {"own_tokens", ownTokens},
                    {"rank", id},
                    {"WORLD_SIZE", rank.numRanks()},
                    {"TOP_K", optionValues.topK},
                    {"BLOCK", sharedBlock}};
  return call;
}

void AllGatherMoe::addPushes(const runtime::Rank &rank, int64_t tokensPerRank, int64_t ownTokens,
                             runtime::CallSequence &sequence) const {
  using runtime::Copy, runtime::Lane;
  const uint32_t id = rank.id(), numRanks = rank.numRanks(), chunks = optionValues.chunksPerRank;
  const int64_t firstToken = id * tokensPerRank;
  for (const Push &push : allGatherPushes(RowShards(tokensPerRank * numRanks, numRanks), id, numRanks, chunks)) {
    const int64_t tokens = std::clamp<int64_t>(firstToken + ownTokens - push.firstRow, 0, push.rows);
    const auto copy = [&](const runtime::SymmetricBuffer &buffer, int64_t elements) {
      sequence.copy(Lane::Side,
                    Copy::of(buffer.on(push.peer) + push.firstRow * elements, buffer.on(id) + push.firstRow * elements,
                             tokens * elements, fmt::format("{} to {}", copyName, push.peer)));
    };
    if (tokens > 0) {
      copy(workspace, optionValues.hidden);
      if (optionValues.blockScales)
        copy(scales, scalesPerToken());
    }
    // Behind the data the generation word: no host value is baked into a captured call.
    const uint32_t stage = (id + numRanks - push.peer) % numRanks;
    sequence.copy(Lane::Side, Copy::of(ready.on(push.peer) + (stage * chunks + push.chunk), words.generation(id), 1,
                                       fmt::format("ag_moe_ready to {}", push.peer)));
  }
}

Expected<MoeCall> AllGatherMoe::makeCall(runtime::Rank &rank, int64_t tokensPerRank, int64_t ownTokens) {
  using runtime::Lane;
  const uint32_t id = rank.id();
  PerRank &own = *ranks[id];
  MoeCall call(own.side);
  MoeCall::Names copied = {{"shard_ptr", Tokens}};
  if (optionValues.blockScales)
    copied.emplace_back("shard_scale_ptr", TokenScales);
  DITRON_ASSIGN_OR_RETURN(PreparedCall enter,
                          PreparedCall::create(*kernels, rank, enterCall(rank, tokensPerRank, ownTokens)));
  DITRON_RETURN_IF_ERROR(call.launch(Lane::Main, std::move(enter), copied));
  call.sequence.join(Lane::Side);
  addPushes(rank, tokensPerRank, ownTokens, call.sequence);
  DITRON_ASSIGN_OR_RETURN(PreparedCall share,
                          PreparedCall::create(*kernels, rank, shareCall(rank, tokensPerRank, ownTokens)));
  DITRON_RETURN_IF_ERROR(call.launch(Lane::Main, std::move(share), {{"ids_ptr", Ids}, {"weights_ptr", SlotWeights}}));
  DITRON_ASSIGN_OR_RETURN(std::vector<PreparedCall> sorting,
                          own.routing->calls(allIds.on(id), tokensPerRank * rank.numRanks(), id * tokensPerRank));
  for (PreparedCall &each : sorting)
    DITRON_RETURN_IF_ERROR(call.launch(Lane::Main, std::move(each)));
  DITRON_ASSIGN_OR_RETURN(PreparedCall order, own.order->prepare(*kernels, rank, rows(id), TileOrder::By::Arrival,
                                                                 tokensPerRank, optionValues.chunksPerRank));
  DITRON_RETURN_IF_ERROR(call.launch(Lane::Main, std::move(order)));
  if (optionValues.schedule == Schedule::Unfused)
    call.sequence.join(Lane::Main);
  // Any buffers stand for the caller's: only their types and alignment matter.
  const runtime::Pointer any = workspace.on(id);
  GroupedGemmOperands operands;
  operands.a = any;
  operands.b = any;
  operands.c = any.as(optionValues.resultType);
  operands.offsets = own.routing->offsets();
  operands.tiles = own.order->tiles();
  operands.slotOfRow = own.routing->slotOfRow();
  operands.ranks = {
      .spans = own.order->spans(), .ready = ready.on(id), .generation = words.generation(id), .firstRank = id};
  MoeCall::Names names = {{"b_ptr", Weights}, {"c_ptr", Rows}};
  if (optionValues.blockScales) {
    operands.aScale = scales.on(id);
    operands.bScale = any.as(DataType::F32);
    names.emplace_back("b_scale_ptr", WeightScales);
  }
  DITRON_ASSIGN_OR_RETURN(PreparedCall product,
                          prepareGroupedGemm(*kernels, rank, problemFor(tokensPerRank), operands,
                                             TileOrder::inOrder(plan, tokensPerRank, optionValues.topK)));
  DITRON_RETURN_IF_ERROR(call.launch(Lane::Main, std::move(product), names));
  if (optionValues.schedule == Schedule::Overlapped)
    call.sequence.join(Lane::Main);
  call.sequence.setAgreedCall({agreement, id, fmt::format("{} tokens of each rank", tokensPerRank)});
  return call;
}

Status AllGatherMoe::prepare(runtime::Rank &rank, int64_t tokensPerRank, std::optional<int64_t> ownTokens) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  const int64_t tokens = ownTokens.value_or(tokensPerRank);
  Status made = verifyTokens(tokensPerRank, tokens);
  if (made.isOk())
    made = MoeCall::prepare(ranks[rank.id()]->kept, {tokensPerRank, tokens}, rank, operation,
                            [&] { return makeCall(rank, tokensPerRank, tokens); });
  DITRON_RETURN_IF_ERROR(
      planAgreement.reach(rank, made, fmt::format("a call of {} tokens of each rank", tokensPerRank), "pushes"));
  return made;
}

Status AllGatherMoe::enqueue(runtime::Rank &rank, runtime::Stream &stream, const AllGatherMoeOperands &operands,
                             int64_t tokensPerRank, std::optional<int64_t> ownTokens) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  const int64_t tokens = ownTokens.value_or(tokensPerRank);
  DITRON_RETURN_IF_ERROR(verifyTokens(tokensPerRank, tokens));
  std::vector<std::tuple<std::string_view, runtime::Pointer, DataType>> given = {
      {"tokens", operands.tokens, optionValues.dtype},
      {"ids", operands.ids, DataType::I32},
      {"slotWeights", operands.slotWeights, DataType::F32},
      {"weights", operands.weights, optionValues.dtype},
      {"rows", operands.rows, optionValues.resultType}};
  if (optionValues.blockScales)
    given.insert(given.end(), {{"tokenScales", operands.tokenScales, DataType::F32},
                               {"weightScales", operands.weightScales, DataType::F32}});
  for (const auto &[name, pointer, type] : given)
    DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operation, name, pointer, type));
  const auto describe = [&] { return fmt::format("{} tokens of each rank, {} of them own", tokensPerRank, tokens); };
  DITRON_ASSIGN_OR_RETURN(MoeCall * found,
                          ranks[rank.id()]->kept.find(operation, stream, {tokensPerRank, tokens}, describe,
                                                      [&] { return makeCall(rank, tokensPerRank, tokens); }));
  return found->enqueue(stream, inOrder(operands));
}

} // namespace ditron::ops
