//===- Detector.h - Data races by happens-before --------------------------------------------------------*- C++ -*-===//
//
// Two accesses of a byte race when one is a write, they are not both atomic with scopes that include each other (and of one
// size), and no chain of synchronisation orders them: program order, barriers, releases that acquires have seen, the order
// of streams, the completion of what was waited for. That does not depend on who came first in this run, so a race is
// found in a run that gives the right numbers.
//
// The rules are those of the PTX memory model (causality order, morally strong operations), with the synchronisation that
// tile programs use: what the lanes of a warp do one instruction after the other is ordered where the compiler relies on it
// (order_lanes), and a stream's signal is released after everything before it in the stream.
//
// Tensor copies reach memory through another proxy: an ordinary store that is ordered before one races with it all the same when no
// proxy fence stands between them. Of stores by threads alone, and of the last one to each byte.
//
// Two ordinary stores of the same bytes are no race here, though the PTX model calls it one: programs rely on it, and no order of
// them can be told from another. The same holds of puts of up to 64 bytes.
//
// A put is an ordinary store by the network. Transfers are ordered by nothing but what whoever began them knew: two of one rank and one path are
// not. A quiet completes, and a fence orders, the transfers that its thread knows to have been begun, for those who know of the quiet or fence: it is
// in their knowledge, and nobody else's, that the transfers are *delivered* (Knowledge.h). A put of one word is atomic beside loads and atomics, for it may be a flag that is polled, and ordinary beside other puts.
//
// Known to be lost, never invented: of several unordered atomic writes of a word the last is remembered; of more than 16
// readers of a word some; and everything, when more than `mostStrands` have been made.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_RACE_DETECTOR_H
#define DITRON_SIM_RACE_DETECTOR_H

#include "ditron/sim/memory/Memory.h"
#include "ditron/sim/race/Shadow.h"
#include "ditron/sim/race/Strand.h"

#include <deque>
#include <optional>

namespace ditron::sim {
class Block;
class Stream;
struct KernelRun;
struct Thread;
struct Warp;
} // namespace ditron::sim

namespace ditron::sim::race {

struct Access {
  bool isWrite = false;
  Strength strength;
  uint16_t site = 0;
  bool isShared = false; ///< Of shared memory.
  /// Another thread of the block answers for it: races only with what the program stores before.
  bool isCopy = false;
  /// An ordinary store, or a put, that races with no other when it leaves what is there. Of an Actor: it does.
  bool mayBeEqual = false;
  /// Through the asynchronous proxy: what it says of itself in reports, as "tensor load". Empty: an ordinary access.
  std::string_view asyncName = {};
};

class Detector {
public:
  explicit Detector(Machine::State &engine);

  //===- Accesses (AccessCheck.cpp) -------------------------------------------------------------------------------===//
  // Each gives the race that it finds, valid until the next call.

  using Race = const std::string *; ///< Null: none.
  /// An ordinary access by a thread, of a kind of DitronSimAccess. The allocation is null for shared memory.
  Race access(Thread &thread, Allocation *allocation, const void *address, uint64_t bytes, uint32_t kind,
              const DitronSimSite *site);
  /// By anything else, wherever in global memory the address lies; what is not simulated memory has no races.
  Race access(const Actor &actor, const void *address, uint64_t bytes, const Access &access);
  /// Of a byte that an asynchronous copy of the thread was to read, and that has changed between the copy's issue and the thread's wait for it:
  /// with whom. A copy's reads are those of its thread else, so that what the thread itself stores, or what is ordered behind the issue, is no race there.
  Race changedUnderCopy(Thread &thread, const void *address, const DitronSimSite *copy);
  /// Of the shared memory of a block by something that works beside its threads.
  Race accessShared(const Actor &actor, Block &block, uint64_t offset, uint64_t bytes, const Access &access);

  //===- Ordered accesses and fences (Ordering.cpp) ---------------------------------------------------------------===//

