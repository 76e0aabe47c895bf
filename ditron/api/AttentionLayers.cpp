//===- AttentionLayers.cpp - Layers of attention of the C interface -----------------------------------------------------------===//
#include "ditron/api/RankOperators.h"
#include "ditron/ops/layers/SequenceParallelAttention.h"
#include "ditron/ops/layers/TensorParallelAttention.h"

using namespace ditron;
using namespace ditron::api;

namespace {

using Layer = std::unique_ptr<ops::TensorParallelAttention>;

/// A layer whose calls are given the weights, by rank.
struct SequenceLayer {
  ops::SequenceParallelAttention op;
  std::vector<ops::SequenceParallelAttention::Weights> weights;
};

constexpr std::string_view optionsName = "ditron_tensor_parallel_attention_options_t";
constexpr std::string_view sequenceOptionsName = "ditron_sequence_parallel_attention_options_t";
constexpr std::string_view layerName = "layer";

Expected<ops::TensorParallelAttentionOptions> toOptions(const ditron_tensor_parallel_attention_options_t &all) {
  ops::TensorParallelAttentionOptions options;
  DITRON_RETURN_IF_ERROR(checkFlags(optionsName, {{"rotary_interleaved", all.rotary_interleaved},
                                                  {"qkv_bias", all.qkv_bias},
                                                  {"dealt", all.dealt},
                                                  {"unfused", all.unfused}}));
  DITRON_ASSIGN_OR_RETURN(options.dtype, elementType(all.dtype, optionsName));
  options.hidden = all.hidden;
  options.heads = all.heads;
  options.kvHeads = unlessZero(all.kv_heads).value_or(all.heads);
  options.headDim = all.head_dim;
  options.scale = unlessZero(all.scale);
  options.rotary = {.dim = all.rotary_dim, .interleaved = all.rotary_interleaved != 0};
  options.normEpsilon = unlessZero(all.norm_epsilon);
  options.qkvBias = all.qkv_bias != 0;
  options.tokens = all.dealt ? ops::AttentionTokens::Dealt : ops::AttentionTokens::Replicated;
  options.maxTokens = all.max_tokens;
  options.maxBatch = all.max_batch;
  options.maxKeys = all.max_keys;
  options.pageSize = all.page_size;
  options.pages = all.pages;
  options.schedule = all.unfused ? ops::Schedule::Unfused : ops::Schedule::Overlapped;
  if (all.concurrent_calls != 0)
    options.concurrentCalls = all.concurrent_calls;
  return options;
}

Expected<ops::TensorParallelAttentionOperands> toOperands(const ops::TensorParallelAttention &layer,
                                                          const ditron_tensor_parallel_attention_operands_t *operands) {
  DITRON_RETURN_IF_ERROR(checkGiven(operands, "the operands"));
  DITRON_ASSIGN_OR_RETURN(const ditron_tensor_parallel_attention_operands_t all,
                          readStruct(operands, "ditron_tensor_parallel_attention_operands_t"));
  const DataType type = layer.options().dtype;
  return ops::TensorParallelAttentionOperands{.x = given(all.x, type),
                                              .y = given(all.y, type),
                                              .keys = given(all.keys, type),
                                              .values = given(all.values, type),
                                              .lengths = given(all.lengths, DataType::I32),
                                              .offsets = given(all.offsets, DataType::I32),
                                              .table = given(all.table, DataType::I32)};
}

Expected<ops::SequenceParallelAttentionOptions> toOptions(const ditron_sequence_parallel_attention_options_t &all) {
  ops::SequenceParallelAttentionOptions options;
  DITRON_RETURN_IF_ERROR(checkFlags(sequenceOptionsName,
                                    {{"not_causal", all.not_causal}, {"rotary_interleaved", all.rotary_interleaved}}));
  DITRON_ASSIGN_OR_RETURN(options.dtype, elementType(all.dtype, sequenceOptionsName));
  options.batch = unlessZero(all.batch).value_or(1);
  options.hidden = all.hidden;
  options.heads = all.heads;
  options.kvHeads = unlessZero(all.kv_heads).value_or(all.heads);
  options.headDim = all.head_dim;
  options.causal = all.not_causal == 0;
  options.scale = unlessZero(all.scale);
  options.rotary = {.dim = all.rotary_dim, .interleaved = all.rotary_interleaved != 0};
  options.normEpsilon = unlessZero(all.norm_epsilon);
  options.maxTokens = all.max_tokens;
  options.chunks = all.chunks;
  if (all.cache_batch == 0)
    return options;
  options.cache = ops::SpreadKeyCache{
      .maxBatch = all.cache_batch, .maxKeys = all.cache_keys, .pageSize = all.page_size, .pages = all.pages};
  if (all.concurrent_calls != 0)
    options.cache->concurrentCalls = all.concurrent_calls;
  return options;
}

Expected<ditron_sequence_parallel_attention_operands_t>
readOperands(const ditron_sequence_parallel_attention_operands_t *operands) {
  DITRON_RETURN_IF_ERROR(checkGiven(operands, "the operands"));
  return readStruct(operands, "ditron_sequence_parallel_attention_operands_t");
}

ops::SequenceParallelAttention::Cache cacheOf(const ditron_sequence_parallel_attention_operands_t &all, DataType type) {
  return {.keys = given(all.keys, type), .values = given(all.values, type), .table = given(all.table, DataType::I32)};
}

} // namespace

