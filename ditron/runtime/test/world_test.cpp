//===- world_test.cpp - Worlds of simulated ranks running kernels written in C++ ----------------------------------===//
//
// The kernels here stand where compiled ones will: entry functions that call the simulator's ABI, wrapped as Kernels.
// So the runtime is tested without a compiler.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/Timeline.h"
#include "ditron/runtime/World.h"
#include "ditron/abi/Simulator.h"

#include <filesystem>
#include <gmock/gmock.h>

using namespace ditron;
using namespace ditron::runtime;
using testing::AllOf;
using testing::HasSubstr;

namespace {

constexpr DitronSimSite site = {"kernel.py", 7, 5};

template <typename T> T argument(void **arguments, size_t index) { return *static_cast<T *>(arguments[index]); }

/// z[i] = x[i] + y[i] for i < n, one element per thread.
void addEntry(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *x = argument<float *>(arguments, 0), *y = argument<float *>(arguments, 1), *z = argument<float *>(arguments, 2);
  const auto n = argument<int32_t>(arguments, 3);
  const auto i = static_cast<int32_t>(self->blockId[0] * self->numThreads + self->threadId);
  const uint32_t inside = i < n;
  ditron_sim_access(self, x + i, 4, inside, DITRON_SIM_LOAD, DITRON_SIM_GLOBAL, &site);
  ditron_sim_access(self, y + i, 4, inside, DITRON_SIM_LOAD, DITRON_SIM_GLOBAL, &site);
  ditron_sim_access(self, z + i, 4, inside, DITRON_SIM_STORE, DITRON_SIM_GLOBAL, &site);
  if (inside)
    z[i] = x[i] + y[i];
}

/// Writes rank * 100 + i into word i of the next rank's copy of the buffer, by way of the world view.
void ringEntry(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *mine = argument<int64_t *>(arguments, 0);
  const auto *view = argument<const int64_t *>(arguments, 1);
  const int64_t rank = view[0], ranks = view[1], next = (rank + 1) % ranks;
  auto *theirs = reinterpret_cast<int64_t *>(reinterpret_cast<int64_t>(mine) - view[2 + rank] + view[2 + next]);
  int64_t *word = theirs + self->threadId;
  ditron_sim_access(self, word, 8, 1, DITRON_SIM_STORE, DITRON_SIM_GLOBAL, &site);
  *word = rank * 100 + self->threadId;
}

/// Waits until the signal is at least `value`.
void waitEntry(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  ditron_sim_wait_until(self, argument<int64_t *>(arguments, 0), 8, DITRON_SIM_GE, argument<uint64_t>(arguments, 1),
                        DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_SYSTEM, &site);
}

Kernel makeKernel(std::string name, HostEntry entry, std::vector<ArtifactParameter> parameters) {
  Artifact artifact;
  artifact.kernel = name;
  artifact.entrySymbol = name + "__entry";
  artifact.target = "sim:sm_80";
  artifact.numWarps = 1;
  artifact.parameters = std::move(parameters);
  Expected<Kernel> kernel = Kernel::create(std::move(artifact), {entry, nullptr, ""});
  EXPECT_TRUE(kernel.isOk()) << kernel.status().message();
  return *kernel;
}

Kernel addKernel() {
  return makeKernel("add", addEntry,
                    {{"x", "*fp32", 8, 16}, {"y", "*fp32", 8, 16}, {"z", "*fp32", 8, 16}, {"n", "i32", 4}});
}
Kernel ringKernel() { return makeKernel("ring", ringEntry, {{"buffer", "*i64", 8}}); }
Kernel waitKernel() { return makeKernel("wait", waitEntry, {{"signal", "*i64", 8}, {"value", "i64", 8}}); }

std::unique_ptr<World> makeWorld(uint32_t ranks, WorldOptions options = {}) {
  Expected<std::unique_ptr<World>> world = World::local(ranks, "sim", options);
  EXPECT_TRUE(world.isOk()) << world.status().message();
  return std::move(world).value();
}

/// Fails the test with the message; true when ok.
testing::AssertionResult ok(const Status &status) {
  return status.isOk() ? testing::AssertionSuccess() : testing::AssertionFailure() << status.message();
}

} // namespace

