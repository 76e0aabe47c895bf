//===- TensorParallelMoe.cpp - A mixture of experts whose every expert is spread over the ranks -----------------------------===//
#include "ditron/ops/layers/TensorParallelMoe.h"

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

Expected<TensorParallelMoe> TensorParallelMoe::create(runtime::World &world, runtime::KernelProvider &kernels,
                                                      const TensorParallelMoeOptions &options,
                                                      const std::vector<TensorParallelMoeWeights> &weights) {
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, options.dtype));
  const uint32_t numRanks = world.numRanks();
  if (options.hidden <= 0 || options.inner <= 0 || options.maxTokensPerRank <= 0)
    return invalidArgument(fmt::format("{}: hidden is {}, inner {}, maxTokensPerRank {}; all must be positive",
                                       operation, options.hidden, options.inner, options.maxTokensPerRank));
  if (options.inner % numRanks != 0)
    return invalidArgument(
        fmt::format("{}: {} inner columns do not divide by {} ranks", operation, options.inner, numRanks));
  if (weights.size() != numRanks)
    return invalidArgument(
        fmt::format("{}: weights of {} ranks are given; there are {}", operation, weights.size(), numRanks));
  TensorParallelMoe layer;
  layer.optionValues = options;
  layer.world = &world;
  layer.kernels = &kernels;
  const int64_t rows = options.maxTokensPerRank * numRanks * options.topK;
  layer.upPlan = chooseGroupedGemmPlan(upProblem(options, rows, numRanks), world.target());
  layer.downPlan = chooseGroupedGemmPlan(downProblem(options, rows, numRanks), world.target());
  layer.downPlan.tile.blockM = layer.upPlan.tile.blockM; // one table of tiles
  CollectiveOptions exchange;
  exchange.dtype = options.dtype;
  exchange.maxElements = options.maxTokensPerRank * options.hidden;
  exchange.kind = CollectiveKind::AllGather;
  DITRON_ASSIGN_OR_RETURN(layer.gather, Collective::create(world, kernels, exchange));
  exchange.kind = CollectiveKind::ReduceScatter;
  DITRON_ASSIGN_OR_RETURN(layer.scatter, Collective::create(world, kernels, exchange));
  layer.ranks.resize(numRanks);
  for (uint32_t id : world.localRanks())
    DITRON_RETURN_IF_ERROR(layer.allocate(world.rank(id), weights[id]));
  return layer;
}

Status TensorParallelMoe::allocate(runtime::Rank &rank, const TensorParallelMoeWeights &weights) {
  const TensorParallelMoeOptions &options = optionValues;
  for (auto [name, pointer] :
       {std::pair("router", weights.router), std::pair("up", weights.up), std::pair("down", weights.down)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, options.dtype));
  auto own = std::make_unique<PerRank>();
  own->weights = weights;
  const int64_t tokens = options.maxTokensPerRank * world->numRanks(), rows = tokens * options.topK;
  DITRON_ASSIGN_OR_RETURN(own->routing,
                          Routing::create(rank, *kernels, {options.experts, options.topK, tokens, upPlan.tile.blockM}));
  const auto allocate = [&](runtime::Buffer &buffer, DataType type, int64_t count, std::string_view name) -> Status {
    DITRON_ASSIGN_OR_RETURN(buffer, rank.allocate(type, count, name));
    return Status::ok();
  };
  DITRON_RETURN_IF_ERROR(allocate(own->gathered, options.dtype, tokens * options.hidden, "moe_gathered"));
  DITRON_RETURN_IF_ERROR(allocate(own->logits, DataType::F32, tokens * options.experts, "moe_logits"));
  DITRON_RETURN_IF_ERROR(allocate(own->ids, DataType::I32, rows, "moe_ids"));
  DITRON_RETURN_IF_ERROR(allocate(own->slotWeights, DataType::F32, rows, "moe_weights"));
  DITRON_RETURN_IF_ERROR(allocate(own->inner, options.dtype, rows * options.inner / world->numRanks(), "moe_inner"));
  DITRON_RETURN_IF_ERROR(allocate(own->rows, options.dtype, rows * options.hidden, "moe_rows"));
  DITRON_RETURN_IF_ERROR(allocate(own->sums, options.dtype, tokens * options.hidden, "moe_sums"));
  ranks[rank.id()] = std::move(own);
  return Status::ok();
}

Status TensorParallelMoe::verifyTokens(int64_t tokensPerRank) const {
  if (tokensPerRank < 1 || tokensPerRank > optionValues.maxTokensPerRank)
    return invalidArgument(fmt::format("{}: {} tokens of each rank; 1 to {} (maxTokensPerRank) are accepted", operation,
                                       tokensPerRank, optionValues.maxTokensPerRank));
  return Status::ok();
}

