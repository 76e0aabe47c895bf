//===- AccessCheck.cpp - Comparing an access with those before ----------------------------------------------------===//
//
// Most accesses repeat what their strand has just done, or touch a word for the first time, and are done after one
// comparison. The others ask whether those that the word remembers are ordered before them; the answers for the words of a
// tile are the same, and are kept.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Engine.h"
#include "ditron/sim/race/Detector.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace ditron::sim::race {

namespace {
constexpr uint8_t allLanes = 0xff;
constexpr size_t mostReaders = 16;
/// Strands and nodes are consecutive numbers: a product with it has them all over its upper half.
constexpr uint64_t mixer = 0x9e3779b97f4a7c15u;

// Cells are passed and given by value, in two registers: to read as a whole what has just been written field by field costs as much as all the
// rest.

using Halves = std::array<uint64_t, 2>;

bool same(Cell a, Cell b) {
  const Halves x = std::bit_cast<Halves>(a), y = std::bit_cast<Halves>(b);
  return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
}

/// The half about readers, for whichever lane.
uint64_t readersOf(Cell cell) {
  cell.readLane = 0;
  return std::bit_cast<Halves>(cell)[1];
}

Cell withReaders(Cell cell, uint64_t readers, uint8_t lane) {
  const Halves halves = {std::bit_cast<Halves>(cell)[0], readers};
  cell = std::bit_cast<Cell>(halves);
  cell.readLane = lane;
  return cell;
}

uint64_t serialOf(const Actor &actor) { return *actor.known ? (*actor.known)->serial : 0; }

uint8_t laneOf(Cell cell, const Reader &reader) {
  return reader.lane == cellLane ? static_cast<uint8_t>(cell.readLane) : reader.lane;
}

Cell withReader(Cell cell, const Reader &reader) {
  cell.reads = reader.strand;
  cell.readSite = reader.site;
  cell.readLane = laneOf(cell, reader);
  cell.readStrength = reader.strength;
  cell.readMask = reader.mask;
  cell.manyReaders = 0;
  return cell;
}

Cell withWriter(Cell cell, uint32_t mask, const Actor &actor, const Access &access) {
  cell.write = actor.strand;
  cell.writeSite = access.site;
  cell.writeLane = actor.lane;
  cell.writeStrength = access.strength.bits;
  cell.writeMask = mask;
  return cell;
}

Reader readerOf(uint32_t mask, const Actor &actor, const Access &access) {
  return {actor.strand, access.site, actor.lane, access.strength.bits, mask};
}

/// Whether the lane, of those that have one list or cellLane, is one of the reader's.
bool hasLane(const Reader &reader, uint8_t lane) {
  return reader.lane == lane || (lane != cellLane && reader.others >> lane & 1);
}

void addLane(Reader &reader, uint8_t lane) {
  if (hasLane(reader, lane))
    return;
  // The cell's has no bit.
  const uint8_t other = lane == cellLane ? std::exchange(reader.lane, cellLane) : lane;
  reader.others |= uint64_t(1) << other;
}
} // namespace

//===- Who acts ---------------------------------------------------------------------------------------------------===//
// Here because each access asks.

uint32_t Detector::strandOf(Thread &thread) {
  WarpOrder &warp = thread.warp->order;
  if (warp.strand == 0)
    warp.strand = makeStrand({warp.warp, warp.epoch, warp.sync, thread.block->order.phase, thread.block->clock});
  return warp.strand;
}

const KnowledgeRef &Detector::knownBy(const Thread &thread) const {
  return thread.order.known ? thread.order.known : thread.block->order.known;
}

Actor Detector::actorOf(Thread &thread) {
  const Block &block = *thread.block;
  const WarpOrder &warp = thread.warp->order;
  return {strandOf(thread),
          warp.warp,
          block.order.block,
          block.rank.id,
          warp.sync,
          block.order.phase,
          static_cast<uint8_t>(thread.laneId),
          &knownBy(thread)};
}

uint16_t Detector::siteNumber(const DitronSimSite *site) {
  SiteCache &cached = sites[(reinterpret_cast<uintptr_t>(site) >> 4) % std::size(sites)];
  if (cached.site != site) {
    const uint32_t number = engine.places.record(site);
    cached = {site, static_cast<uint16_t>(number <= UINT16_MAX ? number : 0)};
  }
  return cached.number;
}

