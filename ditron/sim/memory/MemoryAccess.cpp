//===- MemoryAccess.cpp - What threads do to memory ---------------------------------------------------------------===//
//
// The memory half of the ABI: the check before native accesses, ordered loads and stores, atomics, waits, fences,
// asynchronous copies. Everything that another agent may observe first lets agents that are behind catch up
// (yieldIfAhead), so that communication happens in the order of virtual time.
//
// What a strong load is given while stores are on their way: WeakMemory.h. What orders and scopes order: race/Detector.h.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Engine.h"
#include "ditron/sim/memory/Atomics.h"
#include "ditron/sim/report/DeadlockReport.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

using namespace ditron;
using namespace ditron::sim;

namespace {

std::string_view accessName(uint32_t access) {
  return access == DITRON_SIM_LOAD || access == DITRON_SIM_LOAD_COPY ? "load"
         : access == DITRON_SIM_STORE                                ? "store"
                                                                     : "atomic operation";
}

bool isShared(const Thread &thread, const void *address) {
  auto offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(thread.sharedMemory);
  return offset < thread.sharedBytes;
}

/// A null pointer with an offset.
bool isNull(const void *address) {
  constexpr uintptr_t firstMapped = uintptr_t(1) << 32;
  return reinterpret_cast<uintptr_t>(address) < firstMapped;
}

/// Why an address is a small number, when the thread was given a null pointer.
std::string whyNull(const Thread &thread, const void *address) {
  const Thread::NullPointer &null = thread.nullFor;
  if (!null.site || !isNull(address))
    return "";
  return fmt::format(
      "; remote_ptr has given null at {}, because PE {} is on node {} and this one on node {}: loads and stores do not "
      "get there, putmem_block, putmem_signal_block and getmem_block do",
      siteText(null.site), null.pe, null.node, null.ownNode);
}

[[noreturn]] __attribute__((noinline)) void failAccess(Thread &thread, const void *address, uint64_t bytes,
                                                       uint32_t access, const std::string &problem,
                                                       const DitronSimSite *site) {
  thread.block->failThread(
      thread, StatusCode::OutOfBounds,
      fmt::format("{} of {} at {} {}{}", accessName(access), byteCount(bytes),
                  isShared(thread, address) ? "shared memory" : thread.block->engine.memory.placeText(address), problem,
                  whyNull(thread, address)),
      site);
}

[[noreturn]] __attribute__((noinline)) void failShared(Thread &thread, const void *address, uint64_t bytes,
                                                       uint32_t access, const DitronSimSite *site) {
  auto offset = static_cast<const char *>(address) - thread.sharedMemory;
  thread.block->failThread(thread, StatusCode::OutOfBounds,
                           fmt::format("{} of {} is outside of the block's shared memory: offset {}, size {}",
                                       accessName(access), byteCount(bytes), offset, thread.sharedBytes),
                           site);
}

/// The argument of the kernel that an access's address is made from; null when that is not known.
const void *argumentOf(const Block &block, const DitronSimSite *site) {
  if (!site || !site->origin || site->origin->argument == 0)
    return nullptr;
  const ArgumentPack &arguments = block.kernel->description().arguments;
  const uint32_t index = site->origin->argument - 1;
  const void *pointer = nullptr;
  if (index < arguments.offsets.size())
    std::memcpy(&pointer, arguments.bytes.data() + arguments.offsets[index], sizeof pointer);
  return pointer;
}

/// Whether an access of shared memory has left the array that its address is made from.
bool leavesArray(const DitronSimSite *site, uint64_t offset, uint64_t bytes) {
  const DitronSimOrigin *origin = site ? site->origin : nullptr;
  return origin && origin->argument == 0 &&
         (offset < origin->sharedOffset || offset + bytes > uint64_t(origin->sharedOffset) + origin->sharedBytes);
}

[[noreturn]] __attribute__((noinline)) void failArray(Thread &thread, const void *address, uint64_t bytes,
                                                      uint32_t access, const DitronSimSite *site) {
  const auto offset = static_cast<const char *>(address) - thread.sharedMemory;
  const DitronSimOrigin &origin = *site->origin;
  thread.block->failThread(thread, StatusCode::OutOfBounds,
                           fmt::format("{} of {} has left the {} of shared memory of line {}: it is at byte {} of it",
                                       accessName(access), byteCount(bytes), byteCount(origin.sharedBytes),
                                       origin.sharedLine, offset - static_cast<int64_t>(origin.sharedOffset)),
                           site);
}

/// Where nothing else is that a kernel could mean whose address is made from we do not know what.
bool isNearShared(const Thread &thread, const void *address) {
  constexpr ptrdiff_t nearBytes = 1 << 20;
  const auto offset =
      static_cast<ptrdiff_t>(reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(thread.sharedMemory));
  return offset >= -nearBytes && offset < static_cast<ptrdiff_t>(thread.sharedBytes) + nearBytes &&
         !thread.block->engine.memory.isSimulated(address);
}

/// Fills the cache entry or ends the run.
__attribute__((noinline)) void checkSlowly(Thread &thread, const void *address, uint64_t bytes, uint32_t access,
                                           const DitronSimSite *site) {
  Block &block = *thread.block;
  Memory &memory = block.engine.memory;
  std::string problem = memory.checkAccess(block.rank.id, address, bytes, block.cache.at(site));
  const void *pointer = argumentOf(block, site);
  // An address behind all of the block's shared memory looks like one of global memory. One that is made from an argument does not
  // lead there, however near the caller's memory lies.
  if (!problem.empty() && !memory.find(address)) {
    if (leavesArray(site, reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(thread.sharedMemory),
                    bytes))
      failArray(thread, address, bytes, access, site);
    if (!pointer && isNearShared(thread, address))
      failShared(thread, address, bytes, access, site);
  }
  if (pointer) {
    if (problem.empty())
      problem = memory.checkOrigin(pointer, address);
    else if (!memory.find(address) && !memory.isSimulated(address) && !isNull(address))
      problem += memory.distanceFrom(pointer, address);
  }
  if (!problem.empty())
    failAccess(thread, address, bytes, access, problem, site);
}

inline bool hits(const AccessCache::Entry &entry, const void *address, uint64_t bytes) {
  uint64_t offset = reinterpret_cast<uintptr_t>(address) - entry.begin;
  return offset < entry.size && bytes <= entry.size - offset;
}

/// As an instruction of a GPU needs it; sizes that no instruction has are made of several.
inline bool isAligned(const void *address, uint32_t bytes) {
  return (reinterpret_cast<uintptr_t>(address) & (bytes - 1)) == 0 || !std::has_single_bit(bytes);
}

/// Tells the checks of asynchronous operations about an access of shared memory.
inline void noteShared(Thread &thread, const void *address, uint64_t bytes, uint32_t access,
                       const DitronSimSite *site) {
  if (access == DITRON_SIM_LOAD || access == DITRON_SIM_LOAD_COPY)
    thread.block->asyncUnit.proxy.noteLoad(thread, address, bytes, site);
  else
    thread.block->asyncUnit.proxy.noteStore(thread, address, bytes, site);
}

/// Tells the trace of an access of another rank's memory.
inline void noteIfRemote(Block &block, const AccessCache::Entry &entry, uint64_t bytes, uint32_t access,
                         const DitronSimSite *site) {
  if (entry.remote && entry.allocation && block.engine.trace.isEnabled()) [[unlikely]]
    block.noteRemote(*entry.allocation, bytes, access != DITRON_SIM_LOAD && access != DITRON_SIM_LOAD_COPY, site);
}

/// Checks a thread-level access and charges it; `remote` says whether it goes to another rank. False for shared memory.
bool enterGlobal(Thread &thread, const void *address, uint32_t bytes, uint32_t access, const DitronSimSite *site) {
  Block &block = *thread.block;
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("{} of {}: only 1, 2, 4 and 8 bytes exist", accessName(access), byteCount(bytes)),
                     site);
  if (reinterpret_cast<uintptr_t>(address) % bytes != 0)
    failAccess(thread, address, bytes, access, "is not aligned to its size", site);
  if (isShared(thread, address)) {
    if (static_cast<const char *>(address) + bytes > thread.sharedMemory + thread.sharedBytes)
      failShared(thread, address, bytes, access, site);
    if (leavesArray(site, static_cast<uint64_t>(static_cast<const char *>(address) - thread.sharedMemory), bytes))
      failArray(thread, address, bytes, access, site);
    noteShared(thread, address, bytes, access, site);
    block.sharedTraffic += bytes;
    return false;
  }
  AccessCache::Entry &entry = block.cache.at(site);
  if (!hits(entry, address, bytes)) {
    if (block.checked)
      checkSlowly(thread, address, bytes, access, site);
    else if (thread.accessSite = site; Allocation *allocation = block.engine.memory.find(address))
      entry = {site, reinterpret_cast<uintptr_t>(allocation->begin), allocation->size(),
               allocation->rank != block.rank.id};
    else
      entry = {site, reinterpret_cast<uintptr_t>(address), bytes, 0};
  }
  noteIfRemote(block, entry, bytes, access, site);
  // Threads act side by side: only the first at a line can find the block ahead.
  if (block.chargeAccess(thread, address, bytes, access == DITRON_SIM_STORE, entry.remote, site))
    block.yieldIfAhead(thread);
  block.maybeLetOthersFirst(thread);
  return true;
}