TEST(World, optionsAreChecked) {
  EXPECT_THAT(World::local(0, "sim").status().message(), HasSubstr("accepted are 1 to"));
  EXPECT_THAT(World::local(2, "sim:sm_08").status().message(), HasSubstr("did you mean 'sim:sm_80'"));
  WorldOptions slow;
  slow.slowRanks[2] = 4;
  EXPECT_THAT(World::local(2, "sim", slow).status().message(),
              HasSubstr("slow rank 2 does not exist; ranks are 0 to 1"));
  slow.slowRanks = {{0, 0.5}};
  EXPECT_THAT(World::local(2, "sim", slow).status().message(), HasSubstr("numbers from 1"));
  WorldOptions none;
  none.sms = 0;
  EXPECT_THAT(World::local(2, "sim", none).status().message(), HasSubstr("0 SMs"));
  EXPECT_EQ(makeWorld(2)->target(), "sim:sm_80");
}

TEST(World, aThousandRanks) {
  std::unique_ptr<World> world = makeWorld(1024);
  ASSERT_TRUE(world);
  SymmetricBuffer words = *world->allocateSymmetric(DataType::I64, 32, "words");
  const Kernel ring = ringKernel();
  for (uint32_t r = 0; r < 1024; ++r)
    ASSERT_TRUE(ok(world->rank(r).stream().launch(ring, {}, {words.on(r)})));
  ASSERT_TRUE(ok(world->synchronize()));
  int64_t value = 0;
  ASSERT_TRUE(ok(words.download(0, &value, sizeof(value))));
  EXPECT_EQ(value, 1023 * 100);
}

TEST(World, vectorAddOnFourRanks) {
  std::unique_ptr<World> world = makeWorld(4);
  const Kernel add = addKernel();
  constexpr int32_t n = 100; // does not divide into blocks of 32
  std::vector<Buffer> xs, ys, zs;
  for (uint32_t r = 0; r < 4; ++r) {
    Rank &rank = world->rank(r);
    xs.push_back(*rank.allocate(DataType::F32, n, "x"));
    ys.push_back(*rank.allocate(DataType::F32, n, "y"));
    zs.push_back(*rank.allocate(DataType::F32, n, "z"));
    std::vector<float> x(n), y(n, static_cast<float>(r));
    for (int i = 0; i < n; ++i)
      x[i] = static_cast<float>(i);
    ASSERT_TRUE(ok(xs[r].uploadFloats(x)));
    ASSERT_TRUE(ok(ys[r].uploadFloats(y)));
    ASSERT_TRUE(ok(rank.stream().launch(add, {.grid = {4, 1, 1}}, {xs[r], ys[r], zs[r], n})));
  }
  ASSERT_TRUE(ok(world->synchronize()));
  for (uint32_t r = 0; r < 4; ++r) {
    std::vector<float> z = *zs[r].downloadFloats();
    for (int i = 0; i < n; ++i)
      ASSERT_EQ(z[i], static_cast<float>(i) + static_cast<float>(r));
  }
}

TEST(World, symmetricBuffersHaveOneOffset) {
  std::unique_ptr<World> world = makeWorld(3);
  // What one rank allocates for itself must not shift its symmetric heap.
  Buffer unrelated = *world->rank(1).allocate(DataType::F32, 1000, "unrelated");
  SymmetricBuffer first = *world->allocateSymmetric(DataType::BF16, 333, "first");
  SymmetricBuffer second = *world->allocateSymmetric(DataType::I64, 8, "second");
  EXPECT_NE(first.offset(), second.offset());
  for (uint32_t r = 0; r < 3; ++r) {
    auto *base = static_cast<std::byte *>(world->rank(r).device()->symmetricBase());
    for (const SymmetricBuffer *buffer : {&first, &second}) {
      EXPECT_EQ(static_cast<std::byte *>(buffer->on(r).address), base + buffer->offset());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->on(r).address) % 256, 0u);
    }
  }
  EXPECT_EQ(first.on(0).type, DataType::BF16);
  EXPECT_EQ(world->allocateSymmetric(DataType::F32, 0, "empty")->bytes(), 0u); // a rank's share may be nothing
}

