//===- SequenceParallelAttention.cpp - A layer of attention over ranks that have some tokens each ----------------------------===//
#include "ditron/ops/layers/SequenceParallelAttention.h"

#include "ditron/ops/SizeOptions.h"
#include "ditron/ops/attention/Heads.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "SequenceParallelAttention";

/// Columns of the projection to Q, K and V.
int64_t qkvColumns(const SequenceParallelAttentionOptions &options) {
  return (options.heads + 2 * options.kvHeads) * options.headDim;
}

} // namespace

Expected<SequenceParallelAttention>
SequenceParallelAttention::create(runtime::World &world, runtime::KernelProvider &kernels, const Options &options) {
  const uint32_t ranks = world.numRanks();
  DITRON_RETURN_IF_ERROR(verifySizeOptions(operation, {{"batch", options.batch},
                                                       {"hidden", options.hidden},
                                                       {"heads", options.heads},
                                                       {"kvHeads", options.kvHeads},
                                                       {"maxTokens", options.maxTokens}}));
  DITRON_RETURN_IF_ERROR(verifyHeadGroups(operation, options.heads, options.kvHeads));
  DITRON_RETURN_IF_ERROR(verifyPlainHeadSize(operation, options.headDim));
  DITRON_RETURN_IF_ERROR(verifyProjectedHeads(operation, options.heads, options.kvHeads, options.headDim));
  DITRON_RETURN_IF_ERROR(
      verifyProductOfSizes(operation, "rows", {{"batch", options.batch}, {"maxTokens", options.maxTokens}}, mostSize));
  if (options.heads % ranks != 0 || options.kvHeads % ranks != 0)
    return invalidArgument(fmt::format("{}: {} heads and {} of K and V over {} ranks, which must divide both",
                                       operation, options.heads, options.kvHeads, ranks));
  DITRON_RETURN_IF_ERROR(verifyHeadChanges(operation, options.rotary, options.normEpsilon, options.headDim));
  SequenceParallelAttention layer;
  layer.optionValues = options;
  layer.kernels = &kernels;
  layer.ranks = ranks;
  SequenceProductOptions product;
  product.dtype = options.dtype;
  product.batch = options.batch;
  product.maxRows = options.maxTokens;
  product.weightOrder = MatrixOrder::Transposed;
  product.tile = options.tile;
  Expected<GemmAllToAll> before = GemmAllToAll::create(world, kernels, product, options.hidden, qkvColumns(options));
  if (!before.isOk())
    return before.status().withContext(operation);
  Expected<AllToAllGemm> behind =
      AllToAllGemm::create(world, kernels, product, options.heads * options.headDim, options.chunks);
  if (!behind.isOk())
    return behind.status().withContext(operation);
  layer.before = std::move(before).value();
  layer.behind = std::move(behind).value();
  layer.ofRanks.resize(ranks);
  for (uint32_t id : world.localRanks()) {
    runtime::Rank &rank = world.rank(id);
    auto own = std::make_unique<PerRank>();
    if (layer.changesHeads()) {
      const int64_t rows = options.batch * options.maxTokens * options.headDim, keys = rows * options.kvHeads / ranks;
      DITRON_ASSIGN_OR_RETURN(own->q, rank.allocate(options.dtype, rows * options.heads / ranks, "sequence_q"));
      DITRON_ASSIGN_OR_RETURN(own->keys, rank.allocate(options.dtype, keys, "sequence_keys"));
      DITRON_ASSIGN_OR_RETURN(own->values, rank.allocate(options.dtype, keys, "sequence_values"));
    }
    layer.ofRanks[id] = std::move(own);
  }
  if (!options.cache)
    return layer;
  DITRON_ASSIGN_OR_RETURN(layer.spread, SpreadKeys::create(world, kernels,
                                                           {.batch = options.batch,
                                                            .hidden = options.hidden,
                                                            .heads = options.heads,
                                                            .kvHeads = options.kvHeads,
                                                            .headDim = options.headDim,
                                                            .dtype = options.dtype,
                                                            .scale = options.scale,
                                                            .rotary = options.rotary,
                                                            .normEpsilon = options.normEpsilon,
                                                            .maxRows = RowShards(options.maxTokens, ranks).rowsPerRank,
                                                            .cache = *options.cache}));
  return layer;
}

