//===- TensorParallelMoe.cpp - A mixture of experts whose every expert is spread over the ranks -----------------------------===//
#include "ditron/ops/layers/TensorParallelMoe.h"

#include "ditron/ops/SizeOptions.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "TensorParallelMoe";

GroupedGemmProblem upProblem(const TensorParallelMoeOptions &options, int64_t rows, uint32_t ranks) {
  GroupedGemmProblem problem;
  problem.maxRows = rows;
  problem.experts = options.experts;
  problem.n = 2 * options.inner / ranks;
  problem.k = options.hidden;
  problem.dtype = problem.resultType = options.dtype;
  problem.activation = Activation::SwiGlu;
  problem.slots = options.topK;
  problem.precision = MultiplyPrecision::Ieee;
  return problem;
}

GroupedGemmProblem downProblem(const TensorParallelMoeOptions &options, int64_t rows, uint32_t ranks) {
  GroupedGemmProblem problem = upProblem(options, rows, ranks);
  problem.n = options.hidden;
  problem.k = options.inner / ranks;
  problem.activation = Activation::None;
  problem.slots = 0;
  return problem;
}

} // namespace

Status verifyTensorParallelMoe(std::string_view operation, const TensorParallelMoeOptions &options,
                               size_t ranksWithWeights, uint32_t numRanks) {
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, options.dtype));
  // Each inner column is two of a product: its gate, and what that lets through.
  DITRON_RETURN_IF_ERROR(verifySizeOptions(operation, {{"hidden", options.hidden},
                                                       {"inner", options.inner, 1, mostSize / 2},
                                                       {"maxTokensPerRank", options.maxTokensPerRank}}));
  DITRON_RETURN_IF_ERROR(verifyChoice(operation, options.experts, options.topK));
  if (options.inner % numRanks != 0)
    return invalidArgument(
        fmt::format("{}: {} inner columns over {} ranks, which must divide them", operation, options.inner, numRanks));
  if (ranksWithWeights != numRanks)
    return invalidArgument(
        fmt::format("{}: weights of {} ranks are given; there are {}", operation, ranksWithWeights, numRanks));
  return Status::ok();
}

Expected<TensorParallelMoe> TensorParallelMoe::create(runtime::World &world, runtime::KernelProvider &kernels,
                                                      const TensorParallelMoeOptions &options,
                                                      const std::vector<TensorParallelMoeWeights> &weights) {
  const uint32_t numRanks = world.numRanks();
  DITRON_RETURN_IF_ERROR(verifyTensorParallelMoe(operation, options, weights.size(), numRanks));
  const bool oneNode = world.numNodes() == 1;
  if (options.schedule == Schedule::Overlapped)
    DITRON_RETURN_IF_ERROR(world.requireOneNode(fmt::format("{}: the overlapped schedule", operation)));
  TensorParallelMoe layer;
  layer.optionValues = options;
  layer.optionValues.schedule = options.schedule.value_or(oneNode ? Schedule::Overlapped : Schedule::Unfused);
  layer.world = &world;
  layer.kernels = &kernels;
  layer.ranks.resize(numRanks);
  for (uint32_t id : world.localRanks())
    DITRON_RETURN_IF_ERROR(layer.allocate(world.rank(id), weights[id]));
  DITRON_RETURN_IF_ERROR(layer.overlaps() ? layer.createOverlapped() : layer.createUnfused());
  return layer;
}

Status TensorParallelMoe::createRouting(runtime::Rank &rank) {
  DITRON_ASSIGN_OR_RETURN(ranks[rank.id()]->routing,
                          Routing::create(rank, *kernels,
                                          {optionValues.experts, optionValues.topK,
                                           allTokens(optionValues.maxTokensPerRank), upPlan.tile.blockM}));
  return Status::ok();
}

Status TensorParallelMoe::createOverlapped() {
  const TensorParallelMoeOptions &options = optionValues;
  const uint32_t numRanks = world->numRanks();
  std::vector<MoeRows> rows(numRanks);
  if (areDealt()) {
    AllGatherMoeOptions up;
    up.dtype = up.resultType = options.dtype;
    up.hidden = options.hidden;
    up.columns = 2 * options.inner / numRanks;
    up.experts = options.experts;
    up.topK = options.topK;
    up.maxTokensPerRank = options.maxTokensPerRank;
    up.activation = Activation::SwiGlu;
    up.precision = MultiplyPrecision::Ieee;
    DITRON_ASSIGN_OR_RETURN(gatherMoe, AllGatherMoe::create(*world, *kernels, up));
    for (uint32_t id : world->localRanks())
      rows[id] = gatherMoe->rows(id);
  } else {
    upPlan =
        chooseGroupedGemmPlan(upProblem(options, options.maxTokensPerRank * options.topK, numRanks), world->target());
    for (uint32_t id : world->localRanks()) {
      DITRON_RETURN_IF_ERROR(createRouting(world->rank(id)));
      rows[id] = MoeRows::of(*ranks[id]->routing, ranks[id]->router->weights());
    }
  }
  MoeReductionOptions down;
  down.result = areDealt() ? MoeResult::Scattered : MoeResult::Everywhere;
  down.dtype = down.resultType = options.dtype;
  down.depth = options.inner / numRanks;
  down.hidden = options.hidden;
  down.maxTokens = allTokens(options.maxTokensPerRank);
  down.precision = MultiplyPrecision::Ieee;
  DITRON_ASSIGN_OR_RETURN(reduction, MoeReduction::create(*world, *kernels, down, rows));
  return Status::ok();
}

