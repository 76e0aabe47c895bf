//===- MixtureOfExperts.cpp - Routing, grouped products and layers of the C interface ----------------------------===//
#include "ditron/api/RankOperators.h"
#include "ditron/ops/layers/ExpertParallelMoeBackward.h"
#include "ditron/ops/layers/TensorParallelMoeBackward.h"
#include "ditron/ops/moe/GroupedProduct.h"
#include "ditron/ops/moe/TokenRouting.h"

using namespace ditron;
using namespace ditron::api;

namespace {

Expected<ops::RouterScore> toScore(ditron_router_score_t score, std::string_view what) {
  if (score != DITRON_SCORE_SOFTMAX && score != DITRON_SCORE_SIGMOID)
    return invalidArgument(
        fmt::format("{}: score is {}; 0 (softmax) and 1 (sigmoid) are accepted", what, static_cast<unsigned>(score)));
  return score == DITRON_SCORE_SOFTMAX ? ops::RouterScore::Softmax : ops::RouterScore::Sigmoid;
}

/// What the options of routing and of the layers have in common.
template <typename Given, typename Options>
Status convertRouter(const Given &given, std::string_view name, Options &options) {
  DITRON_RETURN_IF_ERROR(checkFlags(name, {{"not_normalized", given.not_normalized}}));
  DITRON_ASSIGN_OR_RETURN(options.dtype, elementType(given.dtype, name));
  DITRON_ASSIGN_OR_RETURN(options.score, toScore(given.score, name));
  options.experts = given.experts;
  options.topK = given.top_k == 0 ? 1 : given.top_k;
  options.normalized = given.not_normalized == 0;
  options.scale = given.scale == 0 ? 1 : given.scale;
  options.hidden = given.hidden;
  return Status::ok();
}

/// A layer, and what follows its calls where it is for training.
template <typename Forward, typename Backward> struct Layer {
  explicit Layer(Forward made) : forward(std::move(made)) {}

  Forward forward;
  std::optional<Backward> backward;
};
using TensorParallelLayer = Layer<ops::TensorParallelMoe, ops::TensorParallelMoeBackward>;
using ExpertParallelLayer = Layer<ops::ExpertParallelMoe, ops::ExpertParallelMoeBackward>;

/// The type of the gradients of options for training, which is fp32 where they name none.
template <typename Backward, typename Given>
Expected<Backward> backwardOptions(const Given &all, std::string_view name) {
  Backward options;
  if (all.gradient_dtype != DITRON_I1) {
    DITRON_ASSIGN_OR_RETURN(options.gradientType, toDataType(all.gradient_dtype, name));
  }
  options.adds = all.gradients_set == 0;
  return options;
}

/// The same of a layer, for so many tokens.
template <typename Handle> Status prepareLayer(Handle *handle, int64_t tokens) {
  DITRON_RETURN_IF_ERROR(checkHandle(handle, "the layer"));
  for (uint32_t id : handle->world->localRanks()) {
    DITRON_RETURN_IF_ERROR(handle->op->forward.prepare(handle->world->rank(id), tokens));
    if (handle->op->backward)
      DITRON_RETURN_IF_ERROR(handle->op->backward->prepare(handle->world->rank(id), tokens));
  }
  return Status::ok();
}

/// Enqueues the backward with convert(gradients) as its operands.
template <typename Handle, typename Convert>
Status enqueueBackward(Handle *handle, ditron_stream_h stream, const ditron_moe_gradients_t *gradients, int64_t tokens,
                       const Convert &convert) {
  DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(handle, stream, "layer"));
  DITRON_RETURN_IF_ERROR(checkGiven(gradients, "the gradients"));
  DITRON_ASSIGN_OR_RETURN(const ditron_moe_gradients_t all, readStruct(gradients, "ditron_moe_gradients_t"));
  if (!handle->op->backward)
    return invalidArgument("the layer was made without `training`: it has no backward");
  return handle->op->backward->enqueue(*rank, stream->stream, convert(all), tokens);
}

