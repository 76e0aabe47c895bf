//===- ExpertParallelMoeBackward.cpp - Gradients of a mixture of experts each of which is on one rank -----------------------===//
#include "ditron/ops/layers/ExpertParallelMoeBackward.h"

#include "ditron/ops/Gemm.h"
#include "ditron/ops/SizeOptions.h"
#include "ditron/ops/moe/MoeGradients.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "ExpertParallelMoeBackward";

GroupedGemmProblem productOf(const ExpertParallelMoe::Saved &saved, int64_t n, int64_t k, MatrixOrder order) {
  GroupedGemmProblem problem = saved.up;
  problem.n = n;
  problem.k = k;
  problem.order = order;
  problem.activation = Activation::None;
  return problem;
}

Status launch(MoeCall &call, Expected<PreparedCall> prepared, const MoeCall::Names &names = {}) {
  DITRON_RETURN_IF_ERROR(prepared.status());
  return call.launch(runtime::Lane::Main, std::move(prepared).value(), names);
}

GemmProblem denseProduct(int64_t m, int64_t n, int64_t k, MatrixOrder order, DataType dtype) {
  GemmProblem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.dtype = dtype;
  problem.order = order;
  problem.precision = MultiplyPrecision::Ieee;
  return problem;
}

} // namespace

Expected<ExpertParallelMoeBackward> ExpertParallelMoeBackward::create(runtime::World &world,
                                                                      runtime::KernelProvider &kernels,
                                                                      const ExpertParallelMoe &layer,
                                                                      const ExpertParallelMoeBackwardOptions &options) {
  if (!layer.options().training)
    return invalidArgument(
        fmt::format("{}: the layer was made without options.training, and keeps no rows", operation));
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, options.gradientType));
  ExpertParallelMoeBackward made;
  made.optionValues = options;
  made.layer = &layer;
  made.world = &world;
  made.kernels = &kernels;
  // The same rows at the same places.
  ExpertParallelOptions exchange = layer.exchangeOptions();
  if (layer.isFused())
    DITRON_RETURN_IF_ERROR(made.createFused());
  else
    exchange.plan = layer.plan();
  if (!made.fused) {
    exchange.addend = true;
    DITRON_ASSIGN_OR_RETURN(made.exchange, ExpertParallel::create(world, kernels, exchange));
  }
  exchange.addend = false;
  exchange.hidden = 2 * layer.options().topK;
  exchange.dtype = DataType::F32;
  DITRON_ASSIGN_OR_RETURN(made.scalars, ExpertParallel::create(world, kernels, exchange));
  made.ranks.resize(world.numRanks());
  for (uint32_t id : world.localRanks())
    DITRON_RETURN_IF_ERROR(made.allocate(world.rank(id)));
  return made;
}

Status ExpertParallelMoeBackward::createFused() {
  const ExpertParallelMoeOptions &options = of();
  FusedExpertParallelOptions own = {.hidden = options.hidden,
                                    .columns = options.inner,
                                    .depth = 2 * options.inner,
                                    .experts = options.experts,
                                    .topK = options.topK,
                                    .maxTokens = options.maxTokens,
                                    .dtype = options.dtype,
                                    .dispatchOrder = MatrixOrder::Plain,
                                    .combineOrder = MatrixOrder::Plain,
                                    .capacity = options.capacity,
                                    .maxRows = options.maxRows,
                                    .addend = true,
                                    .concurrentCalls = options.concurrentCalls,
                                    .precision = MultiplyPrecision::Ieee};
  // As many tiles of rows as the layer has: the products between the two have its table.
  own.plan = fittedPlan(own, layer->fusedPlan(), world->numRanks());
  // Weights that lie across the depth must be of whole steps.
  if (!verifyFusedProducts(own, *own.plan, world->numRanks()).isOk())
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(fused, FusedExpertParallel::create(*world, *kernels, own));
  return Status::ok();
}

