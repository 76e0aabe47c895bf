//===- Barrier.cpp - Ranks meet on their streams -----------------------------------------------------------------===//
#include "ditron/ops/collectives/Barrier.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/Channels.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "barrier";

} // namespace

Expected<Barrier> Barrier::create(runtime::World &world, runtime::KernelProvider &kernels) {
  DITRON_RETURN_IF_ERROR(world.requireOneNode(operation));
  Barrier op;
  op.world = &world;
  op.kernels = &kernels;
  DITRON_ASSIGN_OR_RETURN(op.words, world.allocateSymmetric(DataType::I64, world.numRanks(), "barrier_entered"));
  DITRON_ASSIGN_OR_RETURN(op.counters, allocateCounters(world, 1, "barrier_calls"));
  op.calls.resize(world.numRanks());
  return op;
}

Status Barrier::prepare(runtime::Rank &rank) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  if (calls[rank.id()]) // graphs may have its kernel
    return Status::ok();
  KernelCall call;
  call.source = "collectives/pairs";
  call.kernel = "barrier";
  call.numWarps = 1;
  call.arguments = {{"words_ptr", words.on(rank.id())},
                    {"counter_ptr", counters[rank.id()].pointer()},
                    {"rank", rank.id()},
                    {"WORLD", rank.numRanks()}};
  DITRON_ASSIGN_OR_RETURN(calls[rank.id()], PreparedCall::create(*kernels, rank, call));
  return Status::ok();
}

Status Barrier::enqueue(runtime::Rank &rank, runtime::Stream &stream) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  if (!calls[rank.id()] && stream.isCapturing())
    return invalidArgument(
        fmt::format("{}: it was not prepared on rank {}, and the stream is being captured: call prepare before the "
                    "capture begins",
                    operation, rank.id()));
  DITRON_RETURN_IF_ERROR(prepare(rank));
  return calls[rank.id()]->enqueue(stream);
}

} // namespace ditron::ops