void announceWrite(Thread &thread, const void *address, uint32_t bytes, bool changes, const DitronSimSite *site) {
  Block &block = *thread.block;
  if (changes)
    block.engine.wordWritten(address, bytes, block.writer(thread, site));
  else
    block.engine.writers.record(address, block.writer(thread, site));
}

uint64_t loadBits(const void *address, uint32_t bytes) {
  switch (bytes) {
  case 1: return *static_cast<const volatile uint8_t *>(address);
  case 2: return *static_cast<const volatile uint16_t *>(address);
  case 4: return *static_cast<const volatile uint32_t *>(address);
  default: return *static_cast<const volatile uint64_t *>(address);
  }
}

/// The lowest bytes of a value.
uint64_t lowest(uint64_t value, uint32_t bytes) {
  return bytes == 8 ? value : value & ((uint64_t(1) << (8 * bytes)) - 1);
}

void storeBits(void *address, uint64_t value, uint32_t bytes) {
  switch (bytes) {
  case 1: *static_cast<volatile uint8_t *>(address) = static_cast<uint8_t>(value); break;
  case 2: *static_cast<volatile uint16_t *>(address) = static_cast<uint16_t>(value); break;
  case 4: *static_cast<volatile uint32_t *>(address) = static_cast<uint32_t>(value); break;
  default: *static_cast<volatile uint64_t *>(address) = value; break;
  }
}