Status TensorParallelMoe::createUnfused() {
  const TensorParallelMoeOptions &options = optionValues;
  const uint32_t numRanks = world->numRanks();
  const int64_t tokens = allTokens(options.maxTokensPerRank), rows = tokens * options.topK;
  upPlan = chooseGroupedGemmPlan(upProblem(options, rows, numRanks), world->target());
  downPlan = chooseGroupedGemmPlan(downProblem(options, rows, numRanks), world->target());
  downPlan.tile.blockM = upPlan.tile.blockM; // one table of tiles
  CollectiveOptions collective;
  collective.dtype = options.dtype;
  collective.maxElements = options.maxTokensPerRank * options.hidden;
  if (areDealt()) {
    collective.kind = CollectiveKind::AllGather;
    DITRON_ASSIGN_OR_RETURN(gather, Collective::create(*world, *kernels, collective));
  }
  collective.kind = areDealt() ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce;
  DITRON_ASSIGN_OR_RETURN(exchange, Collective::create(*world, *kernels, collective));
  for (uint32_t id : world->localRanks()) {
    runtime::Rank &rank = world->rank(id);
    PerRank &own = *ranks[id];
    DITRON_RETURN_IF_ERROR(createRouting(rank));
    if (areDealt()) {
      DITRON_ASSIGN_OR_RETURN(own.gathered, rank.allocate(options.dtype, tokens * options.hidden, "moe_gathered"));
    }
    DITRON_ASSIGN_OR_RETURN(own.rows, rank.allocate(options.dtype, rows * options.hidden, "moe_rows"));
    DITRON_ASSIGN_OR_RETURN(own.sums, rank.allocate(options.dtype, tokens * options.hidden, "moe_sums"));
  }
  return Status::ok();
}

Status TensorParallelMoe::allocate(runtime::Rank &rank, const TensorParallelMoeWeights &weights) {
  const TensorParallelMoeOptions &options = optionValues;
  for (auto [name, pointer] : {std::pair("up", weights.up), std::pair("down", weights.down)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, options.dtype));
  auto own = std::make_unique<PerRank>();
  own->weights = weights;
  const int64_t tokens = allTokens(options.maxTokensPerRank), rows = tokens * options.topK;
  const int64_t routed = overlaps() ? options.maxTokensPerRank : tokens; // tokens that this rank chooses experts for
  DITRON_ASSIGN_OR_RETURN(own->router,
                          MoeRouter::create(rank, *kernels, routerOf(options, routed), weights.router, weights.bias));
  DITRON_ASSIGN_OR_RETURN(own->inner,
                          rank.allocate(options.dtype, rows * options.inner / world->numRanks(), "moe_inner"));
  ranks[rank.id()] = std::move(own);
  return Status::ok();
}

Status TensorParallelMoe::verifyTokens(int64_t tokensPerRank, int64_t ownTokens) const {
  if (tokensPerRank < 1 || tokensPerRank > optionValues.maxTokensPerRank)
    return invalidArgument(fmt::format("{}: {} tokens of each rank; 1 to {} (maxTokensPerRank) are accepted", operation,
                                       tokensPerRank, optionValues.maxTokensPerRank));
  const int64_t least = overlaps() && areDealt() ? 0 : tokensPerRank;
  if (ownTokens < least || ownTokens > tokensPerRank)
    return invalidArgument(fmt::format("{}: {} own tokens of {}; {} to {} are accepted by the {} schedule", operation,
                                       ownTokens, tokensPerRank, least, tokensPerRank,
                                       toString(*optionValues.schedule)));
  return Status::ok();
}

Status TensorParallelMoe::appendTokenProduct(const PerRank &own, PreparedCall product, Plan &plan) {
  if (!own.gathered.isValid()) {
    DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, product.pointerParameter("a_ptr"));
    plan.tokenParameters.emplace_back(plan.calls.size(), parameter);
  }
  plan.calls.push_back(std::move(product));
  return Status::ok();
}

