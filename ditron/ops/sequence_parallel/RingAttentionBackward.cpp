//===- RingAttentionBackward.cpp - Gradients of attention to the keys of all ranks -------------------------------------------===//
#include "ditron/ops/sequence_parallel/RingAttentionBackward.h"

#include "ditron/support/TargetName.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "RingAttentionBackward";
/// What rows of log-sum-exp and delta are padded to, and the largest tile of queries.
constexpr int64_t rowPadding = 128;
/// Numbers of operands.
enum { Q, K, V, Out, Lse, Gradient, DQ, DK, DV };

/// Without zeros.
RingBackwardTiles chosenTiles(const RingBackwardTiles &given, int64_t headDim, std::string_view target) {
  RingBackwardTiles tiles = {.keys = {.blockM = 64, .blockN = 64, .numWarps = 8, .numStages = 2},
                             .queries = {.blockM = 64, .blockN = 64, .numWarps = 8, .numStages = 2}};
  if (hasTensorCopies(target) && headDim >= 64) {
    // Both products of a turn read what its slots hold until the last one has: with two slots nothing would be on its way meanwhile.
    tiles.keys.blockN = tiles.queries.blockM = 128;
    tiles.keys.numStages = 4;
    tiles.queries.numStages = 3;
    if (headDim == 64) {
      tiles.keys.blockM = tiles.queries.blockN = 128;
      tiles.keys.numStages = 3;
    }
  } else if (headDim > 64) {
    tiles.keys.blockM = 32; // 64 leave no registers
  }
  for (auto [own, wanted] : {std::pair(&tiles.keys, &given.keys), std::pair(&tiles.queries, &given.queries)}) {
    own->blockM = wanted->blockM ? wanted->blockM : own->blockM;
    own->blockN = wanted->blockN ? wanted->blockN : own->blockN;
    own->numWarps = wanted->numWarps ? wanted->numWarps : own->numWarps;
    own->numStages = wanted->numStages ? wanted->numStages : own->numStages;
  }
  return tiles;
}

Status verifyTiles(const RingBackwardTiles &tiles) {
  for (const HeadAttentionTile &tile : {tiles.keys, tiles.queries}) {
    DITRON_RETURN_IF_ERROR(tile.verify(operation));
    if (tile.blockM > rowPadding)
      return invalidArgument(fmt::format("{}: tiles of {} queries; powers of two up to {} are accepted", operation,
                                         tile.blockM, rowPadding));
  }
  return Status::ok();
}

} // namespace

int64_t RingAttentionBackward::paddedRows(int64_t tokens) const {
  return ceilDivide(sections(tokens).sectionTokens(), rowPadding) * rowPadding;
}

RingAttentionBackward::Shard RingAttentionBackward::shardAt(runtime::Pointer begin, int64_t tokens) const {
  const TokenSections dealt = sections(tokens);
  const int64_t keyElements = allKeyHeads() * dealt.shardRows() * optionValues.headDim,
                elements = allHeads() * dealt.shardRows() * optionValues.headDim,
                rows = allHeads() * dealt.parts() * paddedRows(tokens);
  Shard shard;
  shard.k = begin.as(optionValues.dtype);
  shard.v = shard.k + keyElements;
  shard.q = shard.v + keyElements;
  shard.gradient = shard.q + elements;
  shard.logs = (shard.gradient + elements).as(DataType::F32);
  shard.delta = shard.logs + rows;
  shard.bytes = 2 * (keyElements + elements) * sizeOf(optionValues.dtype) + 2 * rows * sizeOf(DataType::F32);
  return shard;
}

