//===- ExpertParallelMoe.cpp - A mixture of experts each of which is on one rank --------------------------------------------===//
#include "ditron/ops/layers/ExpertParallelMoe.h"

#include "ditron/ops/Gemm.h"
#include "ditron/ops/SizeOptions.h"
#include "ditron/ops/moe/BlockScales.h"
#include "ditron/ops/plans/PlanTable.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "ExpertParallelMoe";
/// Elements of a block that has one scale.
constexpr int64_t scaled = 128;

} // namespace

Expected<ExpertParallelMoe> ExpertParallelMoe::create(runtime::World &world, runtime::KernelProvider &kernels,
                                                      const ExpertParallelMoeOptions &options,
                                                      const std::vector<ExpertParallelMoeWeights> &weights) {
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, options.dtype));
  const uint32_t numRanks = world.numRanks();
  // Each inner column is two of a product: its gate, and what that lets through.
  DITRON_RETURN_IF_ERROR(verifySizeOptions(operation, {{"hidden", options.hidden},
                                                       {"inner", options.inner, 1, mostSize / 2},
                                                       {"maxTokens", options.maxTokens},
                                                       {"sharedInner", options.sharedInner, 0, mostSize / 2}}));
  DITRON_RETURN_IF_ERROR(verifyChoice(operation, options.experts, options.topK));
  if (options.training && options.fp8)
    return unsupported(fmt::format("{}: training with fp8; choose one of the two", operation));
  if (weights.size() != numRanks)
    return invalidArgument(
        fmt::format("{}: weights of {} ranks are given; there are {}", operation, weights.size(), numRanks));
  ExpertParallelMoe layer;
  layer.optionValues = options;
  layer.world = &world;
  layer.kernels = &kernels;
  DITRON_ASSIGN_OR_RETURN(const std::optional<FusedExpertParallelPlan> fusedPlan, layer.fusedPlanFor());
  DITRON_RETURN_IF_ERROR(fusedPlan ? layer.createFused(*fusedPlan) : layer.createUnfused());
  layer.ranks.resize(numRanks);
  for (uint32_t id : world.localRanks()) {
    DITRON_RETURN_IF_ERROR(layer.verifyWeights(weights[id]));
    DITRON_RETURN_IF_ERROR(layer.allocate(world.rank(id), weights[id]));
  }
  return layer;
}

ExpertParallelOptions ExpertParallelMoe::exchangeOptions() const {
  const ExpertParallelMoeOptions &options = optionValues;
  return {.hidden = options.hidden,
          .experts = options.experts,
          .topK = options.topK,
          .maxTokens = options.maxTokens,
          .dtype = options.dtype,
          .fp8 = options.fp8,
          .capacity = options.capacity,
          .maxRows = options.maxRows,
          .addend = options.sharedInner > 0,
          .concurrentCalls = options.concurrentCalls,
          .plan = options.plan,
          .gpu = options.gpu};
}

Expected<std::optional<FusedExpertParallelPlan>> ExpertParallelMoe::fusedPlanFor() const {
  const ExpertParallelMoeOptions &options = optionValues;
  if (options.fused) {
    if (options.plan)
      return invalidArgument(
          fmt::format("{}: both a fused plan and one of an exchange by itself; choose one of the two", operation));
    if (options.fp8)
      return unsupported(fmt::format("{}: fused with fp8; choose one of the two", operation));
    return options.fused;
  }
  if (options.plan || options.fp8 || world->numNodes() > 1)
    return std::optional<FusedExpertParallelPlan>();
  DITRON_ASSIGN_OR_RETURN(const PlanChoice tables,
                          PlanChoice::create(*world, "expert_parallel_moe", options.dtype, options.gpu));
  const PlanRow *row =
      tables.find({{"tokens", options.maxTokens}, {"hidden", options.hidden}, {"inner", options.inner}});
  if (!row || row->plan == unfusedPlan)
    return std::optional<FusedExpertParallelPlan>();
  DITRON_ASSIGN_OR_RETURN(const FusedExpertParallelPlan plan, parseFusedExpertParallelPlan(row->plan));
  // One for sizes like these that descriptors take.
  const bool isPossible = verifyFusedProducts(fusedOptions(plan), plan, world->numRanks()).isOk();
  return isPossible ? std::optional(plan) : std::nullopt;
}

FusedExpertParallelOptions ExpertParallelMoe::fusedOptions(const FusedExpertParallelPlan &plan) const {
  const ExpertParallelMoeOptions &options = optionValues;
  return {.hidden = options.hidden,
          .columns = 2 * options.inner,
          .depth = options.inner,
          .experts = options.experts,
          .topK = options.topK,
          .maxTokens = options.maxTokens,
          .dtype = options.dtype,
          .activation = Activation::SwiGlu,
          .capacity = options.capacity,
          .maxRows = options.maxRows,
          .addend = hasShared(),
          .concurrentCalls = options.concurrentCalls,
          .precision = MultiplyPrecision::Ieee,
          .plan = plan};
}