//===- What is ordered --------------------------------------------------------------------------------------------===//

const Operation *Detector::operationOf(const WarpIdentity &warp) const {
  const uint32_t index = warp.block == nobody ? nobody : blocks[warp.block].operation;
  return index == nobody ? nullptr : &operations[index];
}

bool Detector::covers(const Knowledge &known, const Strand &strand, uint8_t lane, Key form) const {
  const WarpIdentity &warp = warps[strand.warp];
  const Operation *operation = operationOf(warp);
  return (operation && known.upTo(Key::stream(operation->stream).withForm(form)) >= operation->number) ||
         (warp.block != nobody && known.upTo(Key::block(warp.block).withForm(form)) > strand.phase) ||
         known.upTo(Key::warp(strand.warp).withForm(form)) > strand.sync ||
         (lane != allLanes && known.upTo(Key::lane(strand.warp, lane).withForm(form)) >= strand.epoch);
}

bool Detector::hasArrived(const Knowledge &known, const Strand &transfer) const {
  if (transfer.caller() == 0 || known.upTo(Key::lane(transfer.warp, 0)) >= transfer.epoch) // its signal has been seen
    return true;
  const WarpIdentity &path = warps[transfer.warp];
  const Strand &caller = strands[transfer.caller()];
  if (covers(known, caller, transfer.callerLane(), Key().delivered(path.index)) ||
      covers(known, caller, transfer.callerLane(), Key().delivered(Key::allPes)))
    return true;
  // Inside of a node a kernel ends behind its transfers.
  const Operation *operation = operationOf(warps[caller.warp]);
  return operation && engine.options.shareNode(path.rank, path.index) &&
         known.upTo(Key::stream(operation->stream)) >= operation->number;
}

bool Detector::knows(const Knowledge &known, const Strand &strand, uint8_t lane) const {
  return warps[strand.warp].kind == ActorKind::Network ? hasArrived(known, strand) : covers(known, strand, lane, {});
}

/// Transfers of one path arrive in any order; the pieces of one of them do not matter to each other.
bool Detector::isOfOtherTransfer(const Strand &strand, const Actor &actor) const {
  return warps[strand.warp].kind == ActorKind::Network && strand.epoch != strands[actor.strand].epoch;
}

bool Detector::isOrdered(uint32_t previous, uint8_t lane, const Actor &actor) {
  const Strand &strand = strands[previous];
  if (strand.warp == actor.warp && (lane == actor.lane || strand.sync < actor.sync) &&
      !isOfOtherTransfer(strand, actor))
    return true;
  if (strand.phase < actor.phase && warps[strand.warp].block == actor.block)
    return true;
  if (!*actor.known)
    return false;
  const Knowledge &known = **actor.known;
  const uint64_t who = uint64_t(previous) << 8 | lane;
  OrderCache &cached = ordered[(who * 31 + known.serial) % std::size(ordered)];
  if (cached.who == who && cached.known == known.serial)
    return true;
  if (!knows(known, strand, lane))
    return false;
  cached = {who, known.serial};
  return true;
}

uint8_t Detector::allLanesOf(uint32_t strand) const {
  return warps[strands[strand].warp].kind == ActorKind::Threads ? allLanes : 0;
}

/// Of the reader's lanes one that is not ordered before.
std::optional<uint8_t> Detector::unorderedLane(Cell cell, const Reader &reader, const Actor &actor) {
  if (!isOrdered(reader.strand, laneOf(cell, reader), actor))
    return laneOf(cell, reader);
  if (reader.others && !isOrdered(reader.strand, allLanes, actor))
    for (uint64_t others = reader.others; others; others &= others - 1)
      if (const auto lane = static_cast<uint8_t>(std::countr_zero(others)); !isOrdered(reader.strand, lane, actor))
        return lane;
  return std::nullopt;
}

bool Detector::areBothAtomic(uint32_t previous, Strength earlier, const Actor &actor, Strength now) const {
  if (!earlier.isStrong() || !now.isStrong() || earlier.log2Bytes() != now.log2Bytes() ||
      (earlier.isPut() && now.isPut()))
    return false;
  const WarpIdentity &warp = warps[strands[previous].warp];
  return race::reaches(std::min(earlier.scope(), now.scope()), warp.block, warp.rank, actor.block, actor.rank);
}

