//===- Machine.h - Nodes of simulated GPUs --------------------------------------------------------------*- C++ -*-===//
//
// The host's side of the simulator engine: N ranks (GPUs) in one process under one deterministic scheduler. The
// runtime's `sim` device is written against this header; compiled kernels are written against ditron/abi/Simulator.h.
//
// How it works, in one paragraph. Everything that can act is an agent with a clock of its own: a resident block, a
// stream, a copy engine, the host code of a rank. The scheduler always runs the agent with the smallest clock; costs
// carry a jitter from the seed, so that another seed gives another interleaving, and the same seed gives the same run,
// byte for byte. A thread of a block is a fiber; threads meet at barriers, shuffles and mma, and sleep on words of
// memory. When nothing can run and nothing is in flight while something still waits, that is a deadlock, found by this
// very fact and explained.
//
// Threads: a Machine belongs to the operating-system thread that created it. Nothing here throws or exits. An error
// inside a kernel ends the run: the Status comes back from synchronize/runRanks, and from every later call.
//
// Not here: what the code generator needs (ditron/abi/Simulator.h), weak memory (a later mode behind the same ABI functions).
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_MACHINE_H
#define DITRON_SIM_MACHINE_H

#include "ditron/sim/explore/Schedule.h"
#include "ditron/support/Status.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ditron::explain {
struct WaitReport;
}

namespace ditron::sim {

/// Virtual time in picoseconds.
using SimTime = int64_t;

/// What operations cost in virtual time. The defaults are an A100 cut down to eight SMs: figures per SM are the real
/// ones, and what a whole GPU shares (links) is scaled by 8/108, so that compute and communication keep their balance.
struct CostModel {
  double smClockGHz = 1.41;             ///< Clock of an SM.
  double hbmBytesPerNsPerSm = 14.4;     ///< Device memory bandwidth that one SM gets.
  double sharedBytesPerClock = 128;     ///< Shared memory bandwidth of an SM.
  double mmaFlopsPerClock16 = 2048;     ///< Tensor-core multiply and add operations per clock and SM, 16-bit operands.
  double mmaFlopsPerClock8 = 4096;      ///< The same for 8-bit operands.
  double mmaFlopsPerClockTf32 = 1024;   ///< The same for tf32.
  double fmaFlopsPerClock = 128;        ///< The same on the ordinary units.
  double wgmmaFlopsPerClock16 = 4096;   ///< As mmaFlopsPerClock16, for a warpgroup multiply.
  double wgmmaFlopsPerClock8 = 8192;    ///< For 8-bit operands.
  double wgmmaFlopsPerClockTf32 = 2048; ///< For tf32.
  double tmaLatencyNs = 600;            ///< From the end of a tensor copy's transfer until its bytes are there.
  double linkBytesPerNs = 22;           ///< Bandwidth of one GPU's links, each direction.
  double linkLatencyNs = 1000;          ///< Latency of a remote access, a remote signal and the start of a remote copy.
  double networkBytesPerNs = 1.67; ///< Bandwidth of one GPU's way to other nodes, each direction: a NIC of 200 Gb/s.
  double networkLatencyNs = 5000;  ///< Latency of a message to another node.
  double localLatencyNs = 400;     ///< Latency of a local global-memory round trip (signal, atomic, poll).
  double barrierClocks = 30;       ///< A block barrier.
  double shuffleClocks = 2;        ///< A shuffle, ballot or warp barrier.
  double launchLatencyNs = 3000;   ///< From a kernel at the head of its stream to its first block.
  double blockStartNs = 200;       ///< Start of one block on an SM.
  double copyStartNs = 1500;       ///< Start of a copy on a copy engine.
  uint64_t copyChunkBytes = 64 * 1024; ///< A copy becomes visible in pieces of this size.
  double hostCallNs = 1000;            ///< One enqueue or other call of host code.

