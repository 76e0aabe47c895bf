//===- Streams_test.cpp - Streams, events, copies, graphs, host code ----------------------------------------------===//

#include "ditron/sim/test/Harness.h"

#include <cstring>
#include <numeric>

namespace ditron::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

MachineOptions ranks(uint32_t count, uint64_t seed = 0) {
  MachineOptions options;
  options.ranks = count;
  options.seed = seed;
  options.recordTrace = true;
  return options;
}

// out[i] = in[i] * factor + addend, one thread per element.
void affineKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  uint32_t i = self->blockId[0] * self->numThreads + self->threadId;
  argument<uint64_t *>(arguments, 1)[i] =
      argument<uint64_t *>(arguments, 0)[i] * argument<uint64_t>(arguments, 2) + argument<uint64_t>(arguments, 3);
}
LaunchDescription affine(const uint64_t *in, uint64_t *out, uint64_t factor, uint64_t addend, uint32_t blocks = 4) {
  return kernel("affine", affineKernel, {blocks, 1, 1}, 32, 0, in, out, factor, addend);
}

TEST(Streams, RunOperationsInOrder) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    auto machine = makeMachine(ranks(1, seed));
    auto *data = makeBuffer<uint64_t>(*machine, 0, 128, "data"),
         *other = makeBuffer<uint64_t>(*machine, 0, 128, "other");
    StreamId stream = makeStream(*machine, 0);
    std::vector<int> order;
    ASSERT_OK(machine->memset(stream, data, 1, 128 * 8));
    ASSERT_OK(machine->launch(stream, affine(data, data, 0, 5)));
    ASSERT_OK(machine->hostCallback(stream, [&] { order.push_back(data[7] == 5 ? 1 : -1); }));
    ASSERT_OK(machine->launch(stream, affine(data, data, 3, 1)));
    ASSERT_OK(machine->copy(stream, {.destination = other, .source = data, .rowBytes = 128 * 8}));
    ASSERT_OK(machine->launch(stream, affine(data, data, 2, 0)));
    ASSERT_OK(machine->hostCallback(stream, [&] { order.push_back(data[7] == 32 && other[7] == 16 ? 2 : -2); }));
    EXPECT_FALSE(machine->isIdle(stream));
    EXPECT_EQ(data[0], 0u); // nothing has run yet
    ASSERT_OK(machine->synchronize(stream));
    EXPECT_TRUE(machine->isIdle(stream));
    EXPECT_EQ(order, (std::vector<int>{1, 2}));
    for (int i = 0; i < 128; ++i)
      EXPECT_EQ(data[i], 32u);
  }
}

TEST(Streams, LaunchesOwnTheirArguments) {
  auto machine = makeMachine(ranks(1));
  auto *data = makeBuffer<uint64_t>(*machine, 0, 128, "data");
  StreamId stream = makeStream(*machine, 0);
  auto token = std::make_shared<int>(1);
  {
    LaunchDescription launch = affine(data, data, 1, 9);
    launch.keepAlive = token;
    ASSERT_OK(machine->launch(stream, launch));
    launch.arguments.bytes.assign(launch.arguments.bytes.size(), std::byte(0));
  }
  EXPECT_EQ(token.use_count(), 2);
  ASSERT_OK(machine->synchronize());
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_EQ(data[127], 9u);
}

TEST(Streams, EventsOrderStreamsAcrossRanks) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    auto machine = makeMachine(ranks(2, seed));
    auto *data = makeBuffer<uint64_t>(*machine, 0, 128, "data");
    auto *there = makeBuffer<uint64_t>(*machine, 1, 128, "there");
    StreamId first = makeStream(*machine, 0), second = makeStream(*machine, 1);
    Expected<EventId> ready = machine->createEvent("ready");
    ASSERT_TRUE(ready.isOk());
    ASSERT_OK(machine->waitEvent(second, *ready)); // never recorded: no effect
    ASSERT_OK(machine->launch(first, affine(data, data, 1, 4)));
    ASSERT_OK(machine->recordEvent(first, *ready));
    ASSERT_OK(machine->waitEvent(second, *ready));
    ASSERT_OK(machine->recordEvent(first, *ready)); // a later recording is not what was waited for
    ASSERT_OK(machine->copy(second, {.destination = there, .source = data, .rowBytes = 128 * 8, .name = "pull"}));
    EXPECT_FALSE(machine->eventTime(*ready));
    ASSERT_OK(machine->synchronizeEvent(*ready));
    ASSERT_TRUE(machine->eventTime(*ready));
    ASSERT_OK(machine->synchronize());
    for (int i = 0; i < 128; ++i)
      EXPECT_EQ(there[i], 4u);
    ASSERT_EQ(machine->copies().size(), 1u);
    const CopyRecord &copy = machine->copies()[0];
    EXPECT_EQ(copy.name, "pull");
    EXPECT_EQ(copy.sourceRank, 0u);
    EXPECT_EQ(copy.destinationRank, 1u);
    EXPECT_EQ(copy.issuingRank, 1u);
    EXPECT_GE(copy.start, machine->launches()[0].end);
  }
}

