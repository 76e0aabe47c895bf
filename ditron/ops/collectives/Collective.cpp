//===- Collective.cpp - Collectives by the forms of a table -----------------------------------------------------------===//
#include "ditron/ops/collectives/Collective.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/Channels.h"
#include "ditron/ops/collectives/CollectiveProtocol.h"

#include <fmt/format.h>
#include <limits>

namespace ditron::ops {

namespace {

/// For offsets of device code.
constexpr int64_t mostElements = int64_t{1} << 40;

std::string_view operation(CollectiveKind kind) { return toString(kind); }

bool reduces(CollectiveKind kind) { return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter; }

Status verifyOptions(const CollectiveOptions &options, const runtime::World &world) {
  const uint32_t numRanks = world.numRanks();
  const std::string_view name = operation(options.kind);
  if (options.dtype == DataType::I1)
    return unsupported(fmt::format("{}: elements of type i1; send them as u8", name));
  if (options.reduction != Reduction::Sum && !reduces(options.kind))
    return invalidArgument(fmt::format("{}: reduction {}, but it combines nothing", name, toString(options.reduction)));
  if (options.scale && (!reduces(options.kind) || !isFloat(options.dtype)))
    return invalidArgument(fmt::format("{} of {}: a scale is for all_reduce and reduce_scatter of floats", name,
                                       ditron::toString(options.dtype)));
  if (options.root >= numRanks || (options.root != 0 && options.kind != CollectiveKind::Broadcast))
    return invalidArgument(
        fmt::format("{}: root {} of {} ranks; {} is accepted", name, options.root, numRanks,
                    options.kind == CollectiveKind::Broadcast ? fmt::format("0 to {}", numRanks - 1) : "0"));
  if (options.maxElements < 1 || options.maxElements > mostElements)
    return invalidArgument(
        fmt::format("{}: maxElements is {}; 1 to {} are accepted", name, options.maxElements, mostElements));
  if (options.concurrentCalls == 0)
    return invalidArgument(fmt::format("{}: 0 concurrent calls; at least 1 is accepted", name));
  return options.plan ? options.plan->verify(options.kind, numRanks, world.numNodes()) : Status::ok();
}

std::unique_ptr<CollectiveProtocol> makeProtocol(CollectiveForm form, CollectiveSetting setting) {
  switch (form) {
  case CollectiveForm::Packets:
  case CollectiveForm::TwoShotPackets: return makePacketProtocol(std::move(setting));
  case CollectiveForm::Lamport:
  case CollectiveForm::TwoShotLamport: return makeLamportProtocol(std::move(setting));
  case CollectiveForm::Chunks: return makeChunkProtocol(std::move(setting));
  case CollectiveForm::Ring: return makeRingProtocol(std::move(setting));
  case CollectiveForm::CopyEngine: return makeCopyEngineProtocol(std::move(setting));
  case CollectiveForm::TensorCopies: return makeTensorCopyProtocol(std::move(setting));
  case CollectiveForm::OneShotMultimem:
  case CollectiveForm::Multimem: return makeMultimemProtocol(form, std::move(setting));
  case CollectiveForm::TwoLevelPackets: return makeTwoLevelPacketProtocol(std::move(setting));
  case CollectiveForm::TwoLevel: return makeTwoLevelProtocol(std::move(setting));
  }
  return nullptr;
}

} // namespace

std::string_view toString(Reduction reduction) {
  switch (reduction) {
  case Reduction::Sum: return "sum";
  case Reduction::Max: return "max";
  case Reduction::Min: return "min";
  case Reduction::Average: return "average";
  }
  return "?";
}

Expected<Reduction> parseReduction(std::string_view name) {
  for (Reduction reduction : {Reduction::Sum, Reduction::Max, Reduction::Min, Reduction::Average})
    if (toString(reduction) == name)
      return reduction;
  return invalidArgument(fmt::format("reduction '{}'; sum, max, min and average are accepted", name));
}

Expected<Collective> Collective::create(runtime::World &world, runtime::KernelProvider &kernels,
                                        const CollectiveOptions &options) {
  if (!hasFormForNodes(options.kind))
    DITRON_RETURN_IF_ERROR(world.requireOneNode(operation(options.kind)));
  DITRON_RETURN_IF_ERROR(verifyOptions(options, world));
  Collective op;
  op.optionValues = options;
  op.world = &world;
  op.callAgreement = std::make_shared<runtime::CallAgreement>(std::string(operation(options.kind)), world.numRanks());
  op.kernels = &kernels;
  op.agreement = PlanAgreement(world, operation(options.kind));
  if (options.plan) {
    op.rows = {{.mostBytes = std::numeric_limits<uint64_t>::max(), .plan = *options.plan}};
  } else {
    const std::string &gpu =
        options.gpu.empty() ? world.rank(world.localRanks().front()).attributes().name : options.gpu;
    DITRON_ASSIGN_OR_RETURN(op.rows,
                            collectivePlanRows(options.kind, gpu, world.numRanks(), options.dtype, world.numNodes()));
  }
  leavePlacesFor(options.concurrentCalls, options.takenMultiprocessors, world, op.rows);
  std::string tables;
  for (const CollectivePlanRow &row : op.rows)
    tables += fmt::format("{}{} up to {} bytes", tables.empty() ? "" : ", ", row.plan.text(), row.mostBytes);
  DITRON_RETURN_IF_ERROR(op.agreement.begin(world, tables));
  DITRON_RETURN_IF_ERROR(op.makeProtocols(world));
  op.kept.resize(world.numRanks());
  for (uint32_t id : world.localRanks())
    op.kept[id] = std::make_unique<KeptPlans<Plan>>();
  return op;
}

CollectivePlan Collective::planFor(int64_t elements) const {
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const CollectivePlanRow &row) { return bytesOf(elements) <= row.mostBytes; });
  return row->plan;
}

