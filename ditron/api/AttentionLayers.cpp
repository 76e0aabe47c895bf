//===- AttentionLayers.cpp - Layers of attention of the C interface -----------------------------------------------------------===//
#include "ditron/api/RankOperators.h"
#include "ditron/ops/layers/TensorParallelAttention.h"

using namespace ditron;
using namespace ditron::api;

namespace {

using Layer = std::unique_ptr<ops::TensorParallelAttention>;

constexpr std::string_view optionsName = "ditron_tensor_parallel_attention_options_t";
constexpr std::string_view layerName = "layer";

Expected<ops::TensorParallelAttentionOptions> toOptions(const ditron_tensor_parallel_attention_options_t &all) {
  ops::TensorParallelAttentionOptions options;
  DITRON_ASSIGN_OR_RETURN(options.dtype, elementType(all.dtype, optionsName));
  options.hidden = all.hidden;
  options.heads = all.heads;
  options.kvHeads = all.kv_heads == 0 ? all.heads : all.kv_heads;
  options.headDim = all.head_dim;
  if (all.scale != 0)
    options.scale = all.scale;
  options.rotary = {.dim = all.rotary_dim, .interleaved = all.rotary_interleaved != 0};
  if (all.norm_epsilon != 0)
    options.normEpsilon = all.norm_epsilon;
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

} // namespace

struct ditron_tensor_parallel_attention {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  Layer op;
};

namespace {

/// prepare(layer, rank) on each rank of this process.
template <typename Prepare> Status prepareOnRanks(ditron_tensor_parallel_attention_h layer, const Prepare &prepare) {
  DITRON_RETURN_IF_ERROR(checkHandle(layer, layerName));
  for (uint32_t id : layer->world->localRanks())
    DITRON_RETURN_IF_ERROR(prepare(*layer->op, layer->world->rank(id)));
  return Status::ok();
}

} // namespace

extern "C" {

ditron_status_t
ditron_tensor_parallel_attention_create(ditron_context_h context,
                                        const ditron_tensor_parallel_attention_options_t *options,
                                        const ditron_tensor_parallel_attention_weights_t *const *weights,
                                        uint32_t weight_count, ditron_tensor_parallel_attention_h *layer) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(options, "the options"));
    DITRON_ASSIGN_OR_RETURN(const auto all, readStruct(options, optionsName));
    DITRON_ASSIGN_OR_RETURN(const ops::TensorParallelAttentionOptions converted, toOptions(all));
    return create(context, layer, [&](runtime::World &world, runtime::KernelProvider &kernels) -> Expected<Layer> {
      const DataType type = converted.dtype;
      const auto read = [&](const ditron_tensor_parallel_attention_weights_t &own) {
        return ops::TensorParallelAttentionWeights{.qkv = given(own.qkv, type),
                                                   .out = given(own.out, type),
                                                   .qkvBias = given(own.qkv_bias, type),
                                                   .qNorm = given(own.q_norm, type),
                                                   .kNorm = given(own.k_norm, type),
                                                   .rotary = given(own.rotary, DataType::F32)};
      };
      DITRON_ASSIGN_OR_RETURN(const auto own,
                              toWeights<ops::TensorParallelAttentionWeights>(
                                  world, weights, weight_count, "ditron_tensor_parallel_attention_weights_t", read));
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

} // extern "C"
