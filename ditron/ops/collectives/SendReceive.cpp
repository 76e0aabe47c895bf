//===- SendReceive.cpp - Messages between pairs of ranks ---------------------------------------------------------===//
#include "ditron/ops/collectives/SendReceive.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/Channels.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "send_receive";
constexpr int64_t mostElements = int64_t{1} << 40;
/// Four parameters for each.
constexpr uint32_t mostRanks = 64;

} // namespace

Expected<SendReceive> SendReceive::create(runtime::World &world, runtime::KernelProvider &kernels,
                                          const SendReceiveOptions &options) {
  DITRON_RETURN_IF_ERROR(world.requireOneNode(operation));
  if (world.numRanks() > mostRanks)
    return unsupported(fmt::format("{}: {} ranks; up to {} are accepted", operation, world.numRanks(), mostRanks));
  if (options.dtype == DataType::I1)
    return unsupported(fmt::format("{}: elements of type i1; send them as u8", operation));
  if (options.plan && options.plan->form != CollectiveForm::Chunks)
    return invalidArgument(
        fmt::format("{}: a plan of the form {}; chunks is accepted", operation, toString(options.plan->form)));
  SendReceive op;
  op.optionValues = options;
  op.world = &world;
  op.kernels = &kernels;
  const std::string &gpu = options.gpu.empty() ? world.rank(world.localRanks().front()).attributes().name : options.gpu;
  DITRON_ASSIGN_OR_RETURN(const PairPlan pairs, readPairPlan(gpu, world.numRanks()));
  op.plan = options.plan.value_or(pairs.rings);
  DITRON_RETURN_IF_ERROR(op.plan.verify(CollectiveKind::AllToAll, world.numRanks()));
  const std::string name(operation);
  const uint64_t slots = uint64_t{op.plan.blocks} * world.numRanks() * slotsOfRing;
  DITRON_ASSIGN_OR_RETURN(op.ring, world.allocateSymmetric(bitsOf(options.dtype),
                                                           slots * (op.plan.chunkBytes / sizeOf(options.dtype)),
                                                           name + "_ring"));
  DITRON_ASSIGN_OR_RETURN(op.sizes, world.allocateSymmetric(DataType::I64, slots, name + "_sizes"));
  DITRON_ASSIGN_OR_RETURN(op.arrived,
                          world.allocateSymmetric(DataType::I64, op.plan.blocks * world.numRanks(), name + "_arrived"));
  DITRON_ASSIGN_OR_RETURN(op.freed,
                          world.allocateSymmetric(DataType::I64, op.plan.blocks * world.numRanks(), name + "_taken"));
  DITRON_ASSIGN_OR_RETURN(op.counters,
                          allocateCounters(world, op.plan.blocks * 5 * world.numRanks(), name + "_counters"));
  DITRON_ASSIGN_OR_RETURN(op.report, TransferReport::create(world, name, "elements"));
  op.kept.resize(world.numRanks());
  for (uint32_t id : world.localRanks())
    op.kept[id] = std::make_unique<KeptPlans<Plan>>();
  return op;
}

Expected<SendReceive::Plan> SendReceive::makePlan(runtime::Rank &rank, int64_t alignment) const {
  const uint32_t id = rank.id();
  const int64_t size = sizeOf(optionValues.dtype);
  // Some memory stands for the messages, of their alignment.
  runtime::Pointer any = ring.on(id);
  if (alignment != planAlignment)
    any = any + 1;
  KernelCall call;
  call.source = "collectives/pairs";
  call.kernel = "send_receive";
  call.numWarps = plan.numWarps;
  call.grid = {plan.blocks, 1, 1};
  for (uint32_t peer = 0; peer < rank.numRanks(); ++peer)
    for (std::string_view end : {"send", "receive"}) {
      call.arguments.emplace_back(fmt::format("{}_ptrs.{}", end, peer), any);
      call.arguments.emplace_back(fmt::format("{}_elements.{}", end, peer),
                                  runtime::Argument::typed(DataType::I64, -1));
    }
  call.arguments.insert(call.arguments.end(), {{"ring_ptr", ring.on(id)},
                                               {"sizes_ptr", sizes.on(id)},
                                               {"arrived_ptr", arrived.on(id)},
                                               {"freed_ptr", freed.on(id)},
                                               {"counters_ptr", counters[id].pointer()},
                                               {"error_ptr", report.on(id)},
                                               {"rank", id},
                                               {"WORLD", rank.numRanks()},
                                               {"CHUNK", static_cast<int64_t>(plan.chunkBytes) / size},
                                               {"LINE", ringLineElements(optionValues.dtype)}});
  Plan made;
  DITRON_ASSIGN_OR_RETURN(made.call, PreparedCall::create(*kernels, rank, call));
  for (uint32_t peer = 0; peer < rank.numRanks(); ++peer) {
    Ends ends;
    DITRON_ASSIGN_OR_RETURN(ends.sendPointer, made.call.pointerParameter(fmt::format("send_ptrs.{}", peer)));
    DITRON_ASSIGN_OR_RETURN(ends.sendElements, made.call.integerParameter(fmt::format("send_elements.{}", peer)));
    DITRON_ASSIGN_OR_RETURN(ends.receivePointer, made.call.pointerParameter(fmt::format("receive_ptrs.{}", peer)));
    DITRON_ASSIGN_OR_RETURN(ends.receiveElements, made.call.integerParameter(fmt::format("receive_elements.{}", peer)));
    made.peers.push_back(ends);
  }
  return made;
}

