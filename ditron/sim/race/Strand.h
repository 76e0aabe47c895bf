//===- Strand.h - Who acts, between which synchronisations ----------------------------------------------*- C++ -*-===//
//
// A strand is what a warp does between two synchronisations: the unit of which memory remembers the last accesses. What
// works beside threads (tensor copies, warpgroup products, the network, stream operations, host code) has warps of its own
// here, of one lane, which no barrier of the block orders: only who waits for them knows that they are done.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_RACE_STRAND_H
#define DITRON_SIM_RACE_STRAND_H

#include "ditron/abi/Simulator.h"
#include "ditron/sim/Machine.h"
#include "ditron/sim/race/Knowledge.h"

#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace ditron::sim::race {

constexpr uint32_t nobody = UINT32_MAX;

/// Of DitronSimOrder.
inline bool acquires(uint32_t order) { return order == DITRON_SIM_ACQUIRE || order >= DITRON_SIM_ACQ_REL; }
inline bool releases(uint32_t order) { return order >= DITRON_SIM_RELEASE; }
/// Whether two places are within one scope of DitronSimScope, of two the narrower.
inline bool reaches(uint32_t scope, uint32_t blockA, uint32_t rankA, uint32_t blockB, uint32_t rankB) {
  return scope == DITRON_SIM_SCOPE_SYSTEM || (scope == DITRON_SIM_SCOPE_GPU ? rankA == rankB : blockA == blockB);
}

enum class ActorKind : uint8_t {
  Threads,
  TensorLoad,
  TensorStoreRead,
  TensorStoreWrite,
  Warpgroup,
  Network,
  StreamOperation,
  Host
};

/// An operation of a stream that touches memory: a launch, a copy, a signal.
struct Operation {
  uint32_t stream = nobody;
  uint64_t number = 0; ///< In its stream, from 1.
  uint32_t rank = 0;
  uint32_t name = 0;  ///< In the trace's table.
  KnowledgeRef begin; ///< What is ordered before it.
  uint16_t place = 0; ///< Where host code has enqueued it; 0: not known.
};

struct BlockIdentity {
  uint32_t operation = nobody;
  std::array<uint32_t, 3> id = {};
};

struct WarpIdentity {
  uint32_t block = nobody;
  uint32_t index = 0; ///< In its block. Of host code: its name in the trace's table, or nobody. Of the network: the PE.
  ActorKind kind = ActorKind::Threads;
  uint32_t rank = 0;
};

struct Strand {
  uint32_t warp = 0;
  uint32_t epoch = 0; ///< Releases by its lanes so far.
  uint32_t sync = 0;  ///< Meetings of its lanes so far; the greatest number for what meetings do not order.
  uint32_t phase = 0; ///< Barriers of its block so far; likewise.
  SimTime since = 0;

  /// A transfer of the network, with its number on its path: no meetings order it, and it says instead who has begun it.
  static Strand transfer(uint32_t warp, uint32_t number, uint32_t caller, uint8_t callerLane, SimTime since) {
    return {warp, number, caller, callerLane, since};
  }
  uint32_t caller() const { return sync; } ///< A strand; 0: not known any more.
  uint8_t callerLane() const { return static_cast<uint8_t>(phase); }
};

/// What a thread did at some time, in as far as others may know of it.
struct Moment {
  uint32_t strand = 0; ///< 0: before everything.
  uint8_t lane = 0;
  bool operator==(const Moment &) const = default;
};

/// Host code: a thread of a program's.
struct HostOrder {
  KnowledgeRef known;     ///< What happened before what it does next, but for what it did itself.
  uint32_t warp = nobody; ///< Made when it touches memory first.
  uint32_t epoch = 1;     ///< Accesses so far.
};

/// Who makes an access or synchronises, in this moment.
struct Actor {
  uint32_t strand = 0;
  uint32_t warp = nobody, block = nobody, rank = 0;
  uint32_t sync = 0, phase = 0;
  uint8_t lane = 0;
  const KnowledgeRef *known = nullptr;
};

//===- What threads, warps, blocks and words carry ------------------------------------------------------------------===//

/// Knowledge with the scope at which it was released: who is outside of that scope does not get it.
struct Release {
  KnowledgeRef known;
  uint32_t block = nobody, rank = 0, scope = 0;
};