//===- One word ---------------------------------------------------------------------------------------------------===//

/// Whether a load of a copy comes before the store that it meets, in the program.
bool Detector::comesLater(const Cell &cell, const Actor &actor, const Access &access) const {
  return access.isCopy && warps[strands[cell.write].warp].block == actor.block &&
         !(cell.writeSite && access.site && engine.places.isOnEarlierLine(cell.writeSite, access.site));
}

std::optional<Detector::Found> Detector::findConflict(const Cell &cell, uint32_t mask, const Actor &actor,
                                                      const Access &access) {
  auto conflicts = [&](uint32_t strand, uint8_t lane, Strength strength) {
    return !isOrdered(strand, lane, actor) && !areBothAtomic(strand, strength, actor, access.strength);
  };
  if (cell.writeMask & mask) {
    const Strength strength{static_cast<uint8_t>(cell.writeStrength)};
    // Several elements of one store at one address leave one of their values.
    const bool sameStore = access.isWrite && access.site && access.site == cell.writeSite && !access.isShared &&
                           actor.block != nobody && warps[strands[cell.write].warp].block == actor.block;
    if (!sameStore && !comesLater(cell, actor, access) && conflicts(cell.write, cell.writeLane, strength))
      return Found{cell.write, static_cast<uint8_t>(cell.writeLane), cell.writeSite, strength, true};
  }
  if (!access.isWrite || !(cell.readMask & mask))
    return std::nullopt;
  if (!cell.manyReaders) {
    const Strength strength{static_cast<uint8_t>(cell.readStrength)};
    if (conflicts(cell.reads, cell.readLane, strength))
      return Found{cell.reads, static_cast<uint8_t>(cell.readLane), cell.readSite, strength, false};
    return std::nullopt;
  }
  for (uint32_t node = cell.reads; node; node = readerNodes[node].next) {
    const Reader &reader = readerNodes[node].reader;
    if (reader.mask & cell.readMask & mask &&
        !areBothAtomic(reader.strand, Strength{reader.strength}, actor, access.strength))
      if (std::optional<uint8_t> lane = unorderedLane(cell, reader, actor))
        return Found{reader.strand, *lane, reader.site, Strength{reader.strength}, false};
  }
  return std::nullopt;
}

void Detector::split(Cell &cell, uint32_t region) {
  std::array<Cell, 2> halves;
  const uint32_t low = region == 0xf ? 0x3 : region & -region;
  for (uint32_t half = 0; half < 2; ++half) {
    const uint32_t mine = half == 0 ? low : region & ~low;
    Cell &part = halves[half];
    part = cell;
    part.writeMask &= mine;
    part.readMask &= mine;
    if (!part.writeMask)
      part.write = 0;
    if (!part.readMask)
      part.reads = part.manyReaders = 0;
  }
  cell = {};
  cell.isSplit = 1;
  if (freeSplits.empty()) {
    cell.write = static_cast<uint32_t>(splits.size());
    splits.push_back(halves);
  } else {
    cell.write = freeSplits.back();
    freeSplits.pop_back();
    splits[cell.write] = halves;
  }
}

void Detector::unite(Cell &cell) {
  if (!cell.isSplit)
    return;
  for (Cell &half : splits[cell.write])
    unite(half);
  freeSplits.push_back(cell.write);
  cell = {};
}

Cell &Detector::innermost(Cell &cell, const void *address) {
  if (!cell.isSplit)
    return cell;
  const uint64_t byte = reinterpret_cast<uintptr_t>(address) % wordBytes;
  Cell &half = splits[cell.write][byte / 2];
  return half.isSplit ? splits[half.write][byte % 2] : half;
}

