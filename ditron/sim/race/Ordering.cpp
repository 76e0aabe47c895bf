//===- Ordering.cpp - Who learns what from whom -------------------------------------------------------------------===//
//
// Releases, acquires and fences of threads, meetings, kernels, streams, host code, and what works beside the threads.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Engine.h"
#include "ditron/sim/race/Detector.h"

#include <algorithm>

namespace ditron::sim::race {

namespace {
constexpr size_t mostStrands = size_t(1) << 26, mostReaders = size_t(1) << 24, mostSplits = size_t(1) << 23;
/// Blocks that are remembered before all that is over is forgotten.
constexpr size_t keptBlocks = size_t(1) << 16;
constexpr size_t keptMisses = 8, keptSeen = 16, keptReleases = 8;
/// Of what a chain of atomics would have told.
constexpr size_t mostTold = 256;
} // namespace

Detector::Detector(Machine::State &engine)
    : engine(engine), joiner([this](const Knowledge &known, const Known &entry) { return isImplied(known, entry); }) {
  strands.emplace_back(); // 0 is nobody
  readerNodes.emplace_back();
}

bool Detector::isImplied(const Knowledge &known, const Known &entry) const {
  uint32_t block = entry.key.id();
  if (entry.key.kind() == KeyKind::Stream)
    return false;
  if (entry.key.kind() != KeyKind::Block)
    block = warps[block].block;
  if (block == nobody || blocks[block].operation == nobody)
    return false;
  const Operation &operation = operations[blocks[block].operation];
  const Key stream = Key::stream(operation.stream);
  // The end of a kernel is a fence of every kind; but what has gone to other nodes is then still under way.
  const bool isDone = entry.key.isDelivered() && engine.options.nodeSize() < engine.options.ranks;
  return known.upTo(isDone ? stream.withForm(entry.key) : stream) >= operation.number;
}

//===- Strands ----------------------------------------------------------------------------------------------------===//

uint32_t Detector::makeStrand(const Strand &strand) {
  strands.push_back(strand);
  return static_cast<uint32_t>(strands.size() - 1);
}

void Detector::forgetAccesses() {
  if (engine.weakMemory)
    engine.weakMemory->clear(); // as long as it can say who was who
  engine.memory.forgetAccesses();
  for (auto &rank : engine.ranks)
    for (auto &slot : rank->slots) {
      std::fill(slot->sharedCells.begin(), slot->sharedCells.end(), Cell());
      slot->forgetStrands();
      slot->asyncUnit.proxy.forgetStores();
      slot->order.seenReleases.clear();
    }
  for (auto &rank : engine.ranks)
    rank->shmem->forgetCallers();
  strands.resize(1);
  readerNodes.resize(1);
  std::fill(std::begin(recentNodes), std::end(recentNodes), 0);
  splits.clear();
  freeSplits.clear();
  words.clear();
  sequentialFences.clear();
  std::fill(std::begin(orderedStrands), std::end(orderedStrands), OrderedBefore());
  std::fill(std::begin(orderedReaders), std::end(orderedReaders), OrderedBefore());
  std::fill(std::begin(ordered), std::end(ordered), OrderCache());
  std::fill(std::begin(readerSteps), std::end(readerSteps), ReaderStep());
}

void Detector::forgetIfFull() {
  if (strands.size() < mostStrands && readerNodes.size() < mostReaders && splits.size() < mostSplits)
    return;
  forgetAccesses();
  // What is under way goes on under a new name.
  for (auto &stream : engine.streams)
    if (stream->actor.strand)
      stream->actor.strand = makeStrand({stream->actor.warp, 1, UINT32_MAX, UINT32_MAX, engine.scheduler.now});
}

void Detector::forgetIfAllIsKnown() {
  if (blocks.size() < keptBlocks || engine.currentHost)
    return;
  for (const auto &rank : engine.ranks)
    if (!rank->shmem->isIdle())
      return;
  const KnowledgeRef &host = engine.outsideOrder.known;
  for (const auto &stream : engine.streams)
    if (!stream->isIdle() || (host ? host->upTo(Key::stream(stream->id)) : 0) < stream->order.number)
      return;
  forgetAccesses();
  operations.clear();
  blocks.clear();
  warps.clear();
  engine.outsideOrder = {};
  for (auto &stream : engine.streams) {
    stream->order.known = nullptr;
    stream->actor = {};
  }
  for (auto &event : engine.events)
    if (event->latest)
      event->latest->known = nullptr;
  for (auto &rank : engine.ranks)
    rank->shmem->forgetOrder();
}

//===- Threads ----------------------------------------------------------------------------------------------------===//

KnowledgeRef Detector::published(const Thread &thread) {
  const WarpOrder &warp = thread.warp->order;
  return joiner.with(knownBy(thread), {{Key::block(thread.block->order.block), thread.block->order.phase},
                                       {Key::warp(warp.warp), warp.sync},
                                       {Key::lane(warp.warp, thread.laneId), warp.epoch}});
}

KnowledgeRef Detector::release(Thread &thread) {
  settle();
  KnowledgeRef result = published(thread);
  thread.warp->order.beginEpoch();
  return result;
}

void Detector::learn(Thread &thread, const KnowledgeRef &what) {
  const KnowledgeRef &before = knownBy(thread);
  if (KnowledgeRef after = joiner.join(before, what); after != before)
    thread.order.known = std::move(after);
}

void Detector::waitedFor(Thread &thread, uint32_t warp, uint32_t number) {
  if (warp != nobody && number != 0)
    learn(thread, withLane(nullptr, warp, number));
}

bool Detector::reaches(Moment moment, uint32_t scope, const Block &block) const {
  if (moment.strand == 0)
    return false;
  const WarpIdentity &warp = warps[strands[moment.strand].warp];
  return race::reaches(scope, warp.block, warp.rank, block.order.block, block.rank.id);
}

bool Detector::reaches(const Release &release, uint32_t scope, const Block &block) {
  return race::reaches(std::min(release.scope, scope), release.block, release.rank, block.order.block, block.rank.id);
}

const std::vector<Release> &Detector::releasesAt(const SyncWord *word, const Cell &lastWrite) {
  streamRelease.clear();
  if (!lastWrite.writeMask)
    return streamRelease;
  if (word && word->strand == lastWrite.write && word->lane == lastWrite.writeLane)
    return word->releases;
  // What a stream writes comes after everything before it in the stream, as if it was released.
  const WarpIdentity &warp = warps[strands[lastWrite.write].warp];
  if (warp.kind == ActorKind::StreamOperation) {
    const Operation &operation = operations[blocks[warp.block].operation];
    streamRelease.push_back({operation.begin, nobody, operation.rank, DITRON_SIM_SCOPE_SYSTEM});
  }
  return streamRelease;
}

void Detector::loaded(Thread &thread, const void *address, const SyncWord *word, const Cell &lastWrite, uint32_t order,
                      uint32_t scope, uint16_t site) {
  Block &block = *thread.block;
  bool isOrdered = false;
  for (const Release &release : releasesAt(word, lastWrite)) {
    if (acquires(order)) {
      if (!reaches(release, scope, block))
        continue;
      learn(thread, release.known);
      if (word)
        noteRelease(thread, release, address, *word, site);
      isOrdered = true;
      continue;
    }
    std::vector<Release> &seen = thread.order.seen;
    Release narrowed = release;
    narrowed.scope = std::min(release.scope, scope);
    if (std::none_of(seen.begin(), seen.end(), [&](const Release &other) { return other.known == release.known; })) {
      if (seen.size() == keptSeen)
        seen.erase(seen.begin());
      seen.push_back(std::move(narrowed));
    }
  }
  if (isOrdered || !word || word->strand != lastWrite.write || !word->all.known ||
      strands[word->strand].warp == thread.warp->order.warp)
    return;
  std::vector<NearMiss> &misses = block.order.nearMisses;
  NearMiss miss{word->all.known,
                address,
                word->site,
                site,
                word->order,
                word->scope,
                static_cast<uint8_t>(order),
                static_cast<uint8_t>(scope)};
  if (std::any_of(misses.begin(), misses.end(),
                  [&](const NearMiss &other) { return other.known == miss.known && other.loadSite == site; }))
    return;
  if (misses.size() == keptMisses)
    misses.erase(misses.begin());
  misses.push_back(std::move(miss));
}

void Detector::noteRelease(Thread &thread, const Release &release, const void *address, const SyncWord &word,
                           uint16_t site) {
  Block &block = *thread.block;
  const WarpIdentity &writer = warps[strands[word.strand].warp];
  if (word.strand == 0 || writer.kind != ActorKind::Threads || writer.block == block.order.block)
    return;
  std::vector<SeenRelease> &seen = block.order.seenReleases;
  if (!seen.empty() && seen.back().store == Moment{word.strand, word.lane} && seen.back().loadSite == site)
    return;
  if (seen.size() == keptReleases)
    seen.erase(seen.begin());
  seen.push_back({release.known, address, {word.strand, word.lane}, momentOf(thread), word.site, site});
}

void Detector::addRelease(std::vector<Release> &releases, const Release &release, Joiner &joiner) {
  for (Release &other : releases)
    if (other.rank == release.rank && other.scope == release.scope &&
        (other.block == release.block || release.scope != DITRON_SIM_SCOPE_BLOCK)) {
      other.known = joiner.join(other.known, release.known);
      if (other.block != release.block)
        other.block = nobody;
      return;
    }
  releases.push_back(release);
}

void Detector::stored(Thread &thread, SyncWord &word, const Cell &lastWrite, Cell &cell, bool isUpdate, uint32_t order,
                      uint32_t scope, uint16_t site) {
  const Block &block = *thread.block;
  std::vector<Release> now;
  if (isUpdate)
    now = releasesAt(&word, lastWrite);
  const KnowledgeRef known = published(thread);
  const bool isChain = isUpdate && word.all.known && word.all.known->entries().size() < mostTold &&
                       word.strand == lastWrite.write && word.lane == lastWrite.writeLane;
  word.all = {isChain ? joiner.join(word.all.known, known) : known, block.order.block, block.rank.id,
              DITRON_SIM_SCOPE_SYSTEM};
  if (releases(order)) {
    addRelease(now, {known, block.order.block, block.rank.id, scope}, joiner);
    thread.warp->order.beginEpoch();
  } else if (const Release &fenced = thread.order.fenced; fenced.known) {
    addRelease(now, {fenced.known, fenced.block, fenced.rank, std::min(fenced.scope, scope)}, joiner);
  }
  word.releases = std::move(now);
  word.strand = cell.write;
  word.lane = static_cast<uint8_t>(cell.writeLane);
  word.order = static_cast<uint8_t>(order);
  word.scope = static_cast<uint8_t>(scope);
  word.site = site;
}

SyncWord Detector::lastStore(const void *address) {
  const Cell *cell = cellOf(address);
  if (!cell)
    return {};
  const Cell last = innermost(*const_cast<Cell *>(cell), address);
  auto known = words.find(address);
  SyncWord result;
  if (known != words.end() && last.writeMask && known->second.strand == last.write)
    result = known->second;
  result.releases = releasesAt(known == words.end() ? nullptr : &known->second, last);
  result.strand = last.writeMask ? last.write : 0;
  result.lane = static_cast<uint8_t>(last.writeLane);
  return result;
}

Detector::Race Detector::synchronise(Thread &thread, const void *address, uint32_t bytes, const Strong &strong,
                                     const DitronSimSite *site) {
  const auto [effect, order, scope, older, earlier] = strong;
  settle();
  Cell *cell = cellOf(thread, address);
  if (!cell)
    return nullptr;
  const Cell before = innermost(*cell, address);
  // A block's own shared memory is read and written like a tile's elements unless an order or an atomic says otherwise.
  const bool isShared =
      reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(thread.sharedMemory) < thread.sharedBytes;
  const bool isOrdinary = isShared && order == DITRON_SIM_RELAXED && effect != Effect::Update;
  const Access access{effect != Effect::Load, isOrdinary ? Strength::ordinary() : Strength::strong(scope, bytes),
                      siteNumber(site), isShared};
  const Actor actor = actorOf(thread);
  // One whole cell, or two.
  const uint64_t offset = reinterpret_cast<uintptr_t>(address) % wordBytes;
  if (access.isWrite && !isShared)
    thread.order.storedIn = actor.phase;
  uint64_t where = 0;
  if (std::optional<Found> found = touchRange(cell, offset, bytes, actor, access, where))
    return report(actor, *found, static_cast<const char *>(address) + (where - offset), bytes, access);
  if (older) {
    Cell write;
    write.write = older->strand;
    write.writeLane = older->lane;
    write.writeMask = older->strand ? 1 : 0;
    loaded(thread, address, older, write, order, scope, access.site);
    return nullptr;
  }
  if (earlier) {
    stored(thread, *earlier, before, innermost(*cell, address), false, order, scope, access.site);
    innermost(*cell, address) = before;
    return nullptr;
  }
  auto known = words.find(address);
  if (effect != Effect::Store)
    loaded(thread, address, known == words.end() ? nullptr : &known->second, before, order, scope, access.site);
  if (effect != Effect::Load)
    stored(thread, known == words.end() ? words[address] : known->second, before, innermost(*cell, address),
           effect == Effect::Update, order, scope, access.site);
  return nullptr;
}

void Detector::fence(Thread &thread, uint32_t order, uint32_t scope) {
  const Block &block = *thread.block;
  if (acquires(order))
    std::erase_if(thread.order.seen, [&](const Release &release) {
      if (!reaches(release, scope, block))
        return false;
      learn(thread, release.known);
      return true;
    });
  if (order == DITRON_SIM_SEQ_CST)
    for (const Release &earlier : sequentialFences)
      if (reaches(earlier, scope, block))
        learn(thread, earlier.known);
  if (releases(order))
    thread.order.fenced = {release(thread), block.order.block, block.rank.id, scope};
  if (order == DITRON_SIM_SEQ_CST)
    addRelease(sequentialFences, thread.order.fenced, joiner);
}

void Detector::proxyFence(Thread &thread) {
  settle();
  BlockOrder &block = thread.block->order;
  // Beyond the block's last barrier there may be stores of its own, and of its warp before the lanes met.
  const bool isPrivate = thread.order.storedIn == block.phase || thread.warp->order.metIn == block.phase;
  const KnowledgeRef before = knownBy(thread);
  ProxyFence &last = block.proxyFence;
  if (!isPrivate && last.phase == block.phase && last.before == before) {
    thread.order.known = last.after;
    return;
  }
  const KnowledgeRef now =
      isPrivate ? published(thread) : joiner.with(before, {{Key::block(block.block), block.phase}});
  std::vector<Known> fenced;
  for (const Known &entry : now->entries())
    if (entry.key.kind() != KeyKind::Stream && entry.key.isPlain())
      fenced.push_back({entry.key.fenced(), entry.upTo});
  thread.order.known = joiner.with(before, std::move(fenced));
  if (isPrivate) {
    thread.warp->order.beginEpoch(); // what comes now is not fenced
    thread.order.storedIn = 0;
  } else {
    last = {before, thread.order.known, block.phase};
  }
}

/// Own threads' entries that a block's barrier makes superfluous: what they told each other is implied by it. What they have fenced is
/// not, unless nothing is left unfenced; nor is what has come of their transfers.
KnowledgeRef Detector::behindBarrier(const Block &block, const KnowledgeRef &all) const {
  const Knowledge &known = *all;
  const Key own = Key::block(block.order.block).fenced();
  const bool isAllFenced = known.upTo(own) == block.order.phase &&
                           std::none_of(block.allThreads().begin(), block.allThreads().end(), [&](const auto &thread) {
                             return thread->order.storedIn == block.order.phase;
                           });
  auto isOwn = [&](const Known &entry) {
    if (entry.key.kind() == KeyKind::Stream)
      return false;
    if (entry.key.kind() == KeyKind::Block)
      return entry.key.id() == block.order.block;
    const WarpIdentity &warp = warps[entry.key.id()];
    return warp.block == block.order.block && warp.kind == ActorKind::Threads;
  };
  std::vector<Known> kept;
  for (const Known &entry : known.entries())
    if (!isOwn(entry) || entry.key.isSealed() || entry.key.isDelivered() ||
        (entry.key.isFenced() && (!isAllFenced || entry.key == own)))
      kept.push_back(entry.key == own && isAllFenced ? Known{own, block.order.phase + 1} : entry);
  return kept == known.entries() ? all : std::make_shared<const Knowledge>(std::move(kept));
}

//===- Meetings ---------------------------------------------------------------------------------------------------===//

void Detector::blockBarrier(Block &block) {
  settle();
  KnowledgeRef known = block.order.known;
  for (const auto &thread : block.allThreads())
    if (thread->order.known) {
      known = joiner.join(known, thread->order.known);
      thread->order.known = nullptr;
    }
  if (known != block.order.known)
    block.order.known = behindBarrier(block, known);
  ++block.order.phase;
  block.forgetStrands();
  for (Warp &warp : block.allWarps())
    warp.order.passBarrier();
  forgetIfFull();
}

void Detector::warpBarrier(Block &block, Warp &warp) {
  settle();
  const uint32_t warpSize = engine.options.warpSize;
  const auto *first = block.allThreads().data() + warp.order.index * warpSize;
  const uint32_t lanes =
      std::min<uint32_t>(warpSize, static_cast<uint32_t>(block.allThreads().size()) - warp.order.index * warpSize);
  KnowledgeRef known;
  for (uint32_t lane = 0; lane < lanes; ++lane)
    if (first[lane]->order.known)
      known = joiner.join(known ? known : block.order.known, first[lane]->order.known);
  if (known)
    for (uint32_t lane = 0; lane < lanes; ++lane)
      first[lane]->order.known = known;
  warp.order.beginSync();
  warp.order.metIn = block.order.phase;
}

void Detector::arrive(Thread &thread, MeetingOrder &meeting) {
  meeting.arrived = joiner.join(meeting.arrived, release(thread));
}

void Detector::complete(MeetingOrder &meeting) {
  // Joined: a thread that waited for an earlier phase may go on only now.
  meeting.completed = joiner.join(meeting.completed, meeting.arrived);
  meeting.arrived = nullptr;
}

//===- Kernels ----------------------------------------------------------------------------------------------------===//

void Detector::beginKernel(Stream &stream, KernelRun &run) {
  // Code may have been loaded where other code was before.
  std::fill(std::begin(sites), std::end(sites), SiteCache());
  run.operation = static_cast<uint32_t>(operations.size());
  operations.push_back({stream.id, ++stream.order.number, stream.rank.id, run.name, stream.order.known,
                        siteNumber(stream.head().place)});
}

void Detector::beginBlock(Block &block) {
  block.order = {static_cast<uint32_t>(blocks.size()), 1, operations[block.kernel->operation].begin, nullptr, {}, {}};
  blocks.push_back({block.kernel->operation, {block.blockId[0], block.blockId[1], block.blockId[2]}});
  block.sharedCells.assign((block.kernel->description().sharedBytes + wordBytes - 1) / wordBytes, Cell());
  for (uint32_t index = 0; index < block.allWarps().size(); ++index) {
    block.allWarps()[index].order = {makeWarp(ActorKind::Threads, block.order.block, block.rank.id), index};
    warps.back().index = index;
  }
}

void Detector::threadFinished(Thread &thread) {
  settle();
  BlockOrder &block = thread.block->order;
  block.left = joiner.join(block.left, thread.order.known);
  const uint32_t storedIn = thread.order.storedIn;
  thread.order.clear();
  thread.order.storedIn = storedIn; // who has returned does not fence any more
}

void Detector::blockFinished(Block &block) {
  KernelRun &run = *block.kernel;
  run.left = joiner.join(joiner.join(run.left, block.order.known), block.order.left);
}

void Detector::kernelFinished(KernelRun &run) {
  wait(run.stream->order, run.left);
  forgetIfFull();
}

//===- Streams and hosts ------------------------------------------------------------------------------------------===//

uint32_t Detector::makeWarp(ActorKind kind, uint32_t block, uint32_t rank) {
  warps.push_back({block, 0, kind, rank});
  return static_cast<uint32_t>(warps.size() - 1);
}

Actor Detector::actorOf(uint32_t warp, uint32_t number, const KnowledgeRef &known) {
  const uint32_t strand = makeStrand({warp, number, UINT32_MAX, UINT32_MAX, engine.scheduler.now});
  return {strand, warp, nobody, warps[warp].rank, 0, 0, 0, &known};
}

void Detector::ensureWarp(uint32_t &warp, ActorKind kind, uint32_t block, uint32_t rank, uint32_t index) {
  if (warp != nobody)
    return;
  warp = makeWarp(kind, block, rank);
  warps.back().index = index;
}

//===- The network ------------------------------------------------------------------------------------------------===//

Actor Detector::transferOf(uint32_t warp, uint32_t number, Moment call, const KnowledgeRef &known) {
  const uint32_t strand = makeStrand(Strand::transfer(warp, number, call.strand, call.lane, engine.scheduler.now));
  return {strand, warp, nobody, warps[warp].rank, 0, 0, 0, &known};
}

bool Detector::isOfRank(const Known &entry, uint32_t rank) const {
  const uint32_t id = entry.key.id();
  switch (entry.key.kind()) {
  case KeyKind::Stream: return engine.streams[id]->rank.id == rank;
  case KeyKind::Block: return blocks[id].operation != nobody && operations[blocks[id].operation].rank == rank;
  default: return warps[id].kind == ActorKind::Threads && warps[id].rank == rank;
  }
}

void Detector::seal(Thread &thread, bool completes) {
  settle();
  BlockOrder &block = thread.block->order;
  const KnowledgeRef before = knownBy(thread);
  const bool isIdle = thread.warp->order.isIdle();
  Seal &last = block.seal;
  if (isIdle && last.phase == block.phase && last.before == before && last.completes == completes) {
    thread.order.known = last.after;
    return;
  }
  const KnowledgeRef now = isIdle ? joiner.with(before, {{Key::block(block.block), block.phase}}) : release(thread);
  std::vector<Known> more;
  const auto add = [&](Key key, uint64_t upTo) {
    if (now->upTo(key) < upTo)
      more.push_back({key, upTo});
  };
  for (const Known &entry : now->entries()) {
    if (!entry.key.isSealed() && !entry.key.isDelivered())
      add(entry.key.sealed(), entry.upTo);
    if (completes && entry.key.isPlain() && isOfRank(entry, thread.block->rank.id))
      add(entry.key.delivered(Key::allPes), entry.upTo);
  }
  thread.order.known = joiner.with(before, std::move(more));
  if (isIdle)
    last = {before, thread.order.known, block.phase, completes};
}

KnowledgeRef Detector::sealedFor(const Thread &thread, uint32_t pe) {
  const KnowledgeRef &known = knownBy(thread);
  if (!known)
    return nullptr;
  // What has arrived, and what kernels before have done, is over for everybody.
  std::vector<Known> told;
  for (const Known &entry : known->entries()) {
    const Key key = entry.key.unsealed();
    if (!entry.key.isSealed()) {
      if (key.isDelivered() || (key.isPlain() && key.kind() == KeyKind::Stream))
        told.push_back(entry);
      continue;
    }
    told.push_back({key, entry.upTo});
    if (key.isPlain() && isOfRank({key, entry.upTo}, thread.block->rank.id))
      told.push_back({key.delivered(pe), entry.upTo});
  }
  return joiner.with(nullptr, std::move(told));
}

Actor Detector::beginOperation(Stream &stream, std::string_view name) {
  const auto operation = static_cast<uint32_t>(operations.size());
  operations.push_back({stream.id, ++stream.order.number, stream.rank.id, engine.trace.intern(name), stream.order.known,
                        siteNumber(stream.head().place)});
  const auto block = static_cast<uint32_t>(blocks.size());
  blocks.push_back({operation, {}});
  return actorOf(makeWarp(ActorKind::StreamOperation, block, stream.rank.id), 1, stream.order.known);
}

void Detector::operationDone(Stream &stream) {
  const Key key = Key::stream(stream.id);
  KnowledgeRef &known = stream.order.known;
  if ((known ? known->upTo(key) : 0) < stream.order.number)
    known = joiner.with(known, {{key, stream.order.number}});
}

Detector::Race Detector::signal(const Actor &actor, const KnowledgeRef &released, const void *address,
                                const Signal &signal) {
  Cell *cell = cellOf(address);
  if (!cell)
    return nullptr;
  const Cell before = innermost(*cell, address);
  Access write{true,
               signal.isPut ? Strength::put(signal.bytes) : Strength::strong(DITRON_SIM_SCOPE_SYSTEM, signal.bytes),
               signal.site};
  write.mayBeEqual = signal.mayBeEqual;
  if (Race race = access(actor, address, signal.bytes, write))
    return race;
  SyncWord &word = words[address];
  std::vector<Release> now;
  if (signal.isUpdate)
    now = releasesAt(&word, before);
  addRelease(now, {released, nobody, actor.rank, DITRON_SIM_SCOPE_SYSTEM}, joiner);
  word = {std::move(now), actor.strand, actor.lane, DITRON_SIM_RELEASE, DITRON_SIM_SCOPE_SYSTEM, signal.site, {}};
  return nullptr;
}

Detector::Race Detector::sawSignal(Stream &stream, const void *address, uint32_t bytes) {
  Cell *cell = cellOf(address);
  if (!cell)
    return nullptr;
  const Cell before = innermost(*cell, address);
  const Actor actor = beginOperation(stream, "signal wait");
  if (Race race = access(actor, address, bytes, {false, Strength::strong(DITRON_SIM_SCOPE_SYSTEM, bytes), 0}))
    return race;
  auto known = words.find(address);
  for (const Release &release : releasesAt(known == words.end() ? nullptr : &known->second, before))
    if (race::reaches(release.scope, release.block, release.rank, nobody, stream.rank.id))
      wait(stream.order, release.known);
  return nullptr;
}

KnowledgeRef Detector::releaseHost(HostOrder &host) {
  if (host.warp != nobody)
    host.known = withLane(host.known, host.warp, host.epoch);
  return host.known;
}

Actor Detector::hostActor(HostOrder &host, uint32_t rank, std::string_view name) {
  if (host.warp == nobody) {
    host.warp = makeWarp(ActorKind::Host, nobody, rank);
    warps[host.warp].index = name.empty() ? nobody : engine.trace.intern(name);
  }
  return actorOf(host.warp, ++host.epoch, host.known);
}

} // namespace ditron::sim::race