Status ExpertParallelMoeBackward::allocate(runtime::Rank &rank) {
  const ExpertParallelMoeOptions &options = of();
  const int64_t rows = fused ? fused->maxRows() : exchange->maxRows(), tokens = options.maxTokens,
                local = options.experts / world->numRanks(), choices = 2 * options.topK;
  auto own = std::make_unique<PerRank>();
  using Wanted = std::tuple<runtime::Buffer *, DataType, int64_t, std::string_view>;
  std::vector<Wanted> wanted = {{&own->z, options.dtype, rows * 2 * options.inner, "moe_z"},
                                {&own->inner, options.dtype, rows * options.inner, "moe_inner_gradients"},
                                {&own->dz, options.dtype, rows * 2 * options.inner, "moe_dz"},
                                {&own->weighted, options.dtype, rows * options.inner, "moe_weighted_inner"},
                                {&own->choices, DataType::F32, tokens * choices, "moe_choices"},
                                {&own->rowChoices, DataType::F32, rows * choices, "moe_row_choices"},
                                {&own->values, DataType::F32, rows * choices, "moe_row_weight_gradients"},
                                {&own->choiceGradients, DataType::F32, tokens * choices, "moe_weight_gradients"},
                                {&own->scalarHandle, DataType::I32, scalars->handleElements(), "moe_choice_handle"},
                                {&own->scalarOffsets, DataType::I32, local + 1, "moe_choice_offsets"},
                                {&own->dlogits, options.dtype, tokens * options.experts, "moe_dlogits"},
                                {&own->fromRouter, options.dtype, tokens * options.hidden, "moe_dx_of_router"}};
  if (!fused)
    wanted.insert(wanted.end(), {{&own->gradients, options.dtype, rows * options.hidden, "moe_row_gradients"},
                                 {&own->results, options.dtype, rows * options.hidden, "moe_dx_rows"},
                                 {&own->offsets, DataType::I32, local + 1, "moe_gradient_offsets"},
                                 {&own->handle, DataType::I32, exchange->handleElements(), "moe_gradient_handle"}});
  if (hasShared())
    wanted.insert(wanted.end(),
                  {{&own->sharedZ, options.dtype, tokens * 2 * options.sharedInner, "moe_shared_z"},
                   {&own->sharedInner, options.dtype, tokens * options.sharedInner, "moe_shared_inner_gradients"},
                   {&own->sharedDz, options.dtype, tokens * 2 * options.sharedInner, "moe_shared_dz"},
                   {&own->sharedWeighted, options.dtype, tokens * options.sharedInner, "moe_shared_inner"},
                   {&own->fromShared, options.dtype, tokens * options.hidden, "moe_dx_of_shared"}});
  for (const auto &[buffer, type, count, name] : wanted) {
    DITRON_ASSIGN_OR_RETURN(*buffer, rank.allocate(type, count, name));
  }
  ranks[rank.id()] = std::move(own);
  return Status::ok();
}

Status ExpertParallelMoeBackward::addGradient(runtime::Rank &rank, MoeCall &call, Given which, uint32_t experts,
                                              int64_t m, int64_t n, runtime::Pointer a, runtime::Pointer b,
                                              runtime::Pointer offsets, MoeCall::Names names) const {
  const WeightGradientProblem problem = {
      .experts = experts, .m = m, .n = n, .dtype = of().dtype, .adds = optionValues.adds};
  // Any buffer stands for the caller's: only types and alignment matter.
  const runtime::Pointer c = ranks[rank.id()]->z.pointer().as(optionValues.gradientType);
  names.emplace_back("c_ptr", which);
  return launch(call, prepareWeightGradient(*kernels, rank, problem, a, b, c, offsets), names);
}