void Detector::record(Cell &cell, uint32_t region, uint32_t mask, const Actor &actor, const Access &access) {
  const bool mine =
      cell.write == actor.strand && cell.writeLane == actor.lane && cell.writeStrength == access.strength.bits;
  const bool sameReader = !cell.manyReaders && cell.reads == actor.strand && cell.readLane == actor.lane;
  // Accesses of other bytes by others are kept apart.
  if (access.isWrite ? cell.writeMask & ~mask && !mine : cell.readMask && !(cell.readMask & mask) && !sameReader) {
    split(cell, region);
    touch(cell, region, mask, actor, access);
    return;
  }
  if (!access.isWrite) {
    cell = withOneMore(cell, readerOf(mask, actor, access), actor);
    return;
  }
  cell = withWriter(cell, (mine ? cell.writeMask : 0) | mask, actor, access);
  cell.readMask &= ~mask;
  if (!cell.readMask)
    cell.reads = cell.manyReaders = 0;
}

uint32_t Detector::makeReaders(const std::vector<Reader> &readers) {
  uint32_t first = 0;
  for (auto reader = readers.rbegin(); reader != readers.rend(); ++reader) {
    // Equal lists are one, mostly: else words of a tile that have once come apart would be looked at one by one ever after.
    const ReaderNode node{*reader, first};
    const uint64_t mixed = ((uint64_t(first) << 32 | reader->strand) ^ uint64_t(reader->lane) << 26) * mixer;
    uint32_t &recent = recentNodes[(mixed >> 32) % std::size(recentNodes)];
    if (readerNodes[recent] != node) {
      recent = static_cast<uint32_t>(readerNodes.size());
      readerNodes.push_back(node);
    }
    first = recent;
  }
  return first;
}

/// The last one who has read is the actor: mostly a word that all lanes of a warp read.
bool Detector::hasRead(Cell cell, uint32_t mask, const Actor &actor, const Access &access) const {
  if (!cell.manyReaders)
    return cell.reads == actor.strand && cell.readLane == actor.lane && cell.readStrength == access.strength.bits &&
           !(mask & ~cell.readMask);
  const Reader &last = readerNodes[cell.reads].reader;
  return last.strand == actor.strand && last.strength == access.strength.bits &&
         hasLane(last, actor.lane == cell.readLane ? cellLane : actor.lane) && !(mask & ~(last.mask & cell.readMask));
}

/// The words of a tile have the same readers, each in its lane: the step from the readers before to those behind is looked up.
Cell Detector::withOneMore(Cell cell, Reader reader, const Actor &actor) {
  if (!cell.readMask)
    return withReader(cell, reader);
  if (reader.lane == cell.readLane)
    reader.lane = cellLane;
  const uint64_t before = readersOf(cell), known = serialOf(actor);
  const uint64_t mixed = ((uint64_t(cell.reads) << 32 | actor.strand) ^ uint64_t(reader.lane) << 26) * mixer;
  ReaderStep &step = readerSteps[(mixed >> 32) % std::size(readerSteps)];
  if (step.before == before && step.reader == reader && step.known == known) {
    cell = withReaders(cell, step.after, static_cast<uint8_t>(cell.readLane));
    if (!cell.manyReaders)
      cell.readLane = actor.lane;
    return cell;
  }
  if (!cell.manyReaders && !(cell.readMask & ~reader.mask) && isOrderedStrand(cell.reads, cell.readLane, actor))
    return withReader(cell, reader);
  bool isForAllLanes = true;
  cell = withListed(cell, reader, actor, isForAllLanes);
  if (isForAllLanes)
    step = {before, readersOf(cell), reader, known};
  return cell;
}

