//===- CopyEngine.cpp - Asynchronous copies of a rank -------------------------------------------------------------===//
//
// The front request moves chunk by chunk; a chunk that crosses ranks occupies the sender's and the receiver's links.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/CopyEngine.h"

#include "ditron/sim/engine/Engine.h"
#include "ditron/sim/report/EngineTrace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace ditron::sim {

CopyEngine::CopyEngine(Engine &engine, Rank &rank, uint32_t number) : number(number), engine(engine), rank(rank) {}

uint64_t CopyEngine::total() const {
  const CopyDescription &copy = requests.front().op->copy;
  return copy.rowBytes * copy.rows;
}

CopyEngine::Progress CopyEngine::progress() const {
  if (!active)
    return {};
  const StreamOp &op = *requests.front().op;
  return {true, &op.name, &op.copy, total(), moved, sourceRank, destinationRank, began};
}

void CopyEngine::submit(Stream &stream, std::shared_ptr<const StreamOp> op, SimTime now) {
  pendingBytes += op->copy.rowBytes * op->copy.rows;
  requests.push_back({&stream, std::move(op), now});
  if (!active)
    beginRequest(now);
}

void CopyEngine::beginRequest(SimTime now) {
  const CopyDescription &copy = requests.front().op->copy;
  const Allocation *from = copy.source ? engine.memory.find(copy.source) : nullptr;
  const Allocation *to = engine.memory.find(copy.destination);
  active = true;
  moved = 0;
  destinationRank = to ? to->rank : rank.id;
  sourceRank = copy.source ? (from ? from->rank : rank.id) : destinationRank;
  began = now;
  divide();
  constexpr uint64_t latestNs = 50'000;
  const bool isLate = engine.scheduler.happens(engine.schedule.lateCopies);
  const uint64_t lateNs = isLate ? engine.scheduler.random.below(latestNs) : 0;
  scheduleChunk(now + engine.scheduler.cost(engine.options.cost.copyStartNs + static_cast<double>(lateNs)));
}

void CopyEngine::divide() {
  // Words that are polled behind a copy come whole.
  constexpr uint64_t leastBytes = 128, mostPieces = 8;
  const uint64_t bytes = total();
  chunkBytes = std::max<uint64_t>(1, engine.options.cost.copyChunkBytes);
  firstChunk = chunksMoved = 0;
  strideOfChunks = 1;
  const bool isDrawn = engine.schedule.shuffledCopies;
  if (isDrawn)
    chunkBytes =
        std::min(chunkBytes, std::max(leastBytes, (bytes / mostPieces + leastBytes - 1) / leastBytes * leastBytes));
  chunks = (bytes + chunkBytes - 1) / chunkBytes;
  if (!isDrawn || chunks < 2)
    return;
  firstChunk = engine.scheduler.random.below(chunks);
  do
    strideOfChunks = 1 + engine.scheduler.random.below(chunks - 1);
  while (std::gcd(strideOfChunks, chunks) != 1);
}

uint64_t CopyEngine::placeOfChunk() const { return (firstChunk + chunksMoved * strideOfChunks) % chunks; }

void CopyEngine::scheduleChunk(SimTime from) {
  const CostModel &cost = engine.options.cost;
  chunk = chunks ? std::min(chunkBytes, total() - placeOfChunk() * chunkBytes) : 0;
  if (sourceRank == destinationRank) {
    double bandwidth = cost.hbmBytesPerNsPerSm * engine.options.smsPerRank / 2; // read and written
    engine.scheduler.wake(*this, from + engine.scheduler.cost(static_cast<double>(chunk) / bandwidth));
    return;
  }
  Rank &sender = *engine.ranks[sourceRank], &receiver = *engine.ranks[destinationRank];
  SimTime start = std::max({from, sender.egressFree, receiver.ingressFree});
  SimTime end = start + engine.scheduler.cost(static_cast<double>(chunk) / cost.linkBytesPerNs);
  sender.egressFree = receiver.ingressFree = end;
  if (moved == 0)
    end += engine.scheduler.cost(cost.linkLatencyNs);
  engine.scheduler.wake(*this, end);
}