Status ExpertParallelMoeBackward::prepareRows(runtime::Rank &rank) {
  PerRank &own = *ranks[rank.id()];
  if (own.rows) // graphs may have its kernels
    return Status::ok();
  const ExpertParallelMoe::Saved saved = layer->saved(rank);
  const int64_t hidden = of().hidden, inner = of().inner;
  const uint32_t local = saved.up.experts;
  MoeCall rows;
  const auto product = [&](int64_t n, int64_t k, MatrixOrder order, runtime::Pointer a, runtime::Pointer b,
                           runtime::Pointer c) -> Status {
    const GroupedGemmProblem problem = productOf(saved, n, k, order);
    GroupedGemmOperands operands;
    operands.a = a;
    operands.b = b;
    operands.c = c;
    operands.offsets = saved.offsets;
    operands.tiles = saved.tiles;
    GroupedGemmProblem even = problem;
    even.maxRows = saved.evenRows;
    GemmPlan plan = chooseGroupedGemmPlan(even, world->target());
    plan.tile.blockM = saved.blockM; // one table of tiles
    return launch(rows, prepareGroupedGemm(*kernels, rank, problem, operands, plan));
  };
  DITRON_RETURN_IF_ERROR(
      product(2 * inner, hidden, MatrixOrder::Transposed, saved.rows, saved.weights.up, own.z.pointer()));
  const runtime::Pointer gradients = fused ? fused->rows(rank) : own.gradients.pointer();
  if (!fused)
    DITRON_RETURN_IF_ERROR(
        product(inner, hidden, MatrixOrder::Plain, gradients, saved.weights.down, own.inner.pointer()));
  const RowWeights weights = {.choices = own.rowChoices.pointer(),
                              .values = own.values.pointer(),
                              .firstExpert = rank.id() * local,
                              .topK = of().topK};
  DITRON_RETURN_IF_ERROR(launch(rows, prepareRowsBackward(*kernels, rank, saved.up.maxRows, inner, local,
                                                          own.z.pointer(), own.inner.pointer(), saved.offsets,
                                                          own.dz.pointer(), own.weighted.pointer(), weights)));
  DITRON_RETURN_IF_ERROR(
      addGradient(rank, rows, Down, local, hidden, inner, gradients, own.weighted.pointer(), saved.offsets));
  DITRON_RETURN_IF_ERROR(
      addGradient(rank, rows, Up, local, 2 * inner, hidden, own.dz.pointer(), saved.rows, saved.offsets));
  if (!fused)
    DITRON_RETURN_IF_ERROR(
        product(hidden, 2 * inner, MatrixOrder::Plain, own.dz.pointer(), saved.weights.up, own.results.pointer()));
  own.rows = std::move(rows);
  return Status::ok();
}

Expected<ExpertParallelMoeBackward::TokenPlan> ExpertParallelMoeBackward::makePlan(runtime::Rank &rank,
                                                                                   int64_t tokens) const {
  const PerRank &own = *ranks[rank.id()];
  const ExpertParallelMoe::Saved saved = layer->saved(rank);
  TokenPlan plan;
  DITRON_ASSIGN_OR_RETURN(plan.offsets, rank.allocate(DataType::I32, 2, "moe_own_tokens"));
  const int32_t offsets[] = {0, static_cast<int32_t>(tokens)};
  DITRON_RETURN_IF_ERROR(plan.offsets.upload(offsets, sizeof(offsets)));
  if (tokens > 0)
    DITRON_RETURN_IF_ERROR(launch(plan.before, preparePackedChoices(*kernels, rank, tokens, of().topK, saved.ids,
                                                                    saved.slotWeights, own.choices.pointer())));
  DITRON_RETURN_IF_ERROR(addRouter(rank, tokens, plan));
  if (hasShared())
    DITRON_RETURN_IF_ERROR(addShared(rank, tokens, plan));
  return plan;
}

Status ExpertParallelMoeBackward::addRouter(runtime::Rank &rank, int64_t tokens, TokenPlan &plan) const {
  const ExpertParallelMoeOptions &options = of();
  const PerRank &own = *ranks[rank.id()];
  const ExpertParallelMoe::Saved saved = layer->saved(rank);
  MoeCall::Names x;
  if (tokens > 0) {
    const RouterProblem router = {tokens,        options.experts,    options.topK,
                                  options.score, options.normalized, options.scale};
    DITRON_RETURN_IF_ERROR(launch(plan.dense, prepareRouterBackward(*kernels, rank, router, saved.logits, saved.ids,
                                                                    saved.slotWeights, own.choiceGradients.pointer(),
                                                                    2 * int64_t(options.topK), own.dlogits.pointer())));
    const GemmProblem product =
        denseProduct(tokens, options.hidden, options.experts, MatrixOrder::Plain, options.dtype);
    DITRON_RETURN_IF_ERROR(launch(plan.dense, prepareGemm(*kernels, rank, product, own.dlogits.pointer(),
                                                          saved.weights.router, own.fromRouter.pointer())));
    x = {{"b_ptr", X}};
  }
  return addGradient(rank, plan.dense, Router, 1, options.experts, options.hidden, own.dlogits.pointer(),
                     own.z.pointer(), plan.offsets.pointer(), x);
}

