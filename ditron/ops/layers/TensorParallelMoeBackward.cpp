//===- TensorParallelMoeBackward.cpp - Gradients of a mixture of experts spread over the ranks ------------------------------===//
#include "ditron/ops/layers/TensorParallelMoeBackward.h"

#include "ditron/ops/moe/MoeGradients.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "TensorParallelMoeBackward";

Status launch(MoeCall &call, Expected<PreparedCall> prepared, const MoeCall::Names &names = {}) {
  DITRON_RETURN_IF_ERROR(prepared.status());
  return call.launch(runtime::Lane::Main, std::move(prepared).value(), names);
}

/// A product of the sorted rows of so many tokens; `gathers`: of the tokens themselves.
GroupedGemmProblem productOf(const TensorParallelMoeOptions &options, int64_t tokens, int64_t n, int64_t k,
                             MatrixOrder order, bool gathers) {
  GroupedGemmProblem problem;
  problem.maxRows = tokens * options.topK;
  problem.experts = options.experts;
  problem.n = n;
  problem.k = k;
  problem.dtype = problem.resultType = options.dtype;
  problem.order = order;
  problem.slots = gathers ? options.topK : 0;
  problem.precision = MultiplyPrecision::Ieee;
  return problem;
}

} // namespace

Expected<TensorParallelMoeBackward> TensorParallelMoeBackward::create(
    runtime::World &world, runtime::KernelProvider &kernels, const TensorParallelMoeOptions &options,
    const std::vector<TensorParallelMoeWeights> &weights, const TensorParallelMoeBackwardOptions &backward) {
  const uint32_t numRanks = world.numRanks();
  DITRON_RETURN_IF_ERROR(verifyTensorParallelMoe(operation, options, weights.size(), numRanks));
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, backward.gradientType));
  TensorParallelMoeBackward made;
  made.optionValues = options;
  made.backwardValues = backward;
  made.world = &world;
  made.kernels = &kernels;
  made.upPlan = chooseGroupedGemmPlan(productOf(options, made.allTokens(options.maxTokensPerRank),
                                                2 * made.innerOfRank(), options.hidden, MatrixOrder::Transposed, true),
                                      world.target());
  DITRON_RETURN_IF_ERROR(made.createCollectives());
  made.ranks.resize(numRanks);
  for (uint32_t id : world.localRanks())
    DITRON_RETURN_IF_ERROR(made.allocate(world.rank(id), weights[id]));
  return made;
}

Status TensorParallelMoeBackward::createCollectives() {
  CollectiveOptions collective;
  collective.dtype = optionValues.dtype;
  collective.maxElements = optionValues.maxTokensPerRank * optionValues.hidden;
  if (areDealt()) {
    collective.kind = CollectiveKind::AllGather;
    DITRON_ASSIGN_OR_RETURN(gather, Collective::create(*world, *kernels, collective));
  }
  collective.kind = areDealt() ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce;
  DITRON_ASSIGN_OR_RETURN(sumRows, Collective::create(*world, *kernels, collective));
  collective.dtype = DataType::F32;
  collective.maxElements = optionValues.maxTokensPerRank * optionValues.topK;
  DITRON_ASSIGN_OR_RETURN(sumSlots, Collective::create(*world, *kernels, collective));
  return Status::ok();
}

