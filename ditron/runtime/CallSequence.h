//===- CallSequence.h - The operations of a repeated call ------------------------------------------------*- C++ -*-===//
//
// What an operator enqueues with every call, put together once: launches, copies and waits on the caller's stream and on one to three
// beside it. On devices whose graphs can be patched, record() makes the sequence a graph; then a call is one launch, and one
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
// In a graph only kernels take addresses of the caller's: the driver patches those of copies only where the memory is of the same
// origin, and whose memory the caller gives nobody knows beforehand. A sequence with copies into the caller's memory is enqueued one
// operation after the other.
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

#include <array>
#include <mutex>
#include <variant>

namespace ditron::runtime {

class Rank;

enum class Lane {
  Main,       ///< The caller's stream.
  Side,       ///< Beside it.
  SecondSide, ///< Beside both.
  ThirdSide,  ///< Beside all of these.
};
inline constexpr std::array sideLanes = {Lane::Side, Lane::SecondSide, Lane::ThirdSide};

/// The streams beside the caller's for an operator's calls on one rank, with what orders them and the caller's; all calls share
/// them, so that they keep the calls' order.
class SideStream {
public:
  /// `lanes`: how many of sideLanes, the first ones.
  static Expected<std::shared_ptr<SideStream>> create(Rank &rank, std::string_view name, uint32_t lanes = 1);

private:
  friend class CallSequence;
  struct Lanes {
    Stream main; ///< Only to record on.
    Event mainDone;
    struct Side {
      Stream stream;
      Event done;
    };
    std::array<Side, sideLanes.size()> sides;

    /// Without `main`.
    static Expected<Lanes> create(Rank &rank, std::string_view name, uint32_t count);
    Side &side(Lane lane) { return sides[static_cast<size_t>(lane) - 1]; }
  };
  std::string name;
  uint32_t count = 1;
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
  /// To `offset` bytes behind what setCallerMemory says before each call, instead of copy.destination. A call into memory that
  /// cannot be written is refused before any of it is enqueued.
  void copyToCaller(Lane lane, Copy copy, uint64_t offset);
  void setCallerMemory(void *memory) { callerMemory = memory; }
  void signalWait(Lane lane, Pointer word, Compare compare, uint64_t value);
  /// Writes a word of this rank's node once the lane's earlier operations are visible there.
  void signalWrite(Lane lane, Pointer word, uint64_t value);
  /// A side lane: what it gets from here on comes after what the main lane has got so far, with which each one begins. The main lane: the
  /// same of all side lanes that have got anything, with which the sequence ends.
  void join(Lane waiting);
  /// What the main lane gets from here on comes after what a side lane has got so far.
  void joinMain(Lane awaited);

  /// The sequence, which has a launch, is this call of the operator.
  void setAgreedCall(const AgreedCall &call);
  /// Makes the sequence a graph where that helps: the world asks for it, and the device can capture and patch all operations.
  Status record(Rank &rank);
  bool isRecorded() const { return graph.isValid(); }

  Status enqueue(Stream &stream);

private:
  struct Wait {
    Pointer word;
    Compare compare;
    uint64_t value;
  };
  struct Write {
    Pointer word;
    uint64_t value;
  };
  struct Join {
    std::optional<Lane> awaited = {}; ///< Of the main lane: the only side lane.
  };
  struct CopyToCaller {
    Copy copy;
    uint64_t offset;

    Copy to(void *callerMemory) const {
      Copy complete = copy;
      complete.destination = static_cast<std::byte *>(callerMemory) + offset;
      return complete;
    }
  };
  struct Step {
    Lane lane;
    std::variant<PreparedLaunch, Copy, CopyToCaller, Wait, Write, Join> operation;
    GraphNode node = 0;   ///< Of a recorded launch.
    uint64_t version = 0; ///< Of its addresses in the graph.
  };

  Status enqueueOnMain(Stream &stream) const;
  Status enqueueStep(const Step &step, Stream &main, SideStream::Lanes &lanes) const;
  Status enqueueJoin(Lane waiting, const Join &join, Stream &main, SideStream::Lanes &lanes) const;
  bool hasStepsOn(Lane lane) const;
  Status recordSteps(SideStream::Lanes &lanes);
  Status patch(Stream &stream);

  std::shared_ptr<SideStream> side;
  std::vector<Step> steps;
  void *callerMemory = nullptr;
  Graph graph;
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_CALLSEQUENCE_H