Cell Detector::withListed(Cell cell, const Reader &reader, const Actor &actor, bool &isForAllLanes) {
  static thread_local std::vector<Reader> readers;
  readers.clear();
  if (cell.manyReaders)
    for (uint32_t node = cell.reads; node; node = readerNodes[node].next)
      readers.push_back(readerNodes[node].reader);
  else
    readers.push_back({cell.reads, cell.readSite, cellLane, static_cast<uint8_t>(cell.readStrength), cell.readMask});
  // Whoever is ordered before this reader is ordered before all that come after this reader.
  std::erase_if(readers, [&](const Reader &other) {
    if (other.mask & ~reader.mask)
      return false;
    if (isOrdered(other.strand, allLanesOf(other.strand), actor))
      return true;
    const uint32_t warp = strands[other.strand].warp;
    const bool knowsLanes = *actor.known && (*actor.known)->hasLaneOf(warp);
    isForAllLanes &= !knowsLanes;
    return (knowsLanes || warp == actor.warp) && !unorderedLane(cell, other, actor);
  });
  // Of one warp those are one that have read the same bytes, or are one lane.
  auto sameWarp = std::find_if(readers.begin(), readers.end(), [&](const Reader &other) {
    return other.strand == reader.strand && other.strength == reader.strength &&
           (other.mask == reader.mask ||
            (hasLane(other, reader.lane) && (!other.others || !(reader.mask & ~other.mask))));
  });
  if (sameWarp != readers.end()) {
    addLane(*sameWarp, reader.lane);
    sameWarp->mask |= reader.mask;
  } else {
    if (readers.size() >= mostReaders) { // a lot for each: some of all stay, and most that come change nothing
      auto lot = [](const Reader &one) { return one.strand * mixer; };
      auto least = std::min_element(readers.begin(), readers.end(),
                                    [&](const Reader &a, const Reader &b) { return lot(a) < lot(b); });
      if (lot(reader) < lot(*least))
        return cell;
      readers.erase(least);
    }
    readers.insert(readers.begin(), reader);
  }
  if (readers.size() == 1 && !readers[0].others) {
    cell.readLane = actor.lane;
    return withReader(cell, readers[0]);
  }
  cell.readMask = 0;
  for (const Reader &one : readers)
    cell.readMask |= one.mask;
  cell.reads = makeReaders(readers);
  cell.manyReaders = 1;
  return cell;
}

std::optional<Detector::Found> Detector::touch(Cell &cell, uint32_t region, uint32_t mask, const Actor &actor,
                                               const Access &access) {
  if (cell.isSplit) {
    const uint32_t low = region == 0xf ? 0x3 : region & -region;
    for (uint32_t half = 0; half < 2; ++half)
      if (const uint32_t mine = half == 0 ? low : region & ~low; mine & mask)
        if (std::optional<Found> found = touch(splits[cell.write][half], mine, mine & mask, actor, access))
          return found;
    if (access.isWrite && mask == region) {
      unite(cell);
      record(cell, region, mask, actor, access);
    }
    return std::nullopt;
  }
  if (std::optional<Found> found = findConflict(cell, mask, actor, access)) {
    if (!access.mayBeEqual || !found->isWrite || (found->strength.isStrong() && !found->strength.isPut()))
      return found;
    if (!equalStore)
      equalStore = found;
  }
  if (!access.isCopy)
    record(cell, region, mask, actor, access);
  return std::nullopt;
}

//===- The asynchronous proxy -------------------------------------------------------------------------------------===//

bool Detector::isUnfenced(const Cell &cell, const Actor &actor) const {
  const Strand &strand = strands[cell.write];
  const WarpIdentity &warp = warps[strand.warp];
  // What streams, hosts and networks bring has no proxy of the kernel's; tensor stores are complete when they have been waited for.
  if (warp.kind != ActorKind::Threads)
    return false;
  if (!*actor.known)
    return true;
  const Knowledge &known = **actor.known;
  const Operation &operation = operations[blocks[warp.block].operation];
  return known.upTo(Key::stream(operation.stream)) < operation.number && // the end of a kernel is a fence
         known.upTo(Key::block(warp.block).fenced()) <= strand.phase &&
         known.upTo(Key::warp(strand.warp).fenced()) <= strand.sync &&
         known.upTo(Key::lane(strand.warp, cell.writeLane).fenced()) < strand.epoch;
}

std::optional<Detector::Found> Detector::findUnfenced(const Cell *cells, uint64_t offset, uint64_t bytes,
                                                      const Actor &actor, uint64_t &where) {
  uint32_t fencedStrand = 0; // of the word before
  uint8_t fencedLane = 0;
  for (uint64_t at = offset, end = offset + bytes; at < end;) {
    const uint64_t word = at / wordBytes, next = std::min(end, (word + 1) * wordBytes);
    for (uint64_t byte = at; byte < next; ++byte) {
      const Cell &whole = cells[word];
      const Cell &cell = innermost(const_cast<Cell &>(whole), reinterpret_cast<const void *>(byte));
      if ((cell.writeMask >> byte % wordBytes & 1) && (cell.write != fencedStrand || cell.writeLane != fencedLane)) {
        if (isUnfenced(cell, actor)) {
          where = byte;
          return Found{cell.write, static_cast<uint8_t>(cell.writeLane), cell.writeSite,
                       Strength{static_cast<uint8_t>(cell.writeStrength)}, true};
        }
        fencedStrand = cell.write;
        fencedLane = static_cast<uint8_t>(cell.writeLane);
      }
      // Mostly one store has written all of the word.
      if (!whole.isSplit && (whole.writeMask == 0xf || whole.writeMask == 0))
        break;
    }
    at = next;
  }
  return std::nullopt;
}