  /// An H200 cut down in the same way: eight of its 132 SMs.
  static CostModel sm90();
};

/// How the machine is made and how it behaves.
struct MachineOptions {
  uint32_t ranks = 1;
  uint32_t ranksPerNode = 0; ///< Ranks 0 to this - 1 are node 0, and so on; 0: all are on one.
  uint32_t smsPerRank = 8;
  uint32_t blocksPerSm = 1;
  uint32_t warpSize = 32; ///< 32 or 64.
  uint32_t copyEnginesPerRank = 2;
  uint64_t sharedBytesPerBlock = 164 * 1024; ///< The most a launch may ask for.
  uint32_t maxThreadsPerBlock = 1024;
  uint64_t seed = 0;
  double jitter = 0.1; ///< Costs are multiplied by a factor in [1 - jitter, 1 + jitter]; the seed chooses.
  std::map<uint32_t, double> slowRanks; ///< Rank -> factor on the costs of its SMs and launches.
  bool checkBounds = true;              ///< Check each access of a kernel against the allocations.
  bool detectRaces = true;              ///< Look for data races of kernels, streams and host code; needs checkBounds.
  std::optional<Schedule> schedule;     ///< What is left to chance; empty: Schedule::draw(seed, ...).
  bool recordTrace = false;             ///< Keep spans and arrows for writeChromeTrace, and the timeline queries.
  double timeLimitSeconds = 0; ///< Longest that one call may run the machine, by the clock on the wall; 0: no limit.
  uint64_t memoryPerRank =
      uint64_t(64) << 30;                 ///< Address range reserved per rank and kind; only touched pages cost memory.
  uint64_t threadStackBytes = 256 * 1024; ///< Stack of a GPU thread; only touched pages cost memory.
  uint64_t hostStackBytes = uint64_t(8) << 20; ///< Stack of a rank's host code; pages are committed when touched.
  CostModel cost;

  uint32_t nodeSize() const { return ranksPerNode ? ranksPerNode : ranks; }
  uint32_t nodeOf(uint32_t rank) const { return rank / nodeSize(); }
  bool shareNode(uint32_t a, uint32_t b) const { return nodeOf(a) == nodeOf(b); }
  bool hasSeveralNodes() const { return nodeSize() < ranks; }

  /// The defaults are an A100's; these are an H200's: costs and the shared memory of a block.
  static MachineOptions sm90();
};

enum class MemoryKind {
  Device, ///< Only its own rank's kernels may touch it; copies may go anywhere on the node.
  Symmetric, ///< Every rank of the node may touch it, the network that of other nodes. Lies in the rank's symmetric heap, at an
             ///< offset from symmetricBase(rank).
  HostPinned, ///< Host memory that every rank of the node may touch.
};

/// Where an address belongs, for messages.
struct AddressInfo {
  uint32_t rank = 0;
  MemoryKind kind = MemoryKind::Device;
  std::string name;
  uint64_t offset = 0; ///< From the allocation's start.
  uint64_t bytes = 0;  ///< Size of the allocation.
  uint32_t elementBytes = 1;
  bool freed = false;
};

struct StreamId {
  uint32_t value = UINT32_MAX;
  bool operator==(const StreamId &) const = default;
};
struct EventId {
  uint32_t value = UINT32_MAX;
  bool operator==(const EventId &) const = default;
};

/// The argument values of a launch, packed. The kernel's entry receives an array with one pointer per value, in order.
class ArgumentPack {
public:
  /// Appends a value of a trivially copyable type at its natural alignment.
  template <typename T> ArgumentPack &add(const T &value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return addBytes(&value, sizeof(T), alignof(T));
  }
  ArgumentPack &addBytes(const void *data, size_t size, size_t alignment) {
    size_t offset = (bytes.size() + alignment - 1) / alignment * alignment;
    bytes.resize(offset + size);
    std::memcpy(bytes.data() + offset, data, size);
    offsets.push_back(static_cast<uint32_t>(offset));
    return *this;
  }