Status ExpertParallelMoeBackward::addShared(runtime::Rank &rank, int64_t tokens, TokenPlan &plan) const {
  const PerRank &own = *ranks[rank.id()];
  const ExpertParallelMoeWeights &weights = layer->saved(rank).weights;
  const int64_t hidden = of().hidden, inner = of().sharedInner;
  const runtime::Pointer any = own.z.pointer();
  const auto product = [&](int64_t n, int64_t k, MatrixOrder order, runtime::Pointer a, runtime::Pointer b,
                           runtime::Pointer c, const MoeCall::Names &names = {}) {
    return launch(plan.dense, prepareGemm(*kernels, rank, denseProduct(tokens, n, k, order, of().dtype), a, b, c),
                  names);
  };
  MoeCall::Names x, dy;
  if (tokens > 0) {
    DITRON_RETURN_IF_ERROR(product(2 * inner, hidden, MatrixOrder::Transposed, any, weights.sharedUp,
                                   own.sharedZ.pointer(), {{"a_ptr", X}}));
    DITRON_RETURN_IF_ERROR(product(inner, hidden, MatrixOrder::Plain, any, weights.sharedDown,
                                   own.sharedInner.pointer(), {{"a_ptr", Dy}}));
    DITRON_RETURN_IF_ERROR(
        launch(plan.dense,
               prepareRowsBackward(*kernels, rank, tokens, inner, 1, own.sharedZ.pointer(), own.sharedInner.pointer(),
                                   plan.offsets.pointer(), own.sharedDz.pointer(), own.sharedWeighted.pointer())));
    x = {{"b_ptr", X}};
    dy = {{"a_ptr", Dy}};
  }
  DITRON_RETURN_IF_ERROR(addGradient(rank, plan.dense, SharedDown, 1, hidden, inner, any, own.sharedWeighted.pointer(),
                                     plan.offsets.pointer(), dy));
  DITRON_RETURN_IF_ERROR(addGradient(rank, plan.dense, SharedUp, 1, 2 * inner, hidden, own.sharedDz.pointer(), any,
                                     plan.offsets.pointer(), x));
  if (tokens == 0)
    return Status::ok();
  DITRON_RETURN_IF_ERROR(product(hidden, 2 * inner, MatrixOrder::Plain, own.sharedDz.pointer(), weights.sharedUp,
                                 own.fromShared.pointer()));
  return launch(plan.dense, prepareElementSum(*kernels, rank, tokens * hidden, own.fromRouter.pointer(),
                                              own.fromShared.pointer(), own.fromRouter.pointer()));
}

Status ExpertParallelMoeBackward::prepare(runtime::Rank &rank, int64_t tokens) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  DITRON_RETURN_IF_ERROR(verifyTokenCount(operation, tokens, 0, of().maxTokens));
  PerRank &own = *ranks[rank.id()];
  if (own.plans.contains(tokens))
    return Status::ok();
  DITRON_RETURN_IF_ERROR(fused ? fused->prepare(rank) : exchange->prepare(rank));
  DITRON_RETURN_IF_ERROR(scalars->prepare(rank));
  DITRON_RETURN_IF_ERROR(prepareRows(rank));
  DITRON_ASSIGN_OR_RETURN(TokenPlan plan, makePlan(rank, tokens));
  own.plans.emplace(tokens, std::move(plan));
  return Status::ok();
}

