//===- cuda_unprepared_test.cpp - Kernels that nobody has prepared, in any order ------------------------------------===//
//
// On a stand-in for the driver that holds up loads, mappings and the like until the GPUs, or the current one, have no work, as the real one
// may. Programs are drawn at random; all of them end when every kernel is loaded before the first launch.
//
//===----------------------------------------------------------------------------------------------------------------===//
#include "CudaTest.h"

#include "ditron/runtime/PreparedLaunch.h"
#include "ditron/support/PreparingKernel.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <thread>

using namespace ditron;
using namespace ditron::runtime;
using testing::AllOf;
using testing::HasSubstr;

namespace {

/// While one exists the driver waits in what it may wait in; the number is that of fakeCudaLoadsWait.
struct DriverWaits {
  explicit DriverWaits(int how) {
    setLoadsWait(how);
    (void)takeWaited();
  }
  ~DriverWaits() { setLoadsWait(0); }
};

/// await_NAME: raises a peer's word, and runs until its own is raised.
Kernel awaitKernel(const std::string &name) {
  return makeKernel("await_" + name, {{"p0", "*i64", 8, 1}, {"p1", "*i64", 8, 1}, {"p2", "i64", 8, 1}}, 0,
                    waitingPtx("await_" + name, 3));
}

/// One meeting of some ranks in a program.
struct Step {
  std::vector<uint32_t> ranks;
  std::vector<Kernel> kernels; ///< For each of them.
  std::vector<int> streams;    ///< For each of them, 0 or 1.
  bool oneWay = false;         ///< Only the last waits, for the first.
};

struct Program {
  uint32_t ranks;
  std::vector<Step> steps;
  std::vector<std::pair<size_t, size_t>> order; ///< Step and place in it, as the host launches.
};

/// Steps that each rank takes in the same order, which a thread launches in any order that leaves every rank its own.
/// `together`: all ranks take part in all steps, by one kernel.
Program drawProgram(std::mt19937 &random, uint32_t ranks, size_t steps, bool together = false) {
  auto draw = [&](size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random); };
  Program program = {ranks, {}, {}};
  std::vector<std::vector<std::pair<size_t, size_t>>> left(ranks);
  for (size_t id = 0; id < steps; ++id) {
    Step step;
    for (uint32_t r = 0; r < ranks; ++r)
      if (draw(3) != 0 || together)
        step.ranks.push_back(r);
    std::ranges::shuffle(step.ranks, random);
    step.oneWay = !together && step.ranks.size() > 1 && draw(4) == 0;
    if (step.oneWay)
      step.ranks.resize(2);
    const bool sameForAll = draw(3) != 0 || together;
    for (size_t place = 0; place < step.ranks.size(); ++place) {
      step.kernels.push_back(sameForAll && place ? step.kernels.front() : awaitKernel(std::to_string(draw(3))));
      step.streams.push_back(static_cast<int>(draw(2)));
      left[step.ranks[place]].push_back({id, place});
    }
    program.steps.push_back(std::move(step));
  }
  std::vector<size_t> next(ranks);
  for (;;) {
    std::vector<uint32_t> ready;
    for (uint32_t r = 0; r < ranks; ++r)
      if (next[r] < left[r].size())
        ready.push_back(r);
    if (ready.empty())
      return program;
    // Often several of one rank in a row.
    const uint32_t rank = ready[draw(ready.size())];
    for (size_t run = 1 + draw(3); run > 0 && next[rank] < left[rank].size(); --run)
      program.order.push_back(left[rank][next[rank]++]);
  }
}

/// Runs programs, on two streams of each rank that are ordered by events.
class Runner {
public:
  Runner(uint32_t ranks, size_t steps, double timeLimitSeconds = 10) : ranks(ranks), steps(steps) {
    WorldOptions options;
    options.timeLimitSeconds = timeLimitSeconds;
    for (uint32_t r = 0; r < ranks; ++r)
      options.gpus.push_back(static_cast<int>(r % 3)); // GPUs 0 and 3 do not reach each other
    world = makeWorld(ranks, options);
    words = *world->allocateSymmetric(DataType::I64, 2 * steps * rounds, "words");
    for (uint32_t r = 0; r < ranks; ++r) {
      second.push_back(*world->rank(r).createStream("second"));
      for (int i = 0; i < 2; ++i)
        events.push_back(*world->rank(r).createEvent("step"));
    }
    last.resize(ranks);
  }
  Stream &stream(uint32_t rank, int which) { return which ? second[rank] : world->rank(rank).stream(); }

