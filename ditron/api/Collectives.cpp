//===- Collectives.cpp - Collectives of the C interface ---------------------------------------------------------------===//
#include "ditron/ops/collectives/Collective.h"

#include "ditron/api/Handles.h"

#include <fmt/format.h>

using namespace ditron;
using namespace ditron::api;

struct ditron_collective {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  ops::Collective op;
};

namespace {

constexpr std::string_view optionsName = "ditron_collective_options_t";

Expected<ops::CollectiveKind> toKind(ditron_collective_kind_t kind) {
  switch (kind) {
  case DITRON_ALL_REDUCE: return ops::CollectiveKind::AllReduce;
  case DITRON_ALL_GATHER: return ops::CollectiveKind::AllGather;
  case DITRON_REDUCE_SCATTER: return ops::CollectiveKind::ReduceScatter;
  case DITRON_ALL_TO_ALL: return ops::CollectiveKind::AllToAll;
  case DITRON_BROADCAST: return ops::CollectiveKind::Broadcast;
  }
  return invalidArgument(fmt::format(
      "{}: a collective of kind {}; accepted are the members of ditron_collective_kind_t, {} to {}", optionsName,
      static_cast<int>(kind), static_cast<int>(DITRON_ALL_REDUCE), static_cast<int>(DITRON_BROADCAST)));
}

Expected<ops::Reduction> toReduction(ditron_reduction_t reduction) {
  switch (reduction) {
  case DITRON_REDUCE_SUM: return ops::Reduction::Sum;
  case DITRON_REDUCE_MAX: return ops::Reduction::Max;
  case DITRON_REDUCE_MIN: return ops::Reduction::Min;
  case DITRON_REDUCE_AVERAGE: return ops::Reduction::Average;
  }
  return invalidArgument(fmt::format("{}: a reduction {}; accepted are the members of ditron_reduction_t, {} to {}",
                                     optionsName, static_cast<int>(reduction), static_cast<int>(DITRON_REDUCE_SUM),
                                     static_cast<int>(DITRON_REDUCE_AVERAGE)));
}

Expected<ops::CollectiveOptions> toOptions(const ditron_collective_options_t &given) {
  ops::CollectiveOptions options;
  DITRON_ASSIGN_OR_RETURN(options.kind, toKind(given.kind));
  DITRON_ASSIGN_OR_RETURN(options.reduction, toReduction(given.reduction));
  DITRON_ASSIGN_OR_RETURN(options.dtype, toDataType(given.dtype, optionsName));
  if (options.dtype == DataType::I1) // zero: the default
    options.dtype = DataType::BF16;
  if (given.max_elements <= 0)
    return invalidArgument(
        fmt::format("{}: max_elements is {}; accepted are 1 and more", optionsName, given.max_elements));
  if (given.has_scale)
    options.scale = given.scale;
  options.root = given.root;
  options.maxElements = given.max_elements;
  if (given.concurrent_calls)
    options.concurrentCalls = given.concurrent_calls;
  return options;
}

/// What a call is given, on the stream's rank.
struct Call {
  runtime::Rank *rank = nullptr;
  runtime::Pointer in, out;
};

Expected<Call> toCall(ditron_collective_h collective, ditron_stream_h stream, const void *in, void *out) {
  DITRON_RETURN_IF_ERROR(checkGiven(collective, "the collective"));
  DITRON_RETURN_IF_ERROR(checkGiven(stream, "the stream"));
  DITRON_RETURN_IF_ERROR(checkUsable(*collective->context, collective->world, "collective"));
  if (stream->world != collective->world)
    return invalidArgument("the collective and the stream are of different contexts, or of different runs of one");
  const ops::CollectiveOptions &options = collective->op.options();
  const uint32_t rank = stream->stream.rank();
  if (options.kind == ops::CollectiveKind::Broadcast && rank != options.root)
    in = out; // which is not read there
  return Call{&collective->world->rank(rank), {const_cast<void *>(in), options.dtype}, {out, options.dtype}};
}

} // namespace

extern "C" {

ditron_status_t ditron_collective_create(ditron_context_h context, const ditron_collective_options_t *options,
                                         ditron_collective_h *collective) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(context, "the context"));
    DITRON_RETURN_IF_ERROR(checkGiven(options, "the options"));
    DITRON_RETURN_IF_ERROR(checkGiven(collective, "the place of the result"));
    DITRON_RETURN_IF_ERROR(context->state->checkThread());
    DITRON_ASSIGN_OR_RETURN(const ditron_collective_options_t complete, readStruct(options, optionsName));
    DITRON_ASSIGN_OR_RETURN(const ops::CollectiveOptions converted, toOptions(complete));
    DITRON_ASSIGN_OR_RETURN(runtime::KernelProvider * kernels, context->state->kernels());
    std::shared_ptr<runtime::World> world = context->state->world();
    DITRON_ASSIGN_OR_RETURN(ops::Collective op, ops::Collective::create(*world, *kernels, converted));
    *collective = new ditron_collective{context->state, std::move(world), std::move(op)};
    return Status::ok();
  });
}

void ditron_collective_destroy(ditron_collective_h collective) { delete collective; }

ditron_status_t ditron_collective_prepare(ditron_collective_h collective, int64_t elements) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(collective, "collective"));
    for (uint32_t id : collective->world->localRanks())
      DITRON_RETURN_IF_ERROR(collective->op.prepare(collective->world->rank(id), elements));
    return Status::ok();
  });
}

ditron_status_t ditron_collective_enqueue(ditron_collective_h collective, ditron_stream_h stream, const void *in,
                                          void *out, int64_t elements) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(const Call call, toCall(collective, stream, in, out));
    return collective->op.enqueue(*call.rank, stream->stream, call.in, call.out, elements);
  });
}

ditron_status_t ditron_collective_check(ditron_collective_h collective, ditron_stream_h stream, const void *in,
                                        void *out, int64_t elements) {
  return guarded([&]() -> Status {
    DITRON_ASSIGN_OR_RETURN(const Call call, toCall(collective, stream, in, out));
    return collective->op.verifyCall(*call.rank, call.in, call.out, elements);
  });
}

} // extern "C"