/// Parks the thread until the comparison holds and gives the time at which it parked.
SimTime sleepOn(Thread &thread, const void *address, uint32_t bytes, Compare compare, int64_t value, const char *frame,
                const DitronSimSite *site) {
  Block &block = *thread.block;
  Waiter &waiter = thread.waiter;
  waiter.address = address;
  waiter.bytes = bytes;
  waiter.kind = Waiter::Kind::Until;
  waiter.compare = compare;
  waiter.value = value;
  waiter.since = waiter.began = block.clock;
  thread.site = site;
  thread.state = ThreadState::WaitingWord;
  thread.frame = frame;
  block.parkOnWord(thread);
  thread.frame = nullptr;
  return waiter.since;
}

void recordWait(Block &block, const void *address, SimTime since) {
  Trace &trace = block.engine.trace;
  if (!trace.isEnabled())
    return;
  WaitRecord record{block.rank.id,
                    block.kernel->description().name,
                    {block.blockId[0], block.blockId[1], block.blockId[2]},
                    block.engine.memory.signalName(address),
                    since,
                    block.clock};
  // Threads of a block that wait for the same word make one record.
  if (!trace.waits.empty()) {
    const WaitRecord &last = trace.waits.back();
    if (last.rank == record.rank && last.block == record.block && last.kernel == record.kernel &&
        last.signal == record.signal && last.end == record.end)
      return;
  }
  trace.waits.push_back(std::move(record));
}

