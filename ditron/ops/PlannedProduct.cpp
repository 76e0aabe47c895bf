//===- PlannedProduct.cpp - What products over the ranks have in common on the host ---------------------------------------===//
#include "ditron/ops/PlannedProduct.h"

namespace ditron::ops {

namespace {

Status verifyOperands(std::string_view operation, DataType dtype, const OperandPointers &operands) {
  for (size_t i = 0; i < operands.size(); ++i)
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, toString(static_cast<Operand>(i)), operands[i], dtype));
  return Status::ok();
}

} // namespace

std::string_view toString(Operand operand) {
  switch (operand) {
  case Operand::A: return "a";
  case Operand::B: return "b";
  case Operand::Result: return "result";
  }
  return "?";
}

Expected<OperandLaunch> OperandLaunch::create(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                              const KernelCall &wanted, Names names) {
  DITRON_ASSIGN_OR_RETURN(PreparedCall call, PreparedCall::create(kernels, rank, wanted));
  return create(std::move(call), names);
}

Expected<OperandLaunch> OperandLaunch::create(PreparedCall call, Names names) {
  OperandLaunch launch;
  launch.call = std::move(call);
  for (const auto &[name, operand] : names) {
    DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, launch.call.pointerParameter(name));
    launch.parameters.emplace_back(parameter, operand);
  }
  return launch;
}

struct ProductPlan::State {
  std::string_view operationName;
  DataType dtype = DataType::BF16;
  Parts parts;

  Status enqueue(runtime::Stream &stream, const OperandPointers &operands) {
    for (OperandLaunch &launch : parts.launches)
      for (const auto &[parameter, operand] : launch.parameters)
        DITRON_RETURN_IF_ERROR(launch.call.setPointer(parameter, operands[static_cast<size_t>(operand)]));
    DITRON_RETURN_IF_ERROR(parts.sequence.enqueue(stream));
    const runtime::Pointer result = operands[static_cast<size_t>(Operand::Result)];
    return parts.exchange ? parts.exchange->enqueue(stream, result, result) : Status::ok();
  }
};

Status ProductPlan::enqueue(runtime::Stream &stream, runtime::Pointer a, runtime::Pointer b, runtime::Pointer result) {
  const OperandPointers operands = {a, b, result};
  DITRON_RETURN_IF_ERROR(verifyOperands(state->operationName, state->dtype, operands));
  return state->enqueue(stream, operands);
}

void PlannedProduct::keepPlans(runtime::World &world, std::string_view name, DataType type) {
  operationName = name;
  dtype = type;
  kept.resize(world.numRanks());
  for (uint32_t id : world.localRanks())
    kept[id] = std::make_unique<KeptPlans<Plan>>();
}

KeptPlans<ProductPlan>::Key PlannedProduct::keyOf(const ProductShape &shape, const OperandPointers &operands) {
  KeptPlans<Plan>::Key key = {shape.rows, shape.size};
  for (const runtime::Pointer &operand : operands)
    key.push_back(alignmentOf(operand));
  return key;
}

Expected<ProductPlan> PlannedProduct::makePlan(runtime::Rank &rank, const OperandPointers &operands,
                                               const ProductShape &shape) {
  DITRON_ASSIGN_OR_RETURN(ProductPlan::Parts parts, makeParts(rank, operands, shape));
  Plan plan;
  plan.state = std::make_shared<Plan::State>(Plan::State{operationName, dtype, std::move(parts)});
  return plan;
}

Expected<ProductPlan> PlannedProduct::plan(runtime::Rank &rank, int64_t rows, int64_t size) {
  const ProductShape shape = {rows, size};
  DITRON_RETURN_IF_ERROR(verifyShape(shape));
  const runtime::Pointer any = anyBuffer(rank.id()).as(dtype);
  DITRON_ASSIGN_OR_RETURN(Plan plan, makePlan(rank, {any, any, any}, shape));
  DITRON_RETURN_IF_ERROR(plan.state->parts.sequence.record(rank).withContext(operationName));
  return plan;
}

Status PlannedProduct::prepare(runtime::Rank &rank, int64_t rows, int64_t size) {
  const runtime::Pointer any = anyBuffer(rank.id());
  KeptPlans<Plan> &plans = *kept[rank.id()];
  const KeptPlans<Plan>::Key key = keyOf({rows, size}, {any, any, any});
  if (Plan *there = plans.get(key)) { // by an enqueue, perhaps, which does not record
    runtime::CallSequence &sequence = there->state->parts.sequence;
    return sequence.isRecorded() ? Status::ok() : sequence.record(rank).withContext(operationName);
  }
  DITRON_ASSIGN_OR_RETURN(Plan made, plan(rank, rows, size));
  plans.keep(key, std::move(made));
  return Status::ok();
}

Status PlannedProduct::enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer a, runtime::Pointer b,
                               runtime::Pointer result, int64_t rows, int64_t size) {
  const ProductShape shape = {rows, size};
  const OperandPointers operands = {a, b, result};
  DITRON_RETURN_IF_ERROR(verifyShape(shape));
  DITRON_RETURN_IF_ERROR(verifyOperands(operationName, dtype, operands));
  DITRON_ASSIGN_OR_RETURN(Plan * found, kept[rank.id()]->find(operationName, stream, keyOf(shape, operands),
                                                              [&] { return makePlan(rank, operands, shape); }));
  return found->state->enqueue(stream, operands);
}

} // namespace ditron::ops
