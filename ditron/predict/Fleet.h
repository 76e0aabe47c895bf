//===- Fleet.h - The GPUs of a prediction ---------------------------------------------------------------*- C++ -*-===//
//
// GPUs with SMs, streams, copy engines and paths to each other, in a Simulation. Operators are written against this: they push
// operations on streams, as ditron/ops does on real ones, and raise signals.
//
// Representatives. On a homogeneous cluster whose nodes all do the same, shifted by the number of the node, node d at any time
// is in the state of node 0: what rank (0, l) sends to (d, m), (-d, l) sends to (0, m) at that very time. So it suffices to
// simulate node 0 and to hand what leaves it to its own ranks, as if it came from the node at the opposite distance:
//
//   4 nodes; rank (0, 1) copies to (3, 2)  ->  arrives at (0, 2) as a copy from (1, 1)
//
// This is exact when the program is the same on all nodes up to that shift (shards of equal size), and makes the cost of a
// prediction that of eight ranks. `seenBy` does the renaming; without representatives it changes nothing.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PREDICT_FLEET_H
#define DITRON_PREDICT_FLEET_H

#include "ditron/predict/MachineDescription.h"
#include "ditron/predict/Recorder.h"

#include <deque>
#include <memory>

namespace ditron::predict {

struct FleetOptions {
  uint32_t gpus = 1;
  bool usesRepresentatives = false;
  bool keepsSpans = false;
  uint32_t communicationSms = 0;             ///< SMs with Mover::Sm; 0: as many as reach the whole link.
  std::map<uint32_t, double> slowRanks = {}; ///< Rank -> factor on the time of its tiles and launches.
  double computeScale = 1;                   ///< 0: tiles take no time, so that what is left is communication.
  double communicationScale = 1;             ///< 0: whatever goes from rank to rank takes no time.
};

/// Who moves bytes between GPUs.
enum class Mover { CopyEngine, Sm };

/// One tile of a kernel: what it waits for, how long it takes, and what happens then.
struct Tile {
  std::vector<SignalId> waits; ///< Each until it has been raised once.
  Time us = 0;
  Action done; ///< May be empty.
};

/// A kernel whose block b computes the tiles b, b + blocks, ..., one block on an SM.
struct TileKernel {
  std::string name;
  uint32_t blocks = 1;
  uint64_t tiles = 0;
  std::function<Tile(uint64_t)> tile;
};

class Fleet;

/// Operations in order. Each begins when the one before it is done.
class Stream {
public:
  using Operation = std::function<void(Action done)>;
  Stream(Fleet &fleet, uint32_t rank, std::string name) : fleet(fleet), rank(rank), name(std::move(name)) {}
  Stream(const Stream &) = delete;

  void push(Operation operation);
  void launch(TileKernel kernel);
  /// A kernel that is bound by memory, of so many bytes read and written.
  void launchMemoryBound(const std::string &what, double bytes);
  void pass(const std::string &what, Time us);
  /// A copy to another rank (or inside this one) by a copy engine.
  void copy(uint32_t to, double bytes, const std::string &what);
  /// A copy of one word, which raises a signal.
  void signalCopy(uint32_t to, SignalId signal);
  void wait(SignalId signal, uint64_t count = 1);
  void raise(SignalId signal);

  Fleet &fleet;
  const uint32_t rank;
  const std::string name;

private:
  void begin();
  std::deque<Operation> operations;
  bool isBusy = false;
};

class Fleet {
public:
  Fleet(const MachineDescription &machine, FleetOptions options);
  Fleet(const Fleet &) = delete;

  const MachineDescription &machine() const { return description; }
  const FleetOptions &options() const { return chosen; }
  uint32_t numRanks() const { return chosen.gpus; }
  uint32_t ranksPerNode() const { return local; }
  uint32_t numNodes() const { return nodes; }
  uint32_t nodeOf(uint32_t rank) const { return rank / local; }
  /// Ranks 0 to this are simulated: all, or node 0.
  uint32_t simulatedRanks() const { return chosen.usesRepresentatives ? local : chosen.gpus; }

  /// How a simulated rank's message to any rank arrives: at a simulated rank, from this source.
  struct Seen {
    uint32_t owner, source;
  };
  Seen seenBy(uint32_t from, uint32_t to) const;

  Stream &addStream(uint32_t rank, std::string name);
  /// Bytes from a simulated rank to any rank.
  void transfer(uint32_t from, uint32_t to, double bytes, Mover mover, Action done);
  /// Bytes of a rank's own memory, read or written.
  void transferMemory(uint32_t rank, double bytes, Action done);
  void run(uint32_t rank, TileKernel kernel, Action done);
  /// A barrier of all simulated ranks: a word to every peer, and waiting for theirs. `done` of each when it has passed.
  void meet(uint32_t rank, Action done);
  double slowness(uint32_t rank) const;
  /// What a time of communication counts.
  Time communication(Time us) const { return us * chosen.communicationScale; }
  /// What a message from rank to rank takes on top of its bytes when they are on different nodes.
  Time networkUs(uint32_t from, uint32_t to) const;

  Simulation simulation;
  Recorder recorder;

private:
  struct Gpu {
    std::vector<uint32_t> freeSlots; ///< Numbers of free SMs, the lowest last.
    std::deque<std::function<void(uint32_t slot)>> waitingBlocks;
    uint32_t copiesInFlight = 0;
    PipeId out, in, copyPort, smPort, memory;
    std::vector<Action> atBarrier;
  };
  struct RunningKernel;
  std::vector<PipeId> pathOf(uint32_t from, uint32_t to, Mover mover) const;
  PipeId nicOf(const std::vector<PipeId> &nics, uint32_t rank) const;
  void startTile(const std::shared_ptr<RunningKernel> &kernel, uint32_t slot, uint64_t tile);
  void finishWaits(const std::shared_ptr<RunningKernel> &kernel, uint32_t slot, uint64_t tile,
                   std::shared_ptr<Tile> work, size_t next);
  void releaseSm(uint32_t rank, uint32_t slot);

  const MachineDescription &description;
  FleetOptions chosen;
  uint32_t local = 1, nodes = 1;
  std::vector<Gpu> gpus; ///< Of simulated ranks.
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<PipeId> pairPipes;       ///< Mesh: from * local + to.
  std::vector<PipeId> numaOut, numaIn; ///< Pcie: per domain of each simulated node.
  std::vector<PipeId> nicsOut, nicsIn; ///< Per NIC of each simulated node.
  uint32_t atBarrier = 0;
};

} // namespace ditron::predict
#endif // DITRON_PREDICT_FLEET_H