using race::Detector;

/// Tells the race detector about an atomic or ordered access.
void synchronise(Thread &thread, const void *address, uint32_t bytes, const Detector::Strong &access,
                 const DitronSimSite *site) {
  Block &block = *thread.block;
  if (block.engine.races)
    block.failIf(block.engine.races->synchronise(thread, address, bytes, access, site), thread, site);
}

/// What a strong load is given.
WeakMemory::Seen loadWord(Thread &thread, const void *address, uint32_t bytes, bool global, const DitronSimSite *site) {
  WeakMemory *weak = thread.block->engine.weakMemory.get();
  return weak && global ? weak->load(thread, address, bytes, site) : WeakMemory::Seen{loadBits(address, bytes)};
}

/// A strong access that reads the newest value.
void synchroniseLoad(Thread &thread, const void *address, uint32_t bytes, uint32_t order, uint32_t scope, bool global,
                     const DitronSimSite *site) {
  synchronise(thread, address, bytes, {Detector::Effect::Load, order, scope}, site);
  if (WeakMemory *weak = thread.block->engine.weakMemory.get(); weak && global)
    weak->loadedNewest(thread, address, bytes);
}

/// A store or update. False when it comes before the value that memory holds, which then stays.
bool storeWord(Thread &thread, void *address, uint32_t bytes, uint64_t value, Detector::Effect effect, uint32_t order,
               uint32_t scope, bool global, const DitronSimSite *site) {
  WeakMemory *weak = global ? thread.block->engine.weakMemory.get() : nullptr;
  const bool isUpdate = effect == Detector::Effect::Update;
  const bool isNewest = !weak || weak->beginStore(thread, address, bytes, isUpdate);
  race::SyncWord earlier;
  synchronise(thread, address, bytes, {effect, order, scope, nullptr, isNewest ? nullptr : &earlier}, site);
  if (isNewest)
    storeBits(address, value, bytes);
  if (weak)
    weak->endStore(thread, address, value, isUpdate,
                   isNewest ? thread.block->engine.races->lastStore(address) : earlier);
  return isNewest;
}

/// An update that comes before stores that were carried out earlier; what it has read, or none when it comes behind all.
template <typename Result>
std::optional<uint64_t> updateEarlier(Thread &thread, void *address, uint32_t bytes, std::optional<uint64_t> wanted,
                                      uint32_t order, uint32_t scope, bool global, const DitronSimSite *site,
                                      const Result &resultOf) {
  WeakMemory *weak = global ? thread.block->engine.weakMemory.get() : nullptr;
  if (!weak || order == DITRON_SIM_SEQ_CST)
    return std::nullopt;
  const WeakMemory::Seen read = weak->beginEarlierUpdate(thread, address, bytes, wanted, site);
  if (!read.store)
    return std::nullopt;
  // What it has read tells it, and those who read this one.
  const race::SyncWord before = *read.store;
  synchronise(thread, address, bytes, {Detector::Effect::Load, order, scope, &before}, site);
  race::SyncWord own;
  synchronise(thread, address, bytes, {Detector::Effect::Update, order, scope, nullptr, &own}, site);
  own.releases.insert(own.releases.end(), before.releases.begin(), before.releases.end());
  weak->endStore(thread, address, resultOf(read.value), /*isUpdate=*/true, own);
  noteEffect(thread);
  return read.value;
}

void checkSource(Thread &thread, const AsyncCopy &copy) {
  if (std::memcmp(copy.source.data(), copy.global, copy.bytes) == 0) [[likely]]
    return;
  const auto *now = static_cast<const char *>(copy.global);
  const auto changed = std::mismatch(now, now + copy.bytes, copy.source.data()).first;
  thread.block->failIf(thread.block->engine.races->changedUnderCopy(thread, changed, copy.site), thread, copy.site);
}

