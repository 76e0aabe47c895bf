//===- Trace_test.cpp - Traces that viewers accept, of runs that end well and of runs that do not -----------------===//

#include "ditron/sim/report/Trace.h"
#include "ditron/sim/test/Harness.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace ditron::sim {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::StartsWith;

int64_t nanoseconds(const json &microseconds) { return std::llround(microseconds.get<double>() * 1000); }

/// A trace that has been found to follow the rules of its format.
struct Checked {
  explicit Checked(const std::string &text) : text(text) {
    EXPECT_THAT(text, Not(HasSubstr("0x"))) << "addresses differ from run to run";
    const json document = json::parse(text);
    for (const json &event : document["traceEvents"])
      check(event);
    checkArrows();
  }

  void check(const json &event) {
    const std::string phase = event["ph"];
    ASSERT_THAT((std::set<std::string>{"M", "X", "s", "f", "C", "i"}), Contains(phase));
    ASSERT_TRUE(event["pid"].is_number_unsigned() && event["name"].is_string()) << event;
    if (phase == "M")
      named(event);
    if (phase == "X")
      span(event);
    if (phase == "s")
      EXPECT_TRUE(begins.emplace(event["id"], event).second) << event;
    if (phase == "f")
      EXPECT_TRUE(ends.emplace(event["id"], event).second) << event;
    if (phase == "C")
      counter(event);
    if (phase == "i")
      instants.push_back(event);
  }

  void named(const json &event) {
    if (event["name"] == "thread_name")
      EXPECT_TRUE(tracks.emplace(track(event), event["args"]["name"]).second) << event;
    if (event["name"] == "process_name")
      processes[event["pid"]] = event["args"]["name"];
  }

  void span(const json &event) {
    const int64_t start = nanoseconds(event["ts"]), end = start + nanoseconds(event["dur"]);
    ASSERT_GE(start, 0) << event;
    ASSERT_GE(end, start) << event;
    ASSERT_TRUE(tracks.count(track(event)) && processes.count(event["pid"])) << event;
    // In order, and each inside of what is open or behind it.
    auto &open = stacks[track(event)];
    int64_t &last = lastStart[track(event)];
    EXPECT_LE(last, start) << event;
    last = start;
    while (!open.empty() && open.back() <= start && open.back() < end)
      open.pop_back();
    if (!open.empty())
      EXPECT_LE(end, open.back()) << event << " reaches beyond what is around it";
    open.push_back(end);
    spans.push_back(event);
    latest = std::max(latest, end);
  }

  void counter(const json &event) {
    const int64_t now = nanoseconds(event["ts"]), value = event["args"]["value"];
    auto [counter, isNew] = counters.try_emplace({event["pid"], event["name"]}, std::pair(now, value));
    EXPECT_GE(value, 0) << event;
    mostOf[event["name"]] = std::max(mostOf[event["name"]], value);
    if (isNew)
      return;
    EXPECT_LT(counter->second.first, now) << event;
    counter->second = {now, value};
  }

  void checkArrows() {
    ASSERT_EQ(begins.size(), ends.size());
    for (const auto &[id, begin] : begins) {
      ASSERT_TRUE(ends.count(id));
      const json &end = ends[id];
      EXPECT_EQ(begin["name"], end["name"]);
      EXPECT_EQ(begin["cat"], end["cat"]);
      EXPECT_LE(nanoseconds(begin["ts"]), nanoseconds(end["ts"])) << begin << end;
      for (const json &one : {begin, end})
        EXPECT_TRUE(std::any_of(spans.begin(), spans.end(),
                                [&](const json &span) {
                                  const int64_t start = nanoseconds(span["ts"]), at = nanoseconds(one["ts"]);
                                  return track(span) == track(one) && start <= at &&
                                         at < start + nanoseconds(span["dur"]);
                                }))
            << one << " lies in no span";
    }
  }