Expected<TensorParallelMoe::Plan> TensorParallelMoe::plan(runtime::Rank &rank, int64_t tokensPerRank) {
  const TensorParallelMoeOptions &options = optionValues;
  PerRank &own = *ranks[rank.id()];
  const uint32_t numRanks = world->numRanks();
  const int64_t tokens = tokensPerRank * numRanks, rows = tokens * options.topK;
  DITRON_RETURN_IF_ERROR(own.routing->prepare(tokens));
  DITRON_RETURN_IF_ERROR(gather->prepare(rank, tokensPerRank * options.hidden));
  DITRON_RETURN_IF_ERROR(scatter->prepare(rank, tokensPerRank * options.hidden));
  Plan plan;
  const auto add = [&](Expected<PreparedCall> call) -> Status {
    DITRON_RETURN_IF_ERROR(call.status());
    plan.push_back(std::move(*call));
    return Status::ok();
  };
  GemmProblem logits;
  logits.m = tokens;
  logits.n = options.experts;
  logits.k = options.hidden;
  logits.dtype = options.dtype;
  logits.resultType = DataType::F32;
  logits.precision = MultiplyPrecision::Ieee;
  DITRON_RETURN_IF_ERROR(
      add(prepareGemm(*kernels, rank, logits, own.gathered.pointer(), own.weights.router, own.logits.pointer())));
  const RouterProblem router = {.tokens = tokens,
                                .experts = options.experts,
                                .topK = options.topK,
                                .score = options.score,
                                .normalized = options.normalized,
                                .scale = options.scale};
  DITRON_RETURN_IF_ERROR(add(prepareRouter(*kernels, rank, router, own.logits.pointer(), own.weights.bias,
                                           own.ids.pointer(), own.slotWeights.pointer())));
  GroupedGemmOperands operands;
  operands.a = own.gathered.pointer();
  operands.b = own.weights.up;
  operands.c = own.inner.pointer();
  operands.offsets = own.routing->offsets();
  operands.tiles = own.routing->tiles();
  operands.slotOfRow = own.routing->slotOfRow();
  DITRON_RETURN_IF_ERROR(add(prepareGroupedGemm(*kernels, rank, upProblem(options, rows, numRanks), operands, upPlan)));
  operands.a = own.inner.pointer();
  operands.b = own.weights.down;
  operands.c = own.rows.pointer();
  DITRON_RETURN_IF_ERROR(
      add(prepareGroupedGemm(*kernels, rank, downProblem(options, rows, numRanks), operands, downPlan)));
  DITRON_RETURN_IF_ERROR(add(prepareSlotSum(*kernels, rank, {tokens, options.hidden, options.topK}, own.rows.pointer(),
                                            own.routing->rowOfSlot(), own.slotWeights.pointer(), own.sums.pointer())));
  return plan;
}

Status TensorParallelMoe::prepare(runtime::Rank &rank, int64_t tokensPerRank) {
  DITRON_RETURN_IF_ERROR(verifyTokens(tokensPerRank));
  PerRank &own = *ranks[rank.id()];
  const KeptPlans<Plan>::Key key = {tokensPerRank, optionValues.hidden};
  if (own.kept.has(key)) // graphs may have its kernels
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(Plan made, plan(rank, tokensPerRank));
  own.kept.keep(key, std::move(made));
  return Status::ok();
}

Status TensorParallelMoe::enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer x, runtime::Pointer y,
                                  int64_t tokensPerRank) {
  DITRON_RETURN_IF_ERROR(verifyTokens(tokensPerRank));
  for (auto [name, pointer] : {std::pair("x", x), std::pair("y", y)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, optionValues.dtype));
  PerRank &own = *ranks[rank.id()];
  auto describe = [&] { return fmt::format("{} tokens of each rank", tokensPerRank); };
  DITRON_ASSIGN_OR_RETURN(Plan * found, own.kept.find(operation, stream, {tokensPerRank, optionValues.hidden}, describe,
                                                      [&] { return plan(rank, tokensPerRank); }));
  const int64_t elements = tokensPerRank * optionValues.hidden;
  DITRON_RETURN_IF_ERROR(gather->enqueue(rank, stream, x, own.gathered.pointer(), elements));
  constexpr size_t routerCalls = 2; // logits, choice
  for (size_t i = 0; i < found->size(); ++i) {
    if (i == routerCalls)
      DITRON_RETURN_IF_ERROR(own.routing->enqueue(stream, own.ids.pointer(), tokensPerRank * world->numRanks()));
    DITRON_RETURN_IF_ERROR((*found)[i].enqueue(stream));
  }
  return scatter->enqueue(rank, stream, own.sums.pointer(), y, elements);
}

} // namespace ditron::ops