Status TensorParallelMoeBackward::allocate(runtime::Rank &rank, const TensorParallelMoeWeights &weights) {
  const TensorParallelMoeOptions &options = optionValues;
  for (auto [name, pointer] : {std::pair("up", weights.up), std::pair("down", weights.down)})
    DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operation, name, pointer, options.dtype));
  const int64_t tokens = allTokens(options.maxTokensPerRank), slots = tokens * options.topK, inner = innerOfRank(),
                own = options.maxTokensPerRank;
  auto made = std::make_unique<PerRank>();
  made->weights = weights;
  DITRON_ASSIGN_OR_RETURN(made->router,
                          MoeRouter::create(rank, *kernels, routerOf(options, tokens), weights.router, weights.bias));
  DITRON_ASSIGN_OR_RETURN(made->routing,
                          Routing::create(rank, *kernels, {options.experts, options.topK, tokens, upPlan.tile.blockM}));
  using Wanted = std::tuple<runtime::Buffer *, DataType, int64_t, std::string_view>;
  std::vector<Wanted> wanted = {{&made->z, options.dtype, slots * 2 * inner, "moe_z"},
                                {&made->inner, options.dtype, slots * inner, "moe_inner_gradients"},
                                {&made->dz, options.dtype, slots * 2 * inner, "moe_dz"},
                                {&made->weighted, options.dtype, slots * inner, "moe_weighted_inner"},
                                {&made->results, options.dtype, slots * options.hidden, "moe_dx_rows"},
                                {&made->partial, options.dtype, tokens * options.hidden, "moe_partial_dx"},
                                {&made->slotValues, DataType::F32, slots, "moe_partial_weight_gradients"},
                                {&made->weightGradients, DataType::F32, own * options.topK, "moe_weight_gradients"},
                                {&made->sums, options.dtype, own * options.hidden, "moe_dx_of_experts"},
                                {&made->dlogits, options.dtype, own * options.experts, "moe_dlogits"},
                                {&made->fromRouter, options.dtype, own * options.hidden, "moe_dx_of_router"}};
  if (areDealt())
    wanted.insert(wanted.end(),
                  {{&made->gathered, options.dtype, tokens * options.hidden, "moe_gathered"},
                   {&made->gatheredGradients, options.dtype, tokens * options.hidden, "moe_gathered_dy"}});
  for (const auto &[buffer, type, count, name] : wanted) {
    DITRON_ASSIGN_OR_RETURN(*buffer, rank.allocate(type, count, name));
  }
  ranks[rank.id()] = std::move(made);
  return Status::ok();
}

Status TensorParallelMoeBackward::addRows(runtime::Rank &rank, int64_t tokens, MoeCall &call) const {
  const TensorParallelMoeOptions &options = optionValues;
  const PerRank &own = *ranks[rank.id()];
  const int64_t hidden = options.hidden, inner = innerOfRank();
  // Any buffer stands for the caller's: only types and alignment matter.
  const runtime::Pointer x = areDealt() ? own.gathered.pointer() : own.z.pointer(),
                         dy = areDealt() ? own.gatheredGradients.pointer() : own.z.pointer(),
                         gradient = own.z.pointer().as(backwardValues.gradientType);
  const auto givenAs = [&](std::string_view name, Given given) {
    return areDealt() ? MoeCall::Names() : MoeCall::Names{{name, given}};
  };
  const auto product = [&](int64_t n, int64_t k, MatrixOrder order, bool gathers, runtime::Pointer a,
                           runtime::Pointer b, runtime::Pointer c, const MoeCall::Names &names = {}) -> Status {
    const GroupedGemmProblem problem = productOf(options, tokens, n, k, order, gathers);
    GroupedGemmOperands operands;
    operands.a = a;
    operands.b = b;
    operands.c = c;
    operands.offsets = own.routing->offsets();
    operands.tiles = own.routing->tiles();
    operands.slotOfRow = own.routing->slotOfRow();
    GroupedGemmProblem largest = problem;
    largest.maxRows = allTokens(options.maxTokensPerRank) * options.topK;
    GemmPlan plan = chooseGroupedGemmPlan(largest, world->target());
    plan.tile.blockM = upPlan.tile.blockM; // one table of tiles
    return launch(call, prepareGroupedGemm(*kernels, rank, problem, operands, plan), names);
  };
  DITRON_RETURN_IF_ERROR(product(2 * inner, hidden, MatrixOrder::Transposed, true, x, own.weights.up, own.z.pointer(),
                                 givenAs("a_ptr", X)));
  DITRON_RETURN_IF_ERROR(product(inner, hidden, MatrixOrder::Plain, true, dy, own.weights.down, own.inner.pointer(),
                                 givenAs("a_ptr", Dy)));
  const RowWeights weights = {
      .weights = own.router->weights(), .slotOfRow = own.routing->slotOfRow(), .slotValues = own.slotValues.pointer()};
  DITRON_RETURN_IF_ERROR(launch(call, prepareRowsBackward(*kernels, rank, tokens * options.topK, inner, options.experts,
                                                          own.z.pointer(), own.inner.pointer(), own.routing->offsets(),
                                                          own.dz.pointer(), own.weighted.pointer(), weights)));
  const auto weightGradient = [&](int64_t m, int64_t n, runtime::Pointer a, uint32_t aSlots, runtime::Pointer b,
                                  uint32_t bSlots, MoeCall::Names names) {
    const WeightGradientProblem problem = {.experts = options.experts,
                                           .m = m,
                                           .n = n,
                                           .dtype = options.dtype,
                                           .aSlots = aSlots,
                                           .bSlots = bSlots,
                                           .adds = backwardValues.adds};
    return launch(call,
                  prepareWeightGradient(*kernels, rank, problem, a, b, gradient, own.routing->offsets(),
                                        own.routing->slotOfRow()),
                  names);
  };
  MoeCall::Names ofDown = givenAs("a_ptr", Dy), ofUp = givenAs("b_ptr", X);
  ofDown.emplace_back("c_ptr", Down);
  ofUp.emplace_back("c_ptr", Up);
  DITRON_RETURN_IF_ERROR(weightGradient(hidden, inner, dy, options.topK, own.weighted.pointer(), 0, ofDown));
  DITRON_RETURN_IF_ERROR(weightGradient(2 * inner, hidden, own.dz.pointer(), 0, x, options.topK, ofUp));
  DITRON_RETURN_IF_ERROR(
      product(hidden, 2 * inner, MatrixOrder::Plain, false, own.dz.pointer(), own.weights.up, own.results.pointer()));
  return launch(call, prepareSlotSum(*kernels, rank, {tokens, hidden, options.topK}, own.results.pointer(),
                                     own.routing->rowOfSlot(), {}, own.partial.pointer()));
}