struct ThreadOrder {
  KnowledgeRef known;                                 ///< Null: what its block knows.
  Release fenced;                                     ///< At its last releasing fence.
  std::vector<Release> seen;                          ///< By relaxed loads, for the next acquiring fence.
  uint32_t storeReads = nobody, storeWrites = nobody; ///< Warps of its tensor stores.
  uint32_t storedIn = 0; ///< The block's phase at its last store to global memory that it has not fenced; 0: none.

  void clear() { *this = {}; }
};

struct WarpOrder {
  uint32_t warp = nobody;
  uint32_t index = 0; ///< In its block. Of host code: its name in the trace's table, or nobody.
  uint32_t epoch = 1, sync = 1;
  uint32_t strand = 0;                            ///< 0: the next access makes one.
  uint32_t metIn = 0;                             ///< The block's phase when its lanes last met by themselves.
  uint32_t epochAtBarrier = 1, syncAtBarrier = 1; ///< Behind the last one of the block.

  void passBarrier() {
    epochAtBarrier = epoch;
    syncAtBarrier = sync;
  }
  /// Its lanes have neither touched memory nor told anybody anything since then.
  bool isIdle() const { return strand == 0 && epoch == epochAtBarrier && sync == syncAtBarrier; }
  /// What its lanes do from now on is not part of what one of them has released.
  void beginEpoch() {
    ++epoch;
    strand = 0;
  }
  /// The same of what they did before they met.
  void beginSync() {
    ++sync;
    strand = 0;
  }
};

/// A strong store that a load has seen without being ordered after it.
struct NearMiss {
  KnowledgeRef known; ///< What it would have told.
  const void *address = nullptr;
  uint16_t storeSite = 0, loadSite = 0;
  uint8_t storeOrder = 0, storeScope = 0, loadOrder = 0, loadScope = 0;
};

/// A release by a thread of another block that a load has acquired.
struct SeenRelease {
  KnowledgeRef known;
  const void *address = nullptr;
  Moment store, load;
  uint16_t storeSite = 0, loadSite = 0;
};

/// A load that was given an older value of a word than the newest, though nothing told its thread so.
struct OldValue {
  const void *address = nullptr;
  uint32_t bytes = 0;
  uint64_t given = 0, newest = 0;
  Moment reader, writer; ///< Of the newest.
  uint16_t loadSite = 0, storeSite = 0;
  std::optional<NearMiss> miss; ///< What would have told it.
  uint64_t count = 1;           ///< With others of the two places.
  bool isRepeated = false;      ///< The thread has loaded the newest value later, as loops that poll do.
};

/// What a proxy fence made of what a thread knew, in a phase of its block: for the other threads, which mostly know the same.
struct ProxyFence {
  KnowledgeRef before, after;
  uint32_t phase = 0;
};

/// The same of a fence or quiet of the network, by threads that have done nothing since the block's last barrier.
struct Seal {
  KnowledgeRef before, after;
  uint32_t phase = 0;
  bool completes = false;
};

struct BlockOrder {
  uint32_t block = nobody;
  uint32_t phase = 1;
  KnowledgeRef known;
  KnowledgeRef left;                     ///< What its threads that have returned knew.
  std::vector<NearMiss> nearMisses;      ///< The newest ones.
  std::vector<SeenRelease> seenReleases; ///< Likewise.
  ProxyFence proxyFence;
  Seal seal;
};

/// Something at which some arrive and others wait: an mbarrier, a named barrier.
struct MeetingOrder {
  KnowledgeRef arrived;     ///< By those of the present phase.
  KnowledgeRef completed;   ///< By those of the last complete phase.
  uint32_t copies = nobody; ///< The warp of the tensor loads that count there.
};

struct StreamOrder {
  KnowledgeRef known;
  uint64_t number = 0;
};

/// The last strong store to a word, and what an acquiring load of it gets.
struct SyncWord {
  std::vector<Release> releases;
  uint32_t strand = 0; ///< Of the store: when memory says that another came later, this one tells nothing.
  uint8_t lane = 0;
  uint8_t order = 0, scope = 0;
  uint16_t site = 0;
  Release
      all; ///< What the store, and the chain of atomics that it ends, would have told had they been releases at system scope.
};

} // namespace ditron::sim::race

#endif // DITRON_SIM_RACE_STRAND_H
