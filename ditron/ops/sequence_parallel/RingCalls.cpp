//===- RingCalls.cpp - What ring attention and its backward have in common on the host --------------------------------------===//
#include "ditron/ops/sequence_parallel/RingCalls.h"

#include "ditron/ops/SizeOptions.h"

#include <fmt/format.h>
#include <numbers>

namespace ditron::ops {

Status RingCalls::take(std::string_view name, runtime::World &in, runtime::KernelProvider &provider,
                       const RingAttentionOptions &options) {
  operationName = name;
  world = &in;
  kernels = &provider;
  optionValues = options;
  DITRON_RETURN_IF_ERROR(options.tile.verify(operationName));
  optionValues.tile = options.tile.chosen(options.headDim, provider.target());
  DITRON_RETURN_IF_ERROR(verifyHeads(operationName, heads()));
  return verifyPackedSequences(operationName, options.packedSequences, options.batch);
}

Status RingCalls::makeRing(std::string_view name, int64_t bytes) {
  agreement = PlanAgreement(*world, operationName);
  callAgreement = std::make_shared<runtime::CallAgreement>(std::string(operationName), world->numRanks());
  kept.resize(world->numRanks());
  bounds.resize(world->numRanks());
  for (uint32_t id : world->localRanks()) {
    kept[id] = std::make_unique<KeptPlans<Plan>>();
    if (optionValues.packedSequences) {
      DITRON_ASSIGN_OR_RETURN(bounds[id], SequenceBounds::create(world->rank(id), sections(optionValues.maxTokens)));
    }
  }
  DITRON_RETURN_IF_ERROR(
      agreement.begin(*world, fmt::format("{}, {} sequences, {}", optionValues.causal ? "causal" : "whole",
                                          optionValues.batch, toString(optionValues.schedule))));
  DITRON_ASSIGN_OR_RETURN(ring, ShardRing::create(*world, *kernels, name, static_cast<uint64_t>(bytes)));
  return Status::ok();
}

Status RingCalls::verifyTokens(int64_t tokens) const {
  return verifyTokenCount(operationName, tokens, 1, optionValues.maxTokens);
}

Status RingCalls::verifyOperands(std::span<const RingOperand> operands, runtime::Pointer offsets) const {
  for (const RingOperand &operand : operands)
    if (!operand.isOptional || operand.pointer.address)
      DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operationName, operand.name, operand.pointer, operand.type));
  return verifySequenceOffsets(operationName, optionValues.packedSequences, offsets);
}

Status RingCalls::bind(runtime::Rank &rank, const KernelCall &wanted,
                       std::initializer_list<std::pair<std::string_view, size_t>> names, Plan &plan) const {
  BoundCall bound;
  DITRON_ASSIGN_OR_RETURN(bound.call, PreparedCall::create(*kernels, rank, wanted));
  for (const auto &[name, operand] : names) {
    DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, bound.call.pointerParameter(name));
    bound.operands.emplace_back(parameter, operand);
  }
  plan.calls.push_back(std::move(bound));
  return Status::ok();
}

Status RingCalls::findSequences(runtime::Rank &rank, int64_t tokens, Plan &plan) const {
  // A rank without tokens need not have offsets.
  if (!optionValues.packedSequences || sections(tokens).tokensOf(rank.id()) == 0)
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(plan.sequences, PreparedCall::create(*kernels, rank,
                                                               bounds[rank.id()].find(rank, sections(tokens),
                                                                                      *optionValues.packedSequences)));
  DITRON_ASSIGN_OR_RETURN(plan.offsetsParameter, plan.sequences->pointerParameter("offsets_ptr"));
  plan.sequence.launch(runtime::Lane::Main, plan.sequences->prepared());
  return Status::ok();
}

RingCalls::StepTiles RingCalls::tilesOf(TilesOf what, uint32_t rank, uint32_t step, int64_t tokens,
                                        uint32_t block) const {
  const TokenSections dealt = sections(tokens);
  const int64_t firstTiles = ceilDivide(dealt.tokensOf(rank, 0), block);
  StepTiles tiles;
  tiles.all = firstTiles + (dealt.parts() == 2 ? ceilDivide(dealt.tokensOf(rank, 1), block) : 0);
  // Zig-zag: early queries see nothing of later ranks, and late keys are seen by none of their queries. All else takes part in each step.
  const uint32_t partThatRests = what == TilesOf::Queries ? 0 : 1;
  const auto takesPart = [&](uint32_t part, uint32_t inStep) {
    return !optionValues.causal || part != partThatRests || ring.source(rank, inStep) <= rank;
  };
  const auto isComplete = [&](uint32_t part) {
    for (uint32_t later = step + 1; later < ring.steps(); ++later)
      if (takesPart(part, later))
        return false;
    return takesPart(part, step);
  };
  tiles.first = takesPart(0, step) ? 0 : firstTiles;
  tiles.count = (takesPart(1, step) ? tiles.all : firstTiles) - tiles.first;
  if (isComplete(0) || isComplete(1)) {
    tiles.firstComplete = isComplete(0) ? 0 : firstTiles;
    tiles.endComplete = isComplete(1) ? tiles.all : firstTiles;
  }
  return tiles;
}