  static std::pair<int, int> track(const json &event) { return {event["pid"], event["tid"]}; }
  /// Spans whose name begins so.
  std::vector<json> spansOf(const std::string &name) const {
    std::vector<json> found;
    for (const json &span : spans)
      if (span["name"].get<std::string>().starts_with(name))
        found.push_back(span);
    return found;
  }
  /// The names of spans that reach up to the end of time because they never ended.
  std::multiset<std::string> unfinished() const {
    std::multiset<std::string> names;
    for (const json &span : spans)
      if (span.contains("args") && span["args"].contains("unfinished")) {
        names.insert(span["name"]);
        EXPECT_EQ(nanoseconds(span["ts"]) + nanoseconds(span["dur"]), latest) << span;
      }
    return names;
  }
  std::set<std::string> arrowNames() const {
    std::set<std::string> names;
    for (const auto &[id, begin] : begins)
      names.insert(begin["name"]);
    return names;
  }

  std::string text;
  std::map<std::pair<int, int>, std::string> tracks;
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, std::vector<int64_t>> stacks;
  std::map<std::pair<int, int>, int64_t> lastStart;
  std::map<std::pair<int, std::string>, std::pair<int64_t, int64_t>> counters; ///< The last time and value.
  std::map<std::string, int64_t> mostOf;
  std::map<int, json> begins, ends;
  std::vector<json> spans, instants;
  int64_t latest = 0;
};

MachineOptions traced(uint32_t ranks, uint64_t seed = 0) {
  MachineOptions options;
  options.ranks = ranks;
  options.seed = seed;
  options.recordTrace = true;
  return options;
}

// Each rank stores to the next one's inbox, raises the flag there, and waits for its own to reach `wanted`.
void ringKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *inbox = argument<uint64_t *>(arguments, 0), *nextInbox = argument<uint64_t *>(arguments, 1);
  auto *flag = argument<uint64_t *>(arguments, 2), *nextFlag = argument<uint64_t *>(arguments, 3);
  const auto wanted = argument<uint64_t>(arguments, 4);
  (void)inbox;
  ditron_sim_access(self, nextInbox + self->threadId, 8, 1, DITRON_SIM_STORE, DITRON_SIM_GLOBAL, AT(20));
  nextInbox[self->threadId] = 7;
  ditron_sim_barrier(self, AT(21));
  if (self->threadId == 0)
    ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I64, nextFlag, 1, 1, DITRON_SIM_RELEASE,
                          DITRON_SIM_SCOPE_SYSTEM, AT(22));
  ditron_sim_wait_until(self, flag, 8, DITRON_SIM_GE, wanted, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_SYSTEM, AT(23));
  ditron_sim_barrier(self, AT(24));
}

struct Ring {
  Ring(MachineOptions options, uint64_t wanted) : machine(makeMachine(options)) {
    const uint32_t ranks = options.ranks;
    for (uint32_t r = 0; r < ranks; ++r) {
      inboxes.push_back(makeBuffer<uint64_t>(*machine, r, 32, "inbox", MemoryKind::Symmetric));
      flags.push_back(makeBuffer<uint64_t>(*machine, r, 4, "flag", MemoryKind::Symmetric));
    }
    for (uint32_t r = 0; r < ranks; ++r) {
      LaunchDescription launch = kernel("ring", ringKernel, {1, 1, 1}, 32, 0, inboxes[r], inboxes[(r + 1) % ranks],
                                        flags[r], flags[(r + 1) % ranks], wanted);
      launch.source = "kernel.py";
      EXPECT_OK(machine->launch(makeStream(*machine, r), std::move(launch)));
    }
    status = machine->synchronize();
  }
  std::unique_ptr<Machine> machine;
  std::vector<uint64_t *> inboxes, flags;
  Status status;
};

TEST(Trace, ShowsWordsValuesAndRemoteStores) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Ring ring(traced(3, seed), 1);
    EXPECT_OK(ring.status);
    Checked trace(ring.machine->chromeTrace());
    EXPECT_TRUE(trace.unfinished().empty());
    EXPECT_THAT(trace.arrowNames(), Contains(testing::ContainsRegex("flag.0. of rank [012] = 1")));
    const std::vector<json> stores = trace.spansOf("store to inbox of rank 1");
    ASSERT_EQ(stores.size(), 1u);
    EXPECT_EQ(stores[0]["args"]["bytes"], 256);
    EXPECT_EQ(stores[0]["args"]["from rank"], 0);
    EXPECT_EQ(stores[0]["args"]["to rank"], 1);
    EXPECT_EQ(stores[0]["args"]["first at"], "kernel.py:20:5");
    EXPECT_GT(stores[0]["args"]["GB/s"].get<double>(), 0);
    const std::vector<json> waits = trace.spansOf("wait flag[0]");
    ASSERT_GE(waits.size(), 1u);
    EXPECT_EQ(waits[0]["args"]["at"], "kernel.py:23:5");
    EXPECT_EQ(waits[0]["args"]["wants"], ">= 1");
    EXPECT_EQ(trace.spansOf("ring")[0]["args"]["source"], "kernel.py");
    EXPECT_EQ(trace.mostOf["blocks resident"], 1);
    EXPECT_EQ(trace.mostOf["blocks waiting"], 1);
    EXPECT_FALSE(trace.spansOf("enqueue ring").empty());
  }
}

