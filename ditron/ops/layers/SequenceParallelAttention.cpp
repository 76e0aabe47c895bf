//===- SequenceParallelAttention.cpp - A layer of attention over ranks that have some tokens each ----------------------------===//
#include "ditron/ops/layers/SequenceParallelAttention.h"

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
  if (options.heads < 1 || options.kvHeads < 1 || options.heads % ranks != 0 || options.kvHeads % ranks != 0)
    return invalidArgument(fmt::format("{}: {} heads and {} of K and V over {} ranks, which must divide both",
                                       operation, options.heads, options.kvHeads, ranks));
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
  layer.attention.resize(ranks);
  for (uint32_t id : world.localRanks())
    layer.attention[id] = std::make_unique<KeptPlans<PreparedCall>>();
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
  const runtime::Pointer q = before.result(rank.id()), k = q + heads * depth, v = k + kvHeads * depth;
  Expected<PreparedCall> call = prepareHeadAttention(*kernels, rank, problem, q, k, v, behind.operand(rank.id()));
  return call.isOk() ? std::move(call) : call.status().withContext(operation);
}

Status SequenceParallelAttention::prepare(runtime::Rank &rank, int64_t tokens) {
  DITRON_RETURN_IF_ERROR(before.prepare(rank, tokens));
  DITRON_RETURN_IF_ERROR(behind.prepare(rank, tokens, optionValues.hidden));
  KeptPlans<PreparedCall> &kept = *attention[rank.id()];
  if (kept.has({tokens})) // graphs may have its kernel
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(PreparedCall made, makeAttention(rank, tokens));
  kept.keep({tokens}, std::move(made));
  return Status::ok();
}

Status SequenceParallelAttention::enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer x,
                                          const Weights &weights, runtime::Pointer y, int64_t tokens) {
  DITRON_RETURN_IF_ERROR(before.enqueue(rank, stream, x, weights.qkv, tokens));
  DITRON_ASSIGN_OR_RETURN(PreparedCall * call,
                          attention[rank.id()]->find(
                              operation, stream, {tokens}, [&] { return fmt::format("{} tokens", tokens); },
                              [&] { return makeAttention(rank, tokens); }));
  DITRON_RETURN_IF_ERROR(call->enqueue(stream));
  return behind.enqueue(rank, stream, weights.out, y, tokens, optionValues.hidden);
}

} // namespace ditron::ops
