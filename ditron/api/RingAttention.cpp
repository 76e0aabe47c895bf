//===- RingAttention.cpp - Attention whose tokens are dealt out to the ranks, of the C interface -----------------------------===//
#include "ditron/ops/sequence_parallel/RingAttention.h"
#include "ditron/api/RankOperators.h"
#include "ditron/ops/sequence_parallel/RingAttentionBackward.h"

using namespace ditron;
using namespace ditron::api;

namespace {

constexpr std::string_view name = "ring attention";

struct Operators {
  ops::RingAttention forward;
  std::optional<ops::RingAttentionBackward> backward;
};

Expected<ops::RingAttentionOptions> toOptions(const ditron_ring_attention_options_t &all) {
  constexpr std::string_view type = "ditron_ring_attention_options_t";
  ops::RingAttentionOptions options;
  DITRON_RETURN_IF_ERROR(
      checkFlags(type, {{"causal", all.causal}, {"goes_round", all.goes_round}, {"backward", all.backward}}));
  DITRON_ASSIGN_OR_RETURN(options.dtype, elementType(all.dtype, type));
  options.batch = unlessZero(all.batch).value_or(1);
  options.heads = all.heads;
  options.kvHeads = unlessZero(all.kv_heads).value_or(all.heads);
  options.headDim = all.head_dim;
  options.causal = all.causal != 0;
  options.scale = unlessZero(all.scale);
  options.maxTokens = all.max_tokens;
  options.packedSequences = unlessZero(all.packed_sequences);
  if (all.goes_round)
    options.gather = false;
  return options;
}

/// The backward of an operator that was made with it.
Expected<ops::RingAttentionBackward *> backwardOf(Operators &op) {
  if (!op.backward)
    return invalidArgument(
        "the backward of a ring attention that was made without it; `backward` of its options says so");
  return &*op.backward;
}

} // namespace

struct ditron_ring_attention {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  Operators op;
};

extern "C" {

ditron_status_t ditron_ring_attention_create(ditron_context_h context, const ditron_ring_attention_options_t *options,
                                             ditron_ring_attention_h *attention) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(options, "the options"));
    DITRON_ASSIGN_OR_RETURN(const ditron_ring_attention_options_t all,
                            readStruct(options, "ditron_ring_attention_options_t"));
    DITRON_ASSIGN_OR_RETURN(const ops::RingAttentionOptions converted, toOptions(all));
    return create(
        context, attention, [&](runtime::World &world, runtime::KernelProvider &kernels) -> Expected<Operators> {
          Operators made;
          DITRON_ASSIGN_OR_RETURN(made.forward, ops::RingAttention::create(world, kernels, converted));
          if (all.backward) {
            DITRON_ASSIGN_OR_RETURN(made.backward, ops::RingAttentionBackward::create(world, kernels, converted));
          }
          return made;
        });
  });
}

void ditron_ring_attention_destroy(ditron_ring_attention_h attention) { delete attention; }

ditron_status_t ditron_ring_attention_section(ditron_ring_attention_h attention, uint32_t rank, uint32_t part,
                                              int64_t tokens, int64_t *first, int64_t *count) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(attention, name));
    DITRON_RETURN_IF_ERROR(checkGiven(first, "the place of the first token"));
    DITRON_RETURN_IF_ERROR(checkGiven(count, "the place of the number of tokens"));
    const ops::RingAttentionOptions &options = attention->op.forward.options();
    if (rank >= attention->world->numRanks())
      return invalidArgument(fmt::format("rank {}; 0 to {} are accepted", rank, attention->world->numRanks() - 1));
    if (tokens < 0 || tokens > options.maxTokens)
      return invalidArgument(fmt::format("{} tokens; 0 to {} (max_tokens) are accepted", tokens, options.maxTokens));
    const ops::TokenSections sections = attention->op.forward.sections(tokens);
    if (part >= sections.parts())
      return invalidArgument(fmt::format("part {} of a rank's tokens; {} accepted", part,
                                         sections.parts() == 2 ? "0 and 1 are" : "without `causal` 0 is"));
    *first = std::min(sections.firstToken(rank, part), tokens);
    *count = sections.tokensOf(rank, part);
    return Status::ok();
  });
}

ditron_status_t ditron_ring_attention_prepare(ditron_ring_attention_h attention, int64_t tokens, uint32_t with_lse) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(attention, name));
    for (uint32_t id : attention->world->localRanks())
      DITRON_RETURN_IF_ERROR(attention->op.forward.prepare(attention->world->rank(id), tokens, with_lse != 0));
    return Status::ok();
  });
}

ditron_status_t ditron_ring_attention_enqueue(ditron_ring_attention_h attention, ditron_stream_h stream,
                                              const ditron_ring_attention_operands_t *operands, int64_t tokens) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(attention, stream, name));
    DITRON_RETURN_IF_ERROR(checkGiven(operands, "the operands"));
    DITRON_ASSIGN_OR_RETURN(const ditron_ring_attention_operands_t all,
                            readStruct(operands, "ditron_ring_attention_operands_t"));
    const DataType type = attention->op.forward.options().dtype;
    return attention->op.forward.enqueue(*rank, stream->stream,
                                         {.q = given(all.q, type),
                                          .k = given(all.k, type),
                                          .v = given(all.v, type),
                                          .out = given(all.out, type),
                                          .lse = given(all.lse, DataType::F32),
                                          .offsets = given(all.offsets, DataType::I32)},
                                         tokens);
  });
}

ditron_status_t ditron_ring_attention_prepare_backward(ditron_ring_attention_h attention, int64_t tokens) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(attention, name));
    DITRON_ASSIGN_OR_RETURN(ops::RingAttentionBackward * backward, backwardOf(attention->op));
    for (uint32_t id : attention->world->localRanks())
      DITRON_RETURN_IF_ERROR(backward->prepare(attention->world->rank(id), tokens));
    return Status::ok();
  });
}

ditron_status_t ditron_ring_attention_backward(ditron_ring_attention_h attention, ditron_stream_h stream,
                                               const ditron_ring_attention_gradients_t *gradients, int64_t tokens) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(attention, stream, name));
    DITRON_ASSIGN_OR_RETURN(ops::RingAttentionBackward * backward, backwardOf(attention->op));
    DITRON_RETURN_IF_ERROR(checkGiven(gradients, "the gradients"));
    DITRON_ASSIGN_OR_RETURN(const ditron_ring_attention_gradients_t all,
                            readStruct(gradients, "ditron_ring_attention_gradients_t"));
    const DataType type = attention->op.forward.options().dtype;
    return backward->enqueue(*rank, stream->stream,
                             {.q = given(all.q, type),
                              .k = given(all.k, type),
                              .v = given(all.v, type),
                              .out = given(all.out, type),
                              .lse = given(all.lse, DataType::F32),
                              .gradient = given(all.gradient, type),
                              .dq = given(all.dq, type),
                              .dk = given(all.dk, type),
                              .dv = given(all.dv, type),
                              .offsets = given(all.offsets, DataType::I32)},
                             tokens);
  });
}

} // extern "C"