std::vector<int64_t> SequenceParallelAttention::qkvRows(const Options &options, uint32_t ranks) {
  std::vector<int64_t> rows;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    int64_t first = 0; // of Q, then K, then V
    for (const int64_t heads : {options.heads, options.kvHeads, options.kvHeads}) {
      const int64_t own = heads / ranks * options.headDim;
      for (int64_t row = 0; row < own; ++row)
        rows.push_back(first + rank * own + row);
      first += heads * options.headDim;
    }
  }
  return rows;
}

Expected<PreparedCall> SequenceParallelAttention::makeHeads(runtime::Rank &rank, int64_t tokens,
                                                            const Weights &weights) const {
  const PerRank &own = *ofRanks[rank.id()];
  AttentionHeadsProblem problem;
  problem.tokens = optionValues.batch * tokens;
  problem.batch = optionValues.batch;
  problem.heads = optionValues.heads / ranks;
  problem.kvHeads = optionValues.kvHeads / ranks;
  problem.headDim = optionValues.headDim;
  problem.dtype = optionValues.dtype;
  problem.keys = KeyLayout::keysFirst(problem.kvHeads, tokens, problem.headDim);
  problem.rotary = optionValues.rotary;
  problem.normEpsilon = optionValues.normEpsilon;
  problem.uniform = UniformTokens{.rowsOfSequence = tokens};
  AttentionHeadsOperands operands;
  operands.rows = before.result(rank.id());
  operands.q = own.q;
  operands.keys = own.keys;
  operands.values = own.values;
  operands.qNorm = weights.qNorm;
  operands.kNorm = weights.kNorm;
  operands.rotary = weights.rotary;
  return prepareAttentionHeads(*kernels, rank, problem, operands);
}

Expected<SequenceParallelAttention::Plan> SequenceParallelAttention::makePlan(runtime::Rank &rank, int64_t tokens,
                                                                              const Weights &weights) const {
  Plan plan;
  DITRON_ASSIGN_OR_RETURN(plan.attention, makeAttention(rank, tokens));
  if (!changesHeads())
    return plan;
  DITRON_ASSIGN_OR_RETURN(plan.heads, makeHeads(rank, tokens, weights));
  std::vector<std::pair<std::string_view, runtime::Pointer Weights::*>> names;
  if (optionValues.normEpsilon)
    names.insert(names.end(), {{"q_weight_ptr", &Weights::qNorm}, {"k_weight_ptr", &Weights::kNorm}});
  if (optionValues.rotary.dim != 0)
    names.emplace_back("rotary_ptr", &Weights::rotary);
  for (const auto &[name, pointer] : names) {
    DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, plan.heads->pointerParameter(name));
    plan.pointers.emplace_back(parameter, pointer);
  }
  return plan;
}

Expected<PreparedCall> SequenceParallelAttention::makeAttention(runtime::Rank &rank, int64_t tokens) const {
  const int64_t heads = optionValues.heads / ranks, kvHeads = optionValues.kvHeads / ranks,
                depth = optionValues.headDim;
  const int64_t columns = qkvColumns(optionValues) / ranks;
  HeadAttentionProblem problem;
  problem.batch = optionValues.batch;
  problem.heads = heads;
  problem.kvHeads = kvHeads;
  problem.tokens = tokens;
  problem.headDim = depth;
  problem.dtype = optionValues.dtype;
  problem.causal = optionValues.causal;
  problem.scale = optionValues.scale;
  problem.q = problem.keys = {.batch = tokens * columns, .head = depth, .row = columns};
  problem.out = {.batch = tokens * heads * depth, .head = depth, .row = heads * depth};
  problem.tile = optionValues.attentionTile;
  runtime::Pointer q = before.result(rank.id()), k = q + heads * depth, v = k + kvHeads * depth;
  if (changesHeads()) {
    const PerRank &own = *ofRanks[rank.id()];
    problem.q = problem.out;
    problem.keys = {.batch = tokens * kvHeads * depth, .head = depth, .row = kvHeads * depth};
    q = own.q, k = own.keys, v = own.values;
  }
  Expected<PreparedCall> call = prepareHeadAttention(*kernels, rank, problem, q, k, v, behind.operand(rank.id()));
  return call.isOk() ? std::move(call) : call.status().withContext(operation);
}

Status SequenceParallelAttention::verifyTokens(int64_t tokens) const {
  return verifyTokenCount(operation, tokens, 1, optionValues.maxTokens);
}