  enum class Effect : uint8_t { Load, Store, Update };
  /// An atomic or ordered access by a thread, with an order and a scope of DitronSimOrder and DitronSimScope.
  struct Strong {
    Effect effect = Effect::Load;
    uint32_t order = 0, scope = 0;
    const SyncWord *older = nullptr; ///< A load: the store that it reads, when that is not the last one.
    SyncWord *earlier = nullptr;     ///< A store that comes before the last one: what it tells goes here.
  };
  Race synchronise(Thread &thread, const void *address, uint32_t bytes, const Strong &access,
                   const DitronSimSite *site);
  void fence(Thread &thread, uint32_t order, uint32_t scope);
  /// A fence between ordinary accesses of global memory and asynchronous copies: all that is ordered before it is ordered before
  /// the copies that come after it, by whichever threads. Wherever it stands on the way from a store to a copy, it is enough.
  void proxyFence(Thread &thread);
  /// What a load of the last value of a word is told.
  SyncWord lastStore(const void *address);
  /// What the thread is doing now, and whether it knows that something is over.
  Moment momentOf(Thread &thread) { return {strandOf(thread), static_cast<uint8_t>(thread.laneId)}; }
  /// The same, with all that says what is ordered before it: `known` is what the thread knows now.
  Actor momentWith(Thread &thread, KnowledgeRef &known) {
    Actor actor = actorOf(thread);
    known = *actor.known;
    actor.known = nullptr;
    return actor;
  }
  /// Whether what was done then was over when the actor, with that knowledge, did something.
  bool isOrderedBefore(Moment moment, Actor actor, const KnowledgeRef &known) {
    actor.known = &known;
    return moment.strand == 0 || isOrdered(moment.strand, moment.lane, actor);
  }
  bool tells(const KnowledgeRef &known, Moment moment) const {
    return known && knows(*known, strands[moment.strand], moment.lane);
  }
  /// Whether somebody is within the scope of a block. What was before everything is nobody.
  bool reaches(Moment moment, uint32_t scope, const Block &block) const;
  bool areOfOneWarp(Moment a, Moment b) const { return strands[a.strand].warp == strands[b.strand].warp; }
  /// A word that the block has seen, and that would have told it of the moment, had it been stronger; null when there is none.
  const NearMiss *findNearMiss(const Block &block, Moment moment) const;
  /// In words: the load, both values, and what is missing.
  std::string describe(const OldValue &old) const;
  bool knows(Thread &thread, Moment moment) {
    return moment.strand == 0 || isOrdered(moment.strand, moment.lane, actorOf(thread));
  }

  //===- Meetings of threads --------------------------------------------------------------------------------------===//

  void blockBarrier(Block &block);
  void warpBarrier(Block &block, Warp &warp);
  /// Arrives with what the thread knows and has done.
  void arrive(Thread &thread, MeetingOrder &meeting);
  void complete(MeetingOrder &meeting);
  /// Waits for the last complete phase.
  void acquire(Thread &thread, const MeetingOrder &meeting) { learn(thread, meeting.completed); }

  //===- Kernels, streams, hosts ----------------------------------------------------------------------------------===//

  void beginKernel(Stream &stream, KernelRun &run);
  void beginBlock(Block &block);
  void threadFinished(Thread &thread);
  void blockFinished(Block &block);
  /// What its blocks knew is known to its stream.
  void kernelFinished(KernelRun &run);
  /// Another operation that touches memory: who makes its accesses.
  Actor beginOperation(Stream &stream, std::string_view name);
  /// The operation at the head of the stream, of whatever kind, is done: what it did is known from now on.
  void operationDone(Stream &stream);
  void wait(StreamOrder &stream, const KnowledgeRef &what) { stream.known = joiner.join(stream.known, what); }
  /// Something that is no thread of a kernel writes a word, and releases what it gives.
  struct Signal {
    uint32_t bytes = 0;
    bool isUpdate = false; ///< Adds to it.
    uint16_t site = 0;
    bool isPut = false;      ///< Not a signal, but a put of one word, which may be a flag.
    bool mayBeEqual = false; ///< As of Access.
  };
  Race signal(const Actor &actor, const KnowledgeRef &released, const void *address, const Signal &signal);
  /// A stream has waited for a word.
  Race sawSignal(Stream &stream, const void *address, uint32_t bytes);
  /// What the host code knows, and everything that it has done.
  KnowledgeRef releaseHost(HostOrder &host);
  void learnHost(HostOrder &host, const KnowledgeRef &what) { host.known = joiner.join(host.known, what); }
  /// A source place as accesses name it; 0 for null.
  uint16_t siteNumber(const DitronSimSite *site);
  /// `name` tells it from other host code in reports; empty where there is no other.
  Actor hostActor(HostOrder &host, uint32_t rank, std::string_view name);
  /// Host code has waited for something: when that was all that there is, nothing of it can race any more, and much of it is forgotten.
  void forgetIfAllIsKnown();

  //===- What works beside the threads ----------------------------------------------------------------------------===//

