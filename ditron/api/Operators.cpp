//===- Operators.cpp - Operators and plans of the C interface -----------------------------------------------------===//
//
// All operators multiply a rank's A and B. What differs is which of A and C is spread by rows over the ranks, if any.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/api/Handles.h"
#include "ditron/ops/Gemm.h"
#include "ditron/ops/tensor_parallel/AllGatherGemm.h"
#include "ditron/ops/tensor_parallel/GemmAllReduce.h"
#include "ditron/ops/tensor_parallel/GemmReduceScatter.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <variant>

using namespace ditron;
using namespace ditron::api;

namespace {

/// An operator; plans keep it alive.
struct Operator {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  ditron_operator_options_t options = {};
  std::variant<ops::AllGatherGemm, ops::GemmReduceScatter, ops::GemmAllReduce> implementation;

  ops::PlannedProduct &product() {
    return std::visit([](auto &each) -> ops::PlannedProduct & { return each; }, implementation);
  }
  bool gathers() const { return options.kind == DITRON_ALL_GATHER_GEMM; }
  bool scatters() const { return options.kind == DITRON_GEMM_REDUCE_SCATTER; }
  /// Rows of A or C that a rank holds where they are dealt out.
  int64_t rowsOf(int64_t m, uint32_t rank) const {
    return gathers() || scatters() ? ops::RowShards(m, world->numRanks()).rowsOf(rank) : m;
  }
};

using Shape = std::vector<int64_t>;

/// What a plan takes on one rank.
struct Shapes {
  Shape a, b, c;
  Shape scalesA, scalesB, bias; ///< Empty: none.
};

} // namespace

struct ditron_operator {
  std::shared_ptr<Operator> op;
};

/// A plan for each rank of this process.
struct ditron_plan {
  std::shared_ptr<Operator> op;
  int64_t m = 0, n = 0, k = 0;
  ops::OperandTypes types;
  ops::RowStrides strides;
  std::vector<Shapes> shapes; ///< By rank.
  std::vector<ops::ProductPlan> ranks;
};