TEST(Streams, SignalsHoldAndReleaseStreamsAndKernels) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    auto machine = makeMachine(ranks(2, seed));
    auto *signal = makeBuffer<uint64_t>(*machine, 1, 2, "signal", MemoryKind::Symmetric);
    auto *small = makeBuffer<int32_t>(*machine, 1, 1, "small", MemoryKind::Symmetric);
    auto *data = makeBuffer<uint64_t>(*machine, 1, 32, "data");
    auto *source = makeBuffer<uint64_t>(*machine, 0, 32, "source");
    std::iota(source, source + 32, 100);
    StreamId producer = makeStream(*machine, 0), consumer = makeStream(*machine, 1);
    auto entry = [](void **arguments) {
      DitronSimThread *self = ditron_sim_self();
      ditron_sim_wait_until(self, argument<uint64_t *>(arguments, 1), 8, DITRON_SIM_EQ, 5, DITRON_SIM_ACQUIRE,
                            DITRON_SIM_SCOPE_SYSTEM, AT(20));
      argument<uint64_t *>(arguments, 0)[self->threadId] *= 2;
    };
    ASSERT_OK(machine->signalWait(consumer, small, Compare::Less, 0, 4));
    ASSERT_OK(machine->launch(consumer, kernel("double", entry, {1, 1, 1}, 32, 0, data, signal)));
    ASSERT_OK(machine->copy(producer, {.destination = data, .source = source, .rowBytes = 32 * 8}));
    ASSERT_OK(machine->signalWrite(producer, small, static_cast<uint64_t>(-3), 4));
    ASSERT_OK(machine->signalAdd(producer, signal, 2));
    ASSERT_OK(machine->signalAdd(producer, signal, 3));
    ASSERT_OK(machine->synchronize());
    for (uint64_t i = 0; i < 32; ++i)
      EXPECT_EQ(data[i], 2 * (100 + i));
    // The waits are on record, and ended after the copy that they were waiting for.
    ASSERT_GE(machine->waits().size(), 2u);
    EXPECT_EQ(machine->waits()[0].signal, "small[0]");
    EXPECT_GT(machine->waits()[0].end, machine->copies()[0].end);
  }
}

TEST(Copies, RowsWithPitches) {
  auto machine = makeMachine(ranks(2));
  auto *from = makeBuffer<uint8_t>(*machine, 0, 1000, "from"), *to = makeBuffer<uint8_t>(*machine, 1, 1000, "to");
  for (int i = 0; i < 1000; ++i)
    from[i] = static_cast<uint8_t>(i);
  StreamId stream = makeStream(*machine, 0);
  ASSERT_OK(machine->copy(
      stream,
      {.destination = to, .source = from + 3, .rowBytes = 10, .rows = 7, .destinationPitch = 20, .sourcePitch = 100}));
  ASSERT_OK(machine->synchronize());
  for (int i = 0; i < 1000; ++i) {
    bool inside = i / 20 < 7 && i % 20 < 10;
    ASSERT_EQ(to[i], inside ? static_cast<uint8_t>(i / 20 * 100 + 3 + i % 20) : 0) << i;
  }
  EXPECT_THAT(machine->copy(stream, {.destination = to, .source = from, .rowBytes = 1001}).message(),
              HasSubstr("destination of copy copy: 1001 bytes at "));
  EXPECT_THAT(
      machine->copy(stream, {.destination = to, .source = from, .rowBytes = 10, .rows = 2, .sourcePitch = 5}).message(),
      HasSubstr("the pitch 5 is less than the 10 bytes of a row"));
  ASSERT_OK(machine->copy(stream, {.destination = to, .source = from, .rowBytes = 0}));
  EXPECT_OK(machine->synchronize());
}