Status SequenceParallelAttention::prepare(runtime::Rank &rank, int64_t tokens) {
  DITRON_RETURN_IF_ERROR(verifyTokens(tokens));
  DITRON_RETURN_IF_ERROR(before.prepare(rank, tokens));
  DITRON_RETURN_IF_ERROR(behind.prepare(rank, tokens, optionValues.hidden));
  if (spread) {
    const RowShards shards(tokens, ranks);
    DITRON_RETURN_IF_ERROR(spread->prepareFill(rank, shards.rowsOf(rank.id()), shards.firstRowOf(rank.id())));
  }
  KeptPlans<Plan> &kept = ofRanks[rank.id()]->kept;
  if (kept.has({tokens})) // graphs may have its kernel
    return Status::ok();
  const runtime::Pointer any = before.result(rank.id()); // Only types and alignment matter.
  DITRON_ASSIGN_OR_RETURN(
      Plan made,
      makePlan(rank, tokens, {.qkv = any, .out = any, .qNorm = any, .kNorm = any, .rotary = any.as(DataType::F32)}));
  kept.keep({tokens}, std::move(made));
  return Status::ok();
}

SpreadKeysMemory SequenceParallelAttention::memoryOf(const Weights &weights, const Cache &cache) const {
  return {.x = {},
          .y = {},
          .qkv = weights.qkv,
          .out = weights.out,
          .qNorm = weights.qNorm,
          .kNorm = weights.kNorm,
          .rotary = weights.rotary,
          .keys = cache.keys,
          .values = cache.values,
          .table = cache.table};
}

Status SequenceParallelAttention::verifyDecodes() const {
  if (spread)
    return Status::ok();
  return invalidArgument(fmt::format("{}: the layer was made without a cache", operation));
}

Status SequenceParallelAttention::enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer x,
                                          const Weights &weights, runtime::Pointer y, int64_t tokens,
                                          const std::optional<Cache> &cache) {
  DITRON_RETURN_IF_ERROR(verifyTokens(tokens));
  const RowShards shards(tokens, ranks);
  if (shards.rowsOf(rank.id()) == 0) // nothing is read or written there
    x = y = before.result(rank.id());
  const DataType type = optionValues.dtype;
  if (cache)
    DITRON_RETURN_IF_ERROR(verifyDecodes());
  if (optionValues.normEpsilon)
    for (auto [name, pointer] : {std::pair("qNorm", weights.qNorm), std::pair("kNorm", weights.kNorm)})
      DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operation, name, pointer, type));
  if (optionValues.rotary.dim != 0)
    DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operation, "rotary", weights.rotary, DataType::F32));
  if (cache) {
    SpreadKeysMemory memory = memoryOf(weights, *cache);
    memory.x = x;
    DITRON_RETURN_IF_ERROR(spread->fill(rank, stream, memory, shards.rowsOf(rank.id()), shards.firstRowOf(rank.id())));
  }
  DITRON_RETURN_IF_ERROR(before.enqueue(rank, stream, x, weights.qkv, tokens));
  DITRON_ASSIGN_OR_RETURN(Plan * plan,
                          ofRanks[rank.id()]->kept.find(
                              operation, stream, {tokens}, [&] { return fmt::format("{} tokens", tokens); },
                              [&] { return makePlan(rank, tokens, weights); }));
  if (plan->heads) {
    for (const auto &[parameter, pointer] : plan->pointers)
      DITRON_RETURN_IF_ERROR(plan->heads->setPointer(parameter, weights.*pointer));
    DITRON_RETURN_IF_ERROR(plan->heads->enqueue(stream));
  }
  DITRON_RETURN_IF_ERROR(plan->attention.enqueue(stream));
  return behind.enqueue(rank, stream, weights.out, y, tokens, optionValues.hidden);
}

Status SequenceParallelAttention::prepareDecode(runtime::Rank &rank, int64_t batch) {
  DITRON_RETURN_IF_ERROR(verifyDecodes());
  return spread->prepareDecode(rank, batch);
}

Status SequenceParallelAttention::decode(runtime::Rank &rank, runtime::Stream &stream, const Weights &weights,
                                         const DecodeOperands &operands, int64_t batch) {
  DITRON_RETURN_IF_ERROR(verifyDecodes());
  SpreadKeysMemory memory = memoryOf(weights, operands.cache);
  memory.x = operands.x;
  memory.y = operands.y;
  memory.lengths = operands.lengths;
  memory.places = operands.places;
  memory.positions = operands.positions;
  return spread->decode(rank, stream, memory, batch);
}

} // namespace ditron::ops
