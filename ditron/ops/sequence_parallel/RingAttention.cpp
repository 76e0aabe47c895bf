//===- RingAttention.cpp - Attention to the keys of all ranks, which go round them -------------------------------------------===//
#include "ditron/ops/sequence_parallel/RingAttention.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {
constexpr std::string_view operation = "RingAttention";
/// Numbers of operands.
enum { Q, K, V, Out, Lse };

/// Whether all shards take no more memory than three and the sums, whose fp32 elements are as many for each query head as a shard has bf16 ones of K and of V.
bool gathersShards(const runtime::World &world, const RingAttentionOptions &options) {
  constexpr int64_t shardsOfRing = 3;
  return options.gather.value_or(world.numNodes() == 1 &&
                                 options.kvHeads * (world.numRanks() - shardsOfRing) <= options.heads);
}
} // namespace

Expected<RingAttention> RingAttention::create(runtime::World &world, runtime::KernelProvider &kernels,
                                              const RingAttentionOptions &options) {
  RingAttention op;
  DITRON_RETURN_IF_ERROR(op.take(operation, world, kernels, options));
  if (gathersShards(world, options)) {
    DITRON_ASSIGN_OR_RETURN(op.gathered, AllGatherAttention::create(world, kernels,
                                                                    {.batch = options.batch,
                                                                     .heads = options.heads,
                                                                     .kvHeads = options.kvHeads,
                                                                     .headDim = options.headDim,
                                                                     .dtype = options.dtype,
                                                                     .causal = options.causal,
                                                                     .scale = options.scale,
                                                                     .maxTokens = options.maxTokens,
                                                                     .packedSequences = options.packedSequences,
                                                                     .schedule = options.schedule,
                                                                     .tile = options.tile},
                                                                    operation));
    return op;
  }
  DITRON_RETURN_IF_ERROR(
      op.makeRing("ring_attention", 2 * op.allKeyHeads() * op.sections(options.maxTokens).shardRows() *
                                        options.headDim * static_cast<int64_t>(sizeOf(options.dtype))));
  op.partial.resize(world.numRanks());
  op.logs.resize(world.numRanks());
  // With one rank all tiles are complete at once.
  const int64_t rows = world.numRanks() > 1
                           ? op.allHeads() * op.mostTiles(op.optionValues.tile.blockM) * op.optionValues.tile.blockM
                           : 1;
  for (uint32_t id : world.localRanks()) {
    runtime::Rank &rank = world.rank(id);
    DITRON_ASSIGN_OR_RETURN(op.partial[id],
                            rank.allocate(DataType::F32, rows * options.headDim, "ring_attention_partial"));
    DITRON_ASSIGN_OR_RETURN(op.logs[id], rank.allocate(DataType::F32, rows, "ring_attention_logs"));
  }
  return op;
}

KernelCall RingAttention::stepCall(const runtime::Rank &rank, uint32_t step, int64_t tokens, const StepTiles &tiles,
                                   bool withLse) const {
  const uint32_t id = rank.id();
  const int64_t ownRows = sections(tokens).tokensOf(id), depth = optionValues.headDim;
  const runtime::Pointer k = ring.shard(id, step).as(optionValues.dtype);
  KernelCall call;
  call.source = "sequence_parallel/ring";
  call.kernel = "ring_attention";
  call.numWarps = optionValues.tile.numWarps;
  call.numStages = optionValues.tile.numStages;
  call.grid = {blocksFor(rank, tiles.count * allHeads()), 1, 1};
  call.arguments = {{"q_ptr", k},
                    {"k_ptr", k},
                    {"v_ptr", k + allKeyHeads() * sections(tokens).shardRows() * depth},
                    {"out_ptr", k},
                    {"lse_ptr", orNone(withLse, k.as(DataType::F32))},
                    {"partial_ptr", partial[id].pointer()},
                    {"logs_ptr", logs[id].pointer()},
                    {"q_batch_stride", optionValues.heads * ownRows * depth},
                    {"q_head_stride", ownRows * depth},
                    {"BLOCK_M", optionValues.tile.blockM},
                    {"BLOCK_N", optionValues.tile.blockN}};
  addStepArguments(call, rank, step, tokens, tiles);
  return call;
}

Expected<RingCalls::Plan> RingAttention::makePlan(runtime::Rank &rank, int64_t tokens, bool withLse) const {
  const uint32_t id = rank.id();
  const int64_t elements = allKeyHeads() * sections(tokens).shardRows() * optionValues.headDim;
  const uint64_t bytes = 2 * elements * sizeOf(optionValues.dtype);
  const runtime::Pointer own = ring.shard(id, 0).as(optionValues.dtype);
  Plan made;
  DITRON_ASSIGN_OR_RETURN(made.sequence, ring.begin(rank));
  DITRON_RETURN_IF_ERROR(
      bind(rank, stageKeysCall(rank, sections(tokens), allKeyHeads(), optionValues.headDim, own, own + elements),
           {{"k_ptr", K}, {"v_ptr", V}}, made));
  made.sequence.launch(runtime::Lane::Main, made.calls.back().call.prepared());
  DITRON_RETURN_IF_ERROR(findSequences(rank, tokens, made));
  for (uint32_t step = 0; step < ring.steps(); ++step) {
    const StepTiles tiles = tilesOf(TilesOf::Queries, id, step, tokens, optionValues.tile.blockM);
    std::vector<PreparedCall> work;
    if (tiles.count > 0) {
      const KernelCall call = stepCall(rank, step, tokens, tiles, withLse);
      if (withLse)
        DITRON_RETURN_IF_ERROR(bind(rank, call, {{"q_ptr", Q}, {"out_ptr", Out}, {"lse_ptr", Lse}}, made));
      else
        DITRON_RETURN_IF_ERROR(bind(rank, call, {{"q_ptr", Q}, {"out_ptr", Out}}, made));
      work.push_back(made.calls.back().call);
    }
    DITRON_RETURN_IF_ERROR(ring.addStep(rank, step, bytes, optionValues.schedule, work, made.sequence));
  }
  made.sequence.join(runtime::Lane::Main);
  return made;
}

Status RingAttention::enqueue(runtime::Rank &rank, runtime::Stream &stream, const Operands &operands, int64_t tokens) {
  if (gathered)
    return gathered->enqueue(rank, stream,
                             {.q = operands.q,
                              .k = operands.k,
                              .v = operands.v,
                              .out = operands.out,
                              .lse = operands.lse,
                              .offsets = operands.offsets},
                             tokens);
  const DataType type = optionValues.dtype;
  const bool withLse = operands.lse.address != nullptr;
  const std::array<RingOperand, 5> all = {{{"q", operands.q, type},
                                           {"k", operands.k, type},
                                           {"v", operands.v, type},
                                           {"out", operands.out, type},
                                           {"lse", operands.lse, DataType::F32, /*isOptional=*/true}}};
  return RingCalls::enqueue(rank, stream, all, operands.offsets, tokens, withLse, withLse ? ", with lse" : "");
}

} // namespace ditron::ops