struct ditron_tensor_parallel_attention {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  Layer op;
};

struct ditron_sequence_parallel_attention {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  std::unique_ptr<SequenceLayer> op;
};

namespace {

/// prepare(layer, rank) on each rank of this process.
template <typename Handle, typename Prepare> Status prepareOnRanks(Handle *layer, const Prepare &prepare) {
  DITRON_RETURN_IF_ERROR(checkHandle(layer, layerName));
  for (uint32_t id : layer->world->localRanks())
    DITRON_RETURN_IF_ERROR(prepare(*layer->op, layer->world->rank(id)));
  return Status::ok();
}

} // namespace

extern "C" {

ditron_status_t ditron_tensor_parallel_attention_create(ditron_context_h context,
                                                        const ditron_tensor_parallel_attention_options_t *options,
                                                        const ditron_attention_weights_t *const *weights,
                                                        uint32_t weight_count,
                                                        ditron_tensor_parallel_attention_h *layer) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(options, "the options"));
    DITRON_ASSIGN_OR_RETURN(const auto all, readStruct(options, optionsName));
    DITRON_ASSIGN_OR_RETURN(const ops::TensorParallelAttentionOptions converted, toOptions(all));
    return create(context, layer, [&](runtime::World &world, runtime::KernelProvider &kernels) -> Expected<Layer> {
      const DataType type = converted.dtype;
      const auto read = [&](const ditron_attention_weights_t &own) {
        return ops::TensorParallelAttentionWeights{.qkv = given(own.qkv, type),
                                                   .out = given(own.out, type),
                                                   .qkvBias = given(own.qkv_bias, type),
                                                   .qNorm = given(own.q_norm, type),
                                                   .kNorm = given(own.k_norm, type),
                                                   .rotary = given(own.rotary, DataType::F32)};
      };
      DITRON_ASSIGN_OR_RETURN(const auto own, toWeights<ops::TensorParallelAttentionWeights>(
                                                  world, weights, weight_count, "ditron_attention_weights_t", read));
      DITRON_ASSIGN_OR_RETURN(auto made, ops::TensorParallelAttention::create(world, kernels, converted, own));
      return std::make_unique<ops::TensorParallelAttention>(std::move(made));
    });
  });
}

void ditron_tensor_parallel_attention_destroy(ditron_tensor_parallel_attention_h layer) { delete layer; }

int64_t ditron_tensor_parallel_attention_cache_elements(ditron_tensor_parallel_attention_h layer) {
  return layer ? layer->op->cacheElements() : 0;
}

ditron_status_t ditron_tensor_parallel_attention_prepare_prefill(ditron_tensor_parallel_attention_h layer,
                                                                 int64_t tokens, int64_t batch, int64_t longest) {
  return guarded([&] {
    return prepareOnRanks(layer, [&](ops::TensorParallelAttention &op, runtime::Rank &rank) {
      return op.preparePrefill(rank, tokens, batch, longest);
    });
  });
}

ditron_status_t ditron_tensor_parallel_attention_prepare_decode(ditron_tensor_parallel_attention_h layer,
                                                                int64_t batch) {
  return guarded([&] {
    return prepareOnRanks(
        layer, [&](ops::TensorParallelAttention &op, runtime::Rank &rank) { return op.prepareDecode(rank, batch); });
  });
}

ditron_status_t ditron_tensor_parallel_attention_prefill(ditron_tensor_parallel_attention_h layer,
                                                         ditron_stream_h stream,
                                                         const ditron_tensor_parallel_attention_operands_t *operands,
                                                         int64_t tokens, int64_t batch, int64_t longest) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(layer, stream, layerName));
    DITRON_ASSIGN_OR_RETURN(const auto converted, toOperands(*layer->op, operands));
    return layer->op->prefill(*rank, stream->stream, converted, tokens, batch, longest);
  });
}