TEST(Trace, OfADeadlockShowsWhoWaits) {
  std::string first;
  for (uint64_t seed : {0, 1, 2, 0}) {
    Ring ring(traced(2, seed), 2);
    EXPECT_EQ(ring.status.code(), StatusCode::Deadlock);
    Checked trace(ring.machine->chromeTrace());
    // Of each rank the block, its wait, its stream, and the host code that waits for all.
    EXPECT_EQ(trace.unfinished(), (std::multiset<std::string>{"ring", "ring", "ring", "ring", "wait flag[0]",
                                                              "wait flag[0]", "wait for all streams of all ranks"}));
    for (const json &wait : trace.spansOf("wait flag[0]")) {
      EXPECT_EQ(wait["args"]["at"], "kernel.py:23:5");
      EXPECT_EQ(wait["args"]["wants"], ">= 2");
      EXPECT_EQ(wait["args"]["has"], 1);
    }
    ASSERT_EQ(trace.instants.size(), 1u);
    EXPECT_EQ(trace.instants[0]["name"], "deadlock");
    EXPECT_THAT(trace.instants[0]["args"]["message"].get<std::string>(), HasSubstr("waits for flag[0]"));
    if (first.empty())
      first = trace.text;
  }
  EXPECT_EQ(Ring(traced(2, 0), 2).machine->chromeTrace(), first);
}

// A loop of the kernel's own, which the simulator wakes again and again to see what it does.
void pollKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  ditron_sim_barrier(self, AT(30));
  while (ditron_sim_ld(self, argument<uint64_t *>(arguments, 0), 8, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_GPU, 0,
                       AT(31)) == 0) {
  }
}

TEST(Trace, OfALoopThatPollsShowsOneWait) {
  auto machine = makeMachine(traced(1));
  auto *flag = makeBuffer<uint64_t>(*machine, 0, 4, "flag");
  EXPECT_EQ(runOnce(*machine, kernel("poll", pollKernel, {1, 1, 1}, 32, 0, flag + 2)).code(), StatusCode::Deadlock);
  Checked trace(machine->chromeTrace());
  const std::vector<json> waits = trace.spansOf("wait flag[2]");
  ASSERT_EQ(waits.size(), 1u);
  const json block = trace.spansOf("poll")[0];
  EXPECT_LE(nanoseconds(waits[0]["ts"]) - nanoseconds(block["ts"]), 5000) << "from where the loop began";
  EXPECT_EQ(waits[0]["args"]["at"], "kernel.py:31:5");
}

// Half of the block waits for one word, half for another; nobody raises the second.
void twoWordsKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  ditron_sim_wait_until(self, argument<uint64_t *>(arguments, 0) + self->threadId % 2, 8, DITRON_SIM_GE, 1,
                        DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_SYSTEM, AT(40));
  ditron_sim_barrier(self, AT(41));
}