namespace {

ops::GemmEpilogue epilogueOf(const ditron_operator_options_t &options) {
  ops::GemmEpilogue epilogue;
  epilogue.scalesA = static_cast<ops::Scaling>(options.scales_a);
  epilogue.scalesB = static_cast<ops::Scaling>(options.scales_b);
  if (options.bias_dtype != DITRON_I1)
    epilogue.bias = static_cast<DataType>(options.bias_dtype);
  epilogue.activation = static_cast<ops::Activation>(options.activation);
  return epilogue;
}

/// Refuses numbers that are no members of the enumerations, and fills in the types that were left out.
Status completeOptions(ditron_operator_options_t &options) {
  static_assert(static_cast<int>(ops::Scaling::Vector) == DITRON_SCALES_VECTOR &&
                static_cast<int>(ops::Activation::SwiGlu) == DITRON_ACTIVATION_SWIGLU);
  constexpr std::string_view type = "ditron_operator_options_t";
  DITRON_RETURN_IF_ERROR(checkFlags(type, {{"weight_transposed", options.weight_transposed}}));
  for (const ditron_dtype_t each : {options.dtype, options.result_dtype, options.bias_dtype})
    DITRON_RETURN_IF_ERROR(toDataType(each, type).status());
  for (const auto &[name, value, most] :
       {std::tuple("scales_a", static_cast<unsigned>(options.scales_a), static_cast<unsigned>(DITRON_SCALES_VECTOR)),
        std::tuple("scales_b", static_cast<unsigned>(options.scales_b), static_cast<unsigned>(DITRON_SCALES_VECTOR)),
        std::tuple("activation", static_cast<unsigned>(options.activation),
                   static_cast<unsigned>(DITRON_ACTIVATION_SWIGLU))})
    if (value > most)
      return invalidArgument(fmt::format("{}: {} is {}; accepted are 0 to {}", type, name, value, most));
  if (options.dtype == DITRON_I1) // zero: the default
    options.dtype = DITRON_BF16;
  if (options.result_dtype == DITRON_I1)
    options.result_dtype = static_cast<ditron_dtype_t>(ops::defaultResultType(static_cast<DataType>(options.dtype)));
  return Status::ok();
}

template <typename Options> Options commonOptions(const ditron_operator_options_t &given, DataType dtype) {
  Options options;
  options.dtype = dtype;
  options.maxRows = given.m;
  options.weightOrder = given.weight_transposed ? ops::MatrixOrder::Transposed : ops::MatrixOrder::Plain;
  options.resultType = static_cast<DataType>(given.result_dtype);
  options.epilogue = epilogueOf(given);
  if (given.concurrent_calls)
    options.concurrentCalls = given.concurrent_calls;
  return options;
}

Expected<std::shared_ptr<Operator>> makeOperator(const std::shared_ptr<Context> &context,
                                                 const ditron_operator_options_t &given) {
  if (given.m <= 0 || given.n <= 0 || given.k <= 0)
    return invalidArgument(
        fmt::format("ditron_operator_options_t: sizes {} x {} x {}; all must be positive", given.m, given.n, given.k));
  auto op = std::make_shared<Operator>();
  op->context = context;
  op->world = context->world();
  const DataType dtype = static_cast<DataType>(given.dtype);
  op->options = given;
  DITRON_ASSIGN_OR_RETURN(runtime::KernelProvider * kernels, context->kernels());
  if (given.kind == DITRON_ALL_GATHER_GEMM) {
    auto options = commonOptions<ops::AllGatherGemmOptions>(given, dtype);
    options.depth = given.k;
    options.chunksPerRank = given.chunks_per_rank;
    DITRON_ASSIGN_OR_RETURN(op->implementation, ops::AllGatherGemm::create(*op->world, *kernels, options));
  } else if (given.kind == DITRON_GEMM_REDUCE_SCATTER) {
    auto options = commonOptions<ops::GemmReduceScatterOptions>(given, dtype);
    options.columns = given.n;
    options.depth = given.k;
    DITRON_ASSIGN_OR_RETURN(op->implementation, ops::GemmReduceScatter::create(*op->world, *kernels, options));
  } else if (given.kind == DITRON_GEMM_ALL_REDUCE) {
    auto options = commonOptions<ops::GemmAllReduceOptions>(given, dtype);
    options.columns = given.n;
    options.depth = given.k;
    DITRON_ASSIGN_OR_RETURN(op->implementation, ops::GemmAllReduce::create(*op->world, *kernels, options));
  } else {
    return invalidArgument(fmt::format("an operator of kind {}; accepted are the members of ditron_operator_kind_t",
                                       static_cast<int>(given.kind)));
  }
  return op;
}

/// The address of a tensor that has the type, shape and distance of rows that the plan is for. A vector is dense.
Expected<runtime::Pointer> checkTensor(const ditron_plan &plan, const ditron_tensor_t *given, const char *name,
                                       std::optional<DataType> type, const Shape &shape, int64_t rowStride) {
  if (!type && !given)
    return runtime::Pointer();
  if (!type)
    return invalidArgument(fmt::format("tensor {} is given; the operator was made without", name));
  if (!given || given->struct_size < sizeof(ditron_tensor_t))
    return invalidArgument(
        fmt::format("tensor {}: {}", name, given ? "struct_size is not set; DITRON_INIT does so" : "is null"));
  if (static_cast<DataType>(given->dtype) != *type)
    return invalidArgument(fmt::format("tensor {} is of type {}; the operator takes {}", name,
                                       ditron_dtype_name(given->dtype), toString(*type)));
  const bool fits =
      given->dimensions == shape.size() && given->shape && std::equal(shape.begin(), shape.end(), given->shape);
  if (!fits)
    return invalidArgument(fmt::format(
        "tensor {} has shape [{}]; the plan for m = {}, n = {}, k = {} takes [{}] on this rank", name,
        given->shape ? fmt::format("{}", fmt::join(given->shape, given->shape + given->dimensions, ", ")) : "", plan.m,
        plan.n, plan.k, fmt::join(shape, ", ")));
  const bool isMatrix = shape.size() == 2;
  const int64_t *strides = given->strides;
  // Of a single row, or column, there is no next one.
  const bool isRight = shape[0] == 0 || (isMatrix ? strides ? (strides[1] == 1 || shape[1] == 1) &&
                                                                  (strides[0] == rowStride || shape[0] == 1)
                                                            : rowStride == shape[1] || shape[0] == 1
                                                  : !strides || strides[0] == 1 || shape[0] == 1);
  if (!isRight)
    return invalidArgument(fmt::format("tensor {} has strides [{}]; accepted are [{}], as the plan was made for", name,
                                       strides ? fmt::format("{}", fmt::join(strides, strides + shape.size(), ", "))
                                               : fmt::format("{}, 1", shape.back()),
                                       isMatrix ? fmt::format("{}, 1", rowStride) : "1"));
  constexpr uintptr_t alignment = 16;
  if (reinterpret_cast<uintptr_t>(given->address) % alignment != 0)
    return invalidArgument(fmt::format("tensor {} lies {} bytes behind a multiple of {}; accepted are multiples", name,
                                       reinterpret_cast<uintptr_t>(given->address) % alignment, alignment));
  return runtime::Pointer{given->address, *type};
}

struct Operands {
  runtime::Pointer a, b, c;
  ops::EpilogueOperands epilogue;
};

/// Of tensors that are as the plan takes them on the rank.
Expected<Operands> checkOperands(const ditron_plan &plan, uint32_t rank, const ditron_tensor_t *a,
                                 const ditron_tensor_t *b, const ditron_tensor_t *c,
                                 const ditron_epilogue_tensors_t &extras) {
  const Shapes &shapes = plan.shapes[rank];
  auto type = [&](ops::Operand operand) { return plan.types[static_cast<size_t>(operand)]; };
  using ops::Operand;
  Operands found;
  DITRON_ASSIGN_OR_RETURN(found.a, checkTensor(plan, a, "a", type(Operand::A), shapes.a, plan.strides.a));
  DITRON_ASSIGN_OR_RETURN(found.b, checkTensor(plan, b, "b", type(Operand::B), shapes.b, plan.strides.b));
  DITRON_ASSIGN_OR_RETURN(found.c, checkTensor(plan, c, "c", type(Operand::Result), shapes.c, plan.strides.c));
  DITRON_ASSIGN_OR_RETURN(found.epilogue.scalesA,
                          checkTensor(plan, extras.scales_a, "scales_a", type(Operand::ScalesA), shapes.scalesA, 1));
  DITRON_ASSIGN_OR_RETURN(found.epilogue.scalesB,
                          checkTensor(plan, extras.scales_b, "scales_b", type(Operand::ScalesB), shapes.scalesB, 1));
  DITRON_ASSIGN_OR_RETURN(found.epilogue.bias,
                          checkTensor(plan, extras.bias, "bias", type(Operand::Bias), shapes.bias, 1));
  return found;
}

Expected<std::unique_ptr<ditron_plan>> makePlan(const std::shared_ptr<Operator> &op,
                                                const ditron_plan_options_t &given) {
  const ditron_operator_options_t &options = op->options;
  const bool gathers = op->gathers();
  const auto [m, n, k] = std::tuple(given.m, given.n, given.k);
  if (gathers ? k != options.k : n != options.n)
    return invalidArgument(gathers
                               ? fmt::format("k is {}; {} is accepted, for which the operator was made", k, options.k)
                               : fmt::format("n is {}; {} is accepted, for which the operator was made", n, options.n));
  const ops::GemmEpilogue epilogue = epilogueOf(options);
  const int64_t columns = epilogue.resultColumns(n);
  auto made = std::make_unique<ditron_plan>();
  made->op = op;
  made->m = m;
  made->n = n;
  made->k = k;
  made->types =
      ops::operandTypes(static_cast<DataType>(options.dtype), static_cast<DataType>(options.result_dtype), epilogue);
  const Shape b = options.weight_transposed ? Shape{n, k} : Shape{k, n};
  made->strides = {ops::rowStride(given.row_stride_a, k), ops::rowStride(given.row_stride_b, b[1]),
                   ops::rowStride(given.row_stride_c, columns)};
  made->ranks.resize(op->world->numRanks());
  made->shapes.resize(op->world->numRanks());
  auto scales = [](ops::Scaling scaling, int64_t count) {
    return scaling == ops::Scaling::None ? Shape() : Shape{scaling == ops::Scaling::Vector ? count : 1};
  };
  for (uint32_t id : op->world->localRanks()) {
    DITRON_ASSIGN_OR_RETURN(made->ranks[id],
                            op->product().plan(op->world->rank(id), m, gathers ? n : k, made->strides));
    const int64_t rows = op->rowsOf(m, id), rowsA = gathers ? rows : m;
    made->shapes[id] = {{rowsA, k},
                        b,
                        {gathers ? m : rows, columns},
                        scales(epilogue.scalesA, rowsA),
                        scales(epilogue.scalesB, n),
                        epilogue.bias ? Shape{n} : Shape()};
  }
  return made;
}

Status prepare(ditron_operator_h op, const ditron_plan_options_t &options, ditron_plan_h *plan) {
  DITRON_RETURN_IF_ERROR(checkGiven(op, "the operator"));
  DITRON_RETURN_IF_ERROR(checkGiven(plan, "the place of the result"));
  DITRON_RETURN_IF_ERROR(checkUsable(*op->op->context, op->op->world, "operator"));
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<ditron_plan> made, makePlan(op->op, options));
  *plan = made.release();
  return Status::ok();
}