Status ExpertParallelMoeBackward::verify(const ExpertParallelMoeGradients &operands, int64_t tokens) const {
  std::vector<std::tuple<std::string_view, runtime::Pointer, DataType>> given = {
      {"router", operands.router, optionValues.gradientType},
      {"up", operands.up, optionValues.gradientType},
      {"down", operands.down, optionValues.gradientType}};
  if (hasShared())
    given.insert(given.end(), {{"sharedUp", operands.sharedUp, optionValues.gradientType},
                               {"sharedDown", operands.sharedDown, optionValues.gradientType}});
  if (tokens > 0)
    given.insert(given.end(),
                 {{"x", operands.x, of().dtype}, {"dy", operands.dy, of().dtype}, {"dx", operands.dx, of().dtype}});
  for (const auto &[name, pointer, type] : given)
    DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operation, name, pointer, type));
  return Status::ok();
}

Status ExpertParallelMoeBackward::dispatch(runtime::Rank &rank, runtime::Stream &stream,
                                           const ExpertParallelMoeGradients &operands, int64_t tokens) {
  const PerRank &own = *ranks[rank.id()];
  const ExpertParallelMoe::Saved saved = layer->saved(rank);
  if (fused)
    return fused->dispatchGemm(
        rank, stream,
        {.x = operands.dy, .tokens = tokens, .ids = saved.ids, .b = saved.weights.down, .c = own.inner.pointer()});
  return exchange->dispatch(rank, stream,
                            {.x = operands.dy,
                             .tokens = tokens,
                             .ids = saved.ids,
                             .weights = {},
                             .rows = own.gradients.pointer(),
                             .scales = {},
                             .offsets = own.offsets.pointer(),
                             .handle = own.handle.pointer()});
}

Status ExpertParallelMoeBackward::combine(runtime::Rank &rank, runtime::Stream &stream,
                                          const ExpertParallelMoeGradients &operands, int64_t tokens) {
  const PerRank &own = *ranks[rank.id()];
  if (fused)
    return fused->gemmCombine(rank, stream,
                              {.a = own.dz.pointer(),
                               .b = layer->saved(rank).weights.up,
                               .out = operands.dx,
                               .tokens = tokens,
                               .addend = own.fromRouter.pointer()});
  return exchange->combine(rank, stream,
                           {.rows = own.results.pointer(),
                            .out = operands.dx,
                            .tokens = tokens,
                            .handle = own.handle.pointer(),
                            .addend = own.fromRouter.pointer()});
}

Status ExpertParallelMoeBackward::enqueue(runtime::Rank &rank, runtime::Stream &stream,
                                          const ExpertParallelMoeGradients &operands, int64_t tokens) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  DITRON_RETURN_IF_ERROR(verify(operands, tokens));
  PerRank &own = *ranks[rank.id()];
  if (!own.plans.contains(tokens)) {
    DITRON_RETURN_IF_ERROR(beginUnprepared(operation, stream, fmt::format("{} tokens", tokens)));
    DITRON_RETURN_IF_ERROR(prepare(rank, tokens));
  }
  TokenPlan &plan = own.plans.at(tokens);
  const ExpertParallelMoe::Saved saved = layer->saved(rank);
  const std::vector<runtime::Pointer> given = {operands.x,    operands.dy,       operands.router,    operands.up,
                                               operands.down, operands.sharedUp, operands.sharedDown};
  DITRON_RETURN_IF_ERROR(plan.before.enqueue(stream, given));
  DITRON_RETURN_IF_ERROR(dispatch(rank, stream, operands, tokens));
  DITRON_RETURN_IF_ERROR(scalars->dispatch(rank, stream,
                                           {.x = own.choices.pointer(),
                                            .tokens = tokens,
                                            .ids = saved.ids,
                                            .weights = {},
                                            .rows = own.rowChoices.pointer(),
                                            .scales = {},
                                            .offsets = own.scalarOffsets.pointer(),
                                            .handle = own.scalarHandle.pointer()}));
  DITRON_RETURN_IF_ERROR(own.rows->enqueue(stream, given));
  DITRON_RETURN_IF_ERROR(scalars->combine(rank, stream,
                                          {.rows = own.values.pointer(),
                                           .out = own.choiceGradients.pointer(),
                                           .tokens = tokens,
                                           .handle = own.scalarHandle.pointer()}));
  DITRON_RETURN_IF_ERROR(plan.dense.enqueue(stream, given));
  return combine(rank, stream, operands, tokens);
}

} // namespace ditron::ops
