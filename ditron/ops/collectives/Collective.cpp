//===- Collective.cpp - Collectives by packets and by chunks ----------------------------------------------------------===//
#include "ditron/ops/collectives/Collective.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/Channels.h"

#include <bit>
#include <fmt/format.h>
#include <limits>

namespace ditron::ops {

namespace {

/// For offsets of device code.
constexpr int64_t mostElements = int64_t{1} << 40;

std::string_view operation(CollectiveKind kind) { return toString(kind); }

bool reduces(CollectiveKind kind) { return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter; }
bool scatters(CollectiveKind kind) { return kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll; }

Status verifyOptions(const CollectiveOptions &options, uint32_t numRanks) {
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
  return options.plan ? options.plan->verify(options.kind, numRanks) : Status::ok();
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
  DITRON_RETURN_IF_ERROR(world.requireOneNode(operation(options.kind)));
  DITRON_RETURN_IF_ERROR(verifyOptions(options, world.numRanks()));
  Collective op;
  op.optionValues = options;
  op.world = &world;
  op.kernels = &kernels;
  if (options.plan) {
    op.rows = {{.mostBytes = std::numeric_limits<uint64_t>::max(), .plan = *options.plan}};
  } else {
    const std::string &gpu =
        options.gpu.empty() ? world.rank(world.localRanks().front()).attributes().name : options.gpu;
    DITRON_ASSIGN_OR_RETURN(op.rows, readCollectivePlans(collectivePlanTable(), options.kind, gpu, world.numRanks()));
  }
  DITRON_RETURN_IF_ERROR(op.allocatePackets());
  DITRON_RETURN_IF_ERROR(op.allocateChunks());
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

int64_t Collective::packetsPerBlock(const CollectivePlan &plan, int64_t elements) const {
  int64_t packets = ceilDivide(static_cast<int64_t>(bytesOf(elements)), packetDataBytes);
  if (plan.form == CollectiveForm::TwoShotPackets)
    packets = ceilDivide(packets, world->numRanks());
  const int64_t threads = plan.numWarps * world->rank(world->localRanks().front()).attributes().warpSize;
  return std::max(ceilDivide(packets, plan.blocks), std::min(threads, packets));
}

/// What a buffer must hold is decided by the largest size of each row that uses it.
Status Collective::allocatePackets() {
  uint32_t sources = 0;
  for (const CollectivePlanRow &row : rows) {
    if (row.plan.form != CollectiveForm::Chunks) {
      const int64_t most = static_cast<int64_t>(
          std::min<uint64_t>(row.mostBytes / sizeOf(optionValues.dtype), optionValues.maxElements));
      packets.blocks = std::max(packets.blocks, row.plan.blocks);
      packets.capacity = std::max(packets.capacity, packetsPerBlock(row.plan, std::max<int64_t>(most, 1)));
      sources = std::max(sources, world->numRanks() * (row.plan.form == CollectiveForm::TwoShotPackets ? 2 : 1));
    }
    if (row.mostBytes >= bytesOf(optionValues.maxElements))
      break;
  }
  if (packets.blocks == 0)
    return Status::ok();
  const std::string name(operation(optionValues.kind));
  constexpr uint64_t wordsPerPacket = 2, sets = 2;
  DITRON_ASSIGN_OR_RETURN(packets.slots,
                          world->allocateSymmetric(DataType::I64,
                                                   packets.blocks * sets * sources * packets.capacity * wordsPerPacket,
                                                   name + "_packets"));
  DITRON_ASSIGN_OR_RETURN(packets.generations, allocateCounters(*world, packets.blocks, name + "_packet_calls"));
  return Status::ok();
}

Status Collective::allocateChunks() {
  for (const CollectivePlanRow &row : rows) {
    if (row.plan.form == CollectiveForm::Chunks) {
      chunks.blocks = std::max(chunks.blocks, row.plan.blocks);
      chunks.slotElements = std::max<int64_t>(chunks.slotElements, row.plan.chunkBytes / sizeOf(optionValues.dtype));
    }
    if (row.mostBytes >= bytesOf(optionValues.maxElements))
      break;
  }
  if (chunks.blocks == 0)
    return Status::ok();
  const std::string name(operation(optionValues.kind));
  const uint64_t shots = optionValues.kind == CollectiveKind::AllReduce ? 2 : 1, ranks = world->numRanks();
  DITRON_ASSIGN_OR_RETURN(chunks.slots,
                          world->allocateSymmetric(optionValues.dtype,
                                                   shots * chunks.blocks * slotsOfRing * ranks * chunks.slotElements,
                                                   name + "_chunks"));
  DITRON_ASSIGN_OR_RETURN(chunks.signals,
                          world->allocateSymmetric(DataType::I64, shots * chunks.blocks * ranks, name + "_arrived"));
  DITRON_ASSIGN_OR_RETURN(chunks.generations, allocateCounters(*world, chunks.blocks, name + "_chunks_done"));
  return Status::ok();
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
  std::optional<PreparedCall> call; ///< None when there are no elements.
  uint32_t in = 0, out = 0;         ///< Parameters.
};

Expected<Collective::Plan> Collective::plan(runtime::Rank &rank, int64_t elements) {
  DITRON_RETURN_IF_ERROR(verifyElements(elements));
  // Only the operands' type and alignment matter here.
  return plan(rank, any(rank.id()), any(rank.id()), elements);
}

Expected<Collective::Plan> Collective::plan(runtime::Rank &rank, runtime::Pointer in, runtime::Pointer out,
                                            int64_t elements) {
  Plan made;
  made.state = std::make_shared<Plan::State>();
  Plan::State &state = *made.state;
  state.name = operation(optionValues.kind);
  state.dtype = optionValues.dtype;
  if (elements == 0)
    return made;
  const CollectivePlan chosen = planFor(elements);
  const KernelCall call = chosen.form == CollectiveForm::Chunks ? chunkCall(rank, chosen, in, out, elements)
                                                                : packetCall(rank, chosen, in, out, elements);
  DITRON_ASSIGN_OR_RETURN(state.call, PreparedCall::create(*kernels, rank, call));
  DITRON_ASSIGN_OR_RETURN(state.in, state.call->pointerParameter("x_ptr"));
  DITRON_ASSIGN_OR_RETURN(state.out, state.call->pointerParameter("out_ptr"));
  return made;
}

Status Collective::prepare(runtime::Rank &rank, int64_t elements) {
  const KeptPlans<Plan>::Key key = {elements, planAlignment, planAlignment};
  if (kept[rank.id()]->has(key)) // graphs may have its kernel
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(Plan made, plan(rank, elements));
  kept[rank.id()]->keep(key, std::move(made));
  return Status::ok();
}

Status Collective::enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer in, runtime::Pointer out,
                           int64_t elements) {
  DITRON_RETURN_IF_ERROR(verifyElements(elements));
  if (elements == 0)
    return Status::ok();
  for (auto [name, pointer] : {std::pair("in", in), std::pair("out", out)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation(optionValues.kind), name, pointer, optionValues.dtype));
  DITRON_ASSIGN_OR_RETURN(Plan * found, kept[rank.id()]->find(operation(optionValues.kind), stream,
                                                              {elements, alignmentOf(in), alignmentOf(out)},
                                                              [&] { return plan(rank, in, out, elements); }));
  return found->enqueue(stream, in, out);
}

Status Collective::Plan::enqueue(runtime::Stream &stream, runtime::Pointer in, runtime::Pointer out) {
  if (!state->call)
    return Status::ok();
  for (auto [name, pointer] : {std::pair("in", in), std::pair("out", out)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(state->name, name, pointer, state->dtype));
  DITRON_RETURN_IF_ERROR(state->call->setPointer(state->in, in));
  DITRON_RETURN_IF_ERROR(state->call->setPointer(state->out, out));
  return state->call->enqueue(stream);
}

void Collective::appendCommonArguments(KernelCall &call) const {
  call.arguments.emplace_back("scale", static_cast<double>(optionValues.scale.value_or(1.0f)));
  call.arguments.emplace_back("WORLD", world->numRanks());
  call.arguments.emplace_back("REDUCTION", static_cast<uint32_t>(optionValues.reduction));
  call.arguments.emplace_back("SCALED", optionValues.scale.has_value());
}

KernelCall Collective::packetCall(const runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                  runtime::Pointer out, int64_t elements) const {
  const bool twoShot = plan.form == CollectiveForm::TwoShotPackets;
  const int64_t perPacket = packetDataBytes / sizeOf(optionValues.dtype);
  const int64_t all = ceilDivide(elements, perPacket), own = twoShot ? ceilDivide(all, world->numRanks()) : all;
  const int64_t perBlock = packetsPerBlock(plan, elements);
  KernelCall call;
  call.source = "collectives/packets";
  call.kernel = twoShot ? "packet_all_reduce" : "packet_exchange";
  call.numWarps = plan.numWarps;
  // Each block has a packet, as the protocol needs.
  call.grid = {static_cast<uint32_t>(ceilDivide(own, perBlock)), 1, 1};
  call.arguments = {{"x_ptr", in},
                    {"out_ptr", out},
                    {"slots_ptr", packets.slots.on(rank.id())},
                    {"generation_ptr", packets.generations[rank.id()].pointer()},
                    {"n", elements},
                    {"rank", rank.id()},
                    {"packets_per_block", perBlock},
                    {"capacity", packets.capacity},
                    {"PER_PACKET", perPacket}};
  call.arguments.emplace_back("ALIGNED", elements % perPacket == 0 && alignmentOf(in) == planAlignment &&
                                             alignmentOf(out) == planAlignment);
  if (!twoShot) {
    call.arguments.emplace_back("SCATTER", scatters(optionValues.kind));
    call.arguments.emplace_back("REDUCE", reduces(optionValues.kind));
  }
  appendCommonArguments(call);
  return call;
}

KernelCall Collective::chunkCall(const runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                 runtime::Pointer out, int64_t elements) const {
  const bool allReduce = optionValues.kind == CollectiveKind::AllReduce;
  // Parts begin at multiples of a cache line where the whole does, so that loads are wide.
  constexpr int64_t lineBytes = 128;
  const int64_t line = lineBytes / sizeOf(optionValues.dtype);
  const int64_t part = allReduce ? ceilDivide(ceilDivide(elements, world->numRanks()), line) * line : elements;
  // Sizes that give each block less than a chunk are cut finer.
  const int64_t leastChunk = 512 / sizeOf(optionValues.dtype), mostChunk = plan.chunkBytes / sizeOf(optionValues.dtype);
  const int64_t chunk = std::clamp<int64_t>(
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(ceilDivide(part, plan.blocks)))), leastChunk, mostChunk);
  KernelCall call;
  call.source = "collectives/chunks";
  call.kernel = allReduce ? "chunk_all_reduce" : "chunk_exchange";
  call.numWarps = plan.numWarps;
  call.grid = {static_cast<uint32_t>(std::min<int64_t>(plan.blocks, ceilDivide(part, chunk))), 1, 1};
  call.arguments = {{"x_ptr", in},
                    {"out_ptr", out},
                    {"slots_ptr", chunks.slots.on(rank.id())},
                    {"signals_ptr", chunks.signals.on(rank.id())},
                    {"generation_ptr", chunks.generations[rank.id()].pointer()},
                    {"n", elements},
                    {"rank", rank.id()},
                    {"slot_elements", chunks.slotElements},
                    {"CHUNK", chunk}};
  if (allReduce) {
    call.arguments.emplace_back("part", part);
  } else {
    call.arguments.emplace_back("root", optionValues.root);
    call.arguments.emplace_back("SCATTER", scatters(optionValues.kind));
    call.arguments.emplace_back("REDUCE", reduces(optionValues.kind));
    call.arguments.emplace_back("ROOTED", optionValues.kind == CollectiveKind::Broadcast);
  }
  appendCommonArguments(call);
  return call;
}

} // namespace ditron::ops