//===- Ranges -----------------------------------------------------------------------------------------------------===//

/// As isOrdered; most answers are kept.
inline bool Detector::isOrderedStrand(uint32_t previous, uint8_t lane, const Actor &actor) {
  const OrderedBefore wanted{previous, actor.strand, serialOf(actor)};
  OrderedBefore &kept = orderedStrands[(previous + 7 * actor.strand) % keptOrders];
  return kept == wanted || findOrder(wanted, kept, lane, actor);
}

bool Detector::findOrder(const OrderedBefore &wanted, OrderedBefore &kept, uint8_t lane, const Actor &actor) {
  const uint32_t previous = wanted.previous;
  // In one's own strand only the lane itself is.
  if (previous == actor.strand || !isOrdered(previous, allLanesOf(previous), actor))
    return isOrdered(previous, lane, actor);
  kept = wanted;
  return true;
}

/// All of the word's readers are ordered before; false: perhaps.
bool Detector::areReadersOrdered(Cell cell, const Actor &actor) {
  if (!cell.manyReaders)
    return isOrderedStrand(cell.reads, cell.readLane, actor);
  const OrderedBefore wanted{cell.reads, actor.strand, serialOf(actor)};
  OrderedBefore &kept = orderedReaders[(cell.reads + 7 * actor.strand) % keptOrders];
  if (kept == wanted)
    return true;
  for (uint32_t node = cell.reads; node; node = readerNodes[node].next)
    if (const uint32_t strand = readerNodes[node].reader.strand; !isOrdered(strand, allLanesOf(strand), actor))
      return false;
  kept = wanted;
  return true;
}

/// What most accesses find: nobody there, or what all of a tile's words find.
Cell Detector::touchedSimply(Cell cell, uint32_t mask, const Actor &actor, const Access &access, bool &isSimple) {
  isSimple = !cell.isSplit;
  if (!isSimple)
    return cell;
  if (access.isWrite ? cell.write == actor.strand && cell.writeLane == actor.lane && !(mask & ~cell.writeMask) &&
                           !cell.readMask && cell.writeStrength == access.strength.bits
                     : hasRead(cell, mask, actor, access))
    return cell; // again
  isSimple = !(cell.writeMask & (access.isWrite ? 0xf : mask)) || isOrderedStrand(cell.write, cell.writeLane, actor);
  if (!isSimple || access.isCopy)
    return cell;
  if (!access.isWrite) {
    isSimple = !cell.readMask || cell.readMask & mask;
    return isSimple ? withOneMore(cell, readerOf(mask, actor, access), actor) : cell;
  }
  isSimple = !((cell.writeMask | cell.readMask) & ~mask) && (!cell.readMask || areReadersOrdered(cell, actor));
  return isSimple ? withReaders(withWriter(cell, mask, actor, access), 0, 0) : cell;
}

std::optional<Detector::Found> Detector::touchRange(Cell *cells, uint64_t offset, uint64_t bytes, const Actor &actor,
                                                    const Access &access, uint64_t &where) {
  for (uint64_t at = offset, end = offset + bytes; at < end;) {
    const uint64_t word = at / wordBytes, next = std::min(end, (word + 1) * wordBytes);
    const uint32_t mask = ((1u << (next - at)) - 1) << at % wordBytes;
    const Cell before = cells[word];
    bool isSimple = false;
    Cell after = touchedSimply(before, mask, actor, access, isSimple);
    if (isSimple) {
      cells[word] = after;
    } else {
      if (std::optional<Found> found = touch(cells[word], 0xf, mask, actor, access)) {
        where = at;
        return found;
      }
      after = cells[word];
    }
    at = next;
    if (mask != 0xf || before.isSplit || after.isSplit || equalStore)
      continue;
    // The words of one access mostly have the same past: what the first comes to the others come to.
    for (; at + wordBytes <= end && same(cells[at / wordBytes], before); at += wordBytes)
      cells[at / wordBytes] = after;
  }
  return std::nullopt;
}