/// Of a call that may be made.
Expected<Operands> checkCall(ditron_plan_h plan, ditron_stream_h stream, const ditron_tensor_t *a,
                             const ditron_tensor_t *b, const ditron_tensor_t *c,
                             const ditron_epilogue_tensors_t &extras) {
  if (!plan || !stream)
    return invalidArgument(plan ? "the stream is null" : "the plan is null");
  DITRON_RETURN_IF_ERROR(checkUsable(*plan->op->context, plan->op->world, "plan"));
  if (stream->world != plan->op->world)
    return invalidArgument("the plan and the stream are of different contexts, or of different runs of one");
  return checkOperands(*plan, stream->stream.rank(), a, b, c, extras);
}

ditron_status_t enqueueOn(ditron_plan_h plan, ditron_stream_h stream, const ditron_tensor_t *a,
                          const ditron_tensor_t *b, const ditron_tensor_t *c, const ditron_epilogue_tensors_t &extras) {
  const Expected<Operands> found = checkCall(plan, stream, a, b, c, extras);
  if (!found.isOk())
    return report(found.status());
  runtime::Stream &on = stream->stream;
  return report(plan->ranks[on.rank()].enqueue(on, found->a, found->b, found->c, found->epilogue));
}

} // namespace

extern "C" {

ditron_status_t ditron_operator_create(ditron_context_h context, const ditron_operator_options_t *options,
                                       ditron_operator_h *op) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(context, "the context"));
    DITRON_RETURN_IF_ERROR(checkGiven(options, "the options"));
    DITRON_RETURN_IF_ERROR(checkGiven(op, "the place of the result"));
    DITRON_RETURN_IF_ERROR(context->state->checkThread());
    DITRON_ASSIGN_OR_RETURN(ditron_operator_options_t complete, readStruct(options, "ditron_operator_options_t"));
    DITRON_RETURN_IF_ERROR(completeOptions(complete));
    DITRON_ASSIGN_OR_RETURN(std::shared_ptr<Operator> made, makeOperator(context->state, complete));
    *op = new ditron_operator{std::move(made)};
    return Status::ok();
  });
}

