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
#include <map>
#include <set>

namespace ditron::sim {

namespace {

std::string micros(SimTime time) { return fmt::format("{}.{:03} us", time / 1000000, time / 1000 % 1000); }

std::string blockText(const uint32_t *block) { return fmt::format("({},{},{})", block[0], block[1], block[2]); }

/// "0, 2..5, 9" of an ascending list.
std::string ranges(const std::set<uint64_t> &values) {
  std::string text;
  for (auto it = values.begin(); it != values.end();) {
    uint64_t first = *it, last = first;
    while (++it != values.end() && *it == last + 1)
      last = *it;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", first);
    if (last != first)
      text += fmt::format("{}{}", last == first + 1 ? ", " : "..", last);
  }
  return text;
}

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

/// What is waited for, and by whom it was last written.
std::string signalText(Engine &engine, const Waiter &waiter) {
  const Allocation *home = engine.memory.find(waiter.address);
  if (!home && waiter.thread)
    if (const std::string barrier = waiter.thread->block->asyncUnit.mbarriers.nameAt(*waiter.thread, waiter.address);
        !barrier.empty())
      return fmt::format("tests {} in a loop until its phase is complete", barrier);
  int64_t seen = loadSigned(waiter.address, waiter.bytes);
  std::string text =
      home
          ? fmt::format("waits for {} on rank {}: has {}, ", engine.memory.signalName(waiter.address), home->rank, seen)
      : waiter.thread ? fmt::format("waits for the {} bytes at shared offset {}: has {}, ", waiter.bytes,
                                    static_cast<const char *>(waiter.address) - waiter.thread->sharedMemory, seen)
                      : fmt::format("waits for a word in memory of the host's: has {}, ", seen);
  if (waiter.kind == Waiter::Kind::Until)
    text += fmt::format("wants {} {}", compareText(waiter.compare), waiter.value);
  else
    text += "polls it in a loop until it changes";
  if (!home)
    return text;
  const Writer *writer = engine.writers.find(waiter.address);
  uint64_t offset = static_cast<const char *>(waiter.address) - home->begin;
  if (home->bulkWriter.kind != Writer::Kind::None && offset >= home->bulkBegin && offset < home->bulkEnd &&
      (!writer || writer->time < home->bulkWriter.time))
    writer = &home->bulkWriter;
  if (writer)
    return fmt::format("{}; last written {}", text, writerText(engine, *writer));
  return text + (engine.writers.isFull() ? "; who wrote it last was not recorded" : "; never written");
}

/// Waits of one kernel at one line for one word with one outcome.
struct Group {
  uint64_t firstBlock = 0;
  std::set<uint64_t> blocks;
  std::set<uint64_t> threads;
  const Block *sample = nullptr;
  std::string others; ///< What other threads of the sample do.
};

std::string describeWaits(Engine &engine) {
  // Rank, kernel or stream, text of the wait -> who. Sorted: the report must not depend on the order of parking.
  std::map<std::tuple<uint32_t, std::string, std::string>, Group> groups;
  std::string text;
  engine.watches.forEach([&](const Waiter &waiter) {
    if (waiter.stream) {
      const Stream &stream = *waiter.stream;
      groups[{stream.rank.id, fmt::format("stream {}, signal wait", stream.name), signalText(engine, waiter)}];
      return;
    }
    const Block &block = *waiter.thread->block;
    Group &group = groups[{
        block.rank.id, fmt::format("kernel {} at {}", block.kernel->description().name, siteText(waiter.thread->site)),
        signalText(engine, waiter)}];
    if (!group.sample || block.linearId < group.sample->linearId) {
      group.sample = &block;
      group.others = block.describeParked();
    }
    group.blocks.insert(block.linearId);
    group.threads.insert(waiter.thread->threadId);
  });
  for (const auto &[key, group] : groups) {
    const auto &[rank, who, what] = key;
    text += fmt::format("  rank {}, {}", rank, who);
    if (group.sample) {
      const std::array<uint32_t, 3> &grid = group.sample->kernel->description().grid;
      if (group.blocks.size() == 1)
        text += fmt::format(", block {}", blockText(group.sample->blockId));
      else if (grid[1] == 1 && grid[2] == 1)
        text += fmt::format(", blocks {}", ranges(group.blocks));
      else
        text += fmt::format(", {} (linear ids {}; the first is {})", plural(group.blocks.size(), "block"),
                            ranges(group.blocks), blockText(group.sample->blockId));
      text += fmt::format(", {} {}", group.threads.size() == 1 ? "thread" : "threads", ranges(group.threads));
    }
    text += fmt::format("\n    {}\n", what);
    if (!group.others.empty())
      text += fmt::format("    in the same block: {}\n", group.others);
  }
  return text;
}

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

std::string describeRank(Engine &engine, const Rank &rank, bool isStuck) {
  std::string text;
  for (const auto &host : engine.hosts)
    if (host->rank == rank.id) {
      text += fmt::format("    host code{}{}: {}{}\n", host->thread.empty() ? "" : " ", host->thread,
                          host->finished ? "has returned" : "waits for ", host->finished ? "" : host->description);
    }
  for (const Stream *stream : rank.streams) {
    if (stream->isIdle())
      continue;
    text += fmt::format("    stream {} {}", stream->name, describeHead(engine, *stream));
    if (stream->length() > 1)
      text += fmt::format("; {} queued behind it", plural(stream->length() - 1, "operation"));
    text += "\n";
  }
  const size_t slots = rank.slots.size(), held = slots - rank.freeSlots.size();
  for (const auto &run : rank.runs)
    if (uint64_t waiting = run->totalBlocks - run->startedBlocks) {
      const std::string &name = run->description().name;
      if (!isStuck)
        text += fmt::format("    {} of kernel {}: {} finished, {} resident, {} not started\n",
                            plural(run->totalBlocks, "block"), name, run->finishedBlocks,
                            run->startedBlocks - run->finishedBlocks, waiting);
      else if (run->description().cooperative && run->startedBlocks == 0)
        text += fmt::format(
            "    {} of cooperative kernel {} never started: {} of {} SM slots are held by waiting blocks, and it "
            "needs {} free at once\n",
            plural(waiting, "block"), name, held, slots, run->totalBlocks);
      else
        text += fmt::format("    {} of kernel {} never started: all {} SM slots are held by waiting blocks{}\n",
                            plural(waiting, "block"), name, slots,
                            run->startedBlocks > run->finishedBlocks
                                ? fmt::format("; if its own blocks wait for each other, as in a barrier of the grid, "
                                              "at most {} can be launched; a "
                                              "cooperative launch refuses more",
                                              slots)
                                : "");
    } else {
      text += fmt::format("    {} of kernel {} resident{}, {} of {} SM slots in use\n",
                          plural(run->startedBlocks - run->finishedBlocks, "block"), run->description().name,
                          isStuck ? " and waiting" : "", held, slots);
    }
  return text.empty() ? "    idle\n" : text;
}

/// A line or more for each rank.
std::string describeRanks(Engine &engine, bool isStuck) {
  std::string text = "what the ranks are doing:\n";
  for (const auto &rank : engine.ranks)
    text += fmt::format("  rank {}:\n{}", rank->id, describeRank(engine, *rank, isStuck));
  text.pop_back();
  return text;
}

} // namespace

std::string describeTimeLimit(const Engine &engine) {
  if (const int signal = TimeLimit::interruption())
    return fmt::format("the run was interrupted by signal {} ({})", signal, strsignal(signal));
  return fmt::format("the time limit of {:g} s has passed", engine.options.timeLimitSeconds);
}

std::string describeTimeOut(Engine &engine) {
  return fmt::format("{} at virtual time {}; the run still made progress\n{}", describeTimeLimit(engine),
                     micros(engine.scheduler.now), describeRanks(engine, /*isStuck=*/false));
}

std::string describeDeadlock(Engine &engine) {
  std::string text = fmt::format("deadlock at virtual time {}: nothing can run and nothing is in flight\nwaiting:\n",
                                 micros(engine.scheduler.now));
  std::string waits = describeWaits(engine);
  text += waits.empty() ? "  no kernel and no stream waits for a signal\n" : waits;
  return text + describeRanks(engine, /*isStuck=*/true);
}

} // namespace ditron::sim