TEST(Trace, ShowsSignalsEventsCopiesAndWaitsOfStreams) {
  for (bool ends : {true, false}) {
    auto machine = makeMachine(traced(2));
    auto *words = makeBuffer<uint64_t>(*machine, 1, 4, "words", MemoryKind::Symmetric);
    auto *from = makeBuffer<char>(*machine, 0, 1 << 20, "from"), *to = makeBuffer<char>(*machine, 1, 1 << 20, "to");
    StreamId copies = makeStream(*machine, 0, "copies"), late = makeStream(*machine, 0, "late"),
             work = makeStream(*machine, 1, "work");
    EventId copied = *machine->createEvent("copied");
    CopyDescription copy;
    copy.source = from;
    copy.destination = to;
    copy.rowBytes = 1 << 20;
    ASSERT_OK(machine->launch(work, kernel("two_words", twoWordsKernel, {4, 1, 1}, 32, 0, words)));
    ASSERT_OK(machine->copy(copies, copy));
    ASSERT_OK(machine->recordEvent(copies, copied));
    ASSERT_OK(machine->waitEvent(late, copied));
    ASSERT_OK(machine->signalWrite(late, words, 1));
    if (ends)
      ASSERT_OK(machine->signalWrite(late, words + 1, 1));
    else
      ASSERT_OK(machine->signalWait(late, words + 1, Compare::GreaterEqual, 1));
    EXPECT_EQ(machine->synchronize().code(), ends ? StatusCode::Ok : StatusCode::Deadlock);
    Checked trace(machine->chromeTrace());
    const std::vector<json> copySpans = trace.spansOf("copy");
    ASSERT_EQ(copySpans.size(), 2u); // of the stream and of the copy engine
    EXPECT_EQ(copySpans[1]["args"]["bytes"], 1 << 20);
    EXPECT_EQ(copySpans[1]["args"]["source"], "from[0]");
    EXPECT_EQ(copySpans[1]["args"]["to rank"], 1);
    EXPECT_THAT(copySpans[1]["args"]["GB/s"].get<double>(), AllOf(testing::Gt(1), testing::Lt(22)));
    EXPECT_EQ(trace.mostOf["bytes in flight to rank 1"], 1 << 20);
    EXPECT_EQ(trace.counters.at({0, "bytes in flight to rank 1"}).second, 0) << "at the end";
    EXPECT_THAT(trace.arrowNames(), IsSupersetOf({"event copied", "words[0] of rank 1 = 1"}));
    EXPECT_FALSE(trace.spansOf("wait for event copied").empty());
    EXPECT_FALSE(trace.spansOf("signal words[0]").empty());
    EXPECT_EQ(trace.unfinished().count("wait words[1]"), ends ? 0 : 5u);
    EXPECT_EQ(trace.unfinished().count("two_words"), ends ? 0 : 5u);
  }
}

// Puts with a signal to the next rank, two at a time, and waits for both of its own.
void putKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *source = argument<uint64_t *>(arguments, 0), *nextData = argument<uint64_t *>(arguments, 1);
  auto *signal = argument<uint64_t *>(arguments, 2), *nextSignal = argument<uint64_t *>(arguments, 3);
  const auto next = argument<uint32_t>(arguments, 4);
  for (uint32_t i = 0; i < 2; ++i)
    ditron_sim_shmem_put_signal(self, nextData + 512 * i, source, 4096, nextSignal + i, 3, 8, DITRON_SIM_SIGNAL_SET,
                                next, 0, AT(50));
  for (uint32_t i = 0; i < 2; ++i)
    ditron_sim_wait_until(self, signal + i, 8, DITRON_SIM_EQ, 3, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_SYSTEM, AT(51));
}

TEST(Trace, ShowsPuts) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    auto machine = makeMachine(traced(2, seed));
    std::vector<uint64_t *> data, signals, sources;
    for (uint32_t r = 0; r < 2; ++r) {
      data.push_back(makeBuffer<uint64_t>(*machine, r, 1024, "data", MemoryKind::Symmetric));
      signals.push_back(makeBuffer<uint64_t>(*machine, r, 2, "signals", MemoryKind::Symmetric));
      sources.push_back(makeBuffer<uint64_t>(*machine, r, 512, "source"));
    }
    for (uint32_t r = 0; r < 2; ++r)
      ASSERT_OK(machine->launch(makeStream(*machine, r), kernel("puts", putKernel, {1, 1, 1}, 1, 0, sources[r],
                                                                data[1 - r], signals[r], signals[1 - r], 1 - r)));
    ASSERT_OK(machine->synchronize());
    Checked trace(machine->chromeTrace());
    const std::vector<json> puts = trace.spansOf("put with signal to rank 1");
    ASSERT_EQ(puts.size(), 2u);
    EXPECT_EQ(puts[0]["args"]["bytes"], 4096);
    EXPECT_EQ(puts[0]["args"]["at"], "kernel.py:50:5");
    EXPECT_EQ(puts[0]["args"]["value"], 3);
    EXPECT_THAT(puts[0]["args"]["destination"].get<std::string>(), StartsWith("data["));
    // From the kernel to the put, and from the put to the wait.
    EXPECT_THAT(trace.arrowNames(), AllOf(Contains("put with signal to rank 1"), Contains(StartsWith("signals["))));
    EXPECT_GE(trace.mostOf["bytes in flight to rank 1"], 4096);
  }
}

