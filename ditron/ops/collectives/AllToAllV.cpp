//===- AllToAllV.cpp - All-to-all of parts whose sizes stand on the device ---------------------------------------===//
#include "ditron/ops/collectives/AllToAllV.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/Channels.h"

#include <bit>
#include <fmt/format.h>
#include <limits>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "all_to_all_v";
/// For offsets of device code.
constexpr int64_t mostElements = int64_t{1} << 40;
constexpr std::array<std::string_view, 6> pointerNames = {"in",  "send_counts",    "send_offsets",
                                                          "out", "receive_counts", "receive_offsets"};
/// Of the device code, which calls `in` x.
constexpr std::array<std::string_view, 6> parameterNames = {"x_ptr",   "send_counts_ptr",    "send_offsets_ptr",
                                                            "out_ptr", "receive_counts_ptr", "receive_offsets_ptr"};

std::array<runtime::Pointer, 6> inOrder(const AllToAllV::Operands &operands) {
  return {operands.in,  operands.sendCounts,    operands.sendOffsets,
          operands.out, operands.receiveCounts, operands.receiveOffsets};
}

Status verifyOptions(const AllToAllVOptions &options) {
  if (options.dtype == DataType::I1)
    return unsupported(fmt::format("{}: elements of type i1; send them as u8", operation));
  if (options.rowElements < 1 || options.rowElements > std::numeric_limits<int32_t>::max())
    return invalidArgument(fmt::format("{}: rowElements is {}; 1 to {} are accepted", operation, options.rowElements,
                                       std::numeric_limits<int32_t>::max()));
  if (options.maxRows < 1 || options.maxRows > mostElements / options.rowElements)
    return invalidArgument(fmt::format("{}: maxRows is {}; 1 to {} are accepted with rows of {} elements", operation,
                                       options.maxRows, mostElements / options.rowElements, options.rowElements));
  if (options.plan && options.plan->form != CollectiveForm::Chunks)
    return invalidArgument(
        fmt::format("{}: a plan of the form {}; chunks is accepted, and packetBytes says what goes by packets",
                    operation, toString(options.plan->form)));
  return Status::ok();
}

} // namespace

Expected<AllToAllV> AllToAllV::create(runtime::World &world, runtime::KernelProvider &kernels,
                                      const AllToAllVOptions &options) {
  DITRON_RETURN_IF_ERROR(world.requireOneNode(operation));
  DITRON_RETURN_IF_ERROR(verifyOptions(options));
  AllToAllV op;
  op.optionValues = options;
  op.world = &world;
  op.kernels = &kernels;
  const std::string &gpu = options.gpu.empty() ? world.rank(world.localRanks().front()).attributes().name : options.gpu;
  DITRON_ASSIGN_OR_RETURN(const PairPlan pairs, readPairPlan(gpu, world.numRanks()));
  op.plan = options.plan.value_or(pairs.rings);
  DITRON_RETURN_IF_ERROR(op.plan.verify(CollectiveKind::AllToAll, world.numRanks()));
  const uint64_t rowBytes = options.rowElements * sizeOf(options.dtype);
  op.smallRows = static_cast<int64_t>(
      std::min<uint64_t>(options.packetBytes.value_or(pairs.packetBytes) / rowBytes, options.maxRows));
  DITRON_RETURN_IF_ERROR(op.allocate());
  DITRON_ASSIGN_OR_RETURN(op.report, TransferReport::create(world, std::string(operation), "rows"));
  op.kept.resize(world.numRanks());
  for (uint32_t id : world.localRanks())
    op.kept[id] = std::make_unique<KeptPlans<Plan>>();
  return op;
}

int64_t AllToAllV::lineElements() const { return ringLineElements(optionValues.dtype); }

Status AllToAllV::allocate() {
  const std::string name(operation);
  const uint64_t ranks = world->numRanks(), blocks = plan.blocks;
  const int64_t threads = plan.numWarps * world->rank(world->localRanks().front()).attributes().warpSize;
  const int64_t most = ceilDivide(
      smallRows * optionValues.rowElements * static_cast<int64_t>(sizeOf(optionValues.dtype)), packetDataBytes);
  capacity = ceilDivide(most, static_cast<int64_t>(blocks) * threads) * threads;
  constexpr uint64_t wordsPerPacket = 2, sets = 2;
  DITRON_ASSIGN_OR_RETURN(packets, world->allocateSymmetric(DataType::I64,
                                                            blocks * sets * ranks * (1 + capacity) * wordsPerPacket,
                                                            name + "_packets"));
  // Without large parts the words are there and never touched.
  const uint64_t slot = smallRows < optionValues.maxRows ? plan.chunkBytes / sizeOf(optionValues.dtype) : 0;
  DITRON_ASSIGN_OR_RETURN(ring, world->allocateSymmetric(bitsOf(optionValues.dtype),
                                                         std::max<uint64_t>(blocks * ranks * slotsOfRing * slot, 1),
                                                         name + "_ring"));
  DITRON_ASSIGN_OR_RETURN(arrived, world->allocateSymmetric(DataType::I64, blocks * ranks, name + "_arrived"));
  DITRON_ASSIGN_OR_RETURN(freed, world->allocateSymmetric(DataType::I64, blocks * ranks, name + "_taken"));
  DITRON_ASSIGN_OR_RETURN(counters,
                          allocateCounters(*world, plan.blocks * (1 + 2 * world->numRanks()), name + "_counters"));
  DITRON_ASSIGN_OR_RETURN(parts, allocateCounters(*world, plan.blocks * 3 * world->numRanks(), name + "_parts"));
  return Status::ok();
}