void ditron_operator_destroy(ditron_operator_h op) { delete op; }

ditron_status_t ditron_operator_prepare(ditron_operator_h op, int64_t m, int64_t n, int64_t k, ditron_plan_h *plan) {
  return guarded([&]() -> Status {
    ditron_plan_options_t options = {};
    options.m = m;
    options.n = n;
    options.k = k;
    return prepare(op, options, plan);
  });
}

ditron_status_t ditron_operator_prepare_strided(ditron_operator_h op, const ditron_plan_options_t *options,
                                                ditron_plan_h *plan) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(options, "the options"));
    DITRON_ASSIGN_OR_RETURN(const ditron_plan_options_t complete, readStruct(options, "ditron_plan_options_t"));
    return prepare(op, complete, plan);
  });
}

void ditron_plan_destroy(ditron_plan_h plan) { delete plan; }

int64_t ditron_plan_rows(ditron_plan_h plan, uint32_t rank) {
  if (!plan || rank >= plan->op->world->numRanks())
    return 0;
  return plan->op->rowsOf(plan->m, rank);
}

// No guard: nothing in here throws, and this is what a program calls for every layer of a model.
ditron_status_t ditron_plan_enqueue(ditron_plan_h plan, ditron_stream_h stream, const ditron_tensor_t *a,
                                    const ditron_tensor_t *b, const ditron_tensor_t *c) {
  return enqueueOn(plan, stream, a, b, c, {});
}

ditron_status_t ditron_plan_enqueue_with(ditron_plan_h plan, ditron_stream_h stream, const ditron_tensor_t *a,
                                         const ditron_tensor_t *b, const ditron_tensor_t *c,
                                         const ditron_epilogue_tensors_t *epilogue) {
  Expected<ditron_epilogue_tensors_t> extras = readStruct(epilogue, "ditron_epilogue_tensors_t");
  return extras.isOk() ? enqueueOn(plan, stream, a, b, c, *extras) : report(extras.status());
}

ditron_status_t ditron_plan_check_with(ditron_plan_h plan, ditron_stream_h stream, const ditron_tensor_t *a,
                                       const ditron_tensor_t *b, const ditron_tensor_t *c,
                                       const ditron_epilogue_tensors_t *epilogue) {
  return guarded([&]() -> Status {
    DITRON_ASSIGN_OR_RETURN(const ditron_epilogue_tensors_t extras, readStruct(epilogue, "ditron_epilogue_tensors_t"));
    return checkCall(plan, stream, a, b, c, extras).status();
  });
}

} // extern "C"