template <typename Handle>
Status enqueueLayer(Handle *handle, ditron_stream_h stream, const void *x, void *y, int64_t tokens) {
  DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(handle, stream, "layer"));
  const DataType type = handle->op->forward.options().dtype;
  return handle->op->forward.enqueue(*rank, stream->stream, given(x, type), given(y, type), tokens);
}

} // namespace

struct ditron_routing {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  OfRanks<ops::TokenRouting> op;
};

struct ditron_grouped_gemm {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  OfRanks<ops::GroupedProduct> op;
};

struct ditron_tensor_parallel_moe {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  std::unique_ptr<TensorParallelLayer> op;
  DataType gradientType = DataType::F32;
};

struct ditron_expert_parallel_moe {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  std::unique_ptr<ExpertParallelLayer> op;
  DataType gradientType = DataType::F32;
};

extern "C" {

ditron_status_t ditron_routing_create(ditron_context_h context, const ditron_routing_options_t *options,
                                      ditron_routing_h *routing) {
  return guarded([&]() -> Status {
    constexpr std::string_view name = "ditron_routing_options_t";
    DITRON_RETURN_IF_ERROR(checkGiven(options, "the options"));
    DITRON_ASSIGN_OR_RETURN(const ditron_routing_options_t all, readStruct(options, name));
    ops::TokenRoutingOptions converted;
    DITRON_RETURN_IF_ERROR(convertRouter(all, name, converted));
    converted.maxTokens = all.max_tokens;
    return create(context, routing, [&](runtime::World &world, runtime::KernelProvider &kernels) {
      return onEachRank<ops::TokenRouting>(world, kernels, [&](runtime::Rank &rank, runtime::KernelProvider &source) {
        return ops::TokenRouting::create(rank, source, converted);
      });
    });
  });
}

void ditron_routing_destroy(ditron_routing_h routing) { delete routing; }

ditron_status_t ditron_routing_prepare(ditron_routing_h routing, int64_t tokens) {
  return guarded(
      [&] { return prepareEach(routing, "routing", [&](ops::TokenRouting &own) { return own.prepare(tokens); }); });
}

ditron_status_t ditron_routing_choose(ditron_routing_h routing, ditron_stream_h stream, const float *logits,
                                      const float *bias, int32_t *ids, float *weights, int64_t tokens) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(ops::TokenRouting * own, ofRank(routing, stream, "routing"));
    return own->choose(stream->stream, given(logits, DataType::F32), given(bias, DataType::F32),
                       given(ids, DataType::I32), given(weights, DataType::F32), tokens);
  });
}

ditron_status_t ditron_routing_sort(ditron_routing_h routing, ditron_stream_h stream, const int32_t *ids,
                                    int32_t *offsets, int32_t *slot_of_row, int32_t *row_of_slot, int64_t tokens) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(ops::TokenRouting * own, ofRank(routing, stream, "routing"));
    return own->sort(stream->stream, given(ids, DataType::I32), given(offsets, DataType::I32),
                     given(slot_of_row, DataType::I32), given(row_of_slot, DataType::I32), tokens);
  });
}

ditron_status_t ditron_routing_sum(ditron_routing_h routing, ditron_stream_h stream, const void *rows,
                                   const int32_t *row_of_slot, const float *weights, void *out, int64_t tokens) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(ops::TokenRouting * own, ofRank(routing, stream, "routing"));
    const DataType type = own->options().dtype;
    return own->sum(stream->stream, given(rows, type), given(row_of_slot, DataType::I32), given(weights, DataType::F32),
                    given(out, type), tokens);
  });
}