Status ExpertParallelMoe::createFused(const FusedExpertParallelPlan &plan) {
  DITRON_ASSIGN_OR_RETURN(fused, FusedExpertParallel::create(*world, *kernels, fusedOptions(plan)));
  upPlan.tile = fusedPlan().dispatchTile;
  downPlan.tile = fusedPlan().combineTile;
  return Status::ok();
}

Status ExpertParallelMoe::createUnfused() {
  DITRON_ASSIGN_OR_RETURN(experts, ExpertParallel::create(*world, *kernels, exchangeOptions()));
  // As many rows as come when tokens are dealt out evenly; there is room for more.
  GroupedGemmProblem even = upProblem();
  even.maxRows = evenRows();
  upPlan = chooseGroupedGemmPlan(even, world->target());
  even = downProblem();
  even.maxRows = evenRows();
  downPlan = chooseGroupedGemmPlan(even, world->target());
  downPlan.tile.blockM = upPlan.tile.blockM; // one table of tiles
  return Status::ok();
}

GroupedGemmProblem ExpertParallelMoe::upProblem() const {
  const ExpertParallelMoeOptions &options = optionValues;
  GroupedGemmProblem problem;
  problem.maxRows = maxRows();
  problem.experts = options.experts / world->numRanks();
  problem.n = 2 * options.inner;
  problem.k = options.hidden;
  problem.dtype = options.fp8 ? DataType::F8E4NV : options.dtype;
  problem.resultType = options.dtype;
  problem.activation = Activation::SwiGlu;
  problem.blockScales = options.fp8;
  problem.precision = MultiplyPrecision::Ieee;
  return problem;
}

GroupedGemmProblem ExpertParallelMoe::downProblem() const {
  GroupedGemmProblem problem = upProblem();
  problem.n = optionValues.hidden;
  problem.k = optionValues.inner;
  problem.activation = Activation::None;
  return problem;
}

Status ExpertParallelMoe::verifyWeights(const ExpertParallelMoeWeights &weights) const {
  const DataType ofExperts = optionValues.fp8 ? DataType::F8E4NV : optionValues.dtype;
  std::vector<std::tuple<std::string_view, runtime::Pointer, DataType>> given = {
      {"router", weights.router, optionValues.dtype}, {"up", weights.up, ofExperts}, {"down", weights.down, ofExperts}};
  if (optionValues.fp8)
    given.insert(given.end(),
                 {{"upScale", weights.upScale, DataType::F32}, {"downScale", weights.downScale, DataType::F32}});
  if (hasShared())
    given.insert(given.end(), {{"sharedUp", weights.sharedUp, optionValues.dtype},
                               {"sharedDown", weights.sharedDown, optionValues.dtype}});
  for (const auto &[name, pointer, type] : given)
    DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operation, name, pointer, type));
  return Status::ok();
}

Status ExpertParallelMoe::allocate(runtime::Rank &rank, const ExpertParallelMoeWeights &weights) {
  const ExpertParallelMoeOptions &options = optionValues;
  const int64_t mostRows = maxRows(), local = options.experts / world->numRanks();
  auto own = std::make_unique<PerRank>();
  own->weights = weights;
  DITRON_ASSIGN_OR_RETURN(own->router, MoeRouter::create(rank, *kernels, routerOf(options, options.maxTokens),
                                                         weights.router, weights.bias));
  const auto allocate = [&](runtime::Buffer &buffer, DataType type, int64_t count, std::string_view name) -> Status {
    DITRON_ASSIGN_OR_RETURN(buffer, rank.allocate(type, count, name));
    return Status::ok();
  };
  DITRON_RETURN_IF_ERROR(allocate(own->inner, options.dtype, mostRows * options.inner, "moe_inner"));
  if (!fused) {
    DITRON_RETURN_IF_ERROR(
        allocate(own->rows, options.fp8 ? DataType::F8E4NV : options.dtype, mostRows * options.hidden, "moe_rows"));
    DITRON_RETURN_IF_ERROR(allocate(own->offsets, DataType::I32, local + 1, "moe_offsets"));
    DITRON_RETURN_IF_ERROR(allocate(own->handle, DataType::I32, experts->handleElements(), "moe_handle"));
    const int64_t tiles = mostTilesOf(mostRows, static_cast<uint32_t>(local), upPlan.tile.blockM);
    DITRON_RETURN_IF_ERROR(allocate(own->tiles, DataType::I32, 1 + 2 * tiles, "moe_tiles"));
    if (options.fp8) {
      DITRON_RETURN_IF_ERROR(allocate(own->scales, DataType::F32, mostRows * experts->scalesOfRow(), "moe_row_scales"));
      DITRON_RETURN_IF_ERROR(allocate(own->narrow, DataType::F8E4NV, mostRows * options.inner, "moe_inner_fp8"));
      DITRON_RETURN_IF_ERROR(
          allocate(own->narrowScales, DataType::F32, mostRows * ceilDivide(options.inner, scaled), "moe_inner_scales"));
    }
    if (options.fp8 || options.training)
      DITRON_RETURN_IF_ERROR(allocate(own->results, options.dtype, mostRows * options.hidden, "moe_results"));
  }
  if (hasShared()) {
    DITRON_RETURN_IF_ERROR(
        allocate(own->sharedInner, options.dtype, options.maxTokens * options.sharedInner, "moe_shared_inner"));
    DITRON_RETURN_IF_ERROR(
        allocate(own->sharedOut, options.dtype, options.maxTokens * options.hidden, "moe_shared_out"));
  }
  ranks[rank.id()] = std::move(own);
  return Status::ok();
}