ditron_status_t ditron_tensor_parallel_attention_decode(ditron_tensor_parallel_attention_h layer,
                                                        ditron_stream_h stream,
                                                        const ditron_tensor_parallel_attention_operands_t *operands,
                                                        int64_t batch) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(layer, stream, layerName));
    DITRON_ASSIGN_OR_RETURN(const auto converted, toOperands(*layer->op, operands));
    return layer->op->decode(*rank, stream->stream, converted, batch);
  });
}

ditron_status_t ditron_sequence_parallel_attention_create(ditron_context_h context,
                                                          const ditron_sequence_parallel_attention_options_t *options,
                                                          const ditron_attention_weights_t *const *weights,
                                                          uint32_t weight_count,
                                                          ditron_sequence_parallel_attention_h *layer) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(options, "the options"));
    DITRON_ASSIGN_OR_RETURN(const auto all, readStruct(options, sequenceOptionsName));
    DITRON_ASSIGN_OR_RETURN(const ops::SequenceParallelAttentionOptions converted, toOptions(all));
    using Made = std::unique_ptr<SequenceLayer>;
    return create(context, layer, [&](runtime::World &world, runtime::KernelProvider &kernels) -> Expected<Made> {
      const DataType type = converted.dtype;
      using Weights = ops::SequenceParallelAttention::Weights;
      bool hasBias = false;
      const auto read = [&](const ditron_attention_weights_t &own) {
        hasBias = hasBias || own.qkv_bias;
        return Weights{.qkv = given(own.qkv, type),
                       .out = given(own.out, type),
                       .qNorm = given(own.q_norm, type),
                       .kNorm = given(own.k_norm, type),
                       .rotary = given(own.rotary, DataType::F32)};
      };
      DITRON_ASSIGN_OR_RETURN(auto own,
                              toWeights<Weights>(world, weights, weight_count, "ditron_attention_weights_t", read));
      if (hasBias)
        return unsupported("the weight qkv_bias is given; a layer whose tokens are dealt out takes none");
      DITRON_ASSIGN_OR_RETURN(auto made, ops::SequenceParallelAttention::create(world, kernels, converted));
      return std::make_unique<SequenceLayer>(SequenceLayer{std::move(made), std::move(own)});
    });
  });
}

void ditron_sequence_parallel_attention_destroy(ditron_sequence_parallel_attention_h layer) { delete layer; }

int64_t ditron_sequence_parallel_attention_cache_elements(ditron_sequence_parallel_attention_h layer) {
  return layer ? layer->op->op.cacheElements() : 0;
}

ditron_status_t ditron_sequence_parallel_attention_prepare_prefill(ditron_sequence_parallel_attention_h layer,
                                                                   int64_t tokens) {
  return guarded([&] {
    return prepareOnRanks(layer, [&](SequenceLayer &own, runtime::Rank &rank) { return own.op.prepare(rank, tokens); });
  });
}

ditron_status_t ditron_sequence_parallel_attention_prepare_decode(ditron_sequence_parallel_attention_h layer,
                                                                  int64_t batch) {
  return guarded([&] {
    return prepareOnRanks(layer,
                          [&](SequenceLayer &own, runtime::Rank &rank) { return own.op.prepareDecode(rank, batch); });
  });
}

ditron_status_t
ditron_sequence_parallel_attention_prefill(ditron_sequence_parallel_attention_h layer, ditron_stream_h stream,
                                           const ditron_sequence_parallel_attention_operands_t *operands,
                                           int64_t tokens) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(layer, stream, layerName));
    DITRON_ASSIGN_OR_RETURN(const auto all, readOperands(operands));
    SequenceLayer &own = *layer->op;
    const DataType type = own.op.options().dtype;
    std::optional<ops::SequenceParallelAttention::Cache> cache;
    if (all.keys || all.values)
      cache = cacheOf(all, type);
    return own.op.enqueue(*rank, stream->stream, given(all.x, type), own.weights[rank->id()], given(all.y, type),
                          tokens, cache);
  });
}

ditron_status_t ditron_sequence_parallel_attention_decode(ditron_sequence_parallel_attention_h layer,
                                                          ditron_stream_h stream,
                                                          const ditron_sequence_parallel_attention_operands_t *operands,
                                                          int64_t batch) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(layer, stream, layerName));
    DITRON_ASSIGN_OR_RETURN(const auto all, readOperands(operands));
    SequenceLayer &own = *layer->op;
    const DataType type = own.op.options().dtype;
    return own.op.decode(*rank, stream->stream, own.weights[rank->id()],
                         {.x = given(all.x, type),
                          .y = given(all.y, type),
                          .cache = cacheOf(all, type),
                          .lengths = given(all.lengths, DataType::I32),
                          .places = given(all.places, DataType::I32),
                          .positions = given(all.positions, DataType::I32)},
                         batch);
  });
}

} // extern "C"
