//===- Attention.cpp - Attention of the C interface ---------------------------------------------------------------------------===//
#include "ditron/api/RankOperators.h"
#include "ditron/ops/attention/AttentionCalls.h"
#include "ditron/ops/attention_decode/AttentionDecode.h"
#include "ditron/ops/attention_decode/ShardedAttentionDecode.h"

#include <variant>

using namespace ditron;
using namespace ditron::api;

namespace {

constexpr std::string_view attentionName = "attention", decodeName = "attention of a decoder";

/// An operand that may be absent.
std::optional<runtime::Pointer> unlessNull(const void *address, DataType type) {
  return address ? std::optional(given(address, type)) : std::nullopt;
}

Expected<ops::AttentionProblem> toProblem(const ditron_attention_options_t &options) {
  constexpr std::string_view name = "ditron_attention_options_t";
  ops::AttentionProblem problem;
  DITRON_RETURN_IF_ERROR(checkFlags(name, {{"causal", options.causal},
                                           {"windowed", options.windowed},
                                           {"rows_first", options.rows_first},
                                           {"values_transposed", options.values_transposed}}));
  DITRON_ASSIGN_OR_RETURN(problem.dtype, elementType(options.dtype, name));
  problem.heads = options.heads;
  problem.kvHeads = unlessZero(options.kv_heads).value_or(options.heads);
  problem.headDim = options.head_dim;
  problem.valueDim = unlessZero(options.value_dim);
  problem.scale = unlessZero(options.scale);
  problem.causal = options.causal != 0;
  if (options.windowed)
    problem.window = options.window;
  problem.softCap = unlessZero(options.soft_cap);
  if (options.rows_first)
    problem.layout = ops::AttentionLayout::RowsFirst;
  if (options.page_size != 0)
    problem.pages = ops::AttentionPages{.count = 0, .size = options.page_size};
  problem.valuesTransposed = options.values_transposed != 0;
  DITRON_RETURN_IF_ERROR(ops::verifyAttentionOptions(problem));
  return problem;
}

/// The problem of a call.
Expected<ops::AttentionProblem> withShape(ops::AttentionProblem problem, const ditron_attention_shape_t *given) {
  DITRON_RETURN_IF_ERROR(checkGiven(given, "the shape"));
  DITRON_ASSIGN_OR_RETURN(const ditron_attention_shape_t shape, readStruct(given, "ditron_attention_shape_t"));
  problem.batch = shape.batch;
  problem.queries = shape.queries;
  problem.keys = shape.keys;
  problem.packedQueries = unlessZero(shape.packed_queries);
  problem.packedKeys = unlessZero(shape.packed_keys);
  if (problem.pages)
    problem.pages->count = shape.pages;
  else if (shape.pages != 0)
    return invalidArgument(fmt::format("{} pages of K and V are given, and page_size was 0: of an operator for K and V "
                                       "without pages 0 are accepted",
                                       shape.pages));
  return problem;
}

Expected<ops::AttentionOperands> toOperands(const ops::AttentionProblem &problem,
                                            const ditron_attention_operands_t *operands) {
  DITRON_RETURN_IF_ERROR(checkGiven(operands, "the operands"));
  DITRON_ASSIGN_OR_RETURN(const ditron_attention_operands_t all, readStruct(operands, "ditron_attention_operands_t"));
  return ops::AttentionOperands{.q = given(all.q, problem.dtype),
                                .k = given(all.k, problem.dtype),
                                .v = given(all.v, problem.dtype),
                                .out = given(all.out, problem.typeOfResult()),
                                .lse = unlessNull(all.lse, DataType::F32),
                                .sinks = unlessNull(all.sinks, DataType::F32),
                                .slopes = unlessNull(all.slopes, DataType::F32),
                                .queryOffsets = unlessNull(all.query_offsets, DataType::I32),
                                .keyOffsets = unlessNull(all.key_offsets, DataType::I32),
                                .keyLengths = unlessNull(all.key_lengths, DataType::I32),
                                .blockTable = unlessNull(all.block_table, DataType::I32)};
}

Expected<ops::AttentionBackwardOperands> toGradients(const ops::AttentionProblem &problem,
                                                     const ditron_attention_gradients_t *gradients) {
  DITRON_RETURN_IF_ERROR(checkGiven(gradients, "the gradients"));
  DITRON_ASSIGN_OR_RETURN(const ditron_attention_gradients_t all,
                          readStruct(gradients, "ditron_attention_gradients_t"));
  const DataType type = problem.dtype;
  return ops::AttentionBackwardOperands{.q = given(all.q, type),
                                        .k = given(all.k, type),
                                        .v = given(all.v, type),
                                        .out = given(all.out, type),
                                        .lse = given(all.lse, DataType::F32),
                                        .gradient = given(all.gradient, type),
                                        .dq = given(all.dq, type),
                                        .dk = given(all.dk, type),
                                        .dv = given(all.dv, type),
                                        .slopes = unlessNull(all.slopes, DataType::F32),
                                        .queryOffsets = unlessNull(all.query_offsets, DataType::I32),
                                        .keyOffsets = unlessNull(all.key_offsets, DataType::I32),
                                        .sinks = unlessNull(all.sinks, DataType::F32),
                                        .dsinks = unlessNull(all.dsinks, DataType::F32)};
}

struct LocalAttention {
  ops::AttentionProblem problem; ///< Without a shape.
  OfRanks<ops::AttentionCalls> calls;