ExpertParallelMoe::Saved ExpertParallelMoe::saved(const runtime::Rank &rank) const {
  const PerRank &own = *ranks[rank.id()];
  return {.weights = own.weights,
          .rows = fused ? fused->rows(rank) : own.rows.pointer(),
          .offsets = fused ? fused->offsets(rank) : own.offsets.pointer(),
          .tiles = fused ? fused->tiles(rank) : own.tiles.pointer(),
          .ids = own.router->ids(),
          .slotWeights = own.router->weights(),
          .logits = own.router->logits(),
          .up = upProblem(),
          .evenRows = evenRows(),
          .blockM = upPlan.tile.blockM};
}

Status ExpertParallelMoe::prepareProducts(runtime::Rank &rank) {
  const ExpertParallelMoeOptions &options = optionValues;
  PerRank &own = *ranks[rank.id()];
  if (!own.products.empty()) // graphs may have its kernels
    return Status::ok();
  const uint32_t local = options.experts / world->numRanks();
  const GroupedGemmProblem up = upProblem(), down = downProblem();
  DITRON_ASSIGN_OR_RETURN(PreparedCall tiles, prepareTiles(*kernels, rank, local, up.maxRows, upPlan.tile.blockM,
                                                           own.offsets.pointer(), own.tiles.pointer()));
  GroupedGemmOperands operands;
  operands.a = own.rows.pointer();
  operands.b = own.weights.up;
  operands.c = own.inner.pointer();
  operands.offsets = own.offsets.pointer();
  operands.tiles = own.tiles.pointer();
  if (options.fp8) {
    operands.aScale = own.scales.pointer();
    operands.bScale = own.weights.upScale;
  }
  std::vector<PreparedCall> products = {tiles};
  DITRON_ASSIGN_OR_RETURN(PreparedCall product, prepareGroupedGemm(*kernels, rank, up, operands, upPlan));
  products.push_back(std::move(product));
  operands.a = own.inner.pointer();
  operands.b = own.weights.down;
  operands.c = resultsOf(own);
  if (options.fp8) {
    DITRON_ASSIGN_OR_RETURN(PreparedCall narrow, prepareScaledRows(*kernels, rank, up.maxRows, options.inner,
                                                                   own.inner.pointer(), own.offsets.pointer() + local,
                                                                   own.narrow.pointer(), own.narrowScales.pointer()));
    products.push_back(std::move(narrow));
    operands.a = own.narrow.pointer();
    operands.aScale = own.narrowScales.pointer();
    operands.bScale = own.weights.downScale;
  }
  DITRON_ASSIGN_OR_RETURN(product, prepareGroupedGemm(*kernels, rank, down, operands, downPlan));
  products.push_back(std::move(product));
  own.products = std::move(products);
  return Status::ok();
}

Expected<ExpertParallelMoe::SharedPlan> ExpertParallelMoe::makeShared(runtime::Rank &rank, int64_t tokens) const {
  const PerRank &own = *ranks[rank.id()];
  GemmProblem problem;
  problem.m = tokens;
  problem.n = 2 * optionValues.sharedInner;
  problem.k = optionValues.hidden;
  problem.dtype = optionValues.dtype;
  problem.precision = MultiplyPrecision::Ieee;
  problem.epilogue.activation = Activation::SwiGlu;
  SharedPlan made;
  // Any buffer stands for the caller's x: only its type and alignment matter.
  DITRON_ASSIGN_OR_RETURN(made.up, prepareGemm(*kernels, rank, problem, own.sharedOut.pointer(), own.weights.sharedUp,
                                               own.sharedInner.pointer()));
  DITRON_ASSIGN_OR_RETURN(made.tokensParameter, made.up.pointerParameter("a_ptr"));
  problem.n = optionValues.hidden;
  problem.k = optionValues.sharedInner;
  problem.epilogue.activation = Activation::None;
  DITRON_ASSIGN_OR_RETURN(made.down, prepareGemm(*kernels, rank, problem, own.sharedInner.pointer(),
                                                 own.weights.sharedDown, own.sharedOut.pointer()));
  return made;
}

