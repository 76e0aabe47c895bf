//===- CallSequence.h - The operations of a repeated call ------------------------------------------------*- C++ -*-===//
//
// What an operator enqueues with every call, put together once: launches, copies and waits on the caller's stream and on a second
// one beside it. On devices whose graphs can be patched, record() makes the sequence a graph; then a call is one launch, and one
// more word to the driver for each kernel whose addresses have changed since the last call:
//
//   sequence.launch(Lane::Main, enter);        // once, when the plan is made
//   sequence.join(Lane::Side);
//   sequence.copy(Lane::Side, push);
//   sequence.launch(Lane::Main, gemm);
//   sequence.join(Lane::Main);
//   sequence.record(rank);
//
//   gemm.setPointer(b, address);               // each call
//   sequence.enqueue(stream);
//
// Only kernels take addresses of the caller's. A copy's addresses stay as they are: the driver patches those of copies only
// where the memory is of the same origin, and whose memory the caller gives nobody knows beforehand.
//
// A stream that the caller captures gets the operations one after the other: a graph cannot be launched into a capture. So do
// simulated streams, where an operation costs nothing.
//
// record() may wait until the device is idle, as loading code does: not when a kernel may already wait for this call.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CALLSEQUENCE_H
#define DITRON_RUNTIME_CALLSEQUENCE_H

#include "ditron/runtime/PreparedLaunch.h"

#include <mutex>
#include <variant>

namespace ditron::runtime {

class Rank;

enum class Lane { Main, Side };

/// The second stream of an operator's calls on one rank, with what orders it and the caller's; all calls share it, so that it keeps
/// their order.
class SideStream {
public:
  static Expected<std::shared_ptr<SideStream>> create(Rank &rank, std::string_view name);

private:
  friend class CallSequence;
  struct Lanes {
    Stream main, side; ///< `main` only to record on.
    Event mainDone, sideDone;

    /// Without `main`.
    static Expected<Lanes> create(Rank &rank, std::string_view name);
  };
  std::string name;
  Lanes calls;
  /// Recording neither disturbs calls of other threads nor takes theirs.
  std::mutex recorderMutex;
  std::optional<Lanes> recorder;
};

/// One thread at a time. Copies share nothing but the launches.
class CallSequence {
public:
  CallSequence() = default;
  /// Without a side stream: launches on the main lane only.
  explicit CallSequence(std::shared_ptr<SideStream> side) : side(std::move(side)) {}

  void launch(Lane lane, PreparedLaunch launch);
  void copy(Lane lane, Copy copy);
  void signalWait(Lane lane, Pointer word, Compare compare, uint64_t value);
  /// What the lane gets from here on comes after what the other lane has got so far. The main lane joins the side lane last.
  void join(Lane waiting);

  /// Makes the sequence a graph where that helps: the world asks for it, and the device can capture and patch the operations.
  Status record(Rank &rank);
  bool isRecorded() const { return graph.isValid(); }

  Status enqueue(Stream &stream);

private:
  struct Wait {
    Pointer word;
    Compare compare;
    uint64_t value;
  };
  struct Join {};
  struct Step {
    Lane lane;
    std::variant<PreparedLaunch, Copy, Wait, Join> operation;
    GraphNode node = 0;   ///< Of a recorded launch.
    uint64_t version = 0; ///< Of its addresses in the graph.
  };

  Status enqueueOnMain(Stream &stream) const;
  Status enqueueStep(const Step &step, Stream &main, SideStream::Lanes &lanes) const;
  Status recordSteps(SideStream::Lanes &lanes);
  Status patch(Stream &stream);

  std::shared_ptr<SideStream> side;
  std::vector<Step> steps;
  Graph graph;
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_CALLSEQUENCE_H
