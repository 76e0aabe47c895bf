//===- AllGatherAttention.cpp - Attention to the keys of all ranks, which come meanwhile -------------------------------------===//
#include "ditron/ops/sequence_parallel/AllGatherAttention.h"

#include "ditron/ops/SizeOptions.h"

#include <fmt/format.h>
#include <numbers>

namespace ditron::ops {

namespace {

/// The largest divisor of so many heads that is at most `most`.
uint32_t piecesOfHeads(int64_t heads, int64_t most) {
  int64_t pieces = most;
  while (heads % pieces != 0)
    --pieces;
  return static_cast<uint32_t>(pieces);
}

} // namespace

Expected<AllGatherAttention> AllGatherAttention::create(runtime::World &world, runtime::KernelProvider &kernels,
                                                        const AllGatherAttentionOptions &options,
                                                        std::string_view operation) {
  DITRON_RETURN_IF_ERROR(world.requireOneNode(operation));
  AllGatherAttention op;
  op.operation = operation;
  op.optionValues = options;
  op.optionValues.tile = options.tile.chosen(options.headDim, kernels.target());
  op.world = &world;
  DITRON_RETURN_IF_ERROR(options.tile.verify(operation));
  DITRON_RETURN_IF_ERROR(verifyHeads(operation, op.heads()));
  constexpr int64_t mostPieces = 8;
  op.mostPieces = options.pieces ? options.pieces : piecesOfHeads(op.keyHeads(), mostPieces);
  if (op.keyHeads() % op.mostPieces != 0)
    return invalidArgument(fmt::format("{}: {} pieces of {} heads of K and V; what divides these is accepted, and 0",
                                       operation, options.pieces, op.keyHeads()));
  DITRON_RETURN_IF_ERROR(verifyPackedSequences(operation, options.packedSequences, options.batch));
  op.kernels = &kernels;
  op.agreement = PlanAgreement(world, operation);
  DITRON_RETURN_IF_ERROR(
      op.agreement.begin(world, fmt::format("{}, {} sequences, {} pieces, {}", options.causal ? "causal" : "whole",
                                            options.batch, op.mostPieces, toString(options.schedule))));
  op.callAgreement = std::make_shared<runtime::CallAgreement>(std::string(operation), world.numRanks());
  DITRON_ASSIGN_OR_RETURN(op.words, CallWords::create(world, "ag_attention", 0));
  const int64_t elements = world.numRanks() * op.keyHeads() * op.stageRows(options.maxTokens) * options.headDim;
  DITRON_ASSIGN_OR_RETURN(op.gathered[0], world.allocateSymmetric(options.dtype, elements, "ag_attention_k"));
  DITRON_ASSIGN_OR_RETURN(op.gathered[1], world.allocateSymmetric(options.dtype, elements, "ag_attention_v"));
  DITRON_ASSIGN_OR_RETURN(
      op.ready, world.allocateSymmetric(DataType::I64, world.numRanks() * op.mostPieces, "ag_attention_ready"));
  op.sides.resize(world.numRanks());
  op.bounds.resize(world.numRanks());
  op.kept.resize(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    DITRON_ASSIGN_OR_RETURN(op.sides[id], runtime::SideStream::create(world.rank(id), "ag_attention"));
    if (options.packedSequences) {
      DITRON_ASSIGN_OR_RETURN(op.bounds[id], SequenceBounds::create(world.rank(id), op.sections(options.maxTokens)));
    }
    op.kept[id] = std::make_unique<KeptPlans<Plan>>();
  }
  return op;
}

Status AllGatherAttention::verifyTokens(int64_t tokens) const {
  return verifyTokenCount(operation, tokens, 1, optionValues.maxTokens);
}

Status AllGatherAttention::verifyOperands(const Operands &operands) const {
  for (auto [name, pointer] : {std::pair("q", operands.q), std::pair("k", operands.k), std::pair("v", operands.v),
                               std::pair("out", operands.out)})
    DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operation, name, pointer, optionValues.dtype));
  DITRON_RETURN_IF_ERROR(verifySequenceOffsets(operation, optionValues.packedSequences, operands.offsets));
  return operands.lse.address ? verifyAlignedPointer(operation, "lse", operands.lse, DataType::F32) : Status::ok();
}