TEST(Trace, OfARunThatFailsEndsThere) {
  // A race of two ranks, while a third waits.
  auto body = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    auto *word = argument<uint64_t *>(arguments, 0);
    if (argument<uint32_t>(arguments, 1) == 2)
      ditron_sim_wait_until(self, word + 1, 8, DITRON_SIM_GE, 1, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_SYSTEM, AT(60));
    ditron_sim_access(self, word, 8, 1, DITRON_SIM_STORE, DITRON_SIM_GLOBAL, AT(61));
    *word = argument<uint32_t>(arguments, 1) + 1;
  };
  auto machine = makeMachine(traced(3));
  auto *word = makeBuffer<uint64_t>(*machine, 0, 2, "word", MemoryKind::Symmetric);
  for (uint32_t r = 0; r < 3; ++r)
    ASSERT_OK(machine->launch(makeStream(*machine, r), kernel("racy", body, {1, 1, 1}, 1, 0, word, r)));
  EXPECT_EQ(machine->synchronize().code(), StatusCode::DataRace);
  Checked trace(machine->chromeTrace());
  EXPECT_EQ(trace.instants[0]["name"], "data race");
  EXPECT_GE(trace.unfinished().count("racy"), 2u);
}

TEST(Trace, ShowsHostCodeOfRanks) {
  for (bool ends : {true, false}) {
    auto machine = makeMachine(traced(2));
    auto *word = makeBuffer<uint64_t>(*machine, 0, 1, "word", MemoryKind::Symmetric);
    std::vector<StreamId> streams = {makeStream(*machine, 0), makeStream(*machine, 1)};
    const Status status = machine->runRanks([&](uint32_t rank) -> Status {
      if (rank == 1 && ends)
        DITRON_RETURN_IF_ERROR(machine->signalWrite(streams[1], word, 4));
      if (rank == 0)
        DITRON_RETURN_IF_ERROR(machine->signalWait(streams[0], word, Compare::Equal, 4));
      DITRON_RETURN_IF_ERROR(machine->synchronize(streams[rank]));
      return machine->hostBarrier();
    });
    EXPECT_EQ(status.code(), ends ? StatusCode::Ok : StatusCode::Deadlock);
    Checked trace(machine->chromeTrace());
    EXPECT_FALSE(trace.spansOf("enqueue signal wait").empty());
    if (!ends) {
      EXPECT_EQ(trace.unfinished(),
                (std::multiset<std::string>{"wait for stream main", "wait for the other ranks at a host barrier",
                                            "wait word[0]"}));
    } else {
      EXPECT_FALSE(trace.spansOf("wait for stream main").empty());
      EXPECT_THAT(trace.arrowNames(), Contains("word[0] of rank 0 = 4"));
    }
  }
}

TEST(Trace, GivesEachHostCodeARow) {
  auto machine = makeMachine(traced(1));
  auto *word = makeBuffer<uint64_t>(*machine, 0, 1, "word");
  const StreamId first = makeStream(*machine, 0, "first"), second = makeStream(*machine, 0, "second");
  ASSERT_OK(machine->runHosts({{0, "",
                                [&]() -> Status {
                                  DITRON_RETURN_IF_ERROR(machine->signalWait(first, word, Compare::Equal, 1));
                                  return machine->synchronize(first);
                                }},
                               {0, "writer", [&]() -> Status {
                                  DITRON_RETURN_IF_ERROR(machine->signalWrite(second, word, 1));
                                  return machine->synchronize(second);
                                }}}));
  Checked trace(machine->chromeTrace());
  EXPECT_EQ(trace.tracks.at({0, int(hostTrack)}), "host");
  EXPECT_EQ(trace.tracks.at({0, int(hostTrack) + 1}), "host writer");
}

} // namespace
} // namespace ditron::sim