TEST(World, kernelsReachPeersThroughTheWorldView) {
  for (uint64_t seed : {1, 2}) {
    WorldOptions options;
    options.seed = seed;
    std::unique_ptr<World> world = makeWorld(4, options);
    SymmetricBuffer words = *world->allocateSymmetric(DataType::I64, 32, "words");
    const Kernel ring = ringKernel();
    for (uint32_t r = 0; r < 4; ++r)
      ASSERT_TRUE(ok(world->rank(r).stream().launch(ring, {}, {words.on(r)})));
    ASSERT_TRUE(ok(world->synchronize()));
    for (uint32_t r = 0; r < 4; ++r) {
      int64_t values[32];
      ASSERT_TRUE(ok(words.download(r, values, sizeof(values))));
      for (int64_t i = 0; i < 32; ++i)
        ASSERT_EQ(values[i], (r + 3) % 4 * 100 + i);
    }
  }
}

// Each rank pushes its block to all others and raises a signal; each rank's second stream waits for all signals before
// it reads. The classic all-gather, with one slow rank.
TEST(World, allGatherWithCopiesAndSignals) {
  for (uint64_t seed : {3, 4}) {
    WorldOptions options;
    options.seed = seed;
    options.slowRanks[1] = 8;
    std::unique_ptr<World> world = makeWorld(4, options);
    constexpr uint32_t block = 64;
    SymmetricBuffer gathered = *world->allocateSymmetric(DataType::F32, block * 4, "gathered");
    SymmetricBuffer signals = *world->allocateSymmetric(DataType::I64, 4, "signals");
    std::vector<std::vector<float>> results(4);
    Status status = world->runRanks([&](Rank &rank) -> Status {
      const uint32_t me = rank.id();
      DITRON_ASSIGN_OR_RETURN(Buffer mine, rank.allocate(DataType::F32, block, "mine"));
      DITRON_RETURN_IF_ERROR(mine.uploadFloats(std::vector<float>(block, static_cast<float>(me + 1))));
      DITRON_ASSIGN_OR_RETURN(Buffer out, rank.allocate(DataType::F32, block * 4, "out"));
      DITRON_ASSIGN_OR_RETURN(Stream consumer, rank.createStream("consumer"));
      for (uint32_t step = 0; step < 4; ++step) {
        const uint32_t peer = (me + step) % 4;
        DITRON_RETURN_IF_ERROR(rank.stream().copy(gathered.on(peer) + me * block, mine, block, "push"));
        DITRON_RETURN_IF_ERROR(rank.stream().signalWrite(signals.on(peer) + me, 1));
        DITRON_RETURN_IF_ERROR(consumer.signalWait(signals.on(me) + (me + step) % 4, Compare::GreaterEqual, 1));
      }
      DITRON_RETURN_IF_ERROR(consumer.copy(out, gathered.on(me), block * 4, "read"));
      DITRON_RETURN_IF_ERROR(rank.synchronize());
      DITRON_ASSIGN_OR_RETURN(results[me], out.downloadFloats());
      // Peers may still be reading what this rank wrote.
      return rank.hostBarrier();
    });
    ASSERT_TRUE(ok(status));
    for (uint32_t r = 0; r < 4; ++r)
      for (uint32_t i = 0; i < block * 4; ++i)
        ASSERT_EQ(results[r][i], static_cast<float>(i / block + 1));
  }
}