Expected<TensorParallelMoe::Plan> TensorParallelMoe::plan(runtime::Rank &rank, int64_t tokensPerRank) {
  const TensorParallelMoeOptions &options = optionValues;
  PerRank &own = *ranks[rank.id()];
  const uint32_t numRanks = world->numRanks();
  const int64_t tokens = allTokens(tokensPerRank), rows = tokens * options.topK;
  // Any buffer stands for the caller's x: only its type and alignment matter.
  const runtime::Pointer x = own.gathered.isValid() ? own.gathered.pointer() : own.inner.pointer();
  Plan plan;
  if (gatherMoe)
    return plan;
  DITRON_RETURN_IF_ERROR(own.routing->prepare(tokens));
  GroupedGemmOperands operands;
  operands.a = x;
  operands.b = own.weights.up;
  operands.c = own.inner.pointer();
  operands.offsets = own.routing->offsets();
  operands.tiles = own.routing->tiles();
  operands.slotOfRow = own.routing->slotOfRow();
  DITRON_ASSIGN_OR_RETURN(PreparedCall up,
                          prepareGroupedGemm(*kernels, rank, upProblem(options, rows, numRanks), operands, upPlan));
  DITRON_RETURN_IF_ERROR(appendTokenProduct(own, std::move(up), plan));
  if (reduction)
    return plan;
  operands.a = own.inner.pointer();
  operands.b = own.weights.down;
  operands.c = own.rows.pointer();
  DITRON_ASSIGN_OR_RETURN(PreparedCall down,
                          prepareGroupedGemm(*kernels, rank, downProblem(options, rows, numRanks), operands, downPlan));
  DITRON_ASSIGN_OR_RETURN(PreparedCall sum,
                          prepareSlotSum(*kernels, rank, {tokens, options.hidden, options.topK}, own.rows.pointer(),
                                         own.routing->rowOfSlot(), own.router->weights(), own.sums.pointer()));
  plan.calls.push_back(std::move(down));
  plan.calls.push_back(std::move(sum));
  return plan;
}

Status TensorParallelMoe::prepare(runtime::Rank &rank, int64_t tokensPerRank, std::optional<int64_t> ownTokens) {
  const int64_t present = ownTokens.value_or(tokensPerRank);
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  DITRON_RETURN_IF_ERROR(verifyTokens(tokensPerRank, present));
  PerRank &own = *ranks[rank.id()];
  if (gatherMoe)
    DITRON_RETURN_IF_ERROR(gatherMoe->prepare(rank, tokensPerRank, present));
  if (reduction)
    DITRON_RETURN_IF_ERROR(reduction->prepare(rank, allTokens(tokensPerRank)));
  if (const int64_t routed = routedTokens(tokensPerRank, present); routed > 0)
    DITRON_RETURN_IF_ERROR(own.router->prepare(routed));
  if (gather)
    DITRON_RETURN_IF_ERROR(gather->prepare(rank, tokensPerRank * optionValues.hidden));
  if (exchange)
    DITRON_RETURN_IF_ERROR(exchange->prepare(rank, tokensPerRank * optionValues.hidden));
  const KeptPlans<Plan>::Key key = {tokensPerRank};
  if (own.kept.has(key)) // graphs may have its kernels
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(Plan made, plan(rank, tokensPerRank));
  own.kept.keep(key, std::move(made));
  return Status::ok();
}

Status TensorParallelMoe::enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer x, runtime::Pointer y,
                                  int64_t tokensPerRank, std::optional<int64_t> ownTokens) {
  const int64_t present = ownTokens.value_or(tokensPerRank);
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  DITRON_RETURN_IF_ERROR(verifyTokens(tokensPerRank, present));
  for (auto [name, pointer] : {std::pair("x", x), std::pair("y", y)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, optionValues.dtype));
  PerRank &own = *ranks[rank.id()];
  auto describe = [&] { return fmt::format("{} tokens of each rank", tokensPerRank); };
  DITRON_ASSIGN_OR_RETURN(Plan * found, own.kept.find(operation, stream, {tokensPerRank}, describe,
                                                      [&] { return plan(rank, tokensPerRank); }));
  const int64_t elements = tokensPerRank * optionValues.hidden;
  for (const auto &[call, parameter] : found->tokenParameters)
    DITRON_RETURN_IF_ERROR(found->calls[call].setPointer(parameter, x));
  if (gather)
    DITRON_RETURN_IF_ERROR(gather->enqueue(rank, stream, x, own.gathered.pointer(), elements));
  if (const int64_t routed = routedTokens(tokensPerRank, present); routed > 0)
    DITRON_RETURN_IF_ERROR(own.router->enqueue(stream, gather ? own.gathered.pointer() : x, routed));
  if (own.routing)
    DITRON_RETURN_IF_ERROR(own.routing->enqueue(stream, own.router->ids(), allTokens(tokensPerRank)));
  for (const PreparedCall &call : found->calls)
    DITRON_RETURN_IF_ERROR(call.enqueue(stream));
  if (gatherMoe) {
    const AllGatherMoeOperands up = {x, own.router->ids(), own.router->weights(), own.weights.up, own.inner, {}, {}};
    DITRON_RETURN_IF_ERROR(gatherMoe->enqueue(rank, stream, up, tokensPerRank, present));
  }
  if (reduction)
    return reduction->enqueue(rank, stream, {own.inner, own.weights.down, y, {}, {}}, allTokens(tokensPerRank));
  return exchange->enqueue(rank, stream, own.sums.pointer(), y, elements);
}

} // namespace ditron::ops