ditron_status_t ditron_grouped_gemm_create(ditron_context_h context, const ditron_grouped_gemm_options_t *options,
                                           ditron_grouped_gemm_h *product) {
  return guarded([&]() -> Status {
    constexpr std::string_view name = "ditron_grouped_gemm_options_t";
    DITRON_RETURN_IF_ERROR(checkGiven(options, "the options"));
    DITRON_ASSIGN_OR_RETURN(const ditron_grouped_gemm_options_t all, readStruct(options, name));
    ops::GroupedGemmProblem problem;
    DITRON_ASSIGN_OR_RETURN(problem.dtype, elementType(all.dtype, name));
    DITRON_RETURN_IF_ERROR(
        checkFlags(name, {{"weights_plain", all.weights_plain}, {"block_scales", all.block_scales}}));
    problem.resultType = ops::defaultResultType(problem.dtype);
    if (all.result_dtype != DITRON_I1) {
      DITRON_ASSIGN_OR_RETURN(problem.resultType, toDataType(all.result_dtype, name));
    }
    if (all.activation != DITRON_ACTIVATION_NONE && all.activation != DITRON_ACTIVATION_SWIGLU)
      return invalidArgument(fmt::format("{}: activation is {}; 0 (none) and {} (swiglu) are accepted", name,
                                         static_cast<unsigned>(all.activation),
                                         static_cast<unsigned>(DITRON_ACTIVATION_SWIGLU)));
    problem.maxRows = all.max_rows;
    problem.experts = all.experts;
    problem.n = all.n;
    problem.k = all.k;
    problem.order = all.weights_plain ? ops::MatrixOrder::Plain : ops::MatrixOrder::Transposed;
    problem.activation = all.activation == DITRON_ACTIVATION_SWIGLU ? ops::Activation::SwiGlu : ops::Activation::None;
    problem.slots = all.slots;
    problem.blockScales = all.block_scales != 0;
    return create(context, product, [&](runtime::World &world, runtime::KernelProvider &kernels) {
      return onEachRank<ops::GroupedProduct>(world, kernels, [&](runtime::Rank &rank, runtime::KernelProvider &source) {
        return ops::GroupedProduct::create(rank, source, problem);
      });
    });
  });
}

void ditron_grouped_gemm_destroy(ditron_grouped_gemm_h product) { delete product; }

ditron_status_t ditron_grouped_gemm_prepare(ditron_grouped_gemm_h product) {
  return guarded(
      [&] { return prepareEach(product, "grouped product", [](ops::GroupedProduct &own) { return own.prepare(); }); });
}

ditron_status_t ditron_grouped_gemm_enqueue(ditron_grouped_gemm_h product, ditron_stream_h stream,
                                            const ditron_grouped_gemm_operands_t *operands) {
  return guarded([&]() -> Status { // it may compile
    DITRON_ASSIGN_OR_RETURN(ops::GroupedProduct * own, ofRank(product, stream, "grouped product"));
    DITRON_RETURN_IF_ERROR(checkGiven(operands, "the operands"));
    DITRON_ASSIGN_OR_RETURN(const ditron_grouped_gemm_operands_t all,
                            readStruct(operands, "ditron_grouped_gemm_operands_t"));
    const ops::GroupedGemmProblem &problem = own->problem();
    ops::GroupedGemmOperands converted;
    converted.a = given(all.a, problem.dtype);
    converted.b = given(all.b, problem.dtype);
    converted.c = given(all.c, problem.resultType);
    converted.offsets = given(all.offsets, DataType::I32);
    converted.slotOfRow = given(all.slot_of_row, DataType::I32);
    converted.aScale = given(all.a_scale, DataType::F32);
    converted.bScale = given(all.b_scale, DataType::F32);
    return own->enqueue(stream->stream, converted);
  });
}