Status SendReceive::prepare(runtime::Rank &rank) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  const KeptPlans<Plan>::Key key = {0, 0, planAlignment};
  if (kept[rank.id()]->has(key)) // graphs may have its kernel
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(Plan made, makePlan(rank, planAlignment));
  kept[rank.id()]->keep(key, std::move(made));
  return Status::ok();
}

Status SendReceive::verify(const runtime::Rank &rank, std::string_view what, const Message &message) const {
  if (message.peer >= rank.numRanks())
    return invalidArgument(fmt::format("{} on rank {}: a {} rank {}; 0 to {} are accepted", operation, rank.id(), what,
                                       message.peer, rank.numRanks() - 1));
  if (message.elements < 0 || message.elements > mostElements)
    return invalidArgument(fmt::format("{} on rank {}: a {} rank {} of {} elements; 0 to {} are accepted", operation,
                                       rank.id(), what, message.peer, message.elements, mostElements));
  if (message.elements == 0)
    return Status::ok();
  return verifyPointerType(operation, fmt::format("of a {} rank {}", what, message.peer), message.data,
                           optionValues.dtype);
}

Status SendReceive::enqueue(runtime::Rank &rank, runtime::Stream &stream, std::span<const Message> sends,
                            std::span<const Message> receives) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  // The i-th message of a pair is in round i on both of its ranks.
  std::vector<Round> rounds;
  for (const bool isSend : {true, false}) {
    std::vector<size_t> count(rank.numRanks());
    for (const Message &message : isSend ? sends : receives) {
      DITRON_RETURN_IF_ERROR(verify(rank, isSend ? "send to" : "receive from", message));
      const size_t round = count[message.peer]++;
      if (round == rounds.size())
        rounds.push_back(
            {std::vector<const Message *>(rank.numRanks()), std::vector<const Message *>(rank.numRanks())});
      (isSend ? rounds[round].sends : rounds[round].receives)[message.peer] = &message;
    }
  }
  for (const Round &round : rounds)
    DITRON_RETURN_IF_ERROR(enqueue(rank, stream, round));
  return Status::ok();
}

Status SendReceive::enqueue(runtime::Rank &rank, runtime::Stream &stream, const Round &round) {
  int64_t alignment = planAlignment;
  for (const auto *messages : {&round.sends, &round.receives})
    for (const Message *message : *messages)
      if (message && message->elements > 0)
        alignment = std::min(alignment, alignmentOf(message->data));
  auto describe = [&] { return fmt::format("messages at multiples of {} bytes", alignment); };
  DITRON_ASSIGN_OR_RETURN(Plan * found, kept[rank.id()]->find(operation, stream, {0, 0, alignment}, describe,
                                                              [&] { return makePlan(rank, alignment); }));
  const runtime::Pointer any = ring.on(rank.id());
  for (uint32_t peer = 0; peer < rank.numRanks(); ++peer) {
    const Ends &ends = found->peers[peer];
    const auto set = [&](const Message *message, uint32_t pointer, uint32_t elements) -> Status {
      DITRON_RETURN_IF_ERROR(found->call.setPointer(pointer, message && message->elements > 0 ? message->data : any));
      return found->call.setInteger(elements, message ? message->elements : -1);
    };
    DITRON_RETURN_IF_ERROR(set(round.sends[peer], ends.sendPointer, ends.sendElements));
    DITRON_RETURN_IF_ERROR(set(round.receives[peer], ends.receivePointer, ends.receiveElements));
  }
  return found->call.enqueue(stream);
}

} // namespace ditron::ops