  Status launch(const Program &program, std::pair<size_t, size_t> which, size_t round) {
    const Step &step = program.steps[which.first];
    const size_t place = which.second, count = step.ranks.size();
    const uint32_t rank = step.ranks[place], peer = step.ranks[(place + 1) % count];
    const auto word = static_cast<int64_t>(round * 2 * steps + which.first),
               unused = word + static_cast<int64_t>(steps);
    Stream &on = stream(rank, step.streams[place]);
    // The rank's steps run one after the other.
    if (last[rank] && *last[rank] != step.streams[place]) {
      DITRON_RETURN_IF_ERROR(stream(rank, *last[rank]).record(events[2 * rank + step.streams[place]]));
      DITRON_RETURN_IF_ERROR(on.wait(events[2 * rank + step.streams[place]]));
    }
    last[rank] = step.streams[place];
    Pointer theirs = words.on(peer) + word, own = words.on(rank) + word;
    if (step.oneWay && place == 0)
      own = theirs; // waits for nothing
    else if (step.oneWay)
      theirs = words.on(rank) + unused;
    return on.launch(step.kernels[place], {}, {theirs, own, int64_t(1)});
  }
  /// Whether every word that some rank waits for has been raised.
  bool isComplete(const Program &program, size_t round) {
    for (size_t id = 0; id < program.steps.size(); ++id) {
      const Step &step = program.steps[id];
      for (size_t place = step.oneWay ? 1 : 0; place < step.ranks.size(); ++place) {
        std::vector<int64_t> all(2 * steps * rounds);
        EXPECT_TRUE(ok(words.download(step.ranks[place], all.data(), all.size() * sizeof(int64_t))));
        if (all[round * 2 * steps + id] != 1)
          return false;
      }
    }
    return true;
  }

  static constexpr size_t rounds = 3;
  uint32_t ranks;
  size_t steps;
  std::unique_ptr<World> world;
  SymmetricBuffer words;
  std::vector<Stream> second;
  std::vector<Event> events;
  std::vector<std::optional<int>> last;
};

/// Ranks, and how the driver waits.
class CudaUnprepared : public testing::TestWithParam<std::tuple<uint32_t, int>> {};
INSTANTIATE_TEST_SUITE_P(Of, CudaUnprepared, testing::Combine(testing::Range(1u, 9u), testing::Values(1, 2)));

/// Nothing has been prepared, and one thread launches: no load waits for anything.
TEST_P(CudaUnprepared, AnyOrderOfOneThread) {
  const auto [ranks, how] = GetParam();
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Runner runner(ranks, 6);
    const DriverWaits driverWaits(how);
    for (size_t round = 0; round < Runner::rounds; ++round) {
      const Program program = drawProgram(random, ranks, 6);
      for (const auto &which : program.order)
        ASSERT_TRUE(ok(runner.launch(program, which, round))) << "seed " << seed;
      ASSERT_TRUE(ok(runner.world->synchronize())) << "seed " << seed;
      ASSERT_TRUE(runner.isComplete(program, round)) << "seed " << seed;
    }
    EXPECT_FALSE(takeWaited()) << "seed " << seed;
  }
}

/// The host does not synchronise with anything of ours: it looks at the words.
TEST_P(CudaUnprepared, AHostThatNeverSynchronises) {
  const auto [ranks, how] = GetParam();
  std::mt19937 random(7);
  Runner runner(ranks, 4);
  const DriverWaits driverWaits(how);
  const Program program = drawProgram(random, ranks, 4);
  for (const auto &which : program.order)
    ASSERT_TRUE(ok(runner.launch(program, which, 0)));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!runner.isComplete(program, 0))
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  ASSERT_TRUE(ok(runner.world->synchronize()));
}