Status TensorParallelMoeBackward::addRouter(runtime::Rank &rank, int64_t tokensPerRank, TokenPlan &plan) const {
  const TensorParallelMoeOptions &options = optionValues;
  const PerRank &own = *ranks[rank.id()];
  // Of all tokens' choices those of the own tokens.
  const int64_t first = areDealt() ? rank.id() * tokensPerRank : 0;
  const RouterProblem router = {tokensPerRank, options.experts,    options.topK,
                                options.score, options.normalized, options.scale};
  DITRON_RETURN_IF_ERROR(
      launch(plan.dense, prepareRouterBackward(*kernels, rank, router, own.router->logits() + first * options.experts,
                                               own.router->ids() + first * options.topK,
                                               own.router->weights() + first * options.topK,
                                               own.weightGradients.pointer(), options.topK, own.dlogits.pointer())));
  const runtime::Pointer any = own.z.pointer();
  const WeightGradientProblem ofRouter = {
      .m = options.experts, .n = options.hidden, .dtype = options.dtype, .adds = backwardValues.adds};
  DITRON_RETURN_IF_ERROR(launch(plan.dense,
                                prepareWeightGradient(*kernels, rank, ofRouter, own.dlogits.pointer(), any,
                                                      any.as(backwardValues.gradientType), plan.offsets.pointer()),
                                {{"b_ptr", X}, {"c_ptr", Router}}));
  GemmProblem product;
  product.m = tokensPerRank;
  product.n = options.hidden;
  product.k = options.experts;
  product.dtype = options.dtype;
  product.order = MatrixOrder::Plain;
  product.precision = MultiplyPrecision::Ieee;
  DITRON_RETURN_IF_ERROR(launch(plan.dense, prepareGemm(*kernels, rank, product, own.dlogits.pointer(),
                                                        own.weights.router, own.fromRouter.pointer())));
  return launch(plan.dense,
                prepareElementSum(*kernels, rank, tokensPerRank * options.hidden, own.sums.pointer(),
                                  own.fromRouter.pointer(), any),
                {{"out_ptr", Dx}});
}

Expected<TensorParallelMoeBackward::TokenPlan> TensorParallelMoeBackward::makePlan(runtime::Rank &rank,
                                                                                   int64_t tokensPerRank) const {
  TokenPlan plan;
  DITRON_ASSIGN_OR_RETURN(plan.offsets, rank.allocate(DataType::I32, 2, "moe_own_tokens"));
  const int32_t offsets[] = {0, static_cast<int32_t>(tokensPerRank)};
  DITRON_RETURN_IF_ERROR(plan.offsets.upload(offsets, sizeof(offsets)));
  DITRON_RETURN_IF_ERROR(addRows(rank, allTokens(tokensPerRank), plan.rows));
  DITRON_RETURN_IF_ERROR(addRouter(rank, tokensPerRank, plan));
  return plan;
}

