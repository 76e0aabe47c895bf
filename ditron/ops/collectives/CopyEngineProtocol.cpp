//===- CopyEngineProtocol.cpp - Collectives whose bytes are moved by copy engines -------------------------------------===//
//
// AllGather, AllToAll and Broadcast without a multiprocessor on the link: a kernel meets the other ranks and stages the operand in
// symmetric memory, the copy engines of a second stream push it to the peers, a signal behind each part, and a kernel takes the parts
// out. Staged, because only kernels can be given other addresses from call to call (CallSequence.h). Words and order of a call are those of
// AllGatherGemm (docs/memory-model.md). Device code: kernels/collectives/copy_engine.py.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/ops/CallWords.h"
#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/CollectiveProtocol.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

class CopyEngineProtocol final : public CollectiveProtocol {
public:
  explicit CopyEngineProtocol(CollectiveSetting setting) : CollectiveProtocol(std::move(setting)) {}

  Status allocate(std::span<const SizedPlan> plans) override;
  Expected<CollectiveCall> call(runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                runtime::Pointer out, int64_t elements) const override;
  runtime::Pointer memory(uint32_t rank) const override { return staged.on(rank); }
  uint64_t workspaceBytes() const override { return staged.bytes() + arrived.bytes(); }

private:
  bool isBroadcast() const { return options().kind == CollectiveKind::Broadcast; }
  /// Parts that a rank stages, and that it gets from peers.
  int64_t stagedParts() const { return scatters() ? numRanks() : isBroadcast() ? 0 : 1; }
  int64_t receivedParts() const { return isBroadcast() ? 1 : numRanks(); }
  /// Of this rank's staged operand, which is behind what peers push where each of them gets a part of its own.
  runtime::Pointer operandOf(uint32_t rank, int64_t elements) const;
  KernelCall arrivedCall(const runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer out,
                         int64_t elements) const;
  void addPushes(const runtime::Rank &rank, int64_t elements, runtime::CallSequence &sequence) const;

  CallWords words;
  runtime::SymmetricBuffer staged;                         ///< Received parts; AllToAll: then the operand.
  runtime::SymmetricBuffer arrived;                        ///< [ranks] signals
  std::vector<std::shared_ptr<runtime::SideStream>> sides; ///< Null for ranks of other processes.
};

runtime::Pointer CopyEngineProtocol::operandOf(uint32_t rank, int64_t elements) const {
  if (scatters())
    return staged.on(rank) + receivedParts() * elements;
  return staged.on(rank) + (isBroadcast() ? 0 : rank * elements);
}

Status CopyEngineProtocol::allocate(std::span<const SizedPlan> plans) {
  int64_t most = 0;
  for (const SizedPlan &each : plans)
    most = std::max(most, each.mostElements);
  DITRON_ASSIGN_OR_RETURN(words, CallWords::create(world(), name("_copies"), 0));
  const int64_t parts = receivedParts() + (scatters() ? stagedParts() : 0);
  DITRON_ASSIGN_OR_RETURN(staged, world().allocateSymmetric(options().dtype, parts * most, name("_staged")));
  DITRON_ASSIGN_OR_RETURN(arrived, world().allocateSymmetric(DataType::I64, numRanks(), name("_copies_arrived")));
  sides.resize(numRanks());
  for (uint32_t id : world().localRanks()) {
    DITRON_ASSIGN_OR_RETURN(sides[id], runtime::SideStream::create(world().rank(id), name("")));
  }
  return Status::ok();
}

Expected<CollectiveCall> CopyEngineProtocol::call(runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                                  runtime::Pointer out, int64_t elements) const {
  using runtime::Lane;
  const bool gives = !isBroadcast() || rank.id() == options().root;
  const int64_t given = (scatters() ? numRanks() : 1) * elements;
  const KernelCall enter = words.enter(rank, arrived.on(rank.id()), 0,
                                       {.destination = operandOf(rank.id(), elements),
                                        .source = in,
                                        .rows = gives ? 1 : 0,
                                        .columns = given,
                                        .destinationStride = given,
                                        .sourceStride = given});
  CollectiveCall made;
  made.sequence = runtime::CallSequence(sides[rank.id()]);
  DITRON_ASSIGN_OR_RETURN(made.first, PreparedCall::create(*setting.kernels, rank, enter));
  DITRON_ASSIGN_OR_RETURN(made.in, made.first.pointerParameter("shard_ptr"));
  DITRON_ASSIGN_OR_RETURN(made.last,
                          PreparedCall::create(*setting.kernels, rank, arrivedCall(rank, plan, out, elements)));
  DITRON_ASSIGN_OR_RETURN(made.out, made.last.pointerParameter("out_ptr"));
  made.sequence.launch(Lane::Main, made.first.prepared());
  made.sequence.join(Lane::Side);
  if (gives)
    addPushes(rank, elements, made.sequence);
  made.sequence.launch(Lane::Main, made.last.prepared());
  made.sequence.join(Lane::Main);
  return made;
}

void CopyEngineProtocol::addPushes(const runtime::Rank &rank, int64_t elements, runtime::CallSequence &sequence) const {
  const uint32_t me = rank.id();
  for (uint32_t distance = 1; distance < numRanks(); ++distance) {
    const uint32_t peer = (me + distance) % numRanks();
    const runtime::Pointer source = operandOf(me, elements) + (scatters() ? peer * elements : 0);
    const runtime::Pointer there = staged.on(peer) + (isBroadcast() ? 0 : me * elements);
    sequence.copy(runtime::Lane::Side,
                  runtime::Copy::of(there, source, elements, fmt::format("{} to {}", toString(options().kind), peer)));
    // The signal's value is the generation word, copied behind the data: no host value is baked into a captured call.
    sequence.copy(runtime::Lane::Side, runtime::Copy::of(arrived.on(peer) + me, words.generation(me), 1,
                                                         fmt::format("arrived to {}", peer)));
  }
}

KernelCall CopyEngineProtocol::arrivedCall(const runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer out,
                                           int64_t elements) const {
  const uint32_t me = rank.id();
  const int64_t block = std::max<int64_t>(16384 / elementBytes(), 1);
  KernelCall call;
  call.source = "collectives/copy_engine";
  call.kernel = "copy_arrived";
  call.numWarps = plan.numWarps;
  call.grid = chunkGrid(plan, elements, block);
  call.arguments = {{"own_ptr", operandOf(me, elements) + (scatters() ? me * elements : 0)},
                    {"staged_ptr", staged.on(me)},
                    {"out_ptr", out},
                    {"arrived_ptr", arrived.on(me)},
                    {"generation_ptr", words.generation(me)},
                    {"n", elements},
                    {"rank", me},
                    {"root", options().root},
                    {"WORLD", numRanks()},
                    {"BLOCK", block}};
  call.arguments.emplace_back("ROOTED", isBroadcast());
  return call;
}

} // namespace

std::unique_ptr<CollectiveProtocol> makeCopyEngineProtocol(CollectiveSetting setting) {
  return std::make_unique<CopyEngineProtocol>(std::move(setting));
}

} // namespace ditron::ops