/// The first steps use kernels that are loaded, so that they run at once and wait for what the thread launches later, behind kernels that are not.
TEST_P(CudaUnprepared, BehindKernelsThatRunAlready) {
  const auto [ranks, how] = GetParam();
  for (unsigned seed = 0; seed < 10; ++seed) {
    std::mt19937 random(seed);
    Runner runner(ranks, 6);
    Program program = drawProgram(random, ranks, 6);
    for (size_t id = 0; id < 3; ++id)
      for (const Kernel &kernel : program.steps[id].kernels)
        for (uint32_t r = 0; r < ranks; ++r)
          ASSERT_TRUE(ok(runner.world->rank(r).device()->load(kernel)));
    const DriverWaits driverWaits(how);
    for (const auto &which : program.order)
      ASSERT_TRUE(ok(runner.launch(program, which, 0))) << "seed " << seed;
    ASSERT_TRUE(ok(runner.world->synchronize())) << "seed " << seed;
    ASSERT_TRUE(runner.isComplete(program, 0)) << "seed " << seed;
  }
}

/// A thread for each rank, all of which launch the same kernels.
TEST_P(CudaUnprepared, AThreadForEachRank) {
  const auto [ranks, how] = GetParam();
  for (unsigned seed = 0; seed < 10; ++seed) {
    std::mt19937 random(seed);
    Runner runner(ranks, 4);
    const DriverWaits driverWaits(how);
    const Program program = drawProgram(random, ranks, 4, /*together=*/true);
    ASSERT_TRUE(ok(runner.world->runRanks([&](Rank &rank) -> Status {
      for (const auto &[step, place] : program.order)
        if (program.steps[step].ranks[place] == rank.id())
          DITRON_RETURN_IF_ERROR(runner.launch(program, {step, place}, 0));
      DITRON_RETURN_IF_ERROR(runner.stream(rank.id(), 0).synchronize());
      return runner.stream(rank.id(), 1).synchronize();
    }))) << "seed "
         << seed;
    ASSERT_TRUE(runner.isComplete(program, 0)) << "seed " << seed;
  }
}

/// Two ranks with a word each for several meetings.
struct Pair {
  explicit Pair(WorldOptions options = {}) : world(makeWorld(2, options)) {
    words = *world->allocateSymmetric(DataType::I64, 8, "words");
  }
  Status launch(const Kernel &kernel, uint32_t rank, int64_t meeting) {
    return launch(world->rank(rank).stream(), kernel, rank, meeting);
  }
  Status launch(Stream &stream, const Kernel &kernel, uint32_t rank, int64_t meeting) {
    return stream.launch(kernel, {}, {words.on(1 - rank) + meeting, words.on(rank) + meeting, int64_t(1)});
  }
  std::unique_ptr<World> world;
  SymmetricBuffer words;
  uint64_t bigBytes = 16 << 20;
};

/// Rank by rank, with two and with three kernels: what is behind the second waits for the first, which waits for the next rank's.
TEST(CudaUnpreparedPair, RankByRank) {
  for (int64_t kernels : {2, 3}) {
    Pair pair;
    const DriverWaits driverWaits(1);
    std::vector<Kernel> all;
    for (int64_t k = 0; k < kernels; ++k)
      all.push_back(awaitKernel("same"));
    for (uint32_t r : {0, 1})
      for (int64_t k = 0; k < kernels; ++k)
        ASSERT_TRUE(ok(pair.launch(all[k], r, k)));
    ASSERT_TRUE(ok(pair.world->synchronize()));
    EXPECT_FALSE(takeWaited());
  }
}