KernelCall AllGatherAttention::attentionCall(const runtime::Rank &rank, int64_t tokens, bool withLse) const {
  const uint32_t id = rank.id();
  const TokenSections dealt = sections(tokens);
  const int64_t ownRows = std::max<int64_t>(dealt.tokensOf(id), 1), depth = optionValues.headDim;
  int64_t tiles = 0;
  for (uint32_t part = 0; part < dealt.parts(); ++part)
    tiles += ceilDivide(dealt.tokensOf(id, part), optionValues.tile.blockM);
  KernelCall call;
  call.source = "sequence_parallel/attention";
  call.kernel = "all_gather_attention";
  call.numWarps = optionValues.tile.numWarps;
  call.numStages = optionValues.tile.numStages;
  call.grid = {blocksFor(rank, tiles * optionValues.batch * optionValues.heads), 1, 1};
  const runtime::Pointer any = gathered[0].on(id);
  call.arguments = {{"q_ptr", any},
                    {"k_ptr", gathered[0].on(id)},
                    {"v_ptr", gathered[1].on(id)},
                    {"out_ptr", any},
                    {"lse_ptr", orNone(withLse, any.as(DataType::F32))},
                    {"ready_ptr", ready.on(id)},
                    {"generation_ptr", words.generation(id)},
                    {"batch", optionValues.batch},
                    {"heads", optionValues.heads},
                    {"kv_heads", optionValues.kvHeads},
                    {"all_batch", rank.numRanks() * optionValues.batch},
                    {"group", optionValues.heads / optionValues.kvHeads},
                    {"tokens", tokens},
                    {"section", dealt.sectionTokens()},
                    {"first_rows", std::max<int64_t>(dealt.tokensOf(id, 0), 1)},
                    {"own_rows", ownRows},
                    {"stage_rows", stageRows(tokens)},
                    {"q_batch_stride", optionValues.heads * ownRows * depth},
                    {"q_head_stride", ownRows * depth},
                    {"q_row_stride", depth},
                    {"out_batch_stride", optionValues.heads * ownRows * depth},
                    {"out_head_stride", ownRows * depth},
                    {"out_row_stride", depth},
                    {"kv_batch_stride", optionValues.kvHeads * stageRows(tokens) * depth},
                    {"kv_head_stride", stageRows(tokens) * depth},
                    {"kv_row_stride", depth},
                    {"heads_per_piece", keyHeads() / piecesOf(tokens)},
                    {"score_scale", heads().scaleOfScores() * std::numbers::log2e},
                    {"rank", id},
                    {"WORLD_SIZE", rank.numRanks()},
                    {"PARTS", dealt.parts()},
                    {"MOST_PIECES", mostPieces},
                    {"CAUSAL", optionValues.causal},
                    {"HEAD_DIM", optionValues.headDim},
                    {"BLOCK_M", optionValues.tile.blockM},
                    {"BLOCK_N", optionValues.tile.blockN}};
  if (optionValues.packedSequences)
    bounds[id].addTo(call);
  return call;
}

/// A copy, and the signal behind it, takes 2.4 us beside its bytes, so pieces are not small (docs/ops/sequence_parallel.md, "How many pieces").
uint32_t AllGatherAttention::piecesOf(int64_t tokens) const {
  if (optionValues.pieces > 0)
    return mostPieces;
  constexpr int64_t leastBytes = 2 << 20; // of K
  const int64_t bytes =
      keyHeads() * stageRows(tokens) * optionValues.headDim * static_cast<int64_t>(sizeOf(optionValues.dtype));
  return piecesOfHeads(keyHeads(), std::clamp<int64_t>(bytes / leastBytes, 1, mostPieces));
}

/// First to the rank below, which visits these keys right after its own, and so on downwards; to each piece by piece.
void AllGatherAttention::addPushes(const runtime::Rank &rank, int64_t tokens, runtime::CallSequence &sequence) const {
  const uint32_t id = rank.id(), ranks = rank.numRanks(), pieces = piecesOf(tokens);
  const int64_t head = stageRows(tokens) * optionValues.headDim, piece = keyHeads() / pieces * head;
  for (uint32_t step = 1; step < ranks; ++step)
    for (uint32_t number = 0; number < pieces; ++number) {
      const uint32_t peer = (id + ranks - step) % ranks;
      const int64_t place = id * keyHeads() * head + number * piece;
      for (const runtime::SymmetricBuffer &each : gathered)
        if (sections(tokens).tokensOf(id) > 0)
          sequence.copy(runtime::Lane::Side, runtime::Copy::of(each.on(peer) + place, each.on(id) + place, piece,
                                                               fmt::format("ag_kv to {}", peer)));
      sequence.copy(runtime::Lane::Side,
                    runtime::Copy::of(ready.on(peer) + (id * mostPieces + number), words.generation(id), 1,
                                      fmt::format("ag_kv_ready to {}", peer)));
    }
}