uint64_t AllToAllV::workspaceBytes() const { return packets.bytes() + ring.bytes() + arrived.bytes() + freed.bytes(); }

KeptPlans<AllToAllV::Plan>::Key AllToAllV::keyOf(const Operands &operands) const {
  return {optionValues.maxRows, optionValues.rowElements, alignmentOf(operands.in), alignmentOf(operands.out)};
}

Expected<AllToAllV::Plan> AllToAllV::makePlan(runtime::Rank &rank, const Operands &operands) const {
  const DataType bits = bitsOf(optionValues.dtype);
  const uint32_t id = rank.id();
  const int64_t size = sizeOf(optionValues.dtype);
  const auto i64 = [](int64_t value) { return runtime::Argument::typed(DataType::I64, value); };
  KernelCall call;
  call.source = "collectives/pairs";
  call.kernel = "all_to_all_v";
  call.numWarps = plan.numWarps;
  call.grid = {plan.blocks, 1, 1};
  const std::array<runtime::Pointer, 6> pointers = inOrder(operands);
  for (size_t i = 0; i < pointers.size(); ++i)
    call.arguments.emplace_back(std::string(parameterNames[i]),
                                pointers[i].type == DataType::I64 ? pointers[i] : pointers[i].as(bits));
  call.arguments.insert(call.arguments.end(), {{"slots_ptr", packets.on(id)},
                                               {"ring_ptr", ring.on(id)},
                                               {"arrived_ptr", arrived.on(id)},
                                               {"freed_ptr", freed.on(id)},
                                               {"counters_ptr", counters[id].pointer()},
                                               {"parts_ptr", parts[id].pointer()},
                                               {"error_ptr", report.on(id)},
                                               {"x_rows", i64(operands.inRows)},
                                               {"out_rows", i64(operands.outRows)},
                                               {"row", i64(optionValues.rowElements)},
                                               {"most", i64(optionValues.maxRows)},
                                               {"small", i64(smallRows)},
                                               {"capacity", i64(capacity)},
                                               {"rank", id},
                                               {"WORLD", rank.numRanks()},
                                               {"PER_PACKET", packetDataBytes / size},
                                               {"CHUNK", static_cast<int64_t>(plan.chunkBytes) / size},
                                               {"LINE", lineElements()},
                                               {"PACKED", optionValues.packed},
                                               {"RINGS", smallRows < optionValues.maxRows}});
  call.arguments.emplace_back("ALIGNED", optionValues.rowElements * size % planAlignment == 0 &&
                                             alignmentOf(operands.in) == planAlignment &&
                                             alignmentOf(operands.out) == planAlignment);
  Plan made;
  DITRON_ASSIGN_OR_RETURN(made.call, PreparedCall::create(*kernels, rank, call));
  for (size_t i = 0; i < pointers.size(); ++i) {
    DITRON_ASSIGN_OR_RETURN(made.pointers[i], made.call.pointerParameter(parameterNames[i]));
  }
  DITRON_ASSIGN_OR_RETURN(made.inRows, made.call.integerParameter("x_rows"));
  DITRON_ASSIGN_OR_RETURN(made.outRows, made.call.integerParameter("out_rows"));
  return made;
}

Status AllToAllV::prepare(runtime::Rank &rank) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  const runtime::Pointer any = packets.on(rank.id());
  const Operands aligned = {any.as(optionValues.dtype), 0, any, any, any.as(optionValues.dtype), 0, any, any};
  const KeptPlans<Plan>::Key key = keyOf(aligned);
  if (kept[rank.id()]->has(key)) // graphs may have its kernel
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(Plan made, makePlan(rank, aligned));
  kept[rank.id()]->keep(key, std::move(made));
  return Status::ok();
}

Status AllToAllV::enqueue(runtime::Rank &rank, runtime::Stream &stream, const Operands &operands) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  const std::array<runtime::Pointer, 6> pointers = inOrder(operands);
  for (size_t i = 0; i < pointers.size(); ++i) {
    const bool isData = i == 0 || i == 3;
    const int64_t rows = i == 0 ? operands.inRows : operands.outRows;
    if (isData && rows == 0)
      continue;
    const DataType type = isData ? optionValues.dtype : DataType::I64;
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, pointerNames[i], pointers[i], type));
  }
  for (auto [name, rows] : {std::pair("inRows", operands.inRows), std::pair("outRows", operands.outRows)})
    if (rows < 0 || rows > mostElements / optionValues.rowElements)
      return invalidArgument(fmt::format("{}: {} is {}; 0 to {} are accepted", operation, name, rows,
                                         mostElements / optionValues.rowElements));
  auto describe = [&] {
    return fmt::format("in and out at multiples of {} and {} bytes", alignmentOf(operands.in),
                       alignmentOf(operands.out));
  };
  DITRON_ASSIGN_OR_RETURN(Plan * found, kept[rank.id()]->find(operation, stream, keyOf(operands), describe,
                                                              [&] { return makePlan(rank, operands); }));
  for (size_t i = 0; i < pointers.size(); ++i)
    DITRON_RETURN_IF_ERROR(found->call.setPointer(found->pointers[i], pointers[i]));
  DITRON_RETURN_IF_ERROR(found->call.setInteger(found->inRows, operands.inRows));
  DITRON_RETURN_IF_ERROR(found->call.setInteger(found->outRows, operands.outRows));
  return found->call.enqueue(stream);
}

} // namespace ditron::ops
