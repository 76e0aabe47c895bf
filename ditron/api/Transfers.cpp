//===- Transfers.cpp - Uneven all-to-all, messages, barrier and expert parallelism of the C interface -----------===//
#include "ditron/ops/collectives/AllToAllV.h"
#include "ditron/ops/collectives/Barrier.h"
#include "ditron/ops/collectives/SendReceive.h"
#include "ditron/ops/expert_parallel/ExpertParallel.h"

#include "ditron/api/RankOperators.h"

#include <fmt/format.h>

using namespace ditron;
using namespace ditron::api;

struct ditron_all_to_all_v {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  ops::AllToAllV op;
};

struct ditron_send_receive {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  ops::SendReceive op;
};

struct ditron_barrier {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  ops::Barrier op;
};

struct ditron_expert_parallel {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  ops::ExpertParallel op;
};

namespace {

Expected<std::vector<ops::SendReceive::Message>> toMessages(const ditron_message_t *messages, uint32_t count,
                                                            DataType type, std::string_view what) {
  if (count > 0)
    DITRON_RETURN_IF_ERROR(checkGiven(messages, what));
  std::vector<ops::SendReceive::Message> converted;
  for (uint32_t i = 0; i < count; ++i)
    converted.push_back({messages[i].peer, {messages[i].data, type}, messages[i].elements});
  return converted;
}

Expected<ops::ExpertParallel::Part> toPart(ditron_call_part_t part) {
  switch (part) {
  case DITRON_CALL_WHOLE: return ops::ExpertParallel::Part::Whole;
  case DITRON_CALL_SEND: return ops::ExpertParallel::Part::Send;
  case DITRON_CALL_RECEIVE: return ops::ExpertParallel::Part::Receive;
  }
  return invalidArgument(
      fmt::format("part {} of a call; 0 (whole), 1 (send) and 2 (receive) are accepted", static_cast<int>(part)));
}

} // namespace

extern "C" {

ditron_status_t ditron_all_to_all_v_create(ditron_context_h context, const ditron_all_to_all_v_options_t *options,
                                           ditron_all_to_all_v_h *exchange) {
  return guarded([&]() -> Status {
    constexpr std::string_view name = "ditron_all_to_all_v_options_t";
    DITRON_RETURN_IF_ERROR(checkGiven(options, "the options"));
    DITRON_ASSIGN_OR_RETURN(const ditron_all_to_all_v_options_t given, readStruct(options, name));
    ops::AllToAllVOptions converted;
    DITRON_ASSIGN_OR_RETURN(converted.dtype, elementType(given.dtype, name));
    converted.rowElements = given.row_elements == 0 ? 1 : given.row_elements;
    converted.maxRows = given.max_rows;
    converted.packed = given.packed != 0;
    return create(context, exchange, [&](runtime::World &world, runtime::KernelProvider &kernels) {
      return ops::AllToAllV::create(world, kernels, converted);
    });
  });
}

void ditron_all_to_all_v_destroy(ditron_all_to_all_v_h exchange) { delete exchange; }

ditron_status_t ditron_all_to_all_v_prepare(ditron_all_to_all_v_h exchange) {
  return guarded([&] { return prepare(exchange, "all-to-all"); });
}

ditron_status_t ditron_all_to_all_v_enqueue(ditron_all_to_all_v_h exchange, ditron_stream_h stream,
                                            const ditron_all_to_all_v_operands_t *operands) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(exchange, stream, "all-to-all"));
    DITRON_RETURN_IF_ERROR(checkGiven(operands, "the operands"));
    DITRON_ASSIGN_OR_RETURN(const ditron_all_to_all_v_operands_t given,
                            readStruct(operands, "ditron_all_to_all_v_operands_t"));
    const DataType type = exchange->op.options().dtype;
    const auto words = [](const int64_t *address) {
      return runtime::Pointer{const_cast<int64_t *>(address), DataType::I64};
    };
    return exchange->op.enqueue(*rank, stream->stream,
                                {.in = {const_cast<void *>(given.in), type},
                                 .inRows = given.in_rows,
                                 .sendCounts = words(given.send_counts),
                                 .sendOffsets = words(given.send_offsets),
                                 .out = {given.out, type},
                                 .outRows = given.out_rows,
                                 .receiveCounts = words(given.receive_counts),
                                 .receiveOffsets = words(given.receive_offsets)});
  });
}

ditron_status_t ditron_all_to_all_v_check(ditron_all_to_all_v_h exchange, ditron_stream_h stream) {
  return guarded([&] { return check(exchange, stream, "all-to-all"); });
}

ditron_status_t ditron_expert_parallel_create(ditron_context_h context, const ditron_expert_parallel_options_t *options,
                                              ditron_expert_parallel_h *experts) {
  return guarded([&]() -> Status {
    constexpr std::string_view name = "ditron_expert_parallel_options_t";
    DITRON_RETURN_IF_ERROR(checkGiven(options, "the options"));
    DITRON_ASSIGN_OR_RETURN(const ditron_expert_parallel_options_t given, readStruct(options, name));
    ops::ExpertParallelOptions converted;
    DITRON_ASSIGN_OR_RETURN(converted.dtype, elementType(given.dtype, name));
    converted.hidden = given.hidden;
    converted.experts = given.experts;
    converted.topK = given.top_k == 0 ? 1 : given.top_k;
    converted.maxTokens = given.max_tokens;
    converted.fp8 = given.fp8 != 0;
    converted.capacity = given.capacity;
    converted.maxRows = given.max_rows;
    converted.concurrentCalls = given.concurrent_calls == 0 ? 1 : given.concurrent_calls;
    return create(context, experts, [&](runtime::World &world, runtime::KernelProvider &kernels) {
      return ops::ExpertParallel::create(world, kernels, converted);
    });
  });
}