/// The first kernel is loaded and the others are not; the loaded one comes again behind them.
TEST(CudaUnpreparedPair, ALoadedKernelBeforeAndBehind) {
  Pair pair;
  const Kernel loaded = awaitKernel("loaded"), other = awaitKernel("other");
  ASSERT_TRUE(ok(pair.world->rank(0).device()->load(loaded)));
  const DriverWaits driverWaits(1);
  for (uint32_t r : {0, 1}) {
    ASSERT_TRUE(ok(pair.launch(loaded, r, 0)));
    ASSERT_TRUE(ok(pair.launch(other, r, 1)));
    ASSERT_TRUE(ok(pair.launch(loaded, r, 2)));
  }
  ASSERT_TRUE(ok(pair.world->synchronize()));
  EXPECT_FALSE(takeWaited());
}

/// Calls of operators load their kernels themselves, before they launch them; each rank and each call has its own.
TEST(CudaUnpreparedPair, CallsThatLoadTheirKernels) {
  for (bool isTold : {true, false}) {
    WorldOptions options;
    options.timeLimitSeconds = 1;
    Pair pair(options);
    const DriverWaits driverWaits(1);
    for (uint32_t r : {0, 1})
      for (int64_t call = 0; call < 3; ++call) {
        Stream &stream = pair.world->rank(r).stream();
        if (isTold)
          stream.beginUnpreparedCall();
        auto launch = PreparedLaunch::create(
            pair.world->rank(r).device(), awaitKernel(std::to_string(r) + std::to_string(call)), {},
            std::vector<Argument>{pair.words.on(1 - r) + call, pair.words.on(r) + call, int64_t(1)});
        ASSERT_TRUE(ok(launch.status()));
        ASSERT_TRUE(ok(launch->enqueue(stream)));
      }
    EXPECT_EQ(pair.world->synchronize().isOk(), isTold);
    EXPECT_NE(takeWaited(), isTold);
  }
}

/// The one that waits is launched first, and compiling the other takes longer than a host is thought to have nothing to add.
TEST(CudaUnpreparedPair, AConsumerBeforeItsProducer) {
  Pair pair;
  const DriverWaits driverWaits(1);
  ASSERT_TRUE(ok(pair.launch(awaitKernel("consumer"), 0, 0)));
  {
    const PreparingKernel compiling;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  ASSERT_TRUE(ok(pair.launch(awaitKernel("producer"), 1, 0)));
  ASSERT_TRUE(ok(pair.world->synchronize()));
  EXPECT_FALSE(takeWaited());
}

/// A loaded kernel runs and needs one that is not: nothing helps but a driver that loads beside kernels.
TEST(CudaUnpreparedPair, AKernelThatRunsNeedsOneThatIsNotThere) {
  for (int how : {0, 1}) {
    WorldOptions options;
    options.timeLimitSeconds = 1;
    Pair pair(options);
    const Kernel consumer = awaitKernel("consumer"), producer = awaitKernel("producer");
    ASSERT_TRUE(ok(pair.world->rank(0).device()->load(consumer)));
    const DriverWaits driverWaits(how);
    ASSERT_TRUE(ok(pair.launch(consumer, 0, 0)));
    ASSERT_TRUE(ok(pair.launch(producer, 1, 0)));
    const Status status = pair.world->synchronize();
    if (how == 0) {
      EXPECT_TRUE(ok(status));
      continue;
    }
    EXPECT_EQ(status.code(), StatusCode::TimeOut);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("kernel 'await_producer' of rank 1 is not loaded"),
                      HasSubstr("rank 0, stream default (last kernel: await_consumer) has unfinished work"),
                      HasSubstr("docs/gpu-loading.md")));
    EXPECT_EQ(pair.launch(consumer, 0, 0).message(), status.message()); // the run is over
  }
}

/// The code's error comes with the launch when the GPUs are idle, and later else.
TEST(CudaUnpreparedPair, ErrorsOfLoads) {
  const Kernel bad = makeKernel("await_bad", {{"p0", "*i64", 8, 1}, {"p1", "*i64", 8, 1}, {"p2", "i64", 8, 1}}, 0,
                                ".file 1 \"bad.py\"\n" + waitingPtx("await_bad", 3) + "bad_instruction\n");
  {
    Pair pair;
    EXPECT_THAT(pair.launch(bad, 0, 0).message(), HasSubstr("bad_instruction"));
    EXPECT_TRUE(ok(pair.world->synchronize()));
  }
  Pair pair;
  const Kernel good = awaitKernel("good");
  ASSERT_TRUE(ok(pair.world->rank(0).device()->load(good)));
  ASSERT_TRUE(ok(pair.launch(good, 0, 0)));
  ASSERT_TRUE(ok(pair.launch(bad, 0, 1)));
  ASSERT_TRUE(ok(pair.launch(good, 1, 0)));
  EXPECT_THAT(pair.world->synchronize().message(), HasSubstr("bad_instruction"));
}

