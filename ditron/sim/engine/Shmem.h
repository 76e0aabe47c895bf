//===- Shmem.h - Puts and gets of kernels, delivered late ------------------------------------------------*- C++ -*-===//
//
// What a kernel hands to the network of its rank. OpenSHMEM promises little about when a put arrives: in any order with other
// puts unless a fence lies between, and not before a quiet (or barrier) unless it is lucky. So here it is unlucky: each put is an
// event in virtual time, after a delay that the seed chooses, long enough that a forgotten fence or quiet shows as stale
// data. A non-blocking put reads its source only when it is delivered.
//
// Inside of a node a transfer arrives whole, a signal at once, and a kernel has ended when all that it put there has arrived, as what
// lies in the memory system of a GPU has. Between nodes everything takes the network's time: a transfer arrives in pieces, in any
// order, a signal by itself when its time has come (that of a put behind its own pieces), and kernels end without them. Only a quiet
// waits; and a blocking get for its own bytes.
//
// A fence orders what goes to one PE with what went there before, and nothing else. So everything is kept by PE.
//
// A rank has one network: a quiet by any thread completes what all its threads have begun, as the standard says of the
// default context. Who may rely on that is another matter, and the race detector's (Detector::seal).
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_ENGINE_SHMEM_H
#define DITRON_SIM_ENGINE_SHMEM_H

#include "ditron/abi/Simulator.h"
#include "ditron/sim/engine/Scheduler.h"
#include "ditron/sim/memory/Writer.h"
#include "ditron/sim/race/Strand.h"
#include "ditron/support/Status.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ditron::sim {

struct KernelRun;
struct Rank;
struct Thread;

/// Bytes of a transfer that arrive together.
struct TransferPiece {
  uint64_t offset = 0, bytes = 0;
  SimTime due = 0;
};

/// Something that has been begun and has not arrived.
struct PendingTransfer {
  void *destination = nullptr;
  const void *source = nullptr; ///< Read at delivery; null when `data` holds the bytes.
  std::vector<char> data;
  uint64_t bytes = 0;
  uint32_t peer = 0; ///< The rank that the other end is on.
  bool isGet = false;
  bool isFar = false;                ///< The peer is on another node.
  uint64_t epoch = 0;                ///< Number of fences before it.
  bool isFenced = true;              ///< Fences order it. False: words of barriers and dl.notify.
  SimTime due = 0;                   ///< When all of it is there, and its signal changes.
  SimTime earliest = 0;              ///< The way takes until then.
  std::vector<TransferPiece> pieces; ///< What has not arrived.
  uint64_t tie = 0;                  ///< Order among those that nothing orders.
  Writer writer;
  // Who acts, for the race detector, what whoever began it knew, and what of it who sees its word learns.
  race::KnowledgeRef known, told;
  uint32_t warp = race::nobody, number = 0;
  race::Moment call;
  uint16_t site = 0;
  SimTime begun = 0;
  std::string place;                      ///< Of the call, for messages: its code may be gone when it is delivered.
  std::optional<SourceLocation> location; ///< The same, where it is known.
  // A put with a signal, or a signal alone: the word that changes after the bytes have arrived.
  void *signal = nullptr;
  uint64_t signalValue = 0;
  uint32_t signalBytes = 0, signalOp = 0;
  bool tellsStores =
      true; ///< The signal comes after what its thread has stored. False: after fences, and what it has heard of.

  const char *from(const TransferPiece &piece) const {
    return (source ? static_cast<const char *>(source) : data.data()) + piece.offset;
  }
  char *to(const TransferPiece &piece) const { return static_cast<char *>(destination) + piece.offset; }
  SimTime next() const {
    SimTime first = due;
    for (const TransferPiece &piece : pieces)
      first = std::min(first, piece.due);
    return first;
  }
};

class Shmem final : public Agent {
public:
  Shmem(Machine::State &engine, Rank &rank) : engine(engine), rank(rank) {}

  /// What is due arrives.
  void step(SimTime now) override;
  /// Begins a transfer at the thread's time; at a time of its own choice it arrives. `soon`: no longer than the way takes.
  void begin(Thread &thread, PendingTransfer transfer, bool soon, const DitronSimSite *site);
  /// Later operations to a PE arrive after earlier ones, and after what the thread has done.
  void fence(Thread &thread);
  /// What was begun towards a PE before the last fence arrives now.
  void settleFenced(uint32_t peer) {
    deliverIf([&](const PendingTransfer &t) { return t.peer == peer && t.epoch < epoch; });
  }
  /// Everything arrives, one after the other, and the thread, which waits for it, knows it.
  void quiet(Thread &thread);
  /// A thread changes a signal word of this node at once.
  const std::string *signal(Thread &thread, void *address, uint32_t bytes, uint32_t op, uint32_t peer,
                            const DitronSimSite *site);
  /// Everything that was begun so far is over, and everybody knows.
  void forgetOrder() { paths.clear(); }
  /// Who has begun what is under way has no name any more.
  void forgetCallers() {
    for (PendingTransfer &transfer : pending)
      transfer.call = {};
  }
  void clear() {
    pending.clear();
    finishing.clear();
  }
  bool isIdle() const { return pending.empty(); }
  bool hasNear() const {
    return std::any_of(pending.begin(), pending.end(), [](const PendingTransfer &one) { return !one.isFar; });
  }
  /// Whether the PE is on another node.
  bool isFar(uint32_t peer) const;
  /// A round trip to another node, which the thread waits for; `meanwhile` happens there.
  template <typename Action> void roundTrip(Thread &thread, uint64_t bytes, Action meanwhile);
  const std::vector<PendingTransfer> &underWay() const { return pending; }
  /// Ends a kernel, all of whose blocks are done at `now`, when what is under way has arrived.
  void finishLater(KernelRun &run, SimTime now);

private:
  // For the race detector: the warp of plain transfers to a PE and those of each signal word, with the transfers begun so far.
  struct Begun {
    uint32_t warp = race::nobody, count = 0;
  };
  struct Path {
    Begun plain;
    Begun words; ///< Puts of one word, which may be flags: who sees one knows nothing of the others' bytes.
    std::map<const void *, Begun> signalled;
  };

  /// What is under way comes soon, and the thread waits until it is there.
  void hurry(Thread &thread);
  template <typename Condition> void deliverIf(Condition condition);
  void deliverDue(SimTime now);
  void deliver(PendingTransfer &transfer);
  /// False, with the run failed, when that is wrong.
  bool land(PendingTransfer &transfer, const TransferPiece &piece);
  void plan(PendingTransfer &transfer, SimTime from, bool soon);
  void planFar(PendingTransfer &transfer, SimTime from, bool soon);
  /// Ends the run: something is wrong with the transfer.
  void fail(const PendingTransfer &transfer, StatusCode code, std::string_view problem);
  /// False, with the run failed, when it races with something.
  bool checkRaces(const PendingTransfer &transfer, const TransferPiece &piece);
  bool checkSignalRaces(const PendingTransfer &transfer);
  void beginOrdered(Thread &thread, PendingTransfer &transfer, const DitronSimSite *site);

  Machine::State &engine;
  Rank &rank;
  uint64_t epoch = 0;
  std::vector<PendingTransfer> pending;
  std::vector<std::pair<KernelRun *, SimTime>> finishing;
  std::map<uint32_t, Path> paths; ///< By PE.
};

/// Sets or adds to a word.
void applySignal(void *address, uint32_t bytes, uint32_t op, uint64_t value);

} // namespace ditron::sim

#endif // DITRON_SIM_ENGINE_SHMEM_H