/// What a protocol's memory must hold is decided by the largest size of each row that uses it. Packets have one in both shots.
Status Collective::makeProtocols(runtime::World &world) {
  std::map<CollectiveForm, std::vector<SizedPlan>> plans;
  const auto family = [](CollectiveForm form) {
    switch (form) {
    case CollectiveForm::TwoShotPackets: return CollectiveForm::Packets;
    case CollectiveForm::TwoShotLamport: return CollectiveForm::Lamport;
    default: return form;
    }
  };
  for (const CollectivePlanRow &row : rows) {
    const int64_t most =
        static_cast<int64_t>(std::min<uint64_t>(row.mostBytes / sizeOf(optionValues.dtype), optionValues.maxElements));
    plans[family(row.plan.form)].push_back({.plan = row.plan, .mostElements = std::max<int64_t>(most, 1)});
    if (row.mostBytes >= bytesOf(optionValues.maxElements))
      break;
  }
  for (const auto &[form, sized] : plans) {
    std::shared_ptr<CollectiveProtocol> protocol =
        makeProtocol(form, {.options = optionValues, .world = &world, .kernels = kernels});
    DITRON_RETURN_IF_ERROR(protocol->allocate(sized));
    for (const SizedPlan &each : sized)
      protocols[each.plan.form] = protocol;
  }
  return Status::ok();
}

runtime::Pointer Collective::any(uint32_t rank) const {
  return protocols.begin()->second->memory(rank).as(optionValues.dtype);
}

uint64_t Collective::workspaceBytes() const {
  uint64_t bytes = 0;
  std::vector<const CollectiveProtocol *> counted;
  for (const auto &[form, protocol] : protocols)
    if (std::ranges::find(counted, protocol.get()) == counted.end()) {
      bytes += protocol->workspaceBytes();
      counted.push_back(protocol.get());
    }
  return bytes;
}

Status Collective::verifyElements(int64_t elements) const {
  if (elements < 0 || elements > optionValues.maxElements)
    return invalidArgument(fmt::format("{}: {} elements; 0 to {} (maxElements) are accepted",
                                       operation(optionValues.kind), elements, optionValues.maxElements));
  return Status::ok();
}

struct Collective::Plan::State {
  std::string_view name;
  DataType dtype = DataType::BF16;
  std::optional<CollectiveCall> call; ///< None when there are no elements.
};

Expected<Collective::Plan> Collective::plan(runtime::Rank &rank, int64_t elements) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation(optionValues.kind), *world, rank));
  DITRON_RETURN_IF_ERROR(verifyElements(elements));
  // Only the operands' type and alignment matter here.
  DITRON_ASSIGN_OR_RETURN(Plan made, plan(rank, any(rank.id()), any(rank.id()), elements));
  if (made.state->call)
    DITRON_RETURN_IF_ERROR(made.state->call->sequence.record(rank).withContext(operation(optionValues.kind)));
  return made;
}

Expected<Collective::Plan> Collective::plan(runtime::Rank &rank, runtime::Pointer in, runtime::Pointer out,
                                            int64_t elements) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation(optionValues.kind), *world, rank));
  Plan made;
  made.state = std::make_shared<Plan::State>();
  Plan::State &state = *made.state;
  state.name = operation(optionValues.kind);
  state.dtype = optionValues.dtype;
  if (elements == 0)
    return made;
  const CollectivePlan chosen = planFor(elements);
  DITRON_ASSIGN_OR_RETURN(state.call, protocols.at(chosen.form)->call(rank, chosen, in, out, elements));
  state.call->sequence.setAgreedCall({callAgreement, rank.id(), fmt::format("{} elements", elements)});
  return made;
}

