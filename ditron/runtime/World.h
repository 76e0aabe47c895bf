//===- World.h - The ranks of a distributed program -----------------------------------------------------*- C++ -*-===//
//
// A World is a number of ranks, each a GPU of its own with a symmetric heap that all others can address. World::local
// makes them all in this process, on simulated or on real GPUs; World::fromEnvironment makes one rank of a job whose other
// ranks are other processes. Two ways to drive them, which may be mixed:
//
//   for (uint32_t r = 0; r < world.numRanks(); ++r)        // one host thread enqueues for everyone
//     world.rank(r).stream().launch(kernel, {.grid = {n, 1, 1}}, {x[r], y[r], 7});
//   Status status = world.synchronize();
//
//   Status status = world.runRanks([&](Rank &rank) {       // each rank has host code of its own
//     DITRON_RETURN_IF_ERROR(rank.stream().launch(...));
//     return rank.stream().synchronize();
//   });
//
// Errors that happen while kernels run (deadlock, access out of bounds) end the run: they come back from synchronize or
// runRanks and from every later call. A simulated world belongs to the operating-system thread that made it.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_WORLD_H
#define DITRON_RUNTIME_WORLD_H

#include "ditron/runtime/AdoptedHeap.h"
#include "ditron/runtime/Node.h"
#include "ditron/runtime/Stream.h"
#include "ditron/sim/explore/Schedule.h"
#include "ditron/support/TargetName.h"

#include <map>

#include <mutex>

namespace ditron::runtime {

class World;

struct WorldOptions {
  uint64_t heapBytes = 0; ///< Most memory a rank may have, per kind; 0 for the backend's default.
  /// Rank -> factor on the cost of everything it does. On GPUs: a delay of (factor - 1) * 10 us before each launch and copy.
  std::map<uint32_t, double> slowRanks;

  double timeLimitSeconds = 0; ///< Longest that a synchronisation may take; then it is an error. 0 for no limit.

  // Simulated GPUs.
  uint32_t sms = 8;        ///< Simulated SMs per rank.
  uint64_t seed = 0;       ///< Other seeds give other interleavings; the same gives the same run.
  std::optional<sim::Schedule> schedule; ///< What is left to chance; empty: what the seed draws.
  bool checkBounds = true; ///< Check each access of a kernel.
  bool checkRaces = true;  ///< Look for data races (sim/race); needs checkBounds.
  /// Size of a simulated node: ranks 0 to this - 1 are node 0, and so on. 0: all ranks are on one. Between nodes there are puts, gets
  /// and signals of OpenSHMEM only, no loads, stores and copies.
  uint32_t ranksPerNode = 0;
  /// Record the timeline, for writeTrace and the queries of Timeline.h. Real GPUs: for writeTrace, what kernels compiled with
  /// DITRON_TRACE_GPU note.
  bool trace = false;

  // Real GPUs.
  double waitLimitSeconds = 10;      ///< Longest wait of a kernel compiled with DITRON_BOUND_WAITS.
  bool publishWaits =
      true; ///< Kernels compiled with DITRON_PUBLISH_WAITS say what they wait for (ditron explain --pid).
  double bootstrapLimitSeconds = 60; ///< Longest that processes wait for each other.
  std::vector<int> gpus;             ///< The GPU of each rank, by the driver's numbers; empty: the first ones.
  bool shareGpus = false;            ///< More ranks than GPUs: for trying protocols, not for speed.
  bool kernelSignals = false;        ///< Stream signals by small kernels instead of the driver's own operations.
  bool callGraphs = true;            ///< Operators' calls are launched as graphs, not one operation after the other.
};

/// One rank. Owned by its World.
class Rank {
public:
  uint32_t id() const { return idValue; }
  uint32_t numRanks() const;
  World &world() const { return *owner; }
  const std::shared_ptr<Device> &device() const { return deviceValue; }
  const DeviceAttributes &attributes() const { return deviceValue->attributes(); }

  /// The rank's default stream: an ordinary stream that is always there.
  Stream &stream() { return defaultStream; }
  Expected<Stream> createStream(std::string_view name, int priority = 0);
  Expected<Event> createEvent(std::string_view name = "event");
  /// A zero-filled array. `name` appears in reports and traces.
  Expected<Buffer> allocate(DataType type, uint64_t count, std::string_view name);

  /// Address of the words that a kernel's hidden last argument points to: rank, number of ranks, symmetric heap of each
  /// rank.
  void *worldView() const { return viewAddress; }

