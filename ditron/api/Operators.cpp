//===- Operators.cpp - Operators and plans of the C interface -----------------------------------------------------===//
//
// All operators multiply a rank's A and B. What differs is which of A and C is spread by rows over the ranks, if any.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/api/Handles.h"
#include "ditron/ops/AllGatherGemm.h"
#include "ditron/ops/Gemm.h"
#include "ditron/ops/GemmAllReduce.h"
#include "ditron/ops/GemmReduceScatter.h"

#include <array>
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

using Shape = std::array<int64_t, 2>;

struct Shapes {
  Shape a, b, c;
};

} // namespace

struct ditron_operator {
  std::shared_ptr<Operator> op;
};

/// A plan for each rank of this process.
struct ditron_plan {
  std::shared_ptr<Operator> op;
  int64_t m = 0, n = 0, k = 0;
  DataType dtype = DataType::BF16;
  std::vector<Shapes> shapes; ///< By rank.
  std::vector<ops::ProductPlan> ranks;
};

namespace {

template <typename Options>
Options commonOptions(const ditron_operator_options_t &given, DataType dtype, runtime::World &world) {
  Options options;
  options.dtype = dtype;
  options.maxRows = given.m;
  options.weightOrder = given.weight_transposed ? ops::MatrixOrder::Transposed : ops::MatrixOrder::Plain;
  options.tile =
      ops::chooseTile({.m = given.m, .n = given.n, .k = given.k, .dtype = dtype, .order = options.weightOrder}, world);
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
  op->options = given;
  DITRON_ASSIGN_OR_RETURN(DataType dtype, toDataType(given.dtype, "ditron_operator_options_t"));
  if (dtype == DataType::I1) // zero: the default
    dtype = DataType::BF16;
  op->options.dtype = static_cast<ditron_dtype_t>(dtype);
  DITRON_ASSIGN_OR_RETURN(runtime::KernelProvider * kernels, context->kernels());
  if (given.kind == DITRON_ALL_GATHER_GEMM) {
    auto options = commonOptions<ops::AllGatherGemmOptions>(given, dtype, *op->world);
    options.depth = given.k;
    options.chunksPerRank = given.chunks_per_rank ? given.chunks_per_rank : 1;
    DITRON_ASSIGN_OR_RETURN(op->implementation, ops::AllGatherGemm::create(*op->world, *kernels, options));
  } else if (given.kind == DITRON_GEMM_REDUCE_SCATTER) {
    auto options = commonOptions<ops::GemmReduceScatterOptions>(given, dtype, *op->world);
    options.columns = given.n;
    DITRON_ASSIGN_OR_RETURN(op->implementation, ops::GemmReduceScatter::create(*op->world, *kernels, options));
  } else if (given.kind == DITRON_GEMM_ALL_REDUCE) {
    auto options = commonOptions<ops::GemmAllReduceOptions>(given, dtype, *op->world);
    options.columns = given.n;
    DITRON_ASSIGN_OR_RETURN(op->implementation, ops::GemmAllReduce::create(*op->world, *kernels, options));
  } else {
    return invalidArgument(fmt::format("an operator of kind {}; accepted are the members of ditron_operator_kind_t",
                                       static_cast<int>(given.kind)));
  }
  return op;
}

/// The address of a tensor that is dense and has the type and shape that the plan is for.
Expected<runtime::Pointer> checkTensor(const ditron_plan &plan, const ditron_tensor_t *given, const char *name,
                                       const Shape &shape) {
  if (!given || given->struct_size < sizeof(ditron_tensor_t))
    return invalidArgument(
        fmt::format("tensor {}: {}", name, given ? "struct_size is not set; DITRON_INIT does so" : "is null"));
  if (static_cast<DataType>(given->dtype) != plan.dtype)
    return invalidArgument(fmt::format("tensor {} is of type {}; the operator takes {}", name,
                                       ditron_dtype_name(given->dtype), toString(plan.dtype)));
  const bool fits =
      given->dimensions == 2 && given->shape && given->shape[0] == shape[0] && given->shape[1] == shape[1];
  if (!fits)
    return invalidArgument(fmt::format(
        "tensor {} has shape [{}]; the plan for m = {}, n = {}, k = {} takes [{}, {}] on this rank", name,
        given->shape ? fmt::format("{}", fmt::join(given->shape, given->shape + given->dimensions, ", ")) : "", plan.m,
        plan.n, plan.k, shape[0], shape[1]));
  const bool dense =
      !given->strides || (given->strides[1] == 1 && (given->strides[0] == shape[1] || shape[0] <= 1)) || shape[0] == 0;
  if (!dense)
    return invalidArgument(fmt::format("tensor {} has strides [{}, {}]; accepted are dense rows, [{}, 1]", name,
                                       given->strides[0], given->strides[1], shape[1]));
  constexpr uintptr_t alignment = 16;
  if (reinterpret_cast<uintptr_t>(given->address) % alignment != 0)
    return invalidArgument(fmt::format("tensor {} lies {} bytes behind a multiple of {}; accepted are multiples", name,
                                       reinterpret_cast<uintptr_t>(given->address) % alignment, alignment));
  return runtime::Pointer{given->address, plan.dtype};
}

Status enqueue(ditron_plan &plan, runtime::Stream &stream, const ditron_tensor_t *a, const ditron_tensor_t *b,
               const ditron_tensor_t *c) {
  const Shapes &shapes = plan.shapes[stream.rank()];
  DITRON_ASSIGN_OR_RETURN(const runtime::Pointer aPointer, checkTensor(plan, a, "a", shapes.a));
  DITRON_ASSIGN_OR_RETURN(const runtime::Pointer bPointer, checkTensor(plan, b, "b", shapes.b));
  DITRON_ASSIGN_OR_RETURN(const runtime::Pointer cPointer, checkTensor(plan, c, "c", shapes.c));
  return plan.ranks[stream.rank()].enqueue(stream, aPointer, bPointer, cPointer);
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
    DITRON_ASSIGN_OR_RETURN(const ditron_operator_options_t complete, readStruct(options, "ditron_operator_options_t"));
    DITRON_ASSIGN_OR_RETURN(std::shared_ptr<Operator> made, makeOperator(context->state, complete));
    *op = new ditron_operator{std::move(made)};
    return Status::ok();
  });
}