Status TensorParallelMoeBackward::verify(const TensorParallelMoeGradients &operands, int64_t tokensPerRank) const {
  if (tokensPerRank < 1 || tokensPerRank > optionValues.maxTokensPerRank)
    return invalidArgument(fmt::format("{}: {} tokens of each rank; 1 to {} (maxTokensPerRank) are accepted", operation,
                                       tokensPerRank, optionValues.maxTokensPerRank));
  for (const auto &[name, pointer, type] :
       {std::tuple("x", operands.x, optionValues.dtype), std::tuple("dy", operands.dy, optionValues.dtype),
        std::tuple("dx", operands.dx, optionValues.dtype),
        std::tuple("router", operands.router, backwardValues.gradientType),
        std::tuple("up", operands.up, backwardValues.gradientType),
        std::tuple("down", operands.down, backwardValues.gradientType)})
    DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operation, name, pointer, type));
  return Status::ok();
}

Status TensorParallelMoeBackward::prepare(runtime::Rank &rank, int64_t tokensPerRank) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  if (tokensPerRank < 1 || tokensPerRank > optionValues.maxTokensPerRank)
    return invalidArgument(fmt::format("{}: {} tokens of each rank; 1 to {} (maxTokensPerRank) are accepted", operation,
                                       tokensPerRank, optionValues.maxTokensPerRank));
  PerRank &own = *ranks[rank.id()];
  if (gather)
    DITRON_RETURN_IF_ERROR(gather->prepare(rank, tokensPerRank * optionValues.hidden));
  DITRON_RETURN_IF_ERROR(sumRows->prepare(rank, tokensPerRank * optionValues.hidden));
  DITRON_RETURN_IF_ERROR(sumSlots->prepare(rank, tokensPerRank * optionValues.topK));
  if (own.plans.contains(tokensPerRank)) // graphs may have its kernels
    return Status::ok();
  DITRON_RETURN_IF_ERROR(own.router->prepare(allTokens(tokensPerRank)));
  DITRON_RETURN_IF_ERROR(own.routing->prepare(allTokens(tokensPerRank)));
  DITRON_ASSIGN_OR_RETURN(TokenPlan plan, makePlan(rank, tokensPerRank));
  own.plans.emplace(tokensPerRank, std::move(plan));
  return Status::ok();
}

Status TensorParallelMoeBackward::enqueue(runtime::Rank &rank, runtime::Stream &stream,
                                          const TensorParallelMoeGradients &operands, int64_t tokensPerRank) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  DITRON_RETURN_IF_ERROR(verify(operands, tokensPerRank));
  PerRank &own = *ranks[rank.id()];
  if (!own.plans.contains(tokensPerRank)) {
    DITRON_RETURN_IF_ERROR(beginUnprepared(operation, stream, fmt::format("{} tokens of each rank", tokensPerRank)));
    DITRON_RETURN_IF_ERROR(prepare(rank, tokensPerRank));
  }
  TokenPlan &plan = own.plans.at(tokensPerRank);
  const int64_t elements = tokensPerRank * optionValues.hidden, tokens = allTokens(tokensPerRank);
  if (gather) {
    DITRON_RETURN_IF_ERROR(gather->enqueue(rank, stream, operands.x, own.gathered.pointer(), elements));
    DITRON_RETURN_IF_ERROR(gather->enqueue(rank, stream, operands.dy, own.gatheredGradients.pointer(), elements));
  }
  DITRON_RETURN_IF_ERROR(own.router->enqueue(stream, gather ? own.gathered.pointer() : operands.x, tokens));
  DITRON_RETURN_IF_ERROR(own.routing->enqueue(stream, own.router->ids(), tokens));
  const std::vector<runtime::Pointer> given = {operands.x,      operands.dy, operands.dx,
                                               operands.router, operands.up, operands.down};
  DITRON_RETURN_IF_ERROR(plan.rows.enqueue(stream, given));
  DITRON_RETURN_IF_ERROR(sumSlots->enqueue(rank, stream, own.slotValues.pointer(), own.weightGradients.pointer(),
                                           tokensPerRank * optionValues.topK));
  DITRON_RETURN_IF_ERROR(sumRows->enqueue(rank, stream, own.partial.pointer(), own.sums.pointer(), elements));
  return plan.dense.enqueue(stream, given);
}

} // namespace ditron::ops