  ops::AttentionCalls *operator[](uint32_t rank) const { return calls[rank].get(); }
};

/// On each rank by itself, or of all of them.
using Decode = std::variant<OfRanks<ops::AttentionDecode>, ops::ShardedAttentionDecode>;

Expected<Decode> makeDecode(runtime::World &world, runtime::KernelProvider &kernels,
                            const ditron_attention_decode_options_t &all) {
  ops::DecodeProblem problem;
  constexpr std::string_view name = "ditron_attention_decode_options_t";
  DITRON_RETURN_IF_ERROR(checkFlags(name, {{"over_ranks", all.over_ranks}}));
  DITRON_ASSIGN_OR_RETURN(problem.dtype, elementType(all.dtype, name));
  problem.batch = all.max_batch;
  problem.heads = all.heads;
  problem.kvHeads = unlessZero(all.kv_heads).value_or(all.heads);
  problem.queries = unlessZero(all.queries).value_or(1);
  problem.headDim = all.head_dim;
  problem.scale = unlessZero(all.scale);
  problem.keys = {.pageSize = all.page_size,
                  .pageStride = all.page_stride,
                  .rowStride = all.row_stride,
                  .headStride = all.head_stride,
                  .tableStride = all.table_stride};
  if (all.over_ranks) {
    ops::ShardedAttentionDecodeOptions options{.problem = problem};
    if (all.concurrent_calls != 0)
      options.concurrentCalls = all.concurrent_calls;
    DITRON_ASSIGN_OR_RETURN(auto sharded, ops::ShardedAttentionDecode::create(world, kernels, options));
    return Decode(std::move(sharded));
  }
  DITRON_ASSIGN_OR_RETURN(auto local, onEachRank<ops::AttentionDecode>(
                                          world, kernels, [&](runtime::Rank &rank, runtime::KernelProvider &source) {
                                            return ops::AttentionDecode::create(rank, source, problem);
                                          }));
  return Decode(std::move(local));
}

const ops::DecodeProblem &problemOf(const Decode &decode, uint32_t rank) {
  if (const auto *local = std::get_if<OfRanks<ops::AttentionDecode>>(&decode))
    return (*local)[rank]->problem();
  return std::get<ops::ShardedAttentionDecode>(decode).options().problem;
}

} // namespace

struct ditron_attention {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  LocalAttention op;
};

struct ditron_attention_decode {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  Decode op;
};

extern "C" {

ditron_status_t ditron_attention_create(ditron_context_h context, const ditron_attention_options_t *options,
                                        ditron_attention_h *attention) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(options, "the options"));
    DITRON_ASSIGN_OR_RETURN(const ditron_attention_options_t all, readStruct(options, "ditron_attention_options_t"));
    DITRON_ASSIGN_OR_RETURN(const ops::AttentionProblem problem, toProblem(all));
    return create(context, attention,
                  [&](runtime::World &world, runtime::KernelProvider &kernels) -> Expected<LocalAttention> {
                    DITRON_ASSIGN_OR_RETURN(
                        auto calls, onEachRank<ops::AttentionCalls>(
                                        world, kernels, [&](runtime::Rank &rank, runtime::KernelProvider &source) {
                                          return Expected<ops::AttentionCalls>(ops::AttentionCalls(rank, source));
                                        }));
                    return LocalAttention{problem, std::move(calls)};
                  });
  });
}

void ditron_attention_destroy(ditron_attention_h attention) { delete attention; }

