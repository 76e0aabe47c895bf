//===- Streams.h - In-order queues of operations, events, graphs ----------------------------------------*- C++ -*-===//
//
// A stream is an agent that takes its operations in order; each runs to completion before the next begins. An operation
// is an immutable record that owns its arguments, so that a captured graph is nothing but such records with the stream
// each was enqueued to, and a replay enqueues the same records again: the records of the capturing stream to the
// launching stream, those of streams that joined the capture to internal streams, each with fresh events for the edges.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_ENGINE_STREAMS_H
#define DITRON_SIM_ENGINE_STREAMS_H

#include "ditron/sim/engine/Scheduler.h"
#include "ditron/sim/memory/Watch.h"
#include "ditron/sim/race/Strand.h"

#include <deque>
#include <memory>

namespace ditron::sim {

using Engine = Machine::State;
struct Rank;
struct KernelRun;

/// A launch description with the pointer array that the kernel's entry receives.
struct PreparedLaunch {
  LaunchDescription description;
  std::vector<void *> pointers;
};

enum class OpKind : uint8_t {
  Launch,
  Copy,
  Memset,
  SignalWrite,
  SignalAdd,
  SignalWait,
  EventRecord,
  EventWait,
  Callback
};

/// One recording of an event. Its waits know what came before it, not what came before a later one.
struct Recording {
  race::KnowledgeRef known; ///< Once it is completed.
};

/// One operation of a stream; never changed once made.
struct StreamOp {
  StreamOp(OpKind kind, std::string name) : kind(kind), name(std::move(name)) {}

  OpKind kind;
  std::string name;
  std::shared_ptr<const PreparedLaunch> launch;
  CopyDescription copy; ///< Memset: destination and rowBytes.
  void *address = nullptr;
  uint64_t value = 0; ///< Signal value; the byte of a memset.
  uint32_t bytes = 0;
  Compare compare = Compare::Equal;
  EventId event;
  const DitronSimSite *place = nullptr; ///< Where host code has enqueued it, if it has said so.
  uint64_t recording = 0; ///< EventRecord: which recording this is. EventWait: which is waited for.
  std::shared_ptr<Recording> mark; ///< The same.
  std::function<void()> callback;

  /// An error of this operation, at the place where host code has enqueued it.
  Status failure(StatusCode code, const std::string &message) const;
};

/// Marks a point in a stream. Recordings are counted, so that a wait knows which one it means.
struct Event {
  std::string name;
  uint64_t recorded = 0;  ///< Recordings enqueued so far.
  uint64_t completed = 0; ///< The latest completed one.
  SimTime time = 0;
  Writer recordedBy;        ///< The stream of the latest completed recording.
  std::shared_ptr<Recording> latest; ///< Of those enqueued; null before the first.
  std::vector<Stream *> waiters;
  // Capture: the graph node that recorded it last, while that capture is open.
  Graph *capture = nullptr;
};

class Stream final : public Agent {
public:
  Stream(Engine &engine, Rank &rank, uint32_t id, std::string_view name, int priority);

  void enqueue(std::shared_ptr<const StreamOp> op, SimTime issued);
  void step(SimTime now) override;
  /// The operation at the head, which was waiting for somebody else, is done.
  void operationDone(SimTime when);
  /// Releases a signal wait at the head.
  void releaseWaiter(SimTime when);
  /// An event has completed; looks at the wait at the head again.
  void eventCompleted(SimTime when);

  bool isIdle() const { return queue.empty(); }
  size_t length() const { return queue.size(); }
  /// Operations enqueued so far, and of those the ones that are done.
  uint64_t enqueuedSoFar() const { return enqueued; }
  uint64_t doneSoFar() const { return done; }
  /// The first operation of the queue, not done yet, for which `test` holds; null when there is none.
  const StreamOp *findOperation(const std::function<bool(const StreamOp &)> &test) const;
  /// The operation that runs or waits; the queue must not be empty.
  const StreamOp &head() const { return *queue.front().op; }
  /// Whether the operation at the head is more than queued, and since when.
  bool headHasBegun() const { return !queue.empty() && phase != Phase::Fresh; }
  SimTime headBegin() const { return opStart; }
  Writer writer(SimTime when) const;

  Engine &engine;
  Rank &rank;
  const uint32_t id;
  const std::string name;
  const uint32_t nameNumber; ///< In the trace's table.
  const int priority;
  const uint32_t track;
  bool destroyed = false;
  bool internal = false;    ///< Made for graph replays.
  Graph *capture = nullptr; ///< Into which operations go instead of the queue.
  KernelRun *running = nullptr;
  Waiter waiter;
  race::StreamOrder order;
  race::Actor actor; ///< Who makes the accesses of the operation at the head, when races are looked for.

private:
  enum class Phase : uint8_t {
    Fresh,    ///< Not looked at.
    Latency,  ///< Its start-up time passes.
    Elsewhere ///< A kernel, a copy, a signal or an event must finish it.
  };
  struct Queued {
    std::shared_ptr<const StreamOp> op;
    SimTime issued;
    race::KnowledgeRef known; ///< What the host code knew.
  };
  double startLatency(const StreamOp &op);
  void perform(SimTime now);
  void writeSignal(const StreamOp &op, SimTime now);
  /// Ends the run: something is wrong with the operation.
  void fail(const StreamOp &op, StatusCode code, const std::string &problem);

  std::deque<Queued> queue;
  uint64_t enqueued = 0, done = 0;
  Phase phase = Phase::Fresh;
  SimTime opStart = 0;
  SimTime clock = 0;
};

/// A captured sequence; see the top of the file.
class Graph {
public:
  struct Node {
    uint32_t lane; ///< Index into lanes.
    std::shared_ptr<const StreamOp> op;
  };
  struct Lane {
    StreamId stream;
    uint32_t rank;
    int priority;
    bool joined = true;                          ///< The lane's end is waited for by another lane.
    mutable std::vector<StreamId> replayStreams; ///< Internal streams made for this lane (lane 0 has none).
  };
  StreamId origin;
  std::vector<Lane> lanes;             ///< Lane 0 is the stream that began the capture.
  std::vector<Node> nodes;             ///< In order of enqueueing.
  std::vector<std::string> eventNames; ///< Events of the graph, by number; ops of nodes refer to them by that number.
  // While capturing: real event -> number, and the lane that recorded it.
  std::vector<std::pair<EventId, uint32_t>> openEvents;
  std::vector<uint32_t> eventLanes;
};

} // namespace ditron::sim

#endif // DITRON_SIM_ENGINE_STREAMS_H
