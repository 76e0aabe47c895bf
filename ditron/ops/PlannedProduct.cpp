//===- PlannedProduct.cpp - What products over the ranks have in common on the host ---------------------------------------===//
#include "ditron/ops/PlannedProduct.h"

#include <fmt/ranges.h>

namespace ditron::ops {

namespace {

constexpr Operand operandList[] = {Operand::A,       Operand::B,       Operand::Result,
                                   Operand::ScalesA, Operand::ScalesB, Operand::Bias};

Status verifyOperands(std::string_view operation, const OperandTypes &types, const OperandPointers &operands) {
  for (const Operand operand : operandList) {
    const std::optional<DataType> type = types[static_cast<size_t>(operand)];
    if (type)
      DITRON_RETURN_IF_ERROR(verifyPointerType(operation, toString(operand), operands[operand], *type));
    else if (operands[operand].address)
      return invalidArgument(
          fmt::format("{}: operand {} is given; the operator was made without", operation, toString(operand)));
  }
  return Status::ok();
}

} // namespace

void addRowsToCaller(runtime::CallSequence &sequence, runtime::Lane lane, runtime::Pointer source,
                     const CallerRows &rows, std::string_view name) {
  const auto elementBytes = static_cast<int64_t>(sizeOf(source.type));
  runtime::Copy copy = runtime::Copy::of({}, source, static_cast<uint64_t>(rows.count * rows.columns), name);
  if (rows.stride != rows.columns) {
    copy.rowBytes = copy.sourcePitch = static_cast<uint64_t>(rows.columns * elementBytes);
    copy.destinationPitch = static_cast<uint64_t>(rows.stride * elementBytes);
    copy.rows = static_cast<uint64_t>(rows.count);
  }
  sequence.copyToCaller(lane, std::move(copy), static_cast<uint64_t>(rows.first * rows.stride * elementBytes));
}

OperandPointers OperandPointers::orElse(const OperandPointers &others) const {
  OperandPointers filled = *this;
  for (size_t i = 0; i < numOperands; ++i)
    if (!filled.pointers[i].address)
      filled.pointers[i] = others.pointers[i];
  return filled;
}

std::string_view toString(Operand operand) {
  switch (operand) {
  case Operand::A: return "a";
  case Operand::B: return "b";
  case Operand::Result: return "result";
  case Operand::ScalesA: return "scales of a";
  case Operand::ScalesB: return "scales of b";
  case Operand::Bias: return "bias";
  }
  return "?";
}

OperandTypes operandTypes(DataType dtype, DataType resultType, const GemmEpilogue &epilogue) {
  auto scales = [](Scaling scaling) { return scaling == Scaling::None ? std::nullopt : std::optional(DataType::F32); };
  return {dtype, dtype, resultType, scales(epilogue.scalesA), scales(epilogue.scalesB), epilogue.bias};
}

Expected<OperandLaunch> OperandLaunch::create(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                              const KernelCall &wanted, const Names &names) {
  DITRON_ASSIGN_OR_RETURN(PreparedCall call, PreparedCall::create(kernels, rank, wanted));
  return create(std::move(call), names);
}

Expected<OperandLaunch> OperandLaunch::create(PreparedCall call, const Names &names) {
  OperandLaunch launch;
  launch.call = std::move(call);
  for (const auto &[name, operand] : names) {
    DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, launch.call.pointerParameter(name));
    launch.parameters.push_back({parameter, operand});
  }
  return launch;
}

OperandLaunch::Names OperandLaunch::withEpilogue(Names names, const GemmEpilogue &epilogue) {
  if (epilogue.scalesA != Scaling::None)
    names.emplace_back("a_scale_ptr", Operand::ScalesA);
  if (epilogue.scalesB != Scaling::None)
    names.emplace_back("b_scale_ptr", Operand::ScalesB);
  if (epilogue.bias)
    names.emplace_back("bias_ptr", Operand::Bias);
  return names;
}

struct ProductPlan::State {
  std::string_view operation;
  OperandTypes types;
  OperandPointers standIns;
  Parts parts;

  static Status setPointers(OperandLaunch &launch, const OperandPointers &operands) {
    for (const auto &[parameter, operand, offset] : launch.parameters)
      DITRON_RETURN_IF_ERROR(launch.call.setPointer(parameter, operands[operand] + offset));
    return Status::ok();
  }