/// What else is enqueued meanwhile keeps its place: copies, fills, signals, events, callbacks, graphs and their changes.
TEST(CudaUnpreparedPair, EverythingKeepsItsOrder) {
  Pair pair;
  Stream &stream = pair.world->rank(0).stream();
  Stream other = *pair.world->rank(0).createStream("other");
  Event event = *pair.world->rank(0).createEvent();
  const PreparedLaunch store = *PreparedLaunch::create(pair.world->rank(0).device(), storeKernel(), {},
                                                       std::vector<Argument>{pair.words.on(0) + 4, int64_t(5)});
  ASSERT_TRUE(ok(stream.beginCapture()));
  ASSERT_TRUE(ok(store.enqueue(stream)));
  const GraphNode node = *stream.capturedKernel();
  const Graph graph = *stream.endCapture();
  std::vector<int> seen;
  const DriverWaits driverWaits(1);
  (void)takeLog();
  ASSERT_TRUE(ok(pair.launch(awaitKernel("first"), 0, 0)));
  ASSERT_TRUE(ok(stream.signalWrite(pair.words.on(0) + 1, 7)));
  ASSERT_TRUE(ok(stream.signalAdd(pair.words.on(0) + 1, 1)));
  ASSERT_TRUE(ok(stream.copy(pair.words.on(1) + 2, pair.words.on(0) + 1, 1)));
  ASSERT_TRUE(ok(stream.fill(pair.words.on(0) + 3, 0xff, 1)));
  ASSERT_TRUE(ok(stream.hostCallback([&] { seen.push_back(1); })));
  ASSERT_TRUE(ok(stream.record(event)));
  ASSERT_TRUE(ok(other.wait(event)));
  ASSERT_TRUE(ok(other.hostCallback([&] { seen.push_back(2); })));
  ASSERT_TRUE(ok(stream.launch(graph)));
  PreparedLaunch later = store;
  ASSERT_TRUE(ok(later.setPointer(0, (pair.words.on(0) + 5).address)));
  ASSERT_TRUE(ok(later.patch(stream, graph, node)));
  ASSERT_TRUE(ok(stream.launch(graph)));
  ASSERT_TRUE(ok(stream.signalWait(pair.words.on(0) + 5, Compare::GreaterEqual, 5)));
  EXPECT_THAT(takeLog(), testing::Not(HasSubstr("cuLaunch"))); // all of it is kept
  ASSERT_TRUE(ok(pair.launch(awaitKernel("second"), 1, 0)));
  {
    const Stream ended = std::move(other);
  } // what is queued on it runs on
  ASSERT_TRUE(ok(event.synchronize()));
  ASSERT_TRUE(ok(pair.world->synchronize()));
  std::vector<int64_t> own(8);
  ASSERT_TRUE(ok(pair.words.download(0, own.data(), 64)));
  EXPECT_THAT(own, testing::ElementsAre(1, 8, 0, -1, 5, 5, 0, 0));
  int64_t copied[3] = {};
  ASSERT_TRUE(ok(pair.words.download(1, copied, sizeof(copied))));
  EXPECT_EQ(copied[2], 8);
  EXPECT_THAT(seen, testing::UnorderedElementsAre(1, 2));
}