void completeGroups(Thread &thread, uint32_t pending) {
  AsyncQueue &queue = thread.async;
  while (queue.groupEnds.size() - queue.doneGroups > pending) {
    uint32_t from = queue.doneGroups ? queue.groupEnds[queue.doneGroups - 1] : 0;
    uint32_t to = queue.groupEnds[queue.doneGroups++];
    for (uint32_t i = from; i < to; ++i) {
      const AsyncCopy &copy = queue.copies[i];
      if (copy.global && thread.block->engine.races)
        checkSource(thread, copy);
      if (!copy.global)
        std::memset(copy.shared, 0, copy.bytes);
      else if (copy.bytes == 16)
        std::memcpy(copy.shared, copy.global, 16);
      else
        std::memcpy(copy.shared, copy.global, copy.bytes);
      // An ordinary write, which tensor stores and multiplies see only after a fence.
      noteShared(thread, copy.shared, copy.bytes, DITRON_SIM_STORE, copy.site);
      thread.block->noteAccess(thread, nullptr, copy.shared, copy.bytes, DITRON_SIM_STORE, copy.site);
    }
  }
  if (queue.doneGroups == 0)
    return;
  // Drop what is done: all of it, or when it has become much.
  uint32_t done = queue.groupEnds[queue.doneGroups - 1];
  if (done == queue.copies.size() && queue.doneGroups == queue.groupEnds.size()) {
    queue.clear();
  } else if (done > 256) {
    queue.copies.erase(queue.copies.begin(), queue.copies.begin() + done);
    queue.groupEnds.erase(queue.groupEnds.begin(), queue.groupEnds.begin() + queue.doneGroups);
    for (uint32_t &end : queue.groupEnds)
      end -= done;
    queue.doneGroups = 0;
  }
}

} // namespace