TEST(Copies, BecomeVisiblePieceByPiece) {
  // The last word is watched by a kernel; the first piece must have been there long before.
  MachineOptions options = ranks(2);
  options.detectRaces = false; // what is polled is data
  auto machine = makeMachine(options);
  constexpr size_t count = 1 << 17; // 1 MiB: sixteen chunks
  auto *from = makeBuffer<uint64_t>(*machine, 0, count, "from"), *to = makeBuffer<uint64_t>(*machine, 1, count, "to");
  std::fill_n(from, count, 1);
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    uint64_t index = self->blockId[0] ? argument<uint64_t>(arguments, 1) - 1 : 0;
    ditron_sim_wait_until(self, argument<uint64_t *>(arguments, 0) + index, 8, DITRON_SIM_EQ, 1, DITRON_SIM_ACQUIRE,
                          DITRON_SIM_SCOPE_SYSTEM, AT(21));
  };
  ASSERT_OK(machine->launch(makeStream(*machine, 1), kernel("watch", entry, {2, 1, 1}, 1, 0, to, uint64_t(count))));
  ASSERT_OK(machine->copy(makeStream(*machine, 0), {.destination = to, .source = from, .rowBytes = count * 8}));
  ASSERT_OK(machine->synchronize());
  const std::vector<BlockRecord> &blocks = machine->launches()[0].blocks;
  SimTime copyTime = machine->copies()[0].end - machine->copies()[0].start;
  EXPECT_GT(blocks[1].end - blocks[0].end, copyTime / 2);
}

TEST(Copies, PiecesComeInAnyOrder) {
  // Of two words at the ends of the copy, which comes first: a thread looks at both until one has come.
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    auto *data = argument<uint64_t *>(arguments, 0);
    const auto count = argument<uint64_t>(arguments, 1);
    for (;;)
      for (uint64_t end = 0; end < 2; ++end)
        if (ditron_sim_ld(self, data + end * (count - 1), 8, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_SYSTEM, 0, AT(31))) {
          *argument<uint64_t *>(arguments, 2) = end;
          return;
        }
  };
  uint32_t firstEnd[2] = {};
  for (uint64_t seed = 0; seed < 40; ++seed) {
    MachineOptions options = ranks(2, seed);
    options.detectRaces = false; // what is polled is data
    auto machine = makeMachine(options);
    constexpr size_t count = 1 << 19; // longer under way than a rank starts late
    auto *from = makeBuffer<uint64_t>(*machine, 0, count, "from"), *to = makeBuffer<uint64_t>(*machine, 1, count, "to");
    auto *first = makeBuffer<uint64_t>(*machine, 1, 1, "first");
    std::fill_n(from, count, 1);
    ASSERT_OK(
        machine->launch(makeStream(*machine, 1), kernel("watch", entry, {1, 1, 1}, 1, 0, to, uint64_t(count), first)));
    ASSERT_OK(machine->copy(makeStream(*machine, 0), {.destination = to, .source = from, .rowBytes = count * 8}));
    ASSERT_OK(machine->synchronize());
    EXPECT_EQ(std::accumulate(to, to + count, uint64_t(0)), count) << seed;
    if (seed)
      ++firstEnd[*first];
    else
      EXPECT_EQ(*first, 0u); // front to back, and all at once if it is short
  }
  EXPECT_GT(firstEnd[0], 5u);
  EXPECT_GT(firstEnd[1], 5u);
}

TEST(Copies, FreedMemoryIsNoticedWhenTheCopyRuns) {
  auto machine = makeMachine(ranks(1));
  auto *from = makeBuffer<uint64_t>(*machine, 0, 4, "from"), *to = makeBuffer<uint64_t>(*machine, 0, 4, "to");
  StreamId stream = makeStream(*machine, 0);
  ASSERT_OK(machine->copy(stream, {.destination = to, .source = from, .rowBytes = 32, .name = "late"}));
  ASSERT_OK(machine->free(from));
  EXPECT_THAT(machine->synchronize().message(), AllOf(HasSubstr("rank 0, stream main, copy engine 0, late"),
                                                      HasSubstr("are freed memory: at offset 0 of freed from")));
}