ditron_status_t ditron_tensor_parallel_moe_create(ditron_context_h context,
                                                  const ditron_tensor_parallel_moe_options_t *options,
                                                  const ditron_moe_weights_t *const *weights, uint32_t weight_count,
                                                  ditron_tensor_parallel_moe_h *layer) {
  return guarded([&]() -> Status {
    constexpr std::string_view name = "ditron_tensor_parallel_moe_options_t";
    DITRON_RETURN_IF_ERROR(checkGiven(options, "the options"));
    DITRON_ASSIGN_OR_RETURN(const ditron_tensor_parallel_moe_options_t all, readStruct(options, name));
    ops::TensorParallelMoeOptions converted;
    DITRON_RETURN_IF_ERROR(convertRouter(all, name, converted));
    DITRON_RETURN_IF_ERROR(checkFlags(name, {{"replicated", all.replicated},
                                             {"unfused", all.unfused},
                                             {"training", all.training},
                                             {"gradients_set", all.gradients_set}}));
    converted.inner = all.inner;
    converted.maxTokensPerRank = all.max_tokens_per_rank;
    converted.tokens = all.replicated ? ops::MoeTokens::Replicated : ops::MoeTokens::Dealt;
    if (all.unfused)
      converted.schedule = ops::Schedule::Unfused;
    DITRON_ASSIGN_OR_RETURN(const auto backward, backwardOptions<ops::TensorParallelMoeBackwardOptions>(all, name));
    using Made = std::unique_ptr<TensorParallelLayer>;
    const auto make = [&](runtime::World &world, runtime::KernelProvider &kernels) -> Expected<Made> {
      const DataType type = converted.dtype;
      const auto read = [&](const ditron_moe_weights_t &own) {
        return ops::TensorParallelMoeWeights{given(own.router, type), given(own.bias, DataType::F32),
                                             given(own.up, type), given(own.down, type)};
      };
      DITRON_ASSIGN_OR_RETURN(const auto own, toWeights<ops::TensorParallelMoeWeights>(world, weights, weight_count,
                                                                                       "ditron_moe_weights_t", read));
      DITRON_ASSIGN_OR_RETURN(auto forward, ops::TensorParallelMoe::create(world, kernels, converted, own));
      auto made = std::make_unique<TensorParallelLayer>(std::move(forward));
      if (all.training) {
        DITRON_ASSIGN_OR_RETURN(made->backward,
                                ops::TensorParallelMoeBackward::create(world, kernels, converted, own, backward));
      }
      return made;
    };
    DITRON_RETURN_IF_ERROR(create(context, layer, make));
    (*layer)->gradientType = backward.gradientType;
    return Status::ok();
  });
}

void ditron_tensor_parallel_moe_destroy(ditron_tensor_parallel_moe_h layer) { delete layer; }

ditron_status_t ditron_tensor_parallel_moe_prepare(ditron_tensor_parallel_moe_h layer, int64_t tokens_per_rank) {
  return guarded([&] { return prepareLayer(layer, tokens_per_rank); });
}

ditron_status_t ditron_tensor_parallel_moe_enqueue(ditron_tensor_parallel_moe_h layer, ditron_stream_h stream,
                                                   const void *x, void *y, int64_t tokens_per_rank) {
  return guarded([&] { return enqueueLayer(layer, stream, x, y, tokens_per_rank); }); // it may compile
}

ditron_status_t ditron_expert_parallel_moe_create(ditron_context_h context,
                                                  const ditron_expert_parallel_moe_options_t *options,
                                                  const ditron_moe_weights_t *const *weights, uint32_t weight_count,
                                                  ditron_expert_parallel_moe_h *layer) {
  return guarded([&]() -> Status {
    constexpr std::string_view name = "ditron_expert_parallel_moe_options_t";
    DITRON_RETURN_IF_ERROR(checkGiven(options, "the options"));
    DITRON_ASSIGN_OR_RETURN(const ditron_expert_parallel_moe_options_t all, readStruct(options, name));
    ops::ExpertParallelMoeOptions converted;
    DITRON_RETURN_IF_ERROR(convertRouter(all, name, converted));
    DITRON_RETURN_IF_ERROR(
        checkFlags(name, {{"fp8", all.fp8}, {"training", all.training}, {"gradients_set", all.gradients_set}}));
    converted.inner = all.inner;
    converted.sharedInner = all.shared_inner;
    converted.maxTokens = all.max_tokens;
    converted.fp8 = all.fp8 != 0;
    converted.capacity = all.capacity;
    converted.maxRows = all.max_rows;
    converted.concurrentCalls = all.concurrent_calls == 0 ? 1 : all.concurrent_calls;
    converted.training = all.training != 0;
    DITRON_ASSIGN_OR_RETURN(const auto backward, backwardOptions<ops::ExpertParallelMoeBackwardOptions>(all, name));
    using Made = std::unique_ptr<ExpertParallelLayer>;
    const auto make = [&](runtime::World &world, runtime::KernelProvider &kernels) -> Expected<Made> {
      const DataType type = converted.dtype, ofExperts = converted.fp8 ? DataType::F8E4NV : type;
      const auto read = [&](const ditron_moe_weights_t &own) {
        return ops::ExpertParallelMoeWeights{.router = given(own.router, type),
                                             .bias = given(own.bias, DataType::F32),
                                             .up = given(own.up, ofExperts),
                                             .down = given(own.down, ofExperts),
                                             .upScale = given(own.up_scale, DataType::F32),
                                             .downScale = given(own.down_scale, DataType::F32),
                                             .sharedUp = given(own.shared_up, type),
                                             .sharedDown = given(own.shared_down, type)};
      };
      DITRON_ASSIGN_OR_RETURN(const auto own, toWeights<ops::ExpertParallelMoeWeights>(world, weights, weight_count,
                                                                                       "ditron_moe_weights_t", read));
      DITRON_ASSIGN_OR_RETURN(auto forward, ops::ExpertParallelMoe::create(world, kernels, converted, own));
      auto made = std::make_unique<ExpertParallelLayer>(std::move(forward));
      if (all.training) {
        DITRON_ASSIGN_OR_RETURN(made->backward,
                                ops::ExpertParallelMoeBackward::create(world, kernels, made->forward, backward));
      }
      return made;
    };
    DITRON_RETURN_IF_ERROR(create(context, layer, make));
    (*layer)->gradientType = backward.gradientType;
    return Status::ok();
  });
}

