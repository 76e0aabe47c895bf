//===- ShardRing.cpp - Shards of all ranks go round them --------------------------------------------------------------------===//
#include "ditron/ops/sequence_parallel/ShardRing.h"

#include <fmt/format.h>

namespace ditron::ops {

using runtime::Lane;

namespace {
/// A shard lies in one of two places by turns.
constexpr uint32_t turns = 2;
/// Kinds of ShardRing::Gate.
constexpr uint32_t gateKinds = 3;
} // namespace

Expected<ShardRing> ShardRing::create(runtime::World &world, runtime::KernelProvider &kernels, std::string_view name,
                                      uint64_t mostBytes) {
  constexpr uint64_t alignment = 128;
  ShardRing ring;
  ring.name = name;
  ring.world = &world;
  ring.kernels = &kernels;
  ring.mostBytes = (mostBytes + alignment - 1) / alignment * alignment;
  DITRON_ASSIGN_OR_RETURN(ring.words, CallWords::create(world, name, 0, gateKinds * world.numRanks()));
  const uint32_t count = world.numNodes() + (world.ranksPerNode() > 1 ? turns : 0);
  DITRON_ASSIGN_OR_RETURN(
      ring.slots, world.allocateSymmetric(DataType::U8, count * ring.mostBytes, fmt::format("{}_shards", name)));
  ring.sides.resize(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    DITRON_ASSIGN_OR_RETURN(ring.sides[id],
                            runtime::SideStream::create(world.rank(id), name, world.numNodes() > 1 ? 2 : 1));
  }
  return ring;
}

uint32_t ShardRing::source(uint32_t rank, uint32_t step) const {
  const uint32_t node = (world->nodeOf(rank) + step / places()) % world->numNodes();
  return node * places() + (rank + step) % places();
}

runtime::Pointer ShardRing::shard(uint32_t rank, uint32_t step) const {
  const bool isOfOwnPlace = step % places() == 0;
  const uint32_t slot = isOfOwnPlace ? step / places() : world->numNodes() + arrivalOf(step) % turns;
  return slots.on(rank) + slot * mostBytes;
}

Expected<runtime::CallSequence> ShardRing::begin(runtime::Rank &rank) const {
  DITRON_ASSIGN_OR_RETURN(PreparedCall enter, PreparedCall::create(*kernels, rank, words.enter(rank)));
  runtime::CallSequence sequence(sides[rank.id()]);
  sequence.launch(Lane::Main, enter.prepared());
  return sequence;
}

Status ShardRing::addStep(runtime::Rank &rank, uint32_t step, uint64_t bytes, Schedule schedule,
                          std::span<const PreparedCall> work, runtime::CallSequence &sequence) const {
  const uint32_t id = rank.id();
  const bool isOverlapped = schedule == Schedule::Overlapped;
  // In the order in which a stream must not wait for what is enqueued behind it: what goes on leaves before work begins, or behind it.
  const auto send = [&]() -> Status {
    const auto comesAfter = [&](Lane lane) {
      if (step == 0 || !isOverlapped)
        sequence.join(lane);
      else
        waitFor(lane, gate(id, Gate::Arrived, step), sequence);
    };
    if (goesOn(step)) {
      comesAfter(Lane::Side);
      passOn(id, step, bytes, sequence);
    }
    if (step % places() == 0 && step + places() < steps()) {
      comesAfter(Lane::SecondSide);
      DITRON_RETURN_IF_ERROR(sendToNode(rank, step, bytes, sequence));
    }
    return Status::ok();
  };
  if (isOverlapped)
    DITRON_RETURN_IF_ERROR(send());
  if (step > 0)
    waitFor(Lane::Main, gate(id, Gate::Arrived, step), sequence);
  for (const PreparedCall &call : work)
    sequence.launch(Lane::Main, call.prepared());
  const bool comesFromNode = step % places() != 0;
  if (comesFromNode && arrivalOf(step) + turns < steps() / places() * (places() - 1)) {
    const uint32_t above = id / places() * places() + (id + 1) % places();
    sequence.signalWrite(Lane::Main, gate(above, Gate::Attended, arrivalOf(step)), 1);
  }
  return isOverlapped ? Status::ok() : send();
}

/// To the place below, which works with it in its next step.
void ShardRing::passOn(uint32_t rank, uint32_t step, uint64_t bytes, runtime::CallSequence &sequence) const {
  const uint32_t first = rank / places() * places(), below = first + (rank + places() - 1) % places(),
                 above = first + (rank + 1) % places(), arrival = arrivalOf(step + 1);
  if (arrival >= turns) {
    const uint32_t before = arrival - turns,
                   stepBefore = before / (places() - 1) * places() + before % (places() - 1) + 1;
    waitFor(Lane::Side, gate(rank, Gate::Attended, before), sequence);
    if (goesOn(stepBefore))
      waitFor(Lane::Side, gate(rank, Gate::PassedOn, before), sequence);
  }
  sequence.copy(Lane::Side, runtime::Copy::of(shard(below, step + 1), shard(rank, step), bytes,
                                              fmt::format("{} to {}", name, below)));
  sequence.signalWrite(Lane::Side, gate(below, Gate::Arrived, step + 1), 1);
  const bool isOfOwnPlace = step % places() == 0;
  if (!isOfOwnPlace && arrivalOf(step) + turns < steps() / places() * (places() - 1))
    sequence.signalWrite(Lane::Side, gate(above, Gate::PassedOn, arrivalOf(step)), 1);
}

Status ShardRing::sendToNode(runtime::Rank &rank, uint32_t step, uint64_t bytes,
                             runtime::CallSequence &sequence) const {
  const uint32_t next = step + places();
  KernelCall call;
  call.source = "sequence_parallel/ring";
  call.kernel = "send_to_node";
  call.arguments = {{"slot_ptr", shard(rank.id(), step)},
                    {"peer_slot_ptr", shard(rank.id(), next)},
                    {"bytes", static_cast<int64_t>(bytes)},
                    {"gate_ptr", gate(rank.id(), Gate::Arrived, next)},
                    {"peer", (rank.id() + steps() - places()) % steps()}};
  DITRON_ASSIGN_OR_RETURN(PreparedCall send, PreparedCall::create(*kernels, rank, call));
  sequence.launch(Lane::SecondSide, send.prepared());
  return Status::ok();
}

} // namespace ditron::ops