ditron_status_t ditron_attention_prepare(ditron_attention_h attention, const ditron_attention_shape_t *shape,
                                         const ditron_attention_operands_t *operands) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(attention, attentionName));
    DITRON_ASSIGN_OR_RETURN(const auto problem, withShape(attention->op.problem, shape));
    DITRON_ASSIGN_OR_RETURN(const auto converted, toOperands(problem, operands));
    for (uint32_t id : attention->world->localRanks())
      DITRON_RETURN_IF_ERROR(attention->op[id]->prepare(problem, converted));
    return Status::ok();
  });
}

ditron_status_t ditron_attention_enqueue(ditron_attention_h attention, ditron_stream_h stream,
                                         const ditron_attention_shape_t *shape,
                                         const ditron_attention_operands_t *operands) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(attention, stream, attentionName));
    DITRON_ASSIGN_OR_RETURN(const auto problem, withShape(attention->op.problem, shape));
    DITRON_ASSIGN_OR_RETURN(const auto converted, toOperands(problem, operands));
    return attention->op[rank->id()]->enqueue(stream->stream, problem, converted);
  });
}

ditron_status_t ditron_attention_prepare_backward(ditron_attention_h attention, const ditron_attention_shape_t *shape,
                                                  const ditron_attention_gradients_t *operands) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(attention, attentionName));
    DITRON_ASSIGN_OR_RETURN(const auto problem, withShape(attention->op.problem, shape));
    DITRON_ASSIGN_OR_RETURN(const auto converted, toGradients(problem, operands));
    for (uint32_t id : attention->world->localRanks())
      DITRON_RETURN_IF_ERROR(attention->op[id]->prepareBackward(problem, converted));
    return Status::ok();
  });
}

ditron_status_t ditron_attention_backward(ditron_attention_h attention, ditron_stream_h stream,
                                          const ditron_attention_shape_t *shape,
                                          const ditron_attention_gradients_t *operands) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(attention, stream, attentionName));
    DITRON_ASSIGN_OR_RETURN(const auto problem, withShape(attention->op.problem, shape));
    DITRON_ASSIGN_OR_RETURN(const auto converted, toGradients(problem, operands));
    return attention->op[rank->id()]->enqueueBackward(stream->stream, problem, converted);
  });
}

ditron_status_t ditron_attention_decode_create(ditron_context_h context,
                                               const ditron_attention_decode_options_t *options,
                                               ditron_attention_decode_h *decode) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(options, "the options"));
    DITRON_ASSIGN_OR_RETURN(const ditron_attention_decode_options_t all,
                            readStruct(options, "ditron_attention_decode_options_t"));
    return create(context, decode, [&](runtime::World &world, runtime::KernelProvider &kernels) {
      return makeDecode(world, kernels, all);
    });
  });
}

void ditron_attention_decode_destroy(ditron_attention_decode_h decode) { delete decode; }

ditron_status_t ditron_attention_decode_prepare(ditron_attention_decode_h decode, int64_t batch, uint32_t with_lse) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(decode, decodeName));
    for (uint32_t id : decode->world->localRanks()) {
      if (auto *local = std::get_if<OfRanks<ops::AttentionDecode>>(&decode->op))
        DITRON_RETURN_IF_ERROR((*local)[id]->prepare(batch, with_lse != 0));
      else
        DITRON_RETURN_IF_ERROR(
            std::get<ops::ShardedAttentionDecode>(decode->op).prepare(decode->world->rank(id), batch, with_lse != 0));
    }
    return Status::ok();
  });
}

ditron_status_t ditron_attention_decode_enqueue(ditron_attention_decode_h decode, ditron_stream_h stream,
                                                const ditron_attention_decode_operands_t *operands, int64_t batch) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(decode, stream, decodeName));
    DITRON_RETURN_IF_ERROR(checkGiven(operands, "the operands"));
    DITRON_ASSIGN_OR_RETURN(const ditron_attention_decode_operands_t all,
                            readStruct(operands, "ditron_attention_decode_operands_t"));
    const DataType type = problemOf(decode->op, rank->id()).dtype;
    const ops::DecodeOperands converted = {.q = given(all.q, type),
                                           .k = given(all.k, type),
                                           .v = given(all.v, type),
                                           .out = given(all.out, type),
                                           .lse = given(all.lse, DataType::F32),
                                           .lengths = given(all.lengths, DataType::I32),
                                           .table = given(all.table, DataType::I32)};
    if (auto *local = std::get_if<OfRanks<ops::AttentionDecode>>(&decode->op))
      return (*local)[rank->id()]->enqueue(stream->stream, converted, batch);
    return std::get<ops::ShardedAttentionDecode>(decode->op).enqueue(*rank, stream->stream, converted, batch);
  });
}

} // extern "C"