void CopyEngine::moveChunk() {
  const StreamOp &op = *requests.front().op;
  const CopyDescription &copy = op.copy;
  const uint64_t sourcePitch = copy.sourcePitch ? copy.sourcePitch : copy.rowBytes;
  const uint64_t destinationPitch = copy.destinationPitch ? copy.destinationPitch : copy.rowBytes;
  Writer writer;
  writer.kind = Writer::Kind::Copy;
  writer.rank = rank.id;
  writer.name = engine.trace.intern(op.name);
  writer.track = copyTracks + number;
  const uint64_t begin = placeOfChunk() * chunkBytes;
  for (uint64_t done = 0; done < chunk;) {
    uint64_t row = (begin + done) / copy.rowBytes, column = (begin + done) % copy.rowBytes;
    uint64_t bytes = std::min(copy.rowBytes - column, chunk - done);
    char *destination = static_cast<char *>(copy.destination) + row * destinationPitch + column;
    if (engine.races && !checkRaces(copy.source && op.kind == OpKind::Copy
                                        ? static_cast<const char *>(copy.source) + row * sourcePitch + column
                                        : nullptr,
                                    destination, bytes))
      return;
    if (op.kind == OpKind::Memset)
      std::memset(destination, static_cast<int>(op.value), bytes);
    else
      std::memmove(destination, static_cast<const char *>(copy.source) + row * sourcePitch + column, bytes);
    writer.time = engine.scheduler.now;
    engine.rangeWritten(destination, bytes, writer);
    done += bytes;
  }
  moved += chunk;
  ++chunksMoved;
  engine.counters.copyBytes += chunk;
}

bool CopyEngine::checkRaces(const void *source, void *destination, uint64_t bytes) {
  const Request &request = requests.front();
  race::Detector &races = *engine.races;
  // A word that a copy brings is like a signal: polled by those who know that it comes last. What a memset clears is none.
  const race::Strength strength = request.op->kind == OpKind::Copy && (bytes == 4 || bytes == 8)
                                      ? race::Strength::strong(DITRON_SIM_SCOPE_SYSTEM, static_cast<uint32_t>(bytes))
                                      : race::Strength();
  const std::string *race = source ? races.access(request.stream->actor, source, bytes, {false, strength, 0}) : nullptr;
  if (!race)
    race = races.access(request.stream->actor, destination, bytes, {true, strength, 0});
  if (race)
    fail(StatusCode::DataRace, *race);
  return !race;
}

void CopyEngine::fail(StatusCode code, const std::string &problem) {
  const Request &request = requests.front();
  engine.fail(request.op->failure(code, fmt::format("rank {}, stream {}, copy engine {}, {}: {}", rank.id,
                                                    request.stream->name, number, request.op->name, problem)));
}

void CopyEngine::step(SimTime now) {
  Request request = requests.front();
  const CopyDescription &copy = request.op->copy;
  uint64_t extent = (copy.rows - 1) * (copy.destinationPitch ? copy.destinationPitch : copy.rowBytes) + copy.rowBytes;
  uint64_t sourceExtent = (copy.rows - 1) * (copy.sourcePitch ? copy.sourcePitch : copy.rowBytes) + copy.rowBytes;
  // Checked again when it happens: the memory may have been freed since the operation was enqueued.
  if (total() != 0)
    for (std::string problem : {engine.memory.checkBulk(copy.destination, extent),
                                copy.source ? engine.memory.checkBulk(copy.source, sourceExtent) : std::string()})
      if (!problem.empty()) {
        fail(StatusCode::OutOfBounds, problem);
        return;
      }
  if (chunk)
    moveChunk();
  if (engine.stopped())
    return;
  if (moved < total()) {
    scheduleChunk(now);
    return;
  }
  pendingBytes -= total();
  if (engine.trace.isEnabled()) {
    traceCopy(*this, now, /*isFinished=*/true);
    engine.trace.copies.push_back(
        {request.op->name, rank.id, sourceRank, destinationRank, number, total(), began, now});
  }
  requests.pop_front();
  active = false;
  if (!requests.empty())
    beginRequest(now);
  request.stream->operationDone(now);
}

} // namespace ditron::sim