extern "C" {

void ditron_sim_access(DitronSimThread *self, const void *address, uint32_t bytes, uint32_t predicate, uint32_t access,
                       uint32_t space, const DitronSimSite *site) {
  if (!predicate)
    return;
  Thread &thread = access == DITRON_SIM_LOAD || access == DITRON_SIM_LOAD_COPY ? asReader(self) : asMeeting(self);
  Block &block = *thread.block;
  if (space == DITRON_SIM_SHARED || space == DITRON_SIM_SHARED_TILE ||
      (space == DITRON_SIM_GENERIC && isShared(thread, address))) {
    block.sharedTraffic += bytes;
    // What others of the block sleep on; the rest of shared memory is part of the block's state.
    if (access == DITRON_SIM_STORE && space != DITRON_SIM_SHARED_TILE &&
        block.engine.watches.isWatched(address, bytes)) {
      noteEffect(thread);
      block.noteNativeStore(thread, address, site);
    }
    if (block.checked) {
      uint64_t offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(thread.sharedMemory);
      if (offset > thread.sharedBytes || bytes > thread.sharedBytes - offset)
        failShared(thread, address, bytes, access, site);
      if (leavesArray(site, offset, bytes))
        failArray(thread, address, bytes, access, site);
      noteShared(thread, address, bytes, access, site);
      if (space != DITRON_SIM_SHARED_TILE)
        block.noteAccess(thread, nullptr, address, bytes, access, site);
    }
    return;
  }
  if (!block.checked) {
    thread.accessSite = site;
    block.globalBytes[0] += bytes;
    if (access != DITRON_SIM_LOAD && access != DITRON_SIM_LOAD_COPY)
      noteEffect(thread);
    return;
  }
  if (!isAligned(address, bytes)) [[unlikely]]
    failAccess(thread, address, bytes, access,
               "is not aligned to its size: a hint of the kernel (tl.multiple_of and the like) does not hold, or a "
               "pointer is not aligned "
               "to its elements",
               site);
  AccessCache::Entry &entry = block.cache.at(site);
  if (!hits(entry, address, bytes))
    checkSlowly(thread, address, bytes, access, site);
  block.globalBytes[entry.remote] += bytes;
  noteIfRemote(block, entry, bytes, access, site);
  if (access != DITRON_SIM_LOAD && access != DITRON_SIM_LOAD_COPY)
    noteEffect(thread);
  block.noteAccess(thread, entry.allocation, address, bytes, access, site);
  if (access == DITRON_SIM_STORE && block.engine.watches.isWatched(address, bytes))
    block.noteNativeStore(thread, address, site);
}

uint64_t ditron_sim_ld(DitronSimThread *self, const void *address, uint32_t bytes, uint32_t order, uint32_t scope,
                       uint32_t spin, const DitronSimSite *site) {
  if (spin == DITRON_SIM_LD_NOT)
    return 0;
  const char *frame = kernelFrame();
  Thread &thread = asMeeting(self);
  bool global = enterGlobal(thread, address, bytes, DITRON_SIM_LOAD, site);
  if (global && order == DITRON_SIM_RELAXED && !spin)
    thread.block->maybeLoadLate(thread, address);
  LateLoad &late = thread.lateLoad;
  if (late.phase == LateLoad::Phase::Back)
    return late.value;
  WeakMemory::Seen seen = loadWord(thread, address, bytes, global, site);
  uint64_t value = seen.value;
  if (late.phase == LateLoad::Phase::Ahead)
    late.value = value;
  // A thread that is given an old value does not sleep: the word has changed already.
  if (seen.store)
    noteTimePasses(thread);
  if (!seen.store && late.phase == LateLoad::Phase::None) {
    const PolledRead read{address, bytes, value, spin != 0, frame, site};
    if (const PollOutcome outcome = poll(thread, read); outcome.othersActed) {
      seen = loadWord(thread, address, bytes, global, site);
      if (seen.value != value && global && outcome.slept)
        recordWait(*thread.block, address, outcome.since);
      value = seen.value;
    }
  }
  synchronise(thread, address, bytes, {Detector::Effect::Load, order, scope, seen.store}, site);
  return value;
}

void ditron_sim_st(DitronSimThread *self, void *address, uint64_t value, uint32_t bytes, uint32_t order, uint32_t scope,
                   const DitronSimSite *site) {
  if (bytes == 0)
    return;
  Thread &thread = order == DITRON_SIM_RELAXED ? asReader(self) : asMeeting(self);
  bool global = enterGlobal(thread, address, bytes, DITRON_SIM_STORE, site);
  if (thread.block->isMadeAlready(thread, address, value, bytes))
    return;
  // A value that is there already changes nothing: a sign of life, say, that a loop gives each time.
  const bool changes = loadBits(address, bytes) != lowest(value, bytes);
  if (changes)
    noteEffect(thread);
  const bool isNewest = storeWord(thread, address, bytes, value, Detector::Effect::Store, order, scope, global, site);
  if (global && isNewest)
    announceWrite(thread, address, bytes, changes, site);
  if (global)
    thread.block->maybeGoBackToLoad(thread, address, value, bytes);
  else
    thread.block->leaveLateLoad(thread);
}

uint64_t ditron_sim_atomic_rmw(DitronSimThread *self, uint32_t op, uint32_t type, void *address, uint64_t value,
                               uint32_t predicate, uint32_t order, uint32_t scope, const DitronSimSite *site) {
  if (!predicate)
    return 0;
  const char *frame = kernelFrame();
  Thread &thread = asMeeting(self);
  const uint32_t bytes = typeBytes(type);
  bool global = enterGlobal(thread, address, bytes, DITRON_SIM_ATOMIC, site);
  if (atomicResult(op, type, 0, value))
    if (const std::optional<uint64_t> earlier =
            updateEarlier(thread, address, bytes, std::nullopt, order, scope, global, site,
                          [&](uint64_t read) { return *atomicResult(op, type, read, value); }))
      return *earlier;
  uint64_t old = loadBits(address, bytes);
  std::optional<uint64_t> result = atomicResult(op, type, old, value);
  if (!result)
    thread.block->failThread(thread, StatusCode::Unsupported,
                             fmt::format("no atomic operation {} on element type {}", op, type), site);
  storeWord(thread, address, bytes, *result, Detector::Effect::Update, order, scope, global, site);
  if (lowest(*result, bytes) != old) {
    noteEffect(thread);
    if (global)
      announceWrite(thread, address, bytes, /*changes=*/true, site);
    return old;
  }
  // It has left the word as it was: adding 0, or taking a lock that is taken. Over and over, it sleeps, and then gives this answer
  // once more.
  const PollOutcome outcome = poll(thread, {address, bytes, old, /*isKnownLoop=*/false, frame, site});
  if (global && outcome.slept && loadBits(address, bytes) != old)
    recordWait(*thread.block, address, outcome.since);
  return old;
}

uint64_t ditron_sim_atomic_cas(DitronSimThread *self, void *address, uint64_t compare, uint64_t value, uint32_t bytes,
                               uint32_t order, uint32_t scope, const DitronSimSite *site) {
  const char *frame = kernelFrame();
  Thread &thread = asMeeting(self);
  bool global = enterGlobal(thread, address, bytes, DITRON_SIM_ATOMIC, site);
  compare = lowest(compare, bytes);
  if (const std::optional<uint64_t> earlier =
          updateEarlier(thread, address, bytes, compare, order, scope, global, site, [&](uint64_t) { return value; }))
    return *earlier;
  uint64_t old = loadBits(address, bytes);
  if (old != compare)
    if (const PollOutcome outcome = poll(thread, {address, bytes, old, /*isKnownLoop=*/false, frame, site});
        outcome.othersActed) {
      // A failed exchange repeated: it has slept until the word changed, and tries once more.
      const uint64_t before = std::exchange(old, loadBits(address, bytes));
      if (global && outcome.slept && old != before)
        recordWait(*thread.block, address, outcome.since);
    }
  if (old != compare) {
    synchroniseLoad(thread, address, bytes, order, scope, global, site);
    return old;
  }
  storeWord(thread, address, bytes, value, Detector::Effect::Update, order, scope, global, site);
  const bool changes = lowest(value, bytes) != old;
  if (changes)
    noteEffect(thread);
  if (global)
    announceWrite(thread, address, bytes, changes, site);
  return old;
}

uint64_t ditron_sim_wait_until(DitronSimThread *self, const void *address, uint32_t bytes, uint32_t compare,
                               uint64_t value, uint32_t order, uint32_t scope, const DitronSimSite *site) {
  const char *frame = kernelFrame();
  Thread &thread = asMeeting(self);
  Block &block = *thread.block;
  if (bytes != 4 && bytes != 8)
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("wait on {}: only 4 and 8 bytes exist", byteCount(bytes)), site);
  if (compare > DITRON_SIM_GE)
    block.failThread(thread, StatusCode::InvalidArgument, fmt::format("wait with unknown comparison {}", compare),
                     site);
  auto comparison = static_cast<Compare>(compare);
  int64_t wanted = bytes == 4 ? static_cast<int32_t>(value) : static_cast<int64_t>(value);
  bool global = enterGlobal(thread, address, bytes, DITRON_SIM_LOAD, site);
  SimTime since = block.clock;
  // Who wakes late may find that the word has changed again.
  while (!compareHolds(comparison, loadSigned(address, bytes), wanted))
    since = sleepOn(thread, address, bytes, comparison, wanted, frame, site);
  if (global)
    recordWait(block, address, since);
  synchroniseLoad(thread, address, bytes, order, scope, global, site);
  return loadBits(address, bytes);
}