  /// Waits for all streams of this rank.
  Status synchronize();
  /// Parks this rank's host code until all ranks' are here. Only inside World::runRanks.
  Status hostBarrier();

private:
  friend class World;
  Rank() = default;

  World *owner = nullptr;
  uint32_t idValue = 0;
  std::shared_ptr<Device> deviceValue;
  Buffer viewBuffer;
  void *viewAddress = nullptr;
  Stream defaultStream;
};

class World {
public:
  /// `numRanks` ranks in this process. Refuses options that make no sense, naming what is accepted.
  static Expected<std::unique_ptr<World>> local(uint32_t numRanks, std::string_view target,
                                                const WorldOptions &options = {});
  /// One rank, as the environment says that torchrun, mpirun, srun or `ditron launch` has set (see bootstrap/RankEnvironment.h),
  /// together with the other processes of the job on this machine. Collective: returns when all ranks are there, or fails
  /// naming those that are not. Real GPUs only. Without such an environment: World::local on all visible GPUs.
  static Expected<std::unique_ptr<World>> fromEnvironment(std::string_view target, const WorldOptions &options = {});
  /// A world of `target` on no device at all: operators can be prepared in it, to see which kernels they need there, and nothing
  /// can be launched. Memory has addresses and no contents that mean anything; `options.sms` is what the GPUs are to have.
  static Expected<std::unique_ptr<World>> forPlanning(uint32_t numRanks, std::string_view target, const WorldOptions &options);
  ~World();
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  /// A world of some of this world's ranks, numbered by their places in the list: kernels and operators of the group see only its
  /// members, on the same devices and in the same memory. Symmetric memory of a group takes its place on every rank of this world, so
  /// that all heaps stay alike: where ranks are processes, each calls this with a list that holds its own rank, and then makes the same
  /// allocations. Host code of a group's ranks runs inside runRanks of this world. This world must outlive the group.
  Expected<std::unique_ptr<World>> group(const std::vector<uint32_t> &members);

  /// A world of the same ranks whose symmetric memory is the caller's: its symmetric arrays are cut off `heap`, and kernels and operators
  /// of it reach peers there, on the same devices. Kernels of this world keep reaching them in its own heap. The memory is the
  /// caller's to keep until the result and all that was made from it are gone; simulated devices must have adopted it already.
  /// Collective where ranks are processes. This world must outlive the result.
  Expected<std::unique_ptr<World>> over(AdoptedHeapOptions heap);

  uint32_t numRanks() const { return static_cast<uint32_t>(ranks.size()); }
  /// Ranks that are next to each other share a node, and reach each other by loads, stores and copies.
  uint32_t ranksPerNode() const { return optionValues.ranksPerNode ? optionValues.ranksPerNode : numRanks(); }
  uint32_t numNodes() const { return numRanks() / ranksPerNode(); }
  uint32_t nodeOf(uint32_t rank) const { return rank / ranksPerNode(); }
  /// Whether kernels can reach all ranks' symmetric memory by one multimem access.
  bool hasMulticast() const { return node->multicastHeap(heaps[localIds.front()]) != nullptr; }
  /// An error where there are several nodes, for what needs loads, stores or copies between all ranks.
  Status requireOneNode(std::string_view what) const;
  const std::string &target() const { return targetName; }
  const WorldOptions &options() const { return optionValues; }
  /// A rank of this process.
  Rank &rank(uint32_t id) { return *ranks[id]; }
  bool isLocal(uint32_t id) const { return ranks[id] != nullptr; }
  /// The ranks of this process, ascending: all of them but in worlds made by fromEnvironment.
  const std::vector<uint32_t> &localRanks() const { return localIds; }

  /// A zero-filled array at the same offset on every rank. Inside runRanks, and where ranks are processes, it is a
  /// collective: every rank calls it, in the same order, with the same arguments, and gets the same array.
  Expected<SymmetricBuffer> allocateSymmetric(DataType type, uint64_t count, std::string_view name);

  /// The caller is host code of a rank: inside runRanks or runHosts.
  bool isInHostCode() const { return node->currentRank().has_value(); }
  /// Every rank says what it is about to do, and gets an error, on all ranks, when two say different things: it names the ranks and what
  /// they said. A collective where ranks are processes, and inside runRanks: a rank that fails before it can tell calls this all the
  /// same, and says so, for the others would wait for it, within the limits of a meeting. Elsewhere one host thread acts for all ranks,
  /// and this does nothing. `step` is the same on all ranks and begins the message.
  Status agree(const Rank &rank, std::string_view step, const std::string &said);