  std::vector<std::byte> bytes;
  std::vector<uint32_t> offsets; ///< Start of each value in bytes; at most 16-byte alignment is kept.
};

/// What a word is for.
struct WordRole {
  std::string text;               ///< "the arrival of rank 2 at barriers of the world".
  std::optional<uint32_t> raiser; ///< The one rank whose kernels raise it.
};

/// Called once per GPU thread. arguments[i] points to the i-th value of the launch's ArgumentPack; the kernel must not
/// write there.
using KernelEntry = void (*)(void **arguments);

struct LaunchDescription {
  std::string name;
  std::string source; ///< The file that it comes from, for traces; may be empty.
  KernelEntry entry = nullptr;
  ArgumentPack arguments; ///< The launch keeps this copy until it has run.
  std::array<uint32_t, 3> grid = {1, 1, 1};
  uint32_t threadsPerBlock = 32;
  uint64_t sharedBytes = 0;
  bool cooperative = false;        ///< Start only when all blocks fit at once; refused when they never can.
  std::function<Status()> onStart; ///< Called when the stream comes to the launch; an error ends the run.
  std::shared_ptr<void> keepAlive; ///< Released after the launch has run, for example the loaded code.
};

/// A copy of `rows` rows of `rowBytes` bytes; a plain copy has one row. Source and destination may lie on any rank.
struct CopyDescription {
  void *destination = nullptr;
  const void *source = nullptr;
  uint64_t rowBytes = 0;
  uint64_t rows = 1;
  uint64_t destinationPitch = 0; ///< Bytes from row to row; 0 means rowBytes.
  uint64_t sourcePitch = 0;
  std::string name = "copy"; ///< As shown in traces and reports.
};

/// Comparisons are of signed words.
enum class Compare { Equal, NotEqual, Greater, LessEqual, Less, GreaterEqual };

struct Counters {
  uint64_t fiberSwitches = 0;
  uint64_t blocksRun = 0;
  uint64_t kernelsRun = 0;
  uint64_t mmaFlops = 0;
  uint64_t localBytes = 0;   ///< Global memory of the block's own rank, by accounted accesses.
  uint64_t remoteBytes = 0;  ///< The same for other ranks.
  uint64_t networkBytes = 0; ///< Of puts and gets between nodes, without signals.
  uint64_t sharedBytes = 0;
  uint64_t copyBytes = 0;     ///< By copy engines.
  uint64_t tmaLoadBytes = 0;  ///< Of tensor loads, boxes in full.
  uint64_t tmaStoreBytes = 0; ///< The same of tensor stores.
  uint64_t wgmmaFlops = 0;    ///< The part of mmaFlops that warpgroups did.
  uint64_t mbarrierWaits = 0; ///< By warps.
  uint64_t schedulerSteps = 0;
};

struct BlockRecord {
  std::array<uint32_t, 3> block;
  uint32_t smSlot;
  SimTime start, end;
};
/// One kernel launch on the timeline. Blocks are in linear block order.
struct LaunchRecord {
  std::string name;
  uint32_t rank;
  StreamId stream;
  SimTime start, end;
  std::vector<BlockRecord> blocks;
};
/// One copy on the timeline.
struct CopyRecord {
  std::string name;
  uint32_t issuingRank, sourceRank, destinationRank, engine;
  uint64_t bytes;
  SimTime start, end;
};
/// One completed wait on the timeline, of a block (kernel non-empty) or of a stream.
struct WaitRecord {
  uint32_t rank;
  std::string kernel;
  std::array<uint32_t, 3> block;
  std::string signal; ///< Allocation name and index, for example ag_signal[3].
  SimTime start, end; ///< Equal when the condition already held.
};

/// Host code of a rank, which may have several.
struct HostCode {
  uint32_t rank = 0;
  std::string name; ///< Tells it from the rank's other host code in reports; empty where there is no other.
  std::function<Status()> run;
};

/// A captured sequence of stream operations with their dependencies. Opaque; see Machine::beginCapture.
class Graph;

/// See the top of this file.
class Machine {
public:
  /// Refuses options that make no sense, naming the option and what is accepted.
  static Expected<std::unique_ptr<Machine>> create(MachineOptions options);
  ~Machine();
  Machine(const Machine &) = delete;
  Machine &operator=(const Machine &) = delete;

  const MachineOptions &options() const;
  /// Ok, or the error that ended the run.
  Status status() const;
  /// Who waited for what when the run ended with a deadlock, its time limit or an interruption; null when it has not.
  std::shared_ptr<const explain::WaitReport> waitReport() const;
  /// The same of this moment.
  explain::WaitReport reportWaits() const;
  /// Says what the words of an allocation are for, by the index of the element, for reports. Kernels reach these words without being
  /// given the address.
  void describeWords(const void *allocation, std::function<WordRole(uint64_t)> describe);
  /// The clock of the calling host code: of the current rank's host code, or the time up to which the machine has run.
  SimTime now() const;