Expected<RingAttentionBackward> RingAttentionBackward::create(runtime::World &world, runtime::KernelProvider &kernels,
                                                              const RingAttentionOptions &options,
                                                              const RingBackwardTiles &tiles) {
  constexpr int64_t widestHead = 128;
  RingAttentionBackward op;
  DITRON_RETURN_IF_ERROR(op.take(operation, world, kernels, options));
  if (options.headDim > widestHead)
    return unsupported(
        fmt::format("{}: heads of {} elements; up to {} are accepted", operation, options.headDim, widestHead));
  DITRON_RETURN_IF_ERROR(verifyTiles(tiles));
  op.tiles = chosenTiles(tiles, options.headDim, kernels.target());
  DITRON_RETURN_IF_ERROR(op.makeRing(
      "ring_attention_backward", static_cast<int64_t>(op.shardAt({nullptr, DataType::U8}, options.maxTokens).bytes)));
  // With one rank all tiles are complete at once.
  const auto elements = [&](int64_t heads, uint32_t block) {
    return world.numRanks() > 1 ? heads * op.mostTiles(block) * block * options.headDim : 1;
  };
  for (auto *sums : {&op.dq, &op.dk, &op.dv})
    sums->resize(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    runtime::Rank &rank = world.rank(id);
    const int64_t ofKeys = elements(op.allKeyHeads(), op.tiles.keys.blockN);
    DITRON_ASSIGN_OR_RETURN(
        op.dq[id], rank.allocate(DataType::F32, elements(op.allHeads(), op.tiles.queries.blockM), "ring_attention_dq"));
    DITRON_ASSIGN_OR_RETURN(op.dk[id], rank.allocate(DataType::F32, ofKeys, "ring_attention_dk"));
    DITRON_ASSIGN_OR_RETURN(op.dv[id], rank.allocate(DataType::F32, ofKeys, "ring_attention_dv"));
  }
  return op;
}

KernelCall RingAttentionBackward::stageCall(const runtime::Rank &rank, int64_t tokens) const {
  constexpr int64_t blockM = 32, blocksPerMultiprocessor = 4;
  const TokenSections dealt = sections(tokens);
  const Shard own = shardAt(ring.shard(rank.id(), 0), tokens);
  const int64_t padded = paddedRows(tokens), blocks = allHeads() * dealt.parts() * padded / blockM;
  KernelCall call;
  call.source = "sequence_parallel/ring_backward";
  call.kernel = "stage_queries";
  call.grid = {
      static_cast<uint32_t>(std::min<int64_t>(blocks, blocksPerMultiprocessor * rank.attributes().multiprocessors)), 1,
      1};
  call.arguments = {{"q_ptr", own.q},
                    {"gradient_ptr", own.q},
                    {"out_ptr", own.q},
                    {"lse_ptr", own.logs},
                    {"staged_q_ptr", own.q},
                    {"staged_gradient_ptr", own.gradient},
                    {"logs_ptr", own.logs},
                    {"delta_ptr", own.delta},
                    {"heads", allHeads()},
                    {"section", dealt.sectionTokens()},
                    {"first_rows", dealt.tokensOf(rank.id(), 0)},
                    {"own_rows", dealt.tokensOf(rank.id())},
                    {"padded", padded},
                    {"PARTS", dealt.parts()},
                    {"HEAD_DIM", optionValues.headDim},
                    {"BLOCK_M", blockM}};
  return call;
}

KernelCall RingAttentionBackward::stepCall(const char *kernel, const runtime::Rank &rank, uint32_t step, int64_t tokens,
                                           const HeadAttentionTile &tile, const StepTiles &work, int64_t heads) const {
  const int64_t head = sections(tokens).shardRows() * optionValues.headDim;
  KernelCall call;
  call.source = "sequence_parallel/ring_backward";
  call.kernel = kernel;
  call.numWarps = tile.numWarps;
  call.numStages = tile.numStages;
  call.grid = {blocksFor(rank, work.count * heads), 1, 1};
  call.arguments = {{"padded", paddedRows(tokens)}, {"q_batch_stride", optionValues.heads * head},
                    {"q_head_stride", head},        {"scale", this->heads().scaleOfScores()},
                    {"BLOCK_M", tile.blockM},       {"BLOCK_N", tile.blockN}};
  addStepArguments(call, rank, step, tokens, work);
  return call;
}