TEST(World, symmetricAllocationIsCollectiveInsideRunRanks) {
  std::unique_ptr<World> world = makeWorld(3);
  std::vector<uint64_t> offsets(3);
  ASSERT_TRUE(ok(world->runRanks([&](Rank &rank) -> Status {
    DITRON_ASSIGN_OR_RETURN(SymmetricBuffer buffer, rank.world().allocateSymmetric(DataType::I32, 16, "shared"));
    offsets[rank.id()] = buffer.offset();
    return rank.hostBarrier();
  })));
  EXPECT_EQ(offsets[0], offsets[1]);
  EXPECT_EQ(offsets[0], offsets[2]);
  Status mismatch = world->runRanks([&](Rank &rank) -> Status {
    return rank.world().allocateSymmetric(DataType::I32, 16 + rank.id() / 2, "odd").status();
  });
  EXPECT_THAT(mismatch.message(), AllOf(HasSubstr("'odd' of 17 i32"), HasSubstr("same allocations in the same order")));
}

TEST(World, ranksAgreeOrAllGetAnErrorThatNamesThem) {
  std::unique_ptr<World> world = makeWorld(4);
  std::vector<Status> got(4);
  auto say = [&](const std::vector<std::string> &said) {
    return world->runRanks([&](Rank &rank) -> Status {
      EXPECT_TRUE(rank.world().isInHostCode());
      got[rank.id()] = rank.world().agree(rank, "the plan", said[rank.id()]);
      return Status::ok();
    });
  };
  for (int call = 0; call < 3; ++call) {
    ASSERT_TRUE(ok(say({"a", "a", "a", "a"})));
    for (const Status &status : got)
      EXPECT_TRUE(ok(status));
    ASSERT_TRUE(ok(say({"a", "b", "a", "c"})));
    for (const Status &status : got)
      EXPECT_EQ(status.message(), "the plan: the ranks differ: ranks 0, 2: a; rank 1: b; rank 3: c");
  }
  // Two agreements in a row are two.
  ASSERT_TRUE(ok(world->runRanks([&](Rank &rank) -> Status {
    DITRON_RETURN_IF_ERROR(rank.world().agree(rank, "first", "x"));
    got[rank.id()] = rank.world().agree(rank, "second", rank.id() == 3 ? "y" : "x");
    return Status::ok();
  })));
  for (const Status &status : got)
    EXPECT_EQ(status.message(), "second: the ranks differ: ranks 0, 1, 2: x; rank 3: y");
  // One host thread for all ranks: there is nobody to wait for.
  EXPECT_FALSE(world->isInHostCode());
  EXPECT_TRUE(ok(world->agree(world->rank(0), "the plan", "a")));
}

TEST(World, groupsAgreeAmongThemselves) {
  std::unique_ptr<World> world = makeWorld(4);
  std::unique_ptr<World> even = *world->group({0, 2}), odd = *world->group({1, 3});
  std::vector<Status> got(4);
  ASSERT_TRUE(ok(world->runRanks([&](Rank &rank) -> Status {
    World &own = rank.id() % 2 ? *odd : *even;
    got[rank.id()] = own.agree(own.rank(rank.id() / 2), "the plan", rank.id() == 2 ? "b" : "a");
    return Status::ok();
  })));
  EXPECT_EQ(got[0].message(), "the plan: the ranks differ: rank 0: a; rank 1: b");
  EXPECT_EQ(got[2].message(), got[0].message());
  EXPECT_TRUE(ok(got[1]));
  EXPECT_TRUE(ok(got[3]));
}

TEST(World, aRankThatReturnsEndsTheAgreementOfTheOthers) {
  std::unique_ptr<World> world = makeWorld(3);
  const Status status = world->runRanks([&](Rank &rank) -> Status {
    return rank.id() == 1 ? invalidArgument("no such kernel") : rank.world().agree(rank, "the plan", "a");
  });
  EXPECT_THAT(status.message(), HasSubstr("the plan: 2 of 3 are there"));
}