  //===- Memory ---------------------------------------------------------------------------------------------------===//

  /// Zero-filled memory on a rank, 256-byte aligned, with an unmapped-to-kernels gap on both sides. `elementBytes`
  /// serves messages (name[index]). A Symmetric allocation lands at an offset that depends only on the sequence of
  /// symmetric allocations and frees on that rank, so that equal sequences give equal offsets on all ranks.
  Expected<void *> allocate(uint32_t rank, uint64_t bytes, std::string_view name, uint32_t elementBytes = 1,
                            MemoryKind kind = MemoryKind::Device);
  /// Symmetric memory on all ranks at once, at one offset from every rank's symmetricBase.
  Expected<uint64_t> allocateSymmetric(uint64_t bytes, std::string_view name, uint32_t elementBytes = 1);
  /// Lets the rank's kernels touch host memory of the caller's, checked as its own; it must stay until release(address), which
  /// must not come before the work that touches it has run.
  Status adopt(uint32_t rank, void *address, uint64_t bytes, std::string_view name, uint32_t elementBytes = 1);
  Status release(void *address);
  /// Frees an allocation of any kind. Its range stays quarantined: a later touch is reported as use after free.
  Status free(void *address);
  /// Frees the symmetric allocation at that offset on all ranks.
  Status freeSymmetric(uint64_t offset);
  /// Start of the rank's symmetric heap: symm_at(p, r) is p - symmetricBase(me) + symmetricBase(r).
  void *symmetricBase(uint32_t rank) const;
  /// The same as kernels of `observer` address it: of a rank on another node addresses that stand for its heap. Transfers over the
  /// network take them; loads, stores and copies there are errors that say whose memory it is.
  void *symmetricBase(uint32_t rank, uint32_t observer) const;
  /// An operation that is enqueued and not done and was given an address in the allocation, or of a symmetric one in any rank's part:
  /// "kernel k on stream s of rank r". Empty when there is none.
  std::string pendingUse(const void *address) const;
  /// Host code reads or writes the memory, after what it has synchronised with: an error when that races with something.
  Status hostAccess(const void *address, uint64_t bytes, bool isWrite);
  /// The allocation (also a freed one) that holds the address.
  std::optional<AddressInfo> describe(const void *address) const;

  //===- Streams and events ---------------------------------------------------------------------------------------===//
  // Each call appends to the stream and returns; operations of one stream run in order. Arguments are copied.

  /// Higher priority streams get free SM slots first.
  Expected<StreamId> createStream(uint32_t rank, std::string_view name, int priority = 0);
  /// Ends a stream; its operations still run.
  Status destroyStream(StreamId stream);
  Expected<uint32_t> streamRank(StreamId stream) const;
  /// No operation is queued or running.
  bool isIdle(StreamId stream) const;

  Status launch(StreamId stream, LaunchDescription launch);
  /// Tells the observer now and then what share of the blocks of all launches so far has finished, from 0 to 1; graphs are not counted
  /// before they run.
  void observeProgress(std::function<void(double)> observer);
  Status copy(StreamId stream, CopyDescription copy);
  /// What copy would refuse, without enqueueing anything.
  Status checkCopy(StreamId stream, CopyDescription copy);
  Status memset(StreamId stream, void *address, int byteValue, uint64_t bytes);
  /// Writes a 4 or 8 byte word, after the stream's earlier operations are visible.
  Status signalWrite(StreamId stream, void *address, uint64_t value, uint32_t bytes = 8);
  Status signalAdd(StreamId stream, void *address, uint64_t value, uint32_t bytes = 8);
  /// Holds the stream until the word compares true.
  Status signalWait(StreamId stream, const void *address, Compare compare, uint64_t value, uint32_t bytes = 8);
  /// Runs on the machine's thread when the stream gets there; it must not block or enqueue.
  Status hostCallback(StreamId stream, std::function<void()> callback, std::string_view name = "host callback");