Expected<std::vector<PreparedCall>> RingAttentionBackward::stepWork(runtime::Rank &rank, uint32_t step, int64_t tokens,
                                                                    Plan &plan) const {
  const uint32_t id = rank.id();
  const Shard own = shardAt(ring.shard(id, 0), tokens), other = shardAt(ring.shard(id, step), tokens);
  std::vector<PreparedCall> work;
  const StepTiles queries = tilesOf(TilesOf::Queries, id, step, tokens, tiles.queries.blockM);
  if (queries.count > 0) {
    KernelCall call = stepCall("ring_query_gradient", rank, step, tokens, tiles.queries, queries, allHeads());
    call.arguments.insert(call.arguments.end(), {{"q_ptr", own.q},
                                                 {"gradient_ptr", own.gradient},
                                                 {"logs_ptr", own.logs},
                                                 {"delta_ptr", own.delta},
                                                 {"k_ptr", other.k},
                                                 {"v_ptr", other.v},
                                                 {"dq_ptr", own.q},
                                                 {"partial_ptr", dq[id].pointer()}});
    DITRON_RETURN_IF_ERROR(bind(rank, call, {{"dq_ptr", DQ}}, plan));
    work.push_back(plan.calls.back().call);
  }
  const StepTiles keys = tilesOf(TilesOf::Keys, id, step, tokens, tiles.keys.blockN);
  if (keys.count > 0) {
    KernelCall call = stepCall("ring_key_gradients", rank, step, tokens, tiles.keys, keys, allKeyHeads());
    call.arguments.insert(call.arguments.end(), {{"k_ptr", own.k},
                                                 {"v_ptr", own.v},
                                                 {"q_ptr", other.q},
                                                 {"gradient_ptr", other.gradient},
                                                 {"logs_ptr", other.logs},
                                                 {"delta_ptr", other.delta},
                                                 {"log_rows", allHeads() * sections(tokens).parts()},
                                                 {"dk_ptr", own.k},
                                                 {"dv_ptr", own.v},
                                                 {"partial_dk_ptr", dk[id].pointer()},
                                                 {"partial_dv_ptr", dv[id].pointer()}});
    DITRON_RETURN_IF_ERROR(bind(rank, call, {{"dk_ptr", DK}, {"dv_ptr", DV}}, plan));
    work.push_back(plan.calls.back().call);
  }
  return work;
}

Expected<RingCalls::Plan> RingAttentionBackward::makePlan(runtime::Rank &rank, int64_t tokens, bool) const {
  const Shard own = shardAt(ring.shard(rank.id(), 0), tokens);
  Plan made;
  DITRON_ASSIGN_OR_RETURN(made.sequence, ring.begin(rank));
  DITRON_RETURN_IF_ERROR(bind(rank,
                              stageKeysCall(rank, sections(tokens), allKeyHeads(), optionValues.headDim, own.k, own.v),
                              {{"k_ptr", K}, {"v_ptr", V}}, made));
  made.sequence.launch(runtime::Lane::Main, made.calls.back().call.prepared());
  DITRON_RETURN_IF_ERROR(bind(rank, stageCall(rank, tokens),
                              {{"q_ptr", Q}, {"gradient_ptr", Gradient}, {"out_ptr", Out}, {"lse_ptr", Lse}}, made));
  made.sequence.launch(runtime::Lane::Main, made.calls.back().call.prepared());
  DITRON_RETURN_IF_ERROR(findSequences(rank, tokens, made));
  for (uint32_t step = 0; step < ring.steps(); ++step) {
    DITRON_ASSIGN_OR_RETURN(const std::vector<PreparedCall> work, stepWork(rank, step, tokens, made));
    DITRON_RETURN_IF_ERROR(ring.addStep(rank, step, own.bytes, optionValues.schedule, work, made.sequence));
  }
  made.sequence.join(runtime::Lane::Main);
  return made;
}

Status RingAttentionBackward::enqueue(runtime::Rank &rank, runtime::Stream &stream, const Operands &operands,
                                      int64_t tokens) {
  const DataType type = optionValues.dtype;
  const std::array<RingOperand, 9> all = {{{"q", operands.q, type},
                                           {"k", operands.k, type},
                                           {"v", operands.v, type},
                                           {"out", operands.out, type},
                                           {"lse", operands.lse, DataType::F32},
                                           {"gradient", operands.gradient, type},
                                           {"dq", operands.dq, type},
                                           {"dk", operands.dk, type},
                                           {"dv", operands.dv, type}}};
  return RingCalls::enqueue(rank, stream, all, operands.offsets, tokens, false, "");
}

} // namespace ditron::ops