  /// Makes a warp of one lane for it, unless there is one already.
  void ensureWarp(uint32_t &warp, ActorKind kind, uint32_t block, uint32_t rank, uint32_t index = 0);
  /// What such a warp does from now on under the number, with the knowledge of whoever began it (kept alive by the caller).
  Actor actorOf(uint32_t warp, uint32_t number, const KnowledgeRef &known);
  /// The same of the network, for a transfer that was begun at the call.
  Actor transferOf(uint32_t warp, uint32_t number, Moment call, const KnowledgeRef &known);
  /// A fence of the network: what is known to the thread, and done by it, comes before the transfers that are begun by whoever knows of the fence.
  /// `completes`: a quiet. The transfers of its rank that it knows of are over; what others have begun beside it is not its business.
  void seal(Thread &thread, bool completes);
  /// What a signal of the thread at the PE tells by itself: what a fence or quiet that the thread knows of has put before it.
  KnowledgeRef sealedFor(const Thread &thread, uint32_t pe);
  /// What the thread knows and has done; what it does from now on is not part of it.
  KnowledgeRef release(Thread &thread);
  /// What the thread has heard from others, without what it has done itself.
  const KnowledgeRef &heardBy(const Thread &thread) const { return knownBy(thread); }
  void learn(Thread &thread, const KnowledgeRef &what);
  /// The thread has waited for everything that the warp did up to the number.
  void waitedFor(Thread &thread, uint32_t warp, uint32_t number);
  KnowledgeRef joined(const KnowledgeRef &a, const KnowledgeRef &b) { return joiner.join(a, b); }
  /// And what such a warp did up to the number.
  KnowledgeRef withLane(const KnowledgeRef &a, uint32_t warp, uint32_t number) {
    return joiner.with(a, {{Key::lane(warp, 0), number}});
  }
  /// The store that was announced last has been made: a race with a store of the same value is none. Before anything that may let
  /// others go on.
  void settle() {
    if (pending.address) [[unlikely]]
      settlePending();
  }

private:
  struct Found {
    uint32_t strand;
    uint8_t lane;
    uint16_t site;
    Strength strength;
    bool isWrite;
  };
  Actor actorOf(Thread &thread);
  uint32_t strandOf(Thread &thread);
  uint32_t makeStrand(const Strand &strand);
  uint32_t makeWarp(ActorKind kind, uint32_t block, uint32_t rank);
  const KnowledgeRef &knownBy(const Thread &thread) const;
  KnowledgeRef behindBarrier(const Block &block, const KnowledgeRef &all) const;
  /// What the thread knows and has done.
  KnowledgeRef published(const Thread &thread);
  /// The cell of the word that holds the address; null for what is not simulated memory.
  Cell *cellOf(const void *address);
  Cell *cellOf(Thread &thread, const void *address);
  /// Checks and records the words of a range.
  std::optional<Found> touchRange(Cell *cells, uint64_t offset, uint64_t bytes, const Actor &actor,
                                  const Access &access, uint64_t &where);

  /// One word: checks and records. The race, if any.
  std::optional<Found> touch(Cell &cell, uint32_t region, uint32_t mask, const Actor &actor, const Access &access);
  std::optional<Found> findConflict(const Cell &cell, uint32_t mask, const Actor &actor, const Access &access);
  /// That all lanes of a strand, or all of a list of readers, are ordered before what a strand does with some knowledge.
  struct OrderedBefore {
    uint32_t previous = 0, strand = 0;
    uint64_t known = 0;
    bool operator==(const OrderedBefore &) const = default;
  };
  static constexpr size_t keptOrders = 256;
  /// A lane that isOrdered takes for all that the strand has: what works beside threads has but one.
  uint8_t allLanesOf(uint32_t strand) const;
  bool isOrderedStrand(uint32_t previous, uint8_t lane, const Actor &actor);
  bool findOrder(const OrderedBefore &wanted, OrderedBefore &kept, uint8_t lane, const Actor &actor);
  bool areReadersOrdered(Cell cell, const Actor &actor);
  Cell touchedSimply(Cell cell, uint32_t mask, const Actor &actor, const Access &access, bool &isSimple);
  void settlePending();
  /// An ordinary store of a running kernel among these bytes that no proxy fence has come behind, as far as the actor knows.
  std::optional<Found> findUnfenced(const Cell *cells, uint64_t offset, uint64_t bytes, const Actor &actor,
                                    uint64_t &where);
  bool isUnfenced(const Cell &cell, const Actor &actor) const;
  bool comesLater(const Cell &cell, const Actor &actor, const Access &access) const;
  /// `region`: the bytes that the cell is about.
  void record(Cell &cell, uint32_t region, uint32_t mask, const Actor &actor, const Access &access);
  Cell withOneMore(Cell cell, Reader reader, const Actor &actor);
  /// Says whether the same comes of it for other lanes, at the words that they have read.
  Cell withListed(Cell cell, const Reader &reader, const Actor &actor, bool &isForAllLanes);
  bool hasRead(Cell cell, uint32_t mask, const Actor &actor, const Access &access) const;
  void split(Cell &cell, uint32_t region);
  void unite(Cell &cell);
  /// The cell that holds the word's first byte, or the byte at the address.
  Cell &innermost(Cell &cell, const void *address);
  bool isOrdered(uint32_t strand, uint8_t lane, const Actor &actor);
  bool isOfOtherTransfer(const Strand &strand, const Actor &actor) const;
  std::optional<uint8_t> unorderedLane(Cell cell, const Reader &reader, const Actor &actor);
  bool areBothAtomic(uint32_t strand, Strength earlier, const Actor &actor, Strength now) const;
  bool knows(const Knowledge &known, const Strand &strand, uint8_t lane) const;
  /// As knows, of entries in the form of `form`.
  bool covers(const Knowledge &known, const Strand &strand, uint8_t lane, Key form) const;
  bool hasArrived(const Knowledge &known, const Strand &transfer) const;
  const Operation *operationOf(const WarpIdentity &warp) const;
  /// What the entry is about belongs to the rank.
  bool isOfRank(const Known &entry, uint32_t rank) const;
  /// The readers as a list of nodes, in their order; 0 when there are none.
  uint32_t makeReaders(const std::vector<Reader> &readers);