void RingCalls::addStepArguments(KernelCall &call, const runtime::Rank &rank, uint32_t step, int64_t tokens,
                                 const StepTiles &tiles) const {
  const TokenSections dealt = sections(tokens);
  const int64_t head = dealt.shardRows() * optionValues.headDim;
  call.arguments.insert(call.arguments.end(), {{"batch", optionValues.batch},
                                               {"heads", optionValues.heads},
                                               {"kv_heads", optionValues.kvHeads},
                                               {"group", optionValues.heads / optionValues.kvHeads},
                                               {"tokens", tokens},
                                               {"section", dealt.sectionTokens()},
                                               {"first_rows", dealt.tokensOf(rank.id(), 0)},
                                               {"own_rows", dealt.tokensOf(rank.id())},
                                               {"stage_rows", dealt.shardRows()},
                                               {"kv_batch_stride", optionValues.kvHeads * head},
                                               {"kv_head_stride", head},
                                               {"score_scale", heads().scaleOfScores() * std::numbers::log2e},
                                               {"rank", rank.id()},
                                               {"world_size", rank.numRanks()},
                                               {"source", ring.source(rank.id(), step)},
                                               {"first_tile", tiles.first},
                                               {"tiles", tiles.count},
                                               {"all_tiles", tiles.all},
                                               {"first_complete", tiles.firstComplete},
                                               {"end_complete", tiles.endComplete},
                                               {"has_begun", step > 0 ? 1 : 0},
                                               {"PARTS", dealt.parts()},
                                               {"CAUSAL", optionValues.causal},
                                               {"HEAD_DIM", optionValues.headDim}});
  if (optionValues.packedSequences)
    bounds[rank.id()].addTo(call);
}

Status RingCalls::prepare(runtime::Rank &rank, int64_t tokens, bool variant) {
  DITRON_RETURN_IF_ERROR(verifyRank(operationName, *world, rank));
  const auto keep = [&]() -> Status {
    DITRON_RETURN_IF_ERROR(verifyTokens(tokens));
    const KeptPlans<Plan>::Key key = {tokens, variant};
    if (Plan *there = kept[rank.id()]->get(key)) // graphs may have its kernels
      return there->sequence.isRecorded() ? Status::ok() : there->sequence.record(rank).withContext(operationName);
    DITRON_ASSIGN_OR_RETURN(Plan made, makePlan(rank, tokens, variant));
    made.sequence.setAgreedCall({callAgreement, rank.id(), fmt::format("{} tokens", tokens)});
    DITRON_RETURN_IF_ERROR(made.sequence.record(rank).withContext(operationName));
    kept[rank.id()]->keep(key, std::move(made));
    return Status::ok();
  };
  return agreement.reach(rank, keep(), fmt::format("a call with {} tokens", tokens), "shards");
}

Status RingCalls::enqueue(runtime::Rank &rank, runtime::Stream &stream, std::span<const RingOperand> operands,
                          runtime::Pointer offsets, int64_t tokens, bool variant, std::string_view call) {
  DITRON_RETURN_IF_ERROR(verifyRank(operationName, *world, rank));
  DITRON_RETURN_IF_ERROR(verifyTokens(tokens));
  const bool hasTokens = sections(tokens).tokensOf(rank.id()) > 0;
  if (hasTokens)
    DITRON_RETURN_IF_ERROR(verifyOperands(operands, offsets));
  const auto make = [&]() -> Expected<Plan> {
    DITRON_ASSIGN_OR_RETURN(Plan made, makePlan(rank, tokens, variant));
    made.sequence.setAgreedCall({callAgreement, rank.id(), fmt::format("{} tokens", tokens)});
    return made;
  };
  const auto describe = [&] { return fmt::format("{} tokens{}", tokens, call); };
  DITRON_ASSIGN_OR_RETURN(Plan * found,
                          kept[rank.id()]->find(operationName, stream, {tokens, variant}, describe, make));
  if (found->sequences)
    DITRON_RETURN_IF_ERROR(found->sequences->setPointer(found->offsetsParameter, offsets));
  if (hasTokens)
    for (BoundCall &each : found->calls)
      for (const auto &[parameter, operand] : each.operands)
        DITRON_RETURN_IF_ERROR(each.call.setPointer(parameter, operands[operand].pointer));
  return found->sequence.enqueue(stream);
}

Status RingCalls::enqueueWithoutExchange(runtime::Rank &rank, runtime::Stream &stream, int64_t tokens, bool variant) {
  DITRON_RETURN_IF_ERROR(verifyRank(operationName, *world, rank));
  Plan *found = kept[rank.id()]->get({tokens, variant});
  if (!found)
    return invalidArgument(fmt::format("{}: no call with {} tokens has been made", operationName, tokens));
  if (found->sequences)
    DITRON_RETURN_IF_ERROR(found->sequences->enqueue(stream));
  for (BoundCall &each : found->calls)
    DITRON_RETURN_IF_ERROR(each.call.enqueue(stream));
  return Status::ok();
}

} // namespace ditron::ops