void ditron_sim_fence(DitronSimThread *self, uint32_t order, uint32_t scope, const DitronSimSite *site) {
  // A fence that some observers are outside of orders a late load for the others only.
  const uint32_t widest =
      asReader(self).block->engine.options.ranks > 1 ? DITRON_SIM_SCOPE_SYSTEM : DITRON_SIM_SCOPE_GPU;
  Thread &thread = scope < widest ? asReader(self) : asMeeting(self);
  if (thread.lateLoad.phase == LateLoad::Phase::Ahead)
    thread.lateLoad.fence = std::max(scope, thread.lateLoad.fence.value_or(scope));
  Block &block = *thread.block;
  if (block.engine.races)
    block.engine.races->fence(thread, order, scope);
  if (scope == DITRON_SIM_SCOPE_BLOCK)
    return;
  block.chargeLatency(thread, site, scope == DITRON_SIM_SCOPE_SYSTEM);
}

void ditron_sim_async_copy(DitronSimThread *self, void *shared, const void *global, uint32_t bytes, uint32_t predicate,
                           const DitronSimSite *site) {
  Thread &thread = asThread(self);
  Block &block = *thread.block;
  if (bytes != 4 && bytes != 8 && bytes != 16)
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("asynchronous copy of {}: only 4, 8 and 16 bytes exist", byteCount(bytes)), site);
  if (block.checked) {
    uint64_t offset = reinterpret_cast<uintptr_t>(shared) - reinterpret_cast<uintptr_t>(thread.sharedMemory);
    if (offset > thread.sharedBytes || bytes > thread.sharedBytes - offset)
      failShared(thread, shared, bytes, DITRON_SIM_STORE, site);
    if (predicate && reinterpret_cast<uintptr_t>(global) % bytes != 0)
      failAccess(thread, global, bytes, DITRON_SIM_LOAD, "by an asynchronous copy is not aligned to its size", site);
    AccessCache::Entry &entry = block.cache.at(site);
    if (predicate && !hits(entry, global, bytes))
      checkSlowly(thread, global, bytes, DITRON_SIM_LOAD, site);
    // Whoever reads before the wait, or still reads what was here, shall notice.
    std::memset(shared, 0xff, bytes);
    block.globalBytes[predicate ? entry.remote : 0] += predicate ? bytes : 0;
    if (predicate)
      block.noteAccess(thread, entry.allocation, global, bytes, DITRON_SIM_LOAD, site);
  } else if (predicate) {
    block.globalBytes[0] += bytes;
  }
  block.sharedTraffic += bytes;
  AsyncCopy &copy = thread.async.copies.emplace_back(shared, predicate ? global : nullptr, bytes, site);
  if (predicate && block.engine.races)
    std::memcpy(copy.source.data(), global, bytes);
}