TEST(World, eventsOrderStreams) {
  std::unique_ptr<World> world = makeWorld(1);
  Rank &rank = world->rank(0);
  Buffer a = *rank.allocate(DataType::I32, 4, "a"), b = *rank.allocate(DataType::I32, 4, "b");
  Stream other = *rank.createStream("other");
  Event filled = *rank.createEvent("filled");
  EXPECT_FALSE(filled.time().isOk());
  ASSERT_TRUE(ok(rank.stream().fill(a, 1, 4)));
  ASSERT_TRUE(ok(rank.stream().record(filled)));
  ASSERT_TRUE(ok(other.wait(filled)));
  ASSERT_TRUE(ok(other.copy(b, a, 4)));
  ASSERT_TRUE(ok(other.synchronize()));
  int32_t values[4];
  ASSERT_TRUE(ok(b.download(values, sizeof(values))));
  EXPECT_THAT(values, testing::Each(0x01010101));
  EXPECT_TRUE(filled.time().isOk());
}

TEST(World, graphsReplay) {
  std::unique_ptr<World> world = makeWorld(1);
  Rank &rank = world->rank(0);
  Buffer word = *rank.allocate(DataType::I64, 1, "word");
  ASSERT_TRUE(ok(rank.stream().beginCapture()));
  ASSERT_TRUE(ok(rank.stream().signalAdd(word, 5)));
  Expected<Graph> graph = rank.stream().endCapture();
  ASSERT_TRUE(ok(graph.status()));
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(ok(rank.stream().launch(*graph)));
  ASSERT_TRUE(ok(rank.synchronize()));
  int64_t value = 0;
  ASSERT_TRUE(ok(word.download(&value, 8)));
  EXPECT_EQ(value, 15);
}

TEST(World, launchErrors) {
  std::unique_ptr<World> world = makeWorld(1);
  Rank &rank = world->rank(0);
  Buffer x = *rank.allocate(DataType::F32, 32, "x"), half = *rank.allocate(DataType::F16, 32, "half");
  const Kernel add = addKernel();
  Stream &stream = rank.stream();
  EXPECT_THAT(stream.launch(add, {}, {x, x, x}).message(), HasSubstr("takes 4 arguments (x: *fp32, y: *fp32"));
  EXPECT_THAT(stream.launch(add, {}, {x, half, x, 3}).message(),
              HasSubstr("argument 'y' (number 1): expected a fp32 pointer, given fp16 pointer"));
  EXPECT_THAT(stream.launch(add, {}, {x.pointer() + 1, x, x, 3}).message(), HasSubstr("multiples of 16"));
  EXPECT_THAT(stream.launch(add, {.grid = {1, 65536, 1}}, {x, x, x, 3}).message(), HasSubstr("grid.y is 65536"));
  EXPECT_TRUE(stream.launch(add, {.grid = {1, 0, 1}}, {x, x, x, 3}).isOk()); // an empty shard's launch runs nothing
  EXPECT_THAT(stream.signalWrite(half, 1).message(), HasSubstr("signals are i32, u32, i64 or u64"));
  EXPECT_THAT(stream.copy(x, half, 4).message(), HasSubstr("must agree"));
  Artifact big = add.artifact();
  big.sharedBytes = 1 << 20;
  Status tooMuch = stream.launch(*Kernel::create(big, add.image()), {}, {x, x, x, 3});
  EXPECT_EQ(tooMuch.code(), StatusCode::ResourceExhausted);
  EXPECT_THAT(tooMuch.message(), HasSubstr("needs 1048576 bytes of shared memory"));
  EXPECT_FALSE(Kernel::create(add.artifact(), {}).isOk());
  // None of the refused calls enqueued anything.
  EXPECT_TRUE(ok(world->synchronize()));
  std::vector<float> tooMany(33);
  EXPECT_THAT(x.uploadFloats(tooMany).message(), HasSubstr("buffer 'x' has 32 elements, given 33"));
  EXPECT_THAT(x.download(tooMany.data(), 64, 100).message(),
              HasSubstr("bytes [100, 164) of buffer 'x', which has 128"));
}