Detector::Race Detector::access(Thread &thread, Allocation *allocation, const void *address, uint64_t bytes,
                                uint32_t kind, const DitronSimSite *site) {
  settle();
  Cell *cells = nullptr;
  const char *begin = nullptr;
  if (allocation) {
    cells = allocation->cells();
    begin = allocation->begin;
  } else {
    cells = thread.block->sharedCells.data();
    begin = thread.sharedMemory;
  }
  if (!cells)
    return nullptr;
  const Actor actor = actorOf(thread);
  const bool isWrite = kind == DITRON_SIM_STORE || kind == DITRON_SIM_ATOMIC;
  const Access access{
      isWrite,     Strength::ordinary(),         siteNumber(site),
      !allocation, kind == DITRON_SIM_LOAD_COPY, isWrite && allocation && bytes <= sizeof(pending.before)};
  if (isWrite && allocation)
    thread.order.storedIn = actor.phase;
  equalStore.reset();
  uint64_t where = 0;
  std::optional<Found> found =
      touchRange(cells, static_cast<uint64_t>(static_cast<const char *>(address) - begin), bytes, actor, access, where);
  if (found)
    return report(actor, *found, begin + where, bytes, access);
  if (equalStore) {
    pending.address = static_cast<const char *>(address);
    pending.bytes = static_cast<uint32_t>(bytes);
    std::memcpy(pending.before, address, bytes);
    pending.failure = failureAt(StatusCode::DataRace, site,
                                thread.block->describe() + fmt::format(", thread {}: ", thread.threadId) +
                                    *report(actor, *equalStore, address, bytes, access));
  }
  return nullptr;
}

void Detector::settlePending() {
  const bool isEqual = std::memcmp(pending.before, pending.address, pending.bytes) == 0;
  pending.address = nullptr;
  if (!isEqual)
    engine.fail(std::move(pending.failure));
}

Detector::Race Detector::access(const Actor &actor, const void *address, uint64_t bytes, const Access &access) {
  Allocation *allocation = engine.memory.find(address);
  Cell *cells = allocation ? allocation->cells() : nullptr;
  const uint64_t offset =
      allocation ? static_cast<uint64_t>(static_cast<const char *>(address) - allocation->begin) : 0;
  if (!cells || offset > allocation->size() || bytes > allocation->size() - offset)
    return nullptr;
  equalStore.reset();
  uint64_t where = 0, unfencedAt = 0;
  // Asked first: a store leaves no trace of the one before. Told last: what is not ordered at all is more than not fenced.
  std::optional<Found> unfenced;
  if (!access.asyncName.empty())
    unfenced = findUnfenced(cells, offset, bytes, actor, unfencedAt);
  if (std::optional<Found> found = touchRange(cells, offset, bytes, actor, access, where))
    return report(actor, *found, allocation->begin + where, bytes, access);
  return unfenced ? reportUnfenced(actor, *unfenced, allocation->begin + unfencedAt, access) : nullptr;
}

Detector::Race Detector::accessShared(const Actor &actor, Block &block, uint64_t offset, uint64_t bytes,
                                      const Access &access) {
  uint64_t where = 0;
  std::optional<Found> found = touchRange(block.sharedCells.data(), offset, bytes, actor, access, where);
  return found ? report(actor, *found, block.sharedMemory() + where, bytes, access) : nullptr;
}

Cell *Detector::cellOf(const void *address) {
  Allocation *allocation = engine.memory.find(address);
  Cell *cells = allocation ? allocation->cells() : nullptr;
  return cells ? cells + static_cast<uint64_t>(static_cast<const char *>(address) - allocation->begin) / wordBytes
               : nullptr;
}

Cell *Detector::cellOf(Thread &thread, const void *address) {
  const uint64_t offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(thread.sharedMemory);
  return offset < thread.sharedBytes ? &thread.block->sharedCells[offset / wordBytes] : cellOf(address);
}

} // namespace ditron::sim::race