void ditron_sim_async_commit(DitronSimThread *self, const DitronSimSite *site) {
  AsyncQueue &queue = asThread(self).async;
  queue.groupEnds.push_back(static_cast<uint32_t>(queue.copies.size()));
}

void ditron_sim_async_wait(DitronSimThread *self, uint32_t pending, const DitronSimSite *site) {
  completeGroups(asThread(self), pending);
}

void ditron_sim_check_rank(DitronSimThread *self, int32_t rank, int32_t numRanks, const char *function,
                           const DitronSimSite *site) {
  if (rank >= 0 && rank < numRanks)
    return;
  Thread &thread = asThread(self);
  thread.block->failThread(thread, StatusCode::OutOfBounds,
                           fmt::format("{}: rank {} is not one of 0..{}", function, rank, numRanks - 1), site);
}

void ditron_sim_time_out(DitronSimThread *self, const DitronSimSite *site) {
  Thread &thread = asReader(self);
  Block &block = *thread.block;
  explain::WaitReport report = reportTimeOut(block.engine);
  report.headline = describeTimeLimit(block.engine) + ", and this loop still runs";
  const std::string text = textOf(report);
  block.engine.waitReport = std::make_shared<const explain::WaitReport>(std::move(report));
  block.failThread(thread, StatusCode::TimeOut, text, site);
}

void ditron_sim_trap(DitronSimThread *self, const char *message, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  thread.block->failThread(thread, StatusCode::InvalidArgument,
                           fmt::format("trap: {}", message ? message : "no message"), site);
}

} // extern "C"