  Expected<EventId> createEvent(std::string_view name = "event");
  Status recordEvent(StreamId stream, EventId event);
  /// Holds the stream until the latest recording of the event, as of this call, has completed; nothing if there is
  /// none.
  Status waitEvent(StreamId stream, EventId event);
  /// Blocks the host until the latest recording of the event has completed.
  Status synchronizeEvent(EventId event);
  /// When the latest completed recording happened; none if it never completed.
  std::optional<SimTime> eventTime(EventId event) const;

  //===- Capture and replay ---------------------------------------------------------------------------------------===//

  /// From now on operations of the stream (and of streams that wait for its captured events) are kept instead of run.
  Status beginCapture(StreamId stream);
  /// Ends the capture that beginCapture(stream) began.
  Expected<std::shared_ptr<const Graph>> endCapture(StreamId stream);
  bool isCapturing(StreamId stream) const;
  /// Appends one replay of the whole graph to the stream. Any number of replays, also of several graphs.
  Status launchGraph(StreamId stream, std::shared_ptr<const Graph> graph);

  //===- Host code ------------------------------------------------------------------------------------------------===//
  // Called inside runRanks these park the calling rank's host code while others run; called outside they run the
  // machine.

  Status synchronize(StreamId stream);
  /// All streams of a rank.
  Status synchronizeRank(uint32_t rank);
  /// All streams of all ranks.
  Status synchronize();

  /// Runs `host(rank)` for every rank as interleaved host code, until all have returned. Gives the error of the run, or
  /// the error of the lowest rank whose function returned one.
  Status runRanks(const std::function<Status(uint32_t rank)> &host);
  /// The same for any number of host codes per rank. The error is that of the run, or that of the first of them that returned one.
  Status runHosts(const std::vector<HostCode> &codes);
  /// The rank whose host code is calling; none outside of runRanks.
  std::optional<uint32_t> currentHostRank() const;
  /// The calling host code is at this place of its program from now on, which reports about what it does then name, and others that
  /// are behind it in time act first.
  void hostStep(const SourceLocation &place);
  /// Parks the calling host code until all host codes are here. Only inside runRanks.
  Status hostBarrier();
  /// Parks the calling host code until so many have called this with the key, which may be used again then. `what` completes "waits
  /// for ..." in a deadlock report. Only inside runRanks.
  Status hostMeet(std::string_view key, uint32_t participants, std::string_view what);
  /// Parks the calling host code until the work that the rank's streams, or those of all ranks, have now is done, as a driver may that
  /// maps memory. Orders nothing: no program may rely on it. Only inside runRanks.
  Status hostWaitForWork(std::optional<uint32_t> rank, std::string_view what);
  /// Parks the calling host code until `condition` holds. It is evaluated again whenever other host code or a host
  /// callback has run. `description` completes "waits for ..." in a deadlock report. Only inside runRanks.
  Status hostWait(std::function<bool()> condition, std::string_view description);

  //===- What happened --------------------------------------------------------------------------------------------===//

  const Counters &counters() const;
  /// The loads that the schedule gave older values than the newest, a line each, with what would have forbidden it: what may have
  /// made a result wrong. Empty: none.
  std::string oldValues() const;
  /// Empty unless options().recordTrace.
  const std::vector<LaunchRecord> &launches() const;
  const std::vector<CopyRecord> &copies() const;
  const std::vector<WaitRecord> &waits() const;
  /// Chrome trace JSON, which Perfetto opens: process = rank, thread = SM slot, stream, copy engine, network or host code;
  /// arrows from a signal's write to the wait that it released. Of a run that failed it shows what had not ended.
  Status writeChromeTrace(const std::string &path) const;
  /// The same as text.
  std::string chromeTrace() const;
  /// Forgets spans, arrows and timeline records gathered so far.
  void clearTrace();

  /// The engine itself; for the files of this room only.
  struct State;
  State &state() { return *impl; }

private:
  explicit Machine(std::unique_ptr<State> state);
  std::unique_ptr<State> impl;
};

} // namespace ditron::sim

#endif // DITRON_SIM_MACHINE_H