Expected<AllGatherAttention::Plan> AllGatherAttention::makePlan(runtime::Rank &rank, int64_t tokens,
                                                                bool withLse) const {
  using runtime::Lane;
  const runtime::Pointer own = ready.on(rank.id()) + rank.id() * mostPieces, any = words.generation(rank.id());
  Plan made;
  const int64_t slot = rank.id() * keyHeads() * stageRows(tokens) * optionValues.headDim;
  DITRON_ASSIGN_OR_RETURN(
      made.stage,
      PreparedCall::create(*kernels, rank,
                           stageKeysCall(rank, sections(tokens), keyHeads(), optionValues.headDim,
                                         gathered[0].on(rank.id()) + slot, gathered[1].on(rank.id()) + slot)));
  DITRON_ASSIGN_OR_RETURN(
      PreparedCall enter,
      PreparedCall::create(*kernels, rank, words.enter(rank, own, mostPieces, {.destination = any, .source = any})));
  DITRON_ASSIGN_OR_RETURN(made.attention, PreparedCall::create(*kernels, rank, attentionCall(rank, tokens, withLse)));
  made.sequence = runtime::CallSequence(sides[rank.id()]);
  // Where the rank's own keys go another rank's may still have been coming, of a call of another size in which this rank had no queries.
  made.sequence.launch(Lane::Main, enter.prepared());
  made.sequence.launch(Lane::Main, made.stage.prepared());
  made.sequence.join(Lane::Side);
  addPushes(rank, tokens, made.sequence);
  if (optionValues.packedSequences) {
    DITRON_ASSIGN_OR_RETURN(
        made.sequences,
        PreparedCall::create(*kernels, rank,
                             bounds[rank.id()].find(rank, sections(tokens), *optionValues.packedSequences)));
    DITRON_ASSIGN_OR_RETURN(made.offsetsPointer, made.sequences->pointerParameter("offsets_ptr"));
    // A rank without tokens need not have offsets.
    if (sections(tokens).tokensOf(rank.id()) > 0)
      made.sequence.launch(Lane::Main, made.sequences->prepared());
  }
  if (optionValues.schedule == Schedule::Overlapped)
    made.sequence.launch(Lane::Main, made.attention.prepared());
  made.sequence.join(Lane::Main);
  if (optionValues.schedule == Schedule::Unfused)
    made.sequence.launch(Lane::Main, made.attention.prepared());
  made.sequence.setAgreedCall({callAgreement, rank.id(), fmt::format("{} tokens", tokens)});
  DITRON_ASSIGN_OR_RETURN(made.stagePointers[0], made.stage.pointerParameter("k_ptr"));
  DITRON_ASSIGN_OR_RETURN(made.stagePointers[1], made.stage.pointerParameter("v_ptr"));
  std::vector<std::string_view> names = {"q_ptr", "out_ptr"};
  if (withLse)
    names.push_back("lse_ptr");
  for (const std::string_view name : names) {
    DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, made.attention.pointerParameter(name));
    made.pointers.push_back(parameter);
  }
  return made;
}

Status AllGatherAttention::prepare(runtime::Rank &rank, int64_t tokens, bool withLse) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  const auto keep = [&]() -> Status {
    DITRON_RETURN_IF_ERROR(verifyTokens(tokens));
    const KeptPlans<Plan>::Key key = {tokens, withLse};
    if (Plan *there = kept[rank.id()]->get(key)) // graphs may have its kernels
      return there->sequence.isRecorded() ? Status::ok() : there->sequence.record(rank).withContext(operation);
    DITRON_ASSIGN_OR_RETURN(Plan made, makePlan(rank, tokens, withLse));
    DITRON_RETURN_IF_ERROR(made.sequence.record(rank).withContext(operation));
    kept[rank.id()]->keep(key, std::move(made));
    return Status::ok();
  };
  return agreement.reach(rank, keep(), fmt::format("a call with {} tokens", tokens), "copies");
}

Status AllGatherAttention::enqueue(runtime::Rank &rank, runtime::Stream &stream, const Operands &operands,
                                   int64_t tokens) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  DITRON_RETURN_IF_ERROR(verifyTokens(tokens));
  const bool withLse = operands.lse.address != nullptr;
  if (sections(tokens).tokensOf(rank.id()) > 0)
    DITRON_RETURN_IF_ERROR(verifyOperands(operands));
  const auto describe = [&] { return fmt::format("{} tokens{}", tokens, withLse ? ", with lse" : ""); };
  DITRON_ASSIGN_OR_RETURN(Plan * found, kept[rank.id()]->find(operation, stream, {tokens, withLse}, describe,
                                                              [&] { return makePlan(rank, tokens, withLse); }));
  if (sections(tokens).tokensOf(rank.id()) > 0) {
    DITRON_RETURN_IF_ERROR(found->stage.setPointer(found->stagePointers[0], operands.k));
    DITRON_RETURN_IF_ERROR(found->stage.setPointer(found->stagePointers[1], operands.v));
    if (found->sequences)
      DITRON_RETURN_IF_ERROR(found->sequences->setPointer(found->offsetsPointer, operands.offsets));
    const std::array<runtime::Pointer, 3> addresses = {operands.q, operands.out, operands.lse};
    for (size_t i = 0; i < found->pointers.size(); ++i)
      DITRON_RETURN_IF_ERROR(found->attention.setPointer(found->pointers[i], addresses[i]));
  }
  return found->sequence.enqueue(stream);
}

Status AllGatherAttention::enqueueWithoutExchange(runtime::Rank &rank, runtime::Stream &stream, int64_t tokens,
                                                  bool withLse) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  Plan *found = kept[rank.id()]->get({tokens, withLse});
  if (!found)
    return invalidArgument(fmt::format("{}: no call with {} tokens has been made", operation, tokens));
  DITRON_RETURN_IF_ERROR(found->stage.enqueue(stream));
  if (found->sequences)
    DITRON_RETURN_IF_ERROR(found->sequences->enqueue(stream));
  return found->attention.enqueue(stream);
}

} // namespace ditron::ops