void ditron_expert_parallel_moe_destroy(ditron_expert_parallel_moe_h layer) { delete layer; }

ditron_status_t ditron_expert_parallel_moe_prepare(ditron_expert_parallel_moe_h layer, int64_t tokens) {
  return guarded([&] { return prepareLayer(layer, tokens); });
}

ditron_status_t ditron_expert_parallel_moe_enqueue(ditron_expert_parallel_moe_h layer, ditron_stream_h stream,
                                                   const void *x, void *y, int64_t tokens) {
  return guarded([&] { return enqueueLayer(layer, stream, x, y, tokens); }); // it may compile
}

ditron_status_t ditron_tensor_parallel_moe_backward(ditron_tensor_parallel_moe_h layer, ditron_stream_h stream,
                                                    const ditron_moe_gradients_t *gradients, int64_t tokens_per_rank) {
  return guarded([&]() -> Status { // it may compile
    const auto convert = [&](const ditron_moe_gradients_t &all) {
      const DataType type = layer->op->forward.options().dtype, ofWeights = layer->gradientType;
      return ops::TensorParallelMoeGradients{given(all.x, type),       given(all.dy, type),
                                             given(all.dx, type),      given(all.router, ofWeights),
                                             given(all.up, ofWeights), given(all.down, ofWeights)};
    };
    return enqueueBackward(layer, stream, gradients, tokens_per_rank, convert);
  });
}

ditron_status_t ditron_expert_parallel_moe_backward(ditron_expert_parallel_moe_h layer, ditron_stream_h stream,
                                                    const ditron_moe_gradients_t *gradients, int64_t tokens) {
  return guarded([&]() -> Status { // it may compile
    const auto convert = [&](const ditron_moe_gradients_t &all) {
      const DataType type = layer->op->forward.options().dtype, ofWeights = layer->gradientType;
      return ops::ExpertParallelMoeGradients{.x = given(all.x, type),
                                             .dy = given(all.dy, type),
                                             .dx = given(all.dx, type),
                                             .router = given(all.router, ofWeights),
                                             .up = given(all.up, ofWeights),
                                             .down = given(all.down, ofWeights),
                                             .sharedUp = given(all.shared_up, ofWeights),
                                             .sharedDown = given(all.shared_down, ofWeights)};
    };
    return enqueueBackward(layer, stream, gradients, tokens, convert);
  });
}

ditron_status_t ditron_expert_parallel_moe_check(ditron_expert_parallel_moe_h layer, ditron_stream_h stream) {
  return guarded([&]() -> Status {
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(layer, stream, "layer"));
    DITRON_RETURN_IF_ERROR(stream->stream.synchronize());
    return layer->op->forward.check(*rank);
  });
}

} // extern "C"