  /// Who released is within reach of the block that acquires, and the other way round.
  static bool reaches(const Release &release, uint32_t scope, const Block &block);
  /// The releases that a load finds at a word that was written so last.
  const std::vector<Release> &releasesAt(const SyncWord *word, const Cell &lastWrite);
  void loaded(Thread &thread, const void *address, const SyncWord *word, const Cell &lastWrite, uint32_t order,
              uint32_t scope, uint16_t site);
  void stored(Thread &thread, SyncWord &word, const Cell &lastWrite, Cell &cell, bool isUpdate, uint32_t order,
              uint32_t scope, uint16_t site);
  void noteRelease(Thread &thread, const Release &release, const void *address, const SyncWord &word, uint16_t site);
  static void addRelease(std::vector<Release> &releases, const Release &release, Joiner &joiner);
  bool isImplied(const Knowledge &known, const Known &entry) const;
  /// No access so far is remembered.
  void forgetAccesses();
  void forgetIfFull();

  // RaceReport.cpp
  Race report(const Actor &actor, const Found &found, const void *address, uint64_t bytes, const Access &access);
  Race reportUnfenced(const Actor &actor, const Found &store, const void *address, const Access &access);
  /// The byte as an element of its array.
  std::string placeOf(const void *address) const;
  std::string describe(uint32_t strand, uint8_t lane) const;
  std::string explain(const Actor &actor, const Found &found, const Access &access) const;
  std::string explainMiss(const NearMiss &miss) const;
  /// What a release that the block has acquired lacks to order the two accesses; empty when there is none.
  std::string explainRelease(const Block &block, const Actor &actor, const Found &found, const Access &access) const;
  uint32_t threadOf(Moment moment) const;

  Machine::State &engine;
  Joiner joiner;
  std::vector<Operation> operations;
  std::vector<BlockIdentity> blocks;
  std::vector<WarpIdentity> warps;
  std::vector<Strand> strands;
  std::deque<std::array<Cell, 2>> splits; ///< Its elements stay where they are: a cell in it may be split.
  std::vector<uint32_t> freeSplits;
  struct ReaderNode {
    Reader reader;
    uint32_t next = 0;
    bool operator==(const ReaderNode &) const = default;
  };
  std::vector<ReaderNode> readerNodes;
  uint32_t recentNodes[4096] = {};
  std::unordered_map<const void *, SyncWord> words;
  std::vector<Release> sequentialFences; ///< What is known to the sequentially consistent fences so far.
  std::vector<Release> streamRelease;    ///< The one of the last load that saw a stream's write.
  std::string lastRace;
  OrderedBefore orderedStrands[keptOrders], orderedReaders[keptOrders];
  std::optional<Found> equalStore; ///< The store that the access at hand races with, unless it stores the same.
  /// A store that has been announced and races with another store, unless both leave the same.
  struct PendingStore {
    const char *address = nullptr;
    uint32_t bytes = 0;
    char before[64];
    Status failure;
  };
  PendingStore pending;

  struct SiteCache {
    const DitronSimSite *site = nullptr;
    uint16_t number = 0;
  };
  SiteCache sites[1024];
  /// Strands that were found ordered before a certain knowledge.
  struct OrderCache {
    uint64_t who = 0, known = 0;
  };
  OrderCache ordered[4096];
  /// The last steps from one set of readers to the next, for whichever lane: the words of a tile have the same readers.
  struct ReaderStep {
    uint64_t before = 0, after = 0; ///< Halves of cells, without the lane.
    Reader reader;
    uint64_t known = 0; ///< What the reader knew.
  };
  ReaderStep readerSteps[1024];
};

} // namespace ditron::sim::race

#endif // DITRON_SIM_RACE_DETECTOR_H