/// Streams of other code, and those that other code sees, are never kept back.
TEST(CudaUnpreparedPair, SharedStreams) {
  Pair pair;
  Stream &stream = pair.world->rank(0).stream();
  (void)stream.nativeHandle();
  (void)takeLog();
  ASSERT_TRUE(ok(pair.launch(awaitKernel("first"), 0, 0)));
  EXPECT_THAT(takeLog(), HasSubstr("cuLaunchKernel(await_first"));
  ASSERT_TRUE(ok(pair.launch(awaitKernel("second"), 1, 0)));
  ASSERT_TRUE(ok(pair.world->synchronize()));
}

/// The default stream, of which PyTorch's work mostly is: what another library enqueues there next, and waits for, comes behind.
TEST(CudaUnpreparedPair, TheDefaultStreamIsShared) {
  Pair pair;
  Rank &rank = pair.world->rank(0);
  Stream stream = *Stream::adopt(rank.device(), rank.id(), rank.worldView(), nullptr);
  (void)takeLog();
  ASSERT_TRUE(ok(pair.launch(stream, awaitKernel("first"), 0, 0)));
  EXPECT_THAT(takeLog(), HasSubstr("cuLaunchKernel(await_first"));
  ASSERT_TRUE(ok(stream.fill(pair.words.on(0) + 3, 0xff, 1)));
  ASSERT_TRUE(ok(stream.launch(storeKernel(), {}, {pair.words.on(0) + 4, int64_t(5)})));
  EXPECT_THAT(takeLog(), HasSubstr("cuLaunchKernel"));
  ASSERT_TRUE(ok(pair.launch(awaitKernel("second"), 1, 0)));
  ASSERT_TRUE(ok(stream.synchronize()));
  ASSERT_TRUE(ok(pair.world->synchronize()));
  std::vector<int64_t> own(8);
  ASSERT_TRUE(ok(pair.words.download(0, own.data(), 64)));
  EXPECT_EQ(own[3], -1);
  EXPECT_EQ(own[4], 5);
}

/// Work that is kept is there for whoever takes the native handle afterwards.
TEST(CudaUnpreparedPair, TakingTheHandleLetsGo) {
  Pair pair;
  const Kernel both = awaitKernel("both");
  (void)takeLog();
  ASSERT_TRUE(ok(pair.launch(both, 0, 0)));
  EXPECT_THAT(takeLog(), testing::Not(HasSubstr("cuLaunch")));
  (void)pair.world->rank(0).stream().nativeHandle();
  EXPECT_THAT(takeLog(), HasSubstr("cuLaunchKernel(await_both"));
  ASSERT_TRUE(ok(pair.launch(both, 1, 0)));
  ASSERT_TRUE(ok(pair.world->synchronize()));
}

/// A capture loads when nothing runs.
TEST(CudaUnpreparedPair, Captures) {
  Pair pair;
  Stream &stream = pair.world->rank(0).stream();
  const Kernel first = awaitKernel("first");
  const DriverWaits driverWaits(1);
  ASSERT_TRUE(ok(stream.beginCapture()));
  ASSERT_TRUE(ok(pair.launch(first, 0, 0)));
  const Expected<Graph> graph = stream.endCapture();
  ASSERT_TRUE(ok(graph.status()));
  ASSERT_TRUE(ok(stream.launch(*graph)));
  ASSERT_TRUE(ok(pair.launch(first, 1, 0)));
  ASSERT_TRUE(ok(pair.world->synchronize()));
  EXPECT_FALSE(takeWaited());
}

/// And says what is in the way when something does.
TEST(CudaUnpreparedPair, ACaptureWhileAKernelWaits) {
  Pair pair;
  Stream captured = *pair.world->rank(1).createStream("captured");
  const Kernel first = awaitKernel("first"), second = awaitKernel("second");
  ASSERT_TRUE(ok(pair.world->rank(0).device()->load(first)));
  const DriverWaits driverWaits(1);
  ASSERT_TRUE(ok(pair.launch(first, 0, 0)));
  ASSERT_TRUE(ok(captured.beginCapture()));
  const Status refused = pair.launch(captured, second, 1, 1);
  EXPECT_EQ(refused.code(), StatusCode::InvalidArgument);
  EXPECT_THAT(refused.message(),
              AllOf(HasSubstr("rank 1: kernel 'await_second' is not loaded"),
                    HasSubstr("rank 0, stream default (last kernel: await_first) has unfinished work")));
  ASSERT_TRUE(ok(pair.launch(captured, first, 1, 0))); // this one is there
  ASSERT_TRUE(ok(pair.launch(first, 1, 0)));           // which lets the first kernel end
  const Expected<Graph> graph = captured.endCapture();
  ASSERT_TRUE(ok(graph.status()));
  ASSERT_TRUE(ok(pair.world->synchronize()));
}

