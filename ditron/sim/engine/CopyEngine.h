//===- CopyEngine.h - Asynchronous copies of a rank -----------------------------------------------------*- C++ -*-===//
//
// A copy engine carries out copies and fills one after the other, in chunks: the bytes of a chunk appear at the virtual
// time at which the chunk is through, not when the copy was asked for and not all at once. In which order is not promised: the
// seed 0 moves them front to back, other seeds draw an order, and divide short copies too.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_ENGINE_COPYENGINE_H
#define DITRON_SIM_ENGINE_COPYENGINE_H

#include "ditron/sim/engine/Scheduler.h"

#include <deque>
#include <memory>

namespace ditron::sim {

using Engine = Machine::State;
struct Rank;
struct StreamOp;
class Stream;

class CopyEngine final : public Agent {
public:
  CopyEngine(Engine &engine, Rank &rank, uint32_t number);

  /// Takes a Copy or Memset operation; tells the stream when it is done.
  void submit(Stream &stream, std::shared_ptr<const StreamOp> op, SimTime now);
  void step(SimTime now) override;
  bool isIdle() const { return requests.empty(); }
  uint64_t queuedBytes() const { return pendingBytes; }
  const uint32_t number;
  Engine &engine;
  Rank &rank;

  /// How far the copy in front has come; nothing but `active` counts when there is none.
  struct Progress {
    bool active = false;
    const std::string *name = nullptr;
    const CopyDescription *description = nullptr;
    uint64_t bytes = 0, moved = 0;
    uint32_t sourceRank = 0, destinationRank = 0;
    SimTime began = 0;
  };
  Progress progress() const;

private:
  struct Request {
    Stream *stream;
    std::shared_ptr<const StreamOp> op;
    SimTime submitted;
  };
  void beginRequest(SimTime now);
  void divide();
  uint64_t placeOfChunk() const;
  void scheduleChunk(SimTime from);
  void moveChunk();
  /// False, with the run failed, when the piece races with something. The source is null for a fill.
  bool checkRaces(const void *source, void *destination, uint64_t bytes);
  /// Ends the run: something is wrong with the first request.
  void fail(StatusCode code, const std::string &problem);
  uint64_t total() const;

  std::deque<Request> requests;
  uint64_t pendingBytes = 0;
  bool active = false; ///< The front request has begun.
  SimTime began = 0;
  uint64_t moved = 0, chunk = 0; ///< Bytes that are through, and that are under way.
  // The chunks, whose order the seed draws: chunk i is the one at place (first + i * stride) % chunks.
  uint64_t chunkBytes = 0, chunks = 0, firstChunk = 0, strideOfChunks = 1, chunksMoved = 0;
  uint32_t sourceRank = 0, destinationRank = 0;
};

} // namespace ditron::sim

#endif // DITRON_SIM_ENGINE_COPYENGINE_H
