//===- AllReduceRmsNorm.cpp - AllReduce, residual and RMSNorm of the C interface ------------------------------------------===//
#include "ditron/ops/collectives/AllReduceRmsNorm.h"
#include "ditron/api/RankOperators.h"

using namespace ditron;
using namespace ditron::api;

namespace {

constexpr std::string_view name = "all_reduce_rms_norm";

} // namespace

struct ditron_all_reduce_rms_norm {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  ops::AllReduceRmsNorm op;
};

namespace {

Expected<ops::AllReduceRmsNorm::Operands> toOperands(const ditron_all_reduce_rms_norm &norm,
                                                     const ditron_all_reduce_rms_norm_operands_t *operands) {
  DITRON_RETURN_IF_ERROR(checkGiven(operands, "the operands"));
  DITRON_ASSIGN_OR_RETURN(const ditron_all_reduce_rms_norm_operands_t all,
                          readStruct(operands, "ditron_all_reduce_rms_norm_operands_t"));
  const DataType type = norm.op.options().dtype;
  return ops::AllReduceRmsNorm::Operands{.x = given(all.x, type),
                                         .residual = given(all.residual, type),
                                         .weight = given(all.weight, type),
                                         .out = given(all.out, type),
                                         .residualOut = given(all.residual_out, type)};
}

} // namespace

extern "C" {

ditron_status_t ditron_all_reduce_rms_norm_create(ditron_context_h context,
                                                  const ditron_all_reduce_rms_norm_options_t *options,
                                                  ditron_all_reduce_rms_norm_h *norm) {
  return guarded([&]() -> Status {
    constexpr std::string_view type = "ditron_all_reduce_rms_norm_options_t";
    DITRON_RETURN_IF_ERROR(checkGiven(options, "the options"));
    DITRON_ASSIGN_OR_RETURN(const ditron_all_reduce_rms_norm_options_t all, readStruct(options, type));
    ops::AllReduceRmsNormOptions converted;
    DITRON_ASSIGN_OR_RETURN(converted.dtype, elementType(all.dtype, type));
    converted.columns = all.columns;
    converted.maxRows = all.max_rows;
    converted.epsilon = unlessZero(all.epsilon).value_or(converted.epsilon);
    converted.concurrentCalls = unlessZero(all.concurrent_calls).value_or(converted.concurrentCalls);
    return create(context, norm, [&](runtime::World &world, runtime::KernelProvider &kernels) {
      return ops::AllReduceRmsNorm::create(world, kernels, converted);
    });
  });
}

void ditron_all_reduce_rms_norm_destroy(ditron_all_reduce_rms_norm_h norm) { delete norm; }

ditron_status_t ditron_all_reduce_rms_norm_prepare(ditron_all_reduce_rms_norm_h norm, int64_t rows) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(norm, name));
    for (uint32_t id : norm->world->localRanks())
      DITRON_RETURN_IF_ERROR(norm->op.prepare(norm->world->rank(id), rows));
    return Status::ok();
  });
}

ditron_status_t ditron_all_reduce_rms_norm_enqueue(ditron_all_reduce_rms_norm_h norm, ditron_stream_h stream,
                                                   const ditron_all_reduce_rms_norm_operands_t *operands,
                                                   int64_t rows) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(norm, stream, name));
    DITRON_ASSIGN_OR_RETURN(const ops::AllReduceRmsNorm::Operands given, toOperands(*norm, operands));
    return norm->op.enqueue(*rank, stream->stream, given, rows);
  });
}

ditron_status_t ditron_all_reduce_rms_norm_check(ditron_all_reduce_rms_norm_h norm, ditron_stream_h stream,
                                                 const ditron_all_reduce_rms_norm_operands_t *operands, int64_t rows) {
  return guarded([&]() -> Status {
    DITRON_ASSIGN_OR_RETURN(const runtime::Rank *rank, rankOf(norm, stream, name));
    DITRON_ASSIGN_OR_RETURN(const ops::AllReduceRmsNorm::Operands given, toOperands(*norm, operands));
    return norm->op.verifyCall(*rank, given, rows);
  });
}

} // extern "C"