void ditron_expert_parallel_destroy(ditron_expert_parallel_h experts) { delete experts; }

int64_t ditron_expert_parallel_max_rows(ditron_expert_parallel_h experts) {
  return experts ? experts->op.maxRows() : 0;
}

int64_t ditron_expert_parallel_handle_elements(ditron_expert_parallel_h experts) {
  return experts ? experts->op.handleElements() : 0;
}

ditron_status_t ditron_expert_parallel_prepare(ditron_expert_parallel_h experts, uint32_t parts) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(experts, "expert parallelism"));
    for (uint32_t id : experts->world->localRanks())
      DITRON_RETURN_IF_ERROR(experts->op.prepare(experts->world->rank(id), parts != 0));
    return Status::ok();
  });
}

ditron_status_t ditron_expert_parallel_dispatch(ditron_expert_parallel_h experts, ditron_stream_h stream,
                                                const ditron_dispatch_operands_t *operands, ditron_call_part_t part) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(experts, stream, "expert parallelism"));
    DITRON_RETURN_IF_ERROR(checkGiven(operands, "the operands"));
    DITRON_ASSIGN_OR_RETURN(const ditron_dispatch_operands_t all, readStruct(operands, "ditron_dispatch_operands_t"));
    DITRON_ASSIGN_OR_RETURN(const ops::ExpertParallel::Part which, toPart(part));
    const ops::ExpertParallelOptions &options = experts->op.options();
    return experts->op.dispatch(*rank, stream->stream,
                                {.x = given(all.x, options.dtype),
                                 .tokens = all.tokens,
                                 .ids = given(all.ids, DataType::I32),
                                 .weights = given(all.weights, DataType::F32),
                                 .rows = given(all.rows, options.fp8 ? DataType::F8E4NV : options.dtype),
                                 .scales = given(all.scales, DataType::F32),
                                 .offsets = given(all.offsets, DataType::I32),
                                 .handle = given(all.handle, DataType::I32)},
                                which);
  });
}

ditron_status_t ditron_expert_parallel_combine(ditron_expert_parallel_h experts, ditron_stream_h stream,
                                               const ditron_combine_operands_t *operands, ditron_call_part_t part) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(experts, stream, "expert parallelism"));
    DITRON_RETURN_IF_ERROR(checkGiven(operands, "the operands"));
    DITRON_ASSIGN_OR_RETURN(const ditron_combine_operands_t all, readStruct(operands, "ditron_combine_operands_t"));
    DITRON_ASSIGN_OR_RETURN(const ops::ExpertParallel::Part which, toPart(part));
    const DataType type = experts->op.options().dtype;
    return experts->op.combine(
        *rank, stream->stream,
        {given(all.rows, type), given(all.out, type), all.tokens, given(all.handle, DataType::I32)}, which);
  });
}

ditron_status_t ditron_expert_parallel_check(ditron_expert_parallel_h experts, ditron_stream_h stream) {
  return guarded([&] { return check(experts, stream, "expert parallelism"); });
}

ditron_status_t ditron_send_receive_create(ditron_context_h context, ditron_dtype_t dtype,
                                           ditron_send_receive_h *pairs) {
  return guarded([&]() -> Status {
    ops::SendReceiveOptions options;
    DITRON_ASSIGN_OR_RETURN(options.dtype, elementType(dtype, "ditron_send_receive_create"));
    return create(context, pairs, [&](runtime::World &world, runtime::KernelProvider &kernels) {
      return ops::SendReceive::create(world, kernels, options);
    });
  });
}

void ditron_send_receive_destroy(ditron_send_receive_h pairs) { delete pairs; }

ditron_status_t ditron_send_receive_prepare(ditron_send_receive_h pairs) {
  return guarded([&] { return prepare(pairs, "send/receive"); });
}

ditron_status_t ditron_send_receive_enqueue(ditron_send_receive_h pairs, ditron_stream_h stream,
                                            const ditron_message_t *sends, uint32_t send_count,
                                            const ditron_message_t *receives, uint32_t receive_count) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(pairs, stream, "send/receive"));
    const DataType type = pairs->op.options().dtype;
    DITRON_ASSIGN_OR_RETURN(const auto sent, toMessages(sends, send_count, type, "the sends"));
    DITRON_ASSIGN_OR_RETURN(const auto received, toMessages(receives, receive_count, type, "the receives"));
    return pairs->op.enqueue(*rank, stream->stream, sent, received);
  });
}

ditron_status_t ditron_send_receive_check(ditron_send_receive_h pairs, ditron_stream_h stream) {
  return guarded([&] { return check(pairs, stream, "send/receive"); });
}

ditron_status_t ditron_barrier_create(ditron_context_h context, ditron_barrier_h *barrier) {
  return guarded([&] { return create(context, barrier, ops::Barrier::create); });
}

void ditron_barrier_destroy(ditron_barrier_h barrier) { delete barrier; }

ditron_status_t ditron_barrier_prepare(ditron_barrier_h barrier) {
  return guarded([&] { return prepare(barrier, "barrier"); });
}

ditron_status_t ditron_barrier_enqueue(ditron_barrier_h barrier, ditron_stream_h stream) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(barrier, stream, "barrier"));
    return barrier->op.enqueue(*rank, stream->stream);
  });
}

} // extern "C"