Expected<Collective::Launch> Collective::launch(runtime::Rank &rank, runtime::Pointer in, runtime::Pointer out,
                                                int64_t elements) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation(optionValues.kind), *world, rank));
  const CollectivePlan chosen = planFor(elements);
  if (chosen.form == CollectiveForm::CopyEngine)
    return internalError(fmt::format("a call by '{}' is not one launch", chosen.text()));
  DITRON_ASSIGN_OR_RETURN(CollectiveCall call, protocols.at(chosen.form)->call(rank, chosen, in, out, elements));
  return Launch{std::move(call.first), call.in, call.out};
}

Status Collective::prepare(runtime::Rank &rank, int64_t elements) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation(optionValues.kind), *world, rank));
  const Status kept = keepPlan(rank, elements);
  return agreement.reach(rank, kept, fmt::format("a call of {} {}", elements, ditron::toString(optionValues.dtype)),
                         elements > 0 ? planFor(elements).text() : "nothing");
}

Status Collective::keepPlan(runtime::Rank &rank, int64_t elements) {
  const KeptPlans<Plan>::Key key = {elements, planAlignment, planAlignment};
  if (kept[rank.id()]->has(key)) // graphs may have its kernel
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(Plan made, plan(rank, elements));
  kept[rank.id()]->keep(key, std::move(made));
  return Status::ok();
}

Status Collective::verifyCall(const runtime::Rank &rank, runtime::Pointer in, runtime::Pointer out,
                              int64_t elements) const {
  const CollectiveKind kind = optionValues.kind;
  DITRON_RETURN_IF_ERROR(verifyRank(operation(kind), *world, rank));
  DITRON_RETURN_IF_ERROR(verifyElements(elements));
  if (elements == 0)
    return Status::ok();
  for (auto [name, pointer] : {std::pair("in", in), std::pair("out", out)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation(kind), name, pointer, optionValues.dtype));
  if (kind == CollectiveKind::Broadcast && rank.id() != optionValues.root)
    return Status::ok(); // `in` is not read
  const bool inHasParts = kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll,
             outHasParts = kind == CollectiveKind::AllGather || kind == CollectiveKind::AllToAll;
  const auto bytes = static_cast<uint64_t>(elements) * sizeOf(optionValues.dtype);
  const uint64_t inBytes = bytes * (inHasParts ? world->numRanks() : 1),
                 outBytes = bytes * (outHasParts ? world->numRanks() : 1);
  // Of the larger one, this rank's part.
  const auto place = [&](runtime::Pointer pointer, uint64_t own, uint64_t other) {
    return reinterpret_cast<uintptr_t>(pointer.address) + (own > other ? rank.id() * bytes : 0);
  };
  if (overlap(in, inBytes, out, outBytes) && place(in, inBytes, outBytes) != place(out, outBytes, inBytes))
    return invalidArgument(
        fmt::format("{}: out is at {} and overlaps in, which is at {}; accepted are memory that does "
                    "not, and {}",
                    operation(kind), out.address, in.address,
                    inHasParts == outHasParts ? "in itself"
                    : inHasParts              ? "this rank's part of in"
                                              : "as in this rank's part of out"));
  return Status::ok();
}

Status Collective::enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer in, runtime::Pointer out,
                           int64_t elements) {
  DITRON_RETURN_IF_ERROR(verifyCall(rank, in, out, elements));
  if (elements == 0)
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(Plan * found,
                          kept[rank.id()]->find(
                              operation(optionValues.kind), stream, {elements, alignmentOf(in), alignmentOf(out)},
                              [&] {
                                return fmt::format("{} elements at multiples of {} and {} bytes", elements,
                                                   alignmentOf(in), alignmentOf(out));
                              },
                              [&] { return plan(rank, in, out, elements); }));
  return found->enqueue(stream, in, out);
}

void Collective::Plan::setAgreedCall(const runtime::AgreedCall &call) {
  if (state->call)
    state->call->sequence.setAgreedCall(call);
}

Status Collective::Plan::enqueue(runtime::Stream &stream, runtime::Pointer in, runtime::Pointer out) {
  if (!state->call)
    return Status::ok();
  for (auto [name, pointer] : {std::pair("in", in), std::pair("out", out)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(state->name, name, pointer, state->dtype));
  DITRON_RETURN_IF_ERROR(state->call->first.setPointer(state->call->in, in));
  DITRON_RETURN_IF_ERROR(state->call->last.setPointer(state->call->out, out));
  return state->call->sequence.enqueue(stream);
}

} // namespace ditron::ops