Status ExpertParallelMoe::verifyTokens(int64_t tokens) const {
  return verifyTokenCount(operation, tokens, 0, optionValues.maxTokens);
}

Status ExpertParallelMoe::prepare(runtime::Rank &rank, int64_t tokens) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  DITRON_RETURN_IF_ERROR(verifyTokens(tokens));
  PerRank &own = *ranks[rank.id()];
  if (own.prepared.contains(tokens))
    return Status::ok();
  if (fused) {
    DITRON_RETURN_IF_ERROR(fused->prepare(rank));
  } else {
    DITRON_RETURN_IF_ERROR(experts->prepare(rank, sendsAhead()));
    DITRON_RETURN_IF_ERROR(prepareProducts(rank));
  }
  if (tokens > 0) {
    DITRON_RETURN_IF_ERROR(own.router->prepare(tokens));
    if (hasShared()) {
      DITRON_ASSIGN_OR_RETURN(own.shared[tokens], makeShared(rank, tokens));
    }
  }
  own.prepared.insert(tokens);
  return Status::ok();
}

Status ExpertParallelMoe::enqueueShared(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer x,
                                        int64_t tokens) {
  PerRank &own = *ranks[rank.id()];
  const auto found = own.shared.find(tokens);
  if (found == own.shared.end())
    return Status::ok();
  SharedPlan &shared = found->second;
  DITRON_RETURN_IF_ERROR(shared.up.setPointer(shared.tokensParameter, x));
  DITRON_RETURN_IF_ERROR(shared.up.enqueue(stream));
  return shared.down.enqueue(stream);
}

Status ExpertParallelMoe::enqueueFused(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer x,
                                       runtime::Pointer y, int64_t tokens) {
  const PerRank &own = *ranks[rank.id()];
  DITRON_RETURN_IF_ERROR(fused->dispatchGemm(
      rank, stream,
      {.x = x, .tokens = tokens, .ids = own.router->ids(), .b = own.weights.up, .c = own.inner.pointer()}));
  // Behind the dispatch, for which other ranks wait.
  DITRON_RETURN_IF_ERROR(enqueueShared(rank, stream, x, tokens));
  return fused->gemmCombine(rank, stream,
                            {.a = own.inner.pointer(),
                             .b = own.weights.down,
                             .out = y,
                             .tokens = tokens,
                             .weights = own.router->weights(),
                             .addend = own.sharedOut.pointer()});
}

Status ExpertParallelMoe::enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer x, runtime::Pointer y,
                                  int64_t tokens) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  DITRON_RETURN_IF_ERROR(verifyTokens(tokens));
  if (tokens > 0)
    for (const auto &[name, pointer] : {std::pair("x", x), std::pair("y", y)})
      DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operation, name, pointer, optionValues.dtype));
  PerRank &own = *ranks[rank.id()];
  if (!own.prepared.contains(tokens)) {
    DITRON_RETURN_IF_ERROR(beginUnprepared(operation, stream, fmt::format("{} tokens", tokens)));
    DITRON_RETURN_IF_ERROR(prepare(rank, tokens));
  }
  using Part = ExpertParallel::Part;
  if (tokens > 0)
    DITRON_RETURN_IF_ERROR(own.router->enqueue(stream, x, tokens));
  if (fused)
    return enqueueFused(rank, stream, x, y, tokens);
  const ExpertParallel::DispatchOperands sent = {.x = x,
                                                 .tokens = tokens,
                                                 .ids = own.router->ids(),
                                                 .weights = own.router->weights(),
                                                 .rows = own.rows.pointer(),
                                                 .scales = own.scales.pointer(),
                                                 .offsets = own.offsets.pointer(),
                                                 .handle = own.handle.pointer()};
  if (sendsAhead())
    DITRON_RETURN_IF_ERROR(experts->dispatch(rank, stream, sent, Part::Send));
  DITRON_RETURN_IF_ERROR(enqueueShared(rank, stream, x, tokens));
  DITRON_RETURN_IF_ERROR(experts->dispatch(rank, stream, sent, sendsAhead() ? Part::Receive : Part::Whole));
  for (const PreparedCall &product : own.products)
    DITRON_RETURN_IF_ERROR(product.enqueue(stream));
  return experts->combine(rank, stream,
                          {.rows = resultsOf(own),
                           .out = y,
                           .tokens = tokens,
                           .handle = own.handle.pointer(),
                           .addend = own.sharedOut.pointer()});
}

} // namespace ditron::ops