TEST(Copies, TwoEnginesWorkAtTheSameTime) {
  auto machine = makeMachine(ranks(3));
  auto *from = makeBuffer<uint64_t>(*machine, 0, 1 << 16, "from");
  for (uint32_t r : {1u, 2u}) {
    auto *to = makeBuffer<uint64_t>(*machine, r, 1 << 16, "to");
    ASSERT_OK(machine->copy(makeStream(*machine, 0), {.destination = to, .source = from, .rowBytes = 8 << 16}));
  }
  ASSERT_OK(machine->synchronize());
  ASSERT_EQ(machine->copies().size(), 2u);
  EXPECT_NE(machine->copies()[0].engine, machine->copies()[1].engine);
  EXPECT_LT(machine->copies()[1].start, machine->copies()[0].end);
}

//===- Graphs -----------------------------------------------------------------------------------------------------===//

TEST(Graphs, ReplayForkJoinAcrossStreams) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    auto machine = makeMachine(ranks(2, seed));
    auto *data = makeBuffer<uint64_t>(*machine, 0, 128, "data"),
         *copyOf = makeBuffer<uint64_t>(*machine, 1, 128, "copy");
    StreamId main = makeStream(*machine, 0), side = makeStream(*machine, 1, "side");
    EventId fork = *machine->createEvent("fork"), join = *machine->createEvent("join");
    ASSERT_OK(machine->beginCapture(main));
    EXPECT_TRUE(machine->isCapturing(main));
    ASSERT_OK(machine->launch(main, affine(data, data, 2, 1)));
    ASSERT_OK(machine->recordEvent(main, fork));
    ASSERT_OK(machine->waitEvent(side, fork));
    EXPECT_TRUE(machine->isCapturing(side));
    ASSERT_OK(machine->copy(side, {.destination = copyOf, .source = data, .rowBytes = 128 * 8}));
    ASSERT_OK(machine->recordEvent(side, join));
    ASSERT_OK(machine->waitEvent(main, join));
    ASSERT_OK(machine->launch(main, affine(data, data, 1, 1)));
    EXPECT_THAT(machine->synchronize(main).message(), HasSubstr("stream main is being captured"));
    Expected<std::shared_ptr<const Graph>> graph = machine->endCapture(main);
    ASSERT_TRUE(graph.isOk()) << graph.status().message();
    ASSERT_OK(machine->synchronize());
    EXPECT_EQ(data[0], 0u); // capturing runs nothing
    uint64_t expected = 0;
    for (int replay = 0; replay < 5; ++replay) {
      ASSERT_OK(machine->launchGraph(main, *graph));
      expected = 2 * expected + 2;
      if (replay == 2) { // eager work in between
        ASSERT_OK(machine->launch(main, affine(data, data, 1, 10)));
        expected += 10;
      }
    }
    ASSERT_OK(machine->synchronize());
    for (int i = 0; i < 128; ++i) {
      ASSERT_EQ(data[i], expected);
      ASSERT_EQ(copyOf[i], expected - 1);
    }
  }
}

TEST(Graphs, MistakesAreRefused) {
  auto machine = makeMachine(ranks(1));
  auto *data = makeBuffer<uint64_t>(*machine, 0, 128, "data");
  StreamId main = makeStream(*machine, 0), side = makeStream(*machine, 0, "side");
  EventId fork = *machine->createEvent("fork"), outside = *machine->createEvent("outside");
  EXPECT_THAT(machine->endCapture(main).status().message(), HasSubstr("no capture began on stream main"));
  ASSERT_OK(machine->recordEvent(side, outside));
  ASSERT_OK(machine->beginCapture(main));
  EXPECT_THAT(machine->beginCapture(main).message(), HasSubstr("is being captured already"));
  EXPECT_THAT(machine->waitEvent(main, outside).message(), HasSubstr("cannot wait for event outside"));
  ASSERT_OK(machine->recordEvent(main, fork));
  ASSERT_OK(machine->waitEvent(side, fork));
  ASSERT_OK(machine->launch(side, affine(data, data, 1, 1)));
  EXPECT_THAT(machine->endCapture(main).status().message(),
              HasSubstr("stream side has captured work that nothing waits for"));
  EXPECT_FALSE(machine->isCapturing(side));
  EXPECT_OK(machine->synchronize());
}

//===- Host code --------------------------------------------------------------------------------------------------===//