  Status enqueue(runtime::Stream &stream, const OperandPointers &operands) {
    for (OperandLaunch &launch : parts.launches)
      DITRON_RETURN_IF_ERROR(setPointers(launch, operands));
    parts.sequence.setCallerMemory(operands[Operand::Result].address);
    DITRON_RETURN_IF_ERROR(parts.sequence.enqueue(stream));
    if (parts.exchange) {
      const auto pointerOf = [&](const Exchange::Place &place) {
        const Operand *operand = std::get_if<Operand>(&place);
        return operand ? operands[*operand] : std::get<runtime::Pointer>(place);
      };
      DITRON_RETURN_IF_ERROR(
          parts.exchange->plan.enqueue(stream, pointerOf(parts.exchange->in), pointerOf(parts.exchange->out)));
    }
    if (!parts.last)
      return Status::ok();
    DITRON_RETURN_IF_ERROR(setPointers(*parts.last, operands));
    return parts.last->call.enqueue(stream);
  }
};

Status ProductPlan::enqueue(runtime::Stream &stream, runtime::Pointer a, runtime::Pointer b, runtime::Pointer result,
                            const EpilogueOperands &extras) {
  const OperandPointers operands = OperandPointers(a, b, result, extras).orElse(state->standIns);
  DITRON_RETURN_IF_ERROR(verifyOperands(state->operation, state->types, operands));
  return state->enqueue(stream, operands);
}

void PlannedProduct::keepPlans(runtime::World &world, std::string_view name, const OperandTypes &operands) {
  ownWorld = &world;
  agreement = std::make_shared<runtime::CallAgreement>(std::string(name), world.numRanks());
  operationName = name;
  types = operands;
  kept.resize(world.numRanks());
  workspaces.resize(world.numRanks());
  for (uint32_t id : world.localRanks())
    kept[id] = std::make_unique<KeptPlans<Plan>>();
}

Expected<ProductShape> PlannedProduct::verifyShape(const ProductShape &shape) const {
  const ProductTerms product = terms(shape.size);
  if (shape.rows < 1 || shape.rows > product.maxRows)
    return invalidArgument(
        fmt::format("{}: {} rows; 1 to {} (maxRows) are accepted", operationName, shape.rows, product.maxRows));
  DITRON_RETURN_IF_ERROR(verifyProduct(operationName, shape.rows, product.columns, product.depth,
                                       smallestTile)); // a call looks up no table
  DITRON_RETURN_IF_ERROR(
      verifyEpilogueShape(operationName, product.dtype, product.epilogue, product.columns, product.depth));
  ProductShape complete = shape;
  DITRON_ASSIGN_OR_RETURN(
      complete.strides,
      completeStrides(operationName, shape.strides, product.depth,
                      product.weightOrder == MatrixOrder::Transposed ? product.depth : product.columns,
                      product.epilogue.resultColumns(product.columns)));
  DITRON_RETURN_IF_ERROR(verifySpans(operationName, complete.strides, smallestTile));
  return complete;
}

Status PlannedProduct::verifyTile(const ProductShape &shape, const TileConfig &tile) const {
  const ProductTerms product = terms(shape.size);
  DITRON_RETURN_IF_ERROR(verifyTileDepth(operationName, product.dtype, tile));
  DITRON_RETURN_IF_ERROR(verifyProduct(operationName, shape.rows, product.columns, product.depth, tile));
  return verifySpans(operationName, shape.strides, tile);
}

OperandPointers PlannedProduct::anyOperands(uint32_t rank) const {
  const runtime::Pointer any = anyBuffer(rank);
  OperandPointers operands(any, any, any, {});
  for (size_t i = 0; i < numOperands; ++i)
    operands.pointers[i] = types[i] ? any.as(*types[i]) : runtime::Pointer();
  return operands;
}

OperandPointers PlannedProduct::standIns(uint32_t rank, int64_t rows) const {
  OperandPointers found({}, {}, {}, {});
  if (RowShards(rows, ownWorld->numRanks()).rowsOf(rank) == 0)
    for (const Operand each : dealtOperands())
      found.pointers[static_cast<size_t>(each)] = anyOperands(rank)[each];
  return found;
}

KeptPlans<ProductPlan>::Key PlannedProduct::keyOf(const ProductShape &shape, const OperandPointers &operands) {
  KeptPlans<Plan>::Key key = {shape.rows, shape.size, shape.strides.a, shape.strides.b, shape.strides.c};
  for (const runtime::Pointer &operand : operands.pointers)
    key.push_back(alignmentOf(operand));
  return key;
}