/// A capture that begins while work is kept does not take that work in.
TEST(CudaUnpreparedPair, ACaptureAfterWorkThatIsKept) {
  Pair pair;
  Stream &stream = pair.world->rank(0).stream();
  const Kernel both = awaitKernel("both");
  ASSERT_TRUE(ok(pair.launch(both, 0, 0)));
  ASSERT_TRUE(ok(pair.launch(both, 1, 0)));
  ASSERT_TRUE(ok(stream.beginCapture()));
  ASSERT_TRUE(ok(stream.signalWrite(pair.words.on(0) + 1, 3)));
  const Graph graph = *stream.endCapture();
  EXPECT_TRUE(ok(pair.world->synchronize()));
  EXPECT_EQ(word(pair.words, 0), 1);
  ASSERT_TRUE(ok(stream.launch(graph)));
  ASSERT_TRUE(ok(pair.world->synchronize()));
}

/// Memory, streams and graphs that are made while a kernel waits: the driver may wait as well, and the error says for what.
TEST(CudaUnpreparedPair, WhatTheDriverMayNotDoNow) {
  using Make = std::function<Status(Pair &)>;
  const std::pair<const char *, Make> cases[] = {
      {"map memory for 'big'",
       [](Pair &pair) {
         // More than has been mapped before.
         const uint64_t bytes = pair.bigBytes *= 2;
         return pair.world->rank(1).allocate(DataType::U8, bytes, "big").status();
       }},
      {"make stream 'late' on rank 1", [](Pair &pair) { return pair.world->rank(1).createStream("late").status(); }},
      {"allocate 4096 bytes of pinned host memory for 'host'",
       [](Pair &pair) {
         return pair.world->rank(1).device()->allocate(4096, "host", 1, MemoryKind::HostPinned).status();
       }},
      {"make a graph executable", [](Pair &pair) {
         Stream &stream = pair.world->rank(1).stream();
         DITRON_RETURN_IF_ERROR(stream.beginCapture());
         DITRON_RETURN_IF_ERROR(stream.signalWrite(pair.words.on(1), 3));
         return stream.endCapture().status();
       }}};
  for (const auto &[what, make] : cases) {
    WorldOptions options;
    options.timeLimitSeconds = 0.2;
    Pair pair(options);
    const Kernel first = awaitKernel("first");
    ASSERT_TRUE(ok(pair.world->rank(0).device()->load(first)));
    {
      const DriverWaits driverWaits(1);
      ASSERT_TRUE(ok(make(pair))) << what; // nothing runs
      ASSERT_TRUE(ok(pair.launch(first, 0, 0)));
      const Status status = make(pair);
      EXPECT_EQ(status.code(), StatusCode::TimeOut) << what;
      EXPECT_THAT(status.message(),
                  AllOf(HasSubstr(std::string("rank 1: the driver did not ") + what + " within 0.2 seconds"),
                        HasSubstr("rank 0, stream default (last kernel: await_first) had unfinished work")));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); // the thread that was left behind comes back
  }
}

/// A world that ends before the host has synchronised: what can run is given to the driver.
TEST(CudaUnpreparedPair, AWorldThatEnds) {
  (void)takeLog();
  {
    Pair pair;
    const Kernel both = awaitKernel("both");
    ASSERT_TRUE(ok(pair.launch(both, 0, 0)));
    ASSERT_TRUE(ok(pair.launch(both, 1, 0)));
  }
  EXPECT_THAT(takeLog(), HasSubstr("cuLaunchKernel(await_both"));
  setLoadsWait(0); // forgets what is left on streams
}

} // namespace