TEST(Host, RanksRunInterleavedAndMeet) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    auto machine = makeMachine(ranks(4, seed));
    std::vector<uint64_t *> data;
    for (uint32_t r = 0; r < 4; ++r)
      data.push_back(makeBuffer<uint64_t>(*machine, r, 128, "data"));
    std::vector<int> passed(4);
    Status status = machine->runRanks([&](uint32_t rank) -> Status {
      EXPECT_EQ(machine->currentHostRank(), rank);
      DITRON_ASSIGN_OR_RETURN(StreamId stream, machine->createStream(rank, "main"));
      for (int round = 0; round < 5; ++round) {
        DITRON_RETURN_IF_ERROR(machine->launch(stream, affine(data[rank], data[rank], 1, rank + 1)));
        DITRON_RETURN_IF_ERROR(machine->synchronize(stream));
        DITRON_RETURN_IF_ERROR(machine->hostBarrier());
        // After the barrier every rank has finished this round, and none is more than one ahead.
        for (uint32_t r = 0; r < 4; ++r)
          EXPECT_GE(data[r][5], uint64_t(round + 1) * (r + 1));
        ++passed[rank];
        DITRON_RETURN_IF_ERROR(machine->hostBarrier());
      }
      return Status::ok();
    });
    EXPECT_OK(status);
    EXPECT_FALSE(machine->currentHostRank());
    EXPECT_EQ(passed, (std::vector<int>{5, 5, 5, 5}));
    EXPECT_GT(machine->now(), 0);
  }
}

TEST(Host, ConditionsAreSeen) {
  auto machine = makeMachine(ranks(3));
  int turn = 2;
  std::vector<uint32_t> order;
  EXPECT_OK(machine->runRanks([&](uint32_t rank) -> Status {
    DITRON_RETURN_IF_ERROR(machine->hostWait([&, rank] { return turn == static_cast<int>(rank); }, "its turn"));
    order.push_back(rank);
    --turn;
    return Status::ok();
  }));
  EXPECT_EQ(order, (std::vector<uint32_t>{2, 1, 0}));
}

TEST(Host, ErrorsComeBackWithTheRank) {
  auto machine = makeMachine(ranks(3));
  Status status =
      machine->runRanks([&](uint32_t rank) -> Status { return rank == 1 ? notFound("no weights") : Status::ok(); });
  EXPECT_EQ(status.code(), StatusCode::NotFound);
  EXPECT_EQ(status.message(), "rank 1: no weights");
  EXPECT_OK(machine->status()); // the machine itself is fine
}

TEST(Host, AKernelErrorReachesEveryRankAndUnwindsHostCode) {
  auto machine = makeMachine(ranks(3));
  int destroyed = 0;
  struct Guard {
    int *count;
    ~Guard() { ++*count; }
  };
  Status status = machine->runRanks([&](uint32_t rank) -> Status {
    Guard guard{&destroyed};
    DITRON_ASSIGN_OR_RETURN(StreamId stream, machine->createStream(rank, "main"));
    if (rank == 1) {
      auto entry = [](void **) { ditron_sim_trap(ditron_sim_self(), "boom", AT(30)); };
      DITRON_RETURN_IF_ERROR(machine->launch(stream, kernel("bomb", entry, {1, 1, 1}, 32, 0)));
    }
    DITRON_RETURN_IF_ERROR(machine->synchronize(stream));
    Status barrier = machine->hostBarrier();
    EXPECT_FALSE(barrier.isOk());
    return barrier;
  });
  EXPECT_THAT(status.message(), HasSubstr("kernel bomb, rank 1"));
  EXPECT_EQ(destroyed, 3);
}

TEST(Host, DeadlockTextShowsHostCode) {
  auto machine = makeMachine(ranks(3));
  auto *flag = makeBuffer<uint64_t>(*machine, 2, 1, "flag");
  Status status = machine->runRanks([&](uint32_t rank) -> Status {
    if (rank == 0)
      return Status::ok();
    if (rank == 1)
      return machine->hostBarrier();
    DITRON_ASSIGN_OR_RETURN(StreamId stream, machine->createStream(rank, "main"));
    DITRON_RETURN_IF_ERROR(machine->signalWait(stream, flag, Compare::Equal, 1));
    return machine->synchronize(stream);
  });
  EXPECT_EQ(status.code(), StatusCode::Deadlock);
  EXPECT_THAT(
      status.message(),
      AllOf(
          HasSubstr("  rank 0:\n    host code: has returned\n"),
          HasSubstr("  rank 1:\n    host code: waits for the other ranks at a host barrier\n"),
          HasSubstr(
              "  rank 2:\n    host code: waits for stream main\n    stream main is held by the signal wait above"),
          HasSubstr(
              "rank 2, stream main, signal wait\n    waits for flag[0] on rank 2: has 0, wants == 1; never written")));
}

} // namespace
} // namespace ditron::sim