void ditron_operator_destroy(ditron_operator_h op) { delete op; }

ditron_status_t ditron_operator_prepare(ditron_operator_h op, int64_t m, int64_t n, int64_t k, ditron_plan_h *plan) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(op, "the operator"));
    DITRON_RETURN_IF_ERROR(checkGiven(plan, "the place of the result"));
    const std::shared_ptr<Operator> &owned = op->op;
    DITRON_RETURN_IF_ERROR(checkUsable(*owned->context, owned->world, "operator"));
    const bool gathers = owned->gathers();
    if (gathers ? k != owned->options.k : n != owned->options.n)
      return invalidArgument(gathers ? fmt::format("k is {}; the operator was made for {}", k, owned->options.k)
                                     : fmt::format("n is {}; the operator was made for {}", n, owned->options.n));
    auto made =
        std::make_unique<ditron_plan>(ditron_plan{owned, m, n, k, static_cast<DataType>(owned->options.dtype), {}, {}});
    made->ranks.resize(owned->world->numRanks());
    made->shapes.resize(owned->world->numRanks());
    for (uint32_t id : owned->world->localRanks()) {
      DITRON_ASSIGN_OR_RETURN(made->ranks[id], owned->product().plan(owned->world->rank(id), m, gathers ? n : k));
      const int64_t rows = owned->rowsOf(m, id);
      made->shapes[id] = {{gathers ? rows : m, k},
                          owned->options.weight_transposed ? Shape{n, k} : Shape{k, n},
                          {gathers ? m : rows, n}};
    }
    *plan = made.release();
    return Status::ok();
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
  if (!plan || !stream)
    return report(invalidArgument(plan ? "the stream is null" : "the plan is null"));
  if (Status usable = checkUsable(*plan->op->context, plan->op->world, "plan"); !usable.isOk())
    return report(usable);
  if (stream->world != plan->op->world)
    return report(invalidArgument("the plan and the stream are of different contexts, or of different runs of one"));
  return report(enqueue(*plan, stream->stream, a, b, c));
}

} // extern "C"