  /// Runs `host` for every rank of this process until all have returned: interleaved by the simulator, or each on its own
  /// thread on real GPUs. Gives the error of the run, or that of the lowest rank whose function returned one.
  Status runRanks(const std::function<Status(Rank &)> &host);
  /// The same for any number of host codes per rank: threads of a program. No collectives of World may be called in them but
  /// allocateSymmetric, by one host code of each rank.
  Status runHosts(const std::vector<HostCode> &codes);
  /// Inside runHosts: holds the calling host code until so many have called this with the key. `what` is said of it in reports.
  Status hostMeet(std::string_view key, uint32_t participants, std::string_view what) {
    return node->hostMeet(key, participants, what);
  }
  /// Inside runHosts: the calling host code is at this place of its program, which reports then name.
  void hostStep(const SourceLocation &place) { node->hostStep(place); }
  /// Inside runHosts, where memory is about to be mapped or unmapped: as long as a driver may wait for the work of a rank, or of all.
  Status hostWaitForWork(std::optional<uint32_t> rank, std::string_view what) {
    return node->hostWaitForWork(rank, what);
  }
  /// An operation that is enqueued, not done, and was given an address in the allocation; empty when none is known.
  std::string pendingUse(const void *address) const { return node->pendingUse(address); }
  /// Waits for all streams of the ranks of this process.
  Status synchronize();
  /// Ok, or the error that ended the run.
  Status status() const;

  /// The timeline as Chrome trace JSON, for Perfetto; of the ranks of this process. Needs WorldOptions::trace.
  Expected<std::string> chromeTrace() const;
  Status writeTrace(const std::string &path) const;
  /// The simulated machine, for timelines and counters; null for worlds of real GPUs.
  sim::Machine *machine() const { return node->machine(); }

private:
  friend class Rank;
  World();
  static Expected<std::unique_ptr<World>> simulate(uint32_t numRanks, const TargetName &target,
                                                   const WorldOptions &options);
  static Expected<std::unique_ptr<World>> onGpus(uint32_t numRanks, const TargetName &target,
                                                 const WorldOptions &options);
  Status addRank(uint32_t id, std::shared_ptr<Device> device);
  /// Tells every rank of this process where all symmetric heaps are.
  Status publishHeaps(std::vector<void *> bases);
  /// How many ranks of a group are next to each other on each of its nodes, 0 when it is on one; an error where that is not so.
  Expected<uint32_t> ranksPerNodeOf(const std::vector<uint32_t> &members) const;
  /// Where kernels of rank `observer` find the symmetric heap of rank `of`.
  const void *heapSeenBy(uint32_t observer, size_t of) const;
  /// Some of the ranks, before they know of heaps.
  Expected<std::unique_ptr<World>> part(const std::vector<uint32_t> &members);
  void beginSequences();
  Expected<SymmetricBuffer> allocateInTurn(uint32_t caller, DataType type, uint64_t count, std::string_view name);
  /// An array that some rank's host code has asked for inside runRanks; the others' requests must match.
  struct CollectiveAllocation {
    DataType type;
    uint64_t count;
    std::string name;
    SymmetricBuffer buffer;
    uint32_t takers = 0;
  };
  Expected<SymmetricBuffer> allocateEverywhere(DataType type, uint64_t count, std::string_view name);

  std::string targetName;
  WorldOptions optionValues;
  std::unique_ptr<Node> node;
  World *parent = nullptr;          ///< Of a group.
  std::vector<uint32_t> memberIds;  ///< Of a group: its ranks as the parent numbers them.
  std::shared_ptr<AdoptedHeap> adopted; ///< Of a world over a caller's heap.
  std::vector<std::unique_ptr<Rank>> ranks; ///< Null for ranks of other processes.
  std::vector<uint32_t> localIds;
  std::vector<void *> heaps; ///< Symmetric heap of every rank, as this process addresses it.
  SymmetricBuffer teamBarriers; ///< Words of barriers within kernels.
  std::mutex collectiveMutex;
  std::map<uint64_t, CollectiveAllocation> collectives; ///< By position in the sequence; erased when all ranks have it.
  std::vector<uint64_t> nextCollective;                 ///< Per rank.
  /// What the ranks of this process have said, by position in the sequence of agreements; erased when all have read it.
  struct Agreement {
    std::vector<std::string> said;
    uint32_t readers = 0;
  };
  std::map<uint64_t, Agreement> agreements;
  std::vector<uint64_t> nextAgreement; ///< Per rank.
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_WORLD_H