TEST(World, deadlockIsAStatus) {
  std::unique_ptr<World> world = makeWorld(2);
  SymmetricBuffer signals = *world->allocateSymmetric(DataType::I64, 4, "signals");
  const int64_t two = 2;
  ASSERT_TRUE(ok(signals.upload(1, &two, 8, 3 * 8)));
  ASSERT_TRUE(ok(world->rank(1).stream().launch(waitKernel(), {}, {signals.on(1) + 3, 5})));
  Status status = world->synchronize();
  EXPECT_EQ(status.code(), StatusCode::Deadlock);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("signals[3]"), HasSubstr("kernel.py:7")));
  EXPECT_EQ(world->status().code(), StatusCode::Deadlock);
  // The run is over; later work is refused with the same error.
  EXPECT_EQ(world->rank(0).synchronize().code(), StatusCode::Deadlock);
}

TEST(World, outOfBoundsIsAStatus) {
  std::unique_ptr<World> world = makeWorld(1);
  Rank &rank = world->rank(0);
  Buffer x = *rank.allocate(DataType::F32, 50, "x");
  ASSERT_TRUE(ok(rank.stream().launch(addKernel(), {.grid = {2, 1, 1}}, {x, x, x, 64})));
  Status status = world->synchronize();
  EXPECT_EQ(status.code(), StatusCode::OutOfBounds);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("kernel.py:7"), HasSubstr("x")));
}

TEST(World, timelineShowsOverlap) {
  WorldOptions options;
  options.trace = true;
  std::unique_ptr<World> world = makeWorld(2, options);
  SymmetricBuffer data = *world->allocateSymmetric(DataType::F32, 1 << 20, "data");
  Rank &receiver = world->rank(0);
  Buffer x = *receiver.allocate(DataType::F32, 64, "x");
  // 4 MiB take far longer over the links than 2 blocks of an addition.
  ASSERT_TRUE(ok(world->rank(1).stream().copy(data.on(0), data.on(1), 1 << 20, "shard")));
  ASSERT_TRUE(ok(receiver.stream().launch(addKernel(), {.grid = {2, 1, 1}}, {x, x, x, 64})));
  ASSERT_TRUE(ok(world->synchronize()));
  Expected<Overlap> overlap = overlapWithCopies(*world, 0, "add", CopyDirection::Incoming, "shard");
  ASSERT_TRUE(ok(overlap.status()));
  EXPECT_EQ(overlap->blocks, 2u);
  EXPECT_EQ(overlap->copies, 1u);
  EXPECT_EQ(overlap->finishedBeforeLastCopy, 2u);
  EXPECT_EQ(overlap->startedAfterFirstCopy, 0u);
  EXPECT_EQ(overlapWithCopies(*world, 0, "add", CopyDirection::Outgoing)->copies, 0u);
  EXPECT_THAT(overlapWithCopies(*world, 0, "gemm", CopyDirection::Incoming).status().message(),
              HasSubstr("launched there: add"));
  EXPECT_GT(*spanOfRecordedWork(*world), 0);
  const std::string path = testing::TempDir() + "/ditron_world_trace.json";
  ASSERT_TRUE(ok(world->writeTrace(path)));
  EXPECT_GT(std::filesystem::file_size(path), 100u);
  std::filesystem::remove(path);
  EXPECT_FALSE(makeWorld(1)->writeTrace(path).isOk());
}

// Memory is freed with its owner, also after the world has gone.
TEST(World, buffersMayOutliveTheirWorld) {
  Buffer buffer;
  {
    std::unique_ptr<World> world = makeWorld(1);
    buffer = *world->rank(0).allocate(DataType::F32, 4, "survivor");
  }
  EXPECT_TRUE(ok(buffer.uploadFloats(std::vector<float>{1, 2, 3, 4})));
  EXPECT_EQ(*buffer.downloadFloats(), (std::vector<float>{1, 2, 3, 4}));
}