Expected<ProductPlan> PlannedProduct::makePlan(runtime::Rank &rank, const OperandPointers &operands,
                                               const ProductShape &shape) {
  DITRON_ASSIGN_OR_RETURN(ProductPlan::Parts parts, makeParts(rank, operands, shape));
  const runtime::AgreedCall agreed = {agreement, rank.id(), fmt::format("{} rows", shape.rows)};
  if (parts.isBegunByExchange)
    parts.exchange->plan.setAgreedCall(agreed);
  else
    parts.sequence.setAgreedCall(agreed);
  Plan plan;
  plan.state = std::make_shared<Plan::State>(
      Plan::State{operationName, types, standIns(rank.id(), shape.rows), std::move(parts)});
  return plan;
}

Expected<ProductPlan> PlannedProduct::plan(runtime::Rank &rank, int64_t rows, int64_t size, const RowStrides &strides) {
  DITRON_RETURN_IF_ERROR(verifyOwnRank(rank));
  Expected<Plan> made = recordedPlan(rank, rows, size, strides);
  DITRON_RETURN_IF_ERROR(agree(rank, made.status(), rows, size));
  return made;
}

Status PlannedProduct::agree(const runtime::Rank &rank, const Status &made, int64_t rows, int64_t size) const {
  return planAgreement.reach(rank, made, fmt::format("a call of {} rows", rows),
                             made.isOk() ? agreedPlan({.rows = rows, .size = size}) : std::string());
}

Expected<ProductPlan> PlannedProduct::recordedPlan(runtime::Rank &rank, int64_t rows, int64_t size,
                                                   const RowStrides &strides) {
  DITRON_ASSIGN_OR_RETURN(const ProductShape shape, verifyShape({rows, size, strides}));
  DITRON_ASSIGN_OR_RETURN(Plan plan, makePlan(rank, anyOperands(rank.id()), shape));
  DITRON_RETURN_IF_ERROR(plan.state->parts.sequence.record(rank).withContext(operationName));
  return plan;
}

Status PlannedProduct::prepare(runtime::Rank &rank, int64_t rows, int64_t size, const RowStrides &strides) {
  DITRON_RETURN_IF_ERROR(verifyOwnRank(rank));
  const Expected<ProductShape> shape = verifyShape({rows, size, strides});
  if (!shape.isOk())
    return agree(rank, shape.status(), rows, size);
  KeptPlans<Plan> &plans = *kept[rank.id()];
  const KeptPlans<Plan>::Key key = keyOf(*shape, anyOperands(rank.id()));
  if (Plan *there = plans.get(key)) { // by an enqueue, perhaps, which does not record
    runtime::CallSequence &sequence = there->state->parts.sequence;
    const Status recorded = sequence.isRecorded() ? Status::ok() : sequence.record(rank).withContext(operationName);
    return agree(rank, recorded, rows, size); // other ranks may have none yet
  }
  DITRON_ASSIGN_OR_RETURN(Plan made, plan(rank, rows, size, strides));
  plans.keep(key, std::move(made));
  return Status::ok();
}

Status PlannedProduct::verifyOwnRank(const runtime::Rank &rank) const {
  return verifyRank(operationName, *ownWorld, rank);
}

Status PlannedProduct::enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer a, runtime::Pointer b,
                               runtime::Pointer result, int64_t rows, int64_t size, const EpilogueOperands &extras,
                               const RowStrides &strides) {
  DITRON_RETURN_IF_ERROR(verifyOwnRank(rank));
  DITRON_ASSIGN_OR_RETURN(const ProductShape shape, verifyShape({rows, size, strides}));
  const OperandPointers operands = OperandPointers(a, b, result, extras).orElse(standIns(rank.id(), rows));
  DITRON_RETURN_IF_ERROR(verifyOperands(operationName, types, operands));
  auto describe = [&] {
    std::vector<int64_t> alignments;
    for (const runtime::Pointer &operand : operands.pointers)
      alignments.push_back(alignmentOf(operand));
    return fmt::format(
        "sizes {} and {}, rows {}, {} and {} elements apart, and addresses that are multiples of {} bytes", rows, size,
        shape.strides.a, shape.strides.b, shape.strides.c, fmt::join(alignments, ", "));
  };
  DITRON_ASSIGN_OR_RETURN(Plan * found, kept[rank.id()]->find(operationName, stream, keyOf(shape, operands), describe,
                                                              [&] { return makePlan(rank, operands, shape); }));
  return found->state->enqueue(stream, operands);
}

} // namespace ditron::ops
