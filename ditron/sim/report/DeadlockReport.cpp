//===- DeadlockReport.cpp - Who waits for what, and why nobody comes ----------------------------------------------===//
//
// Gathers all waits, groups those that differ only in block or thread, and writes them down by rank.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/report/DeadlockReport.h"

#include "ditron/sim/engine/Engine.h"
#include "ditron/support/Plural.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <set>

namespace ditron::sim {

using explain::Wait;
using explain::WaitReport;

namespace {

std::string micros(SimTime time) { return fmt::format("{}.{:03} us", time / 1000000, time / 1000 % 1000); }

std::string atPlace(const DitronSimSite *place) { return place ? " at " + siteText(place) : std::string(); }

/// What a word means, where somebody has said so (Machine::describeWords).
WordRole roleOf(const Allocation &home, const void *address) {
  if (!home.describeWord)
    return {};
  return home.describeWord(static_cast<uint64_t>(static_cast<const char *>(address) - home.begin) / home.elementBytes);
}

std::string blockText(const uint32_t *block) { return fmt::format("({},{},{})", block[0], block[1], block[2]); }

std::string writerText(Engine &engine, const Writer &writer) {
  switch (writer.kind) {
  case Writer::Kind::None: break;
  case Writer::Kind::Kernel:
    return fmt::format("by rank {}, kernel {}, block {}{} at {}", writer.rank, engine.trace.name(writer.name),
                       blockText(writer.block), writer.place ? ", " + engine.places.text(writer.place) : "",
                       micros(writer.time));
  case Writer::Kind::Stream:
    return fmt::format("by rank {}, stream {} at {}", writer.rank, engine.trace.name(writer.name), micros(writer.time));
  case Writer::Kind::Copy:
    return fmt::format("by rank {}, copy {} at {}", writer.rank, engine.trace.name(writer.name), micros(writer.time));
  }
  return "by nobody";
}

/// Names the word that is waited for, and says by whom it was last written.
void nameWord(Engine &engine, const Waiter &waiter, Wait &wait) {
  const Allocation *home = engine.memory.find(waiter.address);
  if (!home) {
    wait.word = !waiter.thread ? "a word in memory of the host's"
                               : fmt::format("the {} bytes at shared offset {}", waiter.bytes,
                                             static_cast<const char *>(waiter.address) - waiter.thread->sharedMemory);
    if (waiter.thread)
      wait.role = waiter.thread->block->asyncUnit.mbarriers.nameAt(*waiter.thread, waiter.address);
    return;
  }
  wait.word = engine.memory.signalName(waiter.address);
  wait.wordRank = home->rank;
  if (const WordRole role = roleOf(*home, waiter.address); !role.text.empty())
    wait.role = role.text;
  const Writer *writer = engine.writers.find(waiter.address);
  uint64_t offset = static_cast<const char *>(waiter.address) - home->begin;
  if (home->bulkWriter.kind != Writer::Kind::None && offset >= home->bulkBegin && offset < home->bulkEnd &&
      (!writer || writer->time < home->bulkWriter.time))
    writer = &home->bulkWriter;
  wait.lastWritten = writer                    ? "last written " + writerText(engine, *writer)
                     : engine.writers.isFull() ? "who wrote it last was not recorded"
                                               : "never written";
}

//===- Who could raise a word -----------------------------------------------------------------------------------------===//

/// Whether a launch of the rank was given a pointer to the allocation or, in symmetric memory, to the same one of another rank.
bool isGiven(Engine &engine, const LaunchDescription &launch, const Allocation &home) {
  const ArgumentPack &pack = launch.arguments;
  for (size_t i = 0; i < pack.offsets.size(); ++i) {
    const size_t begin = pack.offsets[i], end = i + 1 < pack.offsets.size() ? pack.offsets[i + 1] : pack.bytes.size();
    if (end - begin < sizeof(const char *))
      continue;
    const char *pointer = nullptr;
    std::memcpy(&pointer, pack.bytes.data() + begin, sizeof pointer);
    const Allocation *given = engine.memory.find(pointer);
    if (!given)
      continue;
    if (given == &home)
      return true;
    auto offset = [&](const Allocation &one) {
      return one.begin - static_cast<const char *>(engine.memory.symmetricBase(one.rank));
    };
    if (given->kind == MemoryKind::Symmetric && home.kind == MemoryKind::Symmetric && offset(*given) == offset(home))
      return true;
  }
  return false;
}

std::string kernelState(const KernelRun &run, bool isStuck) {
  const uint64_t resident = run.startedBlocks - run.finishedBlocks, waiting = run.totalBlocks - run.startedBlocks;
  if (!resident)
    return fmt::format("none of whose {} has started", plural(waiting, "block"));
  std::string text = isStuck ? "which waits itself" : "which runs";
  if (waiting)
    text += fmt::format("; {} of it {} not started", plural(waiting, "block"), waiting == 1 ? "has" : "have");
  return text;
}

/// What a queued operation could do to the word; empty when nothing.
std::string queuedRaiser(Engine &engine, const Stream &stream, const StreamOp &op, const void *address,
                         const std::function<bool(const LaunchDescription &)> &couldRaise) {
  const auto *word = static_cast<const char *>(address);
  const auto *destination = static_cast<const char *>(op.copy.destination);
  const uint64_t rows = op.copy.rows ? op.copy.rows - 1 : 0,
                 pitch = op.copy.destinationPitch ? op.copy.destinationPitch : op.copy.rowBytes;
  switch (op.kind) {
  case OpKind::Launch: {
    const bool runs = stream.running && &op == &stream.head();
    return !runs && couldRaise(op.launch->description) ? "kernel " + op.name : "";
  }
  case OpKind::SignalWrite:
  case OpKind::SignalAdd: return op.address == address ? "a signal" : "";
  case OpKind::Copy:
  case OpKind::Memset:
    return word >= destination && word < destination + rows * pitch + op.copy.rowBytes ? op.name : "";
  default: return "";
  }
}

/// Whether all threads of the launch that have not ended are so many.
bool isAllThatIsLeft(const KernelRun &run, uint64_t threads) {
  uint64_t live = 0;
  for (const auto &slot : run.rank->slots)
    if (slot->kernel == &run)
      live += slot->liveThreads();
  return run.startedBlocks == run.totalBlocks && live == threads;
}

/// How many threads of each launch wait for a word.
using WaitingThreads = std::map<const KernelRun *, uint64_t>;

void findRaisers(Engine &engine, const void *address, bool isStuck, const WaitingThreads &waiting, Wait &wait) {
  const Allocation *home = engine.memory.find(address);
  if (!home)
    return; // a block's own shared memory, or the host's
  wait.knowsRaisers = true;
  const WordRole role = roleOf(*home, address);
  wait.onlyRank = role.raiser;
  for (const auto &rank : engine.ranks) {
    if (role.raiser && *role.raiser != rank->id)
      continue;
    // Words that have a role are reached without being given.
    auto couldRaise = [&](const LaunchDescription &launch) { return role.raiser || isGiven(engine, launch, *home); };
    for (const auto &run : rank->runs)
      if (const auto own = waiting.find(run.get());
          isStuck && own != waiting.end() && isAllThatIsLeft(*run, own->second))
        wait.onlyItself = true;
      else if (couldRaise(run->description()))
        wait.raisers.push_back({rank->id, "kernel " + run->description().name, kernelState(*run, isStuck)});
    for (const Stream *stream : rank->streams) {
      if (stream->isIdle())
        continue;
      stream->findOperation([&](const StreamOp &op) {
        if (const std::string who = queuedRaiser(engine, *stream, op, address, couldRaise); !who.empty())
          wait.raisers.push_back({rank->id, who, fmt::format("which is queued on stream {}", stream->name)});
        return false;
      });
    }
  }
  for (const auto &host : engine.hosts)
    if (!host->finished && (!role.raiser || *role.raiser == host->rank))
      wait.raisers.push_back({host->rank, "host code" + (host->thread.empty() ? "" : " " + host->thread),
                              host->condition ? "which waits for " + host->description : "which runs"});
}

//===- Waits ----------------------------------------------------------------------------------------------------------===//

/// Waits of one kernel at one line for one word with one outcome.
struct Group {
  Wait wait;
  const void *address = nullptr;
  std::set<uint64_t> blocks;
  WaitingThreads waiting;
  const Block *sample = nullptr;
  SimTime since = INT64_MAX;
};
using Groups = std::map<std::tuple<uint32_t, std::string, std::string>, Group>;

void setPlace(const DitronSimSite *site, Wait &wait) {
  if (!site)
    return;
  wait.file = site->file;
  wait.line = site->line;
  wait.column = site->column;
}

/// Adds the wait to the group of its like, and gives the group.
Group &addWait(Engine &engine, Groups &groups, const Waiter &waiter, const DitronSimSite *site, uint64_t attempts,
               bool acts = false) {
  Wait wait;
  nameWord(engine, waiter, wait);
  wait.has = loadSigned(waiter.address, waiter.bytes);
  wait.attempts = attempts;
  wait.acts = acts;
  if (waiter.kind == Waiter::Kind::Until)
    wait.wants = fmt::format("{} {}", compareText(waiter.compare), waiter.value);
  if (waiter.stream) {
    wait.rank = waiter.stream->rank.id;
    wait.who = fmt::format("stream {}, signal wait", waiter.stream->name);
    setPlace(waiter.stream->head().place, wait);
  } else {
    wait.rank = waiter.thread->block->rank.id;
    wait.who = fmt::format("kernel {}", waiter.thread->block->kernel->description().name);
    setPlace(site, wait);
  }
  const std::string what = fmt::format("{} {} {} {} {} {}", wait.word, wait.wordRank.value_or(0), *wait.has, wait.wants,
                                       wait.lastWritten, acts);
  // Sorted: the report must not depend on the order of parking.
  Group &group = groups[{wait.rank, fmt::format("{} at {}", wait.who, siteText(site)), what}];
  if (group.wait.who.empty()) {
    group.wait = std::move(wait);
    group.address = waiter.address;
  }
  group.wait.attempts = std::max(group.wait.attempts, attempts);
  group.since = std::min(group.since, waiter.kind == Waiter::Kind::Poll ? waiter.began : waiter.since);
  return group;
}

void addThread(Group &group, const Thread &thread) {
  const Block &block = *thread.block;
  if (!group.sample || block.linearId < group.sample->linearId)
    group.sample = &block;
  group.blocks.insert(block.linearId);
  ++group.waiting[block.kernel];
  group.wait.threads.insert(thread.threadId);
}

std::string blocksText(const Group &group) {
  const std::array<uint32_t, 3> &grid = group.sample->kernel->description().grid;
  if (group.blocks.size() == 1)
    return fmt::format("block {}", blockText(group.sample->blockId));
  if (grid[1] == 1 && grid[2] == 1)
    return fmt::format("blocks {}", explain::rangesText(group.blocks));
  return fmt::format("{} (linear ids {}; the first is {})", plural(group.blocks.size(), "block"),
                     explain::rangesText(group.blocks), blockText(group.sample->blockId));
}

/// Adds what a thread reads over and over that does not sleep: its loop counts or looks at the time, it has effects, or the thread
/// waits for others of its block in it.
void addLoop(Engine &engine, Groups &groups, Thread &thread) {
  if (thread.state == ThreadState::WaitingWord || thread.state == ThreadState::Finished)
    return;
  auto add = [&](Waiter waiter, const DitronSimSite *site, uint64_t attempts, bool acts) {
    waiter.thread = &thread;
    waiter.kind = Waiter::Kind::Poll;
    addThread(addWait(engine, groups, waiter, site, attempts, acts), thread);
  };
  constexpr uint64_t fewAttempts = 8;
  std::set<const void *> added;
  if (thread.state == ThreadState::Ready)
    for (const PolledWord &word : thread.polling)
      if (word.repeats >= fewAttempts) {
        added.insert(word.waiter.address);
        add(word.waiter, word.site, word.repeats, /*acts=*/false);
      }
  for (const RecentRead &read : thread.polling.recentReads())
    if (read.isRead(thread.block->clock) && added.insert(read.waiter.address).second)
      add(read.waiter, read.site, read.times, /*acts=*/true);
}

std::vector<Wait> findWaits(Engine &engine, bool isStuck) {
  Groups groups;
  engine.watches.forEach([&](const Waiter &waiter) {
    if (!waiter.thread) {
      addWait(engine, groups, waiter, nullptr, 0);
      return;
    }
    const Thread &thread = *waiter.thread;
    const DitronSimSite *site = thread.site;
    for (const PolledWord &word : thread.polling)
      if (&word.waiter == &waiter)
        site = word.site;
    addThread(addWait(engine, groups, waiter, site, 0), thread);
  });
  if (!isStuck)
    for (const auto &rank : engine.ranks)
      for (const auto &slot : rank->slots)
        if (slot->kernel)
          for (const auto &thread : slot->allThreads())
            addLoop(engine, groups, *thread);
  std::vector<Wait> waits;
  for (auto &[key, group] : groups) {
    if (group.sample) {
      group.wait.blocks = blocksText(group);
      group.wait.blockCount = group.blocks.size();
      group.wait.inSameBlock = group.sample->describeParked();
    }
    group.wait.sinceMicroseconds = static_cast<double>(group.since) / 1e6;
    findRaisers(engine, group.address, isStuck, group.waiting, group.wait);
    waits.push_back(std::move(group.wait));
  }
  return waits;
}

//===- Ranks ----------------------------------------------------------------------------------------------------------===//

std::string describeHead(Engine &engine, const Stream &stream) {
  const StreamOp &op = stream.head();
  switch (op.kind) {
  case OpKind::Launch:
    if (stream.running) {
      const KernelRun &run = *stream.running;
      return fmt::format("runs kernel {}: {} of {} finished, {} resident, {} not started", op.name, run.finishedBlocks,
                         plural(run.totalBlocks, "block"), run.startedBlocks - run.finishedBlocks,
                         run.totalBlocks - run.startedBlocks);
    }
    return fmt::format("is about to start kernel {}", op.name);
  case OpKind::SignalWait: return "is held by the signal wait above";
  case OpKind::EventWait:
    return fmt::format("waits for event {}, whose recording has not completed", engine.events[op.event.value]->name);
  default: return fmt::format("is at its operation {}", op.name);
  }
}

std::vector<std::string> describeRank(Engine &engine, const Rank &rank, bool isStuck) {
  std::vector<std::string> lines;
  for (const auto &host : engine.hosts)
    if (host->rank == rank.id) {
      lines.push_back(fmt::format("host code{}{}: {}{}{}", host->thread.empty() ? "" : " ", host->thread,
                                  host->finished ? "has returned" : "waits for ",
                                  host->finished ? "" : host->description, host->finished ? "" : atPlace(host->place)));
    }
  for (const Stream *stream : rank.streams) {
    if (stream->isIdle())
      continue;
    lines.push_back(
        fmt::format("stream {} {}{}", stream->name, describeHead(engine, *stream), atPlace(stream->head().place)));
    if (stream->length() > 1)
      lines.back() += fmt::format("; {} queued behind it", plural(stream->length() - 1, "operation"));
  }
  const size_t slots = rank.slots.size(), held = slots - rank.freeSlots.size();
  for (const auto &run : rank.runs)
    if (uint64_t waiting = run->totalBlocks - run->startedBlocks) {
      const std::string &name = run->description().name;
      if (!isStuck)
        lines.push_back(fmt::format("{} of kernel {}: {} finished, {} resident, {} not started",
                                    plural(run->totalBlocks, "block"), name, run->finishedBlocks,
                                    run->startedBlocks - run->finishedBlocks, waiting));
      else if (run->description().cooperative && run->startedBlocks == 0)
        lines.push_back(fmt::format(
            "{} of cooperative kernel {} never started: {} of {} SM slots are held by waiting blocks, and it "
            "needs {} free at once",
            plural(waiting, "block"), name, held, slots, run->totalBlocks));
      else
        lines.push_back(
            fmt::format("{} of kernel {} never started: all {} SM slots are held by waiting blocks{}",
                        plural(waiting, "block"), name, slots,
                        run->startedBlocks > run->finishedBlocks
                            ? fmt::format("; if its own blocks wait for each other, as in a barrier of the grid, "
                                          "at most {} can be launched; a "
                                          "cooperative launch refuses more",
                                          slots)
                            : ""));
    } else {
      lines.push_back(fmt::format("{} of kernel {} resident{}, {} of {} SM slots in use",
                                  plural(run->startedBlocks - run->finishedBlocks, "block"), run->description().name,
                                  isStuck ? " and waiting" : "", held, slots));
    }
  return lines;
}

/// All but the headline.
WaitReport reportOf(Engine &engine, bool isStuck) {
  WaitReport report;
  report.microseconds = static_cast<double>(engine.scheduler.now) / 1e6;
  report.waits = findWaits(engine, isStuck);
  if (isStuck && report.waits.empty())
    report.noWaits = "no kernel and no stream waits for a signal";
  for (const auto &rank : engine.ranks)
    report.ranks.push_back({rank->id, describeRank(engine, *rank, isStuck)});
  return report;
}

/// Of threads that wait for others of their block.
Wait parkedWait(const Block &block, const Block::ParkedThreads &parked) {
  Wait wait;
  wait.rank = block.rank.id;
  wait.who = fmt::format("kernel {}", block.kernel->description().name);
  setPlace(parked.site, wait);
  wait.blocks = fmt::format("block {}", blockText(block.blockId));
  wait.blockCount = 1;
  wait.threads.insert(parked.ids.begin(), parked.ids.end());
  wait.word = "the " + parked.what + atPlace(parked.site) + parked.detail;
  wait.wants = "other threads of its block";
  return wait;
}

std::string_view kindOfEnd(const Engine &engine) {
  return engine.timeLimit.interruptedBy() ? "interruption" : "time limit";
}

} // namespace

std::string describeTimeLimit(const Engine &engine) {
  if (const int signal = engine.timeLimit.interruptedBy())
    return fmt::format("the run was interrupted by signal {} ({})", signal, strsignal(signal));
  return fmt::format("the time limit of {:g} s has passed", engine.options.timeLimitSeconds);
}

WaitReport reportStuckBlock(const Block &block, std::string headline) {
  WaitReport report = reportOf(block.engine, /*isStuck=*/false);
  report.kind = "deadlock";
  report.headline = std::move(headline);
  const std::vector<Block::ParkedThreads> groups = block.parkedThreads();
  std::vector<Wait> waits;
  for (size_t i = 0; i < groups.size(); ++i) {
    Wait wait = parkedWait(block, groups[i]);
    wait.knowsRaisers = true;
    for (size_t other = 0; other < groups.size(); ++other)
      if (other != i)
        wait.raisers.push_back({wait.rank, wait.who + atPlace(groups[other].site), "which waits itself"});
    waits.push_back(std::move(wait));
  }
  report.waits.insert(report.waits.begin(), waits.begin(), waits.end());
  return report;
}

WaitReport reportTimeOut(Engine &engine) {
  WaitReport report = reportOf(engine, /*isStuck=*/false);
  report.kind = kindOfEnd(engine);
  report.headline = fmt::format("{} at virtual time {}; the run still made progress", describeTimeLimit(engine),
                                micros(engine.scheduler.now));
  return report;
}

WaitReport reportDeadlock(Engine &engine) {
  WaitReport report = reportOf(engine, /*isStuck=*/true);
  report.kind = "deadlock";
  report.headline = fmt::format("deadlock at virtual time {}: nothing can run and nothing is in flight",
                                micros(engine.scheduler.now));
  return report;
}

WaitReport reportMoment(Engine &engine) {
  WaitReport report = reportOf(engine, /*isStuck=*/false);
  report.kind = "moment";
  report.headline = fmt::format("at virtual time {}", micros(engine.scheduler.now));
  return report;
}

} // namespace ditron::sim
