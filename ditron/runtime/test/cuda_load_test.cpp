//===- cuda_load_test.cpp - When code is loaded, on a stand-in for the driver -----------------------------------------===//
//
// The stand-in is told to hold up loads and mappings until no GPU has work, as the real driver may.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "CudaTest.h"

#include "ditron/runtime/cuda/CudaDevice.h"
#include "ditron/runtime/cuda/KernelCache.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <thread>

using namespace ditron;
using namespace ditron::runtime;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace {

int count(const std::string &calls, const std::string &name) {
  int times = 0;
  for (size_t at = 0; (at = calls.find(name + "\n", at)) != std::string::npos; ++at)
    times += at == 0 || calls[at - 1] == '\n';
  return times;
}

Kernel meetKernel() {
  return makeKernel("meet", {{"theirs", "*i64", 8, 1}, {"own", "*i64", 8, 1}}, 0, waitingPtx("meet", 2));
}

/// While one exists loads wait.
struct LoadsWait {
  LoadsWait() { setLoadsWait(true); }
  ~LoadsWait() { setLoadsWait(false); }
};

/// A word for each peer, on each rank; GPUs 0 and 3 of the machine do not reach each other.
struct Ring {
  explicit Ring(uint32_t ranks, WorldOptions options = {}) : ranks(ranks) {
    options.shareGpus = ranks > 3;
    if (ranks > 3)
      options.gpus = {0, 1, 2, 1};
    world = makeWorld(ranks, options);
    words = *world->allocateSymmetric(DataType::I64, 8, "words");
  }
  /// The kernel of a rank tells the next rank, and waits for the one before.
  Status launch(const Kernel &kernel, uint32_t rank, int64_t round = 0) {
    return world->rank(rank).stream().launch(kernel, {},
                                             {words.on((rank + 1) % ranks) + round, words.on(rank) + round});
  }
  uint32_t ranks;
  std::unique_ptr<World> world;
  SymmetricBuffer words;
};

class CudaLoadRanks : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Of, CudaLoadRanks, testing::Values(2, 3, 4));

/// As after an error on the host in the middle of a call: its message is heard only if the world can end.
TEST(CudaLoads, AWorldEndsWhoseWorkNeverCompletes) {
  const LoadsWait loadsWait;
  WorldOptions options;
  options.timeLimitSeconds = 0.2;
  Ring ring(2, options);
  {
    Expected<Stream> gone = ring.world->rank(0).createStream("gone");
    ASSERT_TRUE(ok(gone.status()));
    ASSERT_TRUE(ok(gone->signalWait(ring.words.on(0), Compare::GreaterEqual, 1)));
  }
  ASSERT_TRUE(ok(ring.world->rank(1).stream().signalWait(ring.words.on(1), Compare::GreaterEqual, 1)));
  ring.words = {};
  ring.world.reset();
}

/// kernels/tile_link from one host thread: each rank's kernel runs until the one of the rank before has been launched.
TEST_P(CudaLoadRanks, UnpreparedKernelsThatWaitForEachOther) {
  Ring ring(GetParam());
  const LoadsWait loadsWait;
  const Kernel meet = meetKernel();
  (void)takeCalls();
  for (uint32_t r = 0; r < ring.ranks; ++r)
    ASSERT_TRUE(ok(ring.launch(meet, r)));
  ASSERT_TRUE(ok(ring.world->synchronize()));
  const std::string calls = takeCalls();
  const size_t first = calls.find("cuLaunchKernel\n");
  ASSERT_NE(first, std::string::npos);
  const std::string before = calls.substr(0, first), after = calls.substr(first);
  EXPECT_THAT(before, AllOf(HasSubstr("cuModuleLoadDataEx"), HasSubstr("cuFuncLoad")));
  EXPECT_THAT(after, AllOf(Not(HasSubstr("cuModule")), Not(HasSubstr("cuFunc")), Not(HasSubstr("cuMem")),
                           Not(HasSubstr("cuCtxSetLimit")), Not(HasSubstr("cuStreamCreate"))));
}

TEST_P(CudaLoadRanks, ASecondKernelWhileTheFirstRuns) {
  Ring ring(GetParam());
  const LoadsWait loadsWait;
  const Kernel meet = meetKernel(), again = meetKernel();
  for (int64_t round : {0, 1})
    for (uint32_t r = 0; r < ring.ranks; ++r)
      ASSERT_TRUE(ok(ring.launch(round ? again : meet, r, round)));
  ASSERT_TRUE(ok(ring.world->synchronize()));
}

TEST_P(CudaLoadRanks, RanksOnThreadsOfTheirOwn) {
  Ring ring(GetParam());
  const LoadsWait loadsWait;
  for (int round = 0; round < 20; ++round) {
    const Kernel meet = meetKernel();
    ASSERT_TRUE(ok(ring.world->runRanks([&](Rank &rank) -> Status {
      DITRON_RETURN_IF_ERROR(ring.launch(meet, rank.id()));
      DITRON_RETURN_IF_ERROR(rank.stream().synchronize());
      DITRON_RETURN_IF_ERROR(rank.hostBarrier());
      DITRON_RETURN_IF_ERROR(rank.stream().fill(ring.words.on(rank.id()), 0, 1));
      return rank.stream().synchronize();
    })));
  }
}

TEST(CudaLoad, StacksAreThereBeforeTheFirstLaunch) {
  auto world = makeWorld(2);
  SymmetricBuffer words = *world->allocateSymmetric(DataType::I64, 1, "words");
  const Kernel spill = makeKernel("spill", {{"p0", "*i64", 8, 1}});
  for (uint32_t r = 0; r < 2; ++r)
    ASSERT_TRUE(ok(world->rank(r).stream().launch(spill, {}, {words.on(r)})));
  const std::string log = takeLog();
  EXPECT_THAT(log, testing::MatchesRegex("cuModuleLoadDataEx\ncuCtxSetLimit.0=4096.\n"
                                         "cuModuleLoadDataEx\ncuCtxSetLimit.0=4096.\n(cuLaunchKernel[^\n]*\n){2}"));
  ASSERT_TRUE(ok(world->synchronize()));
}

/// The driver's compiler is asked for more blocks until it has too few registers for them.
TEST(CudaLoad, KernelsThatSayNothingGetAsManyBlocksAsRegistersAllow) {
  const std::string_view wide = ".version 8.0\n.target sm_90a\n.visible .entry wide(.param .u64 p0, .param .u64 view)\n"
                                ".reqntid 256\n{}{{ ret; }}\n";
  for (const auto &[directive, loads] :
       {std::pair("", 3), std::pair(".minnctapersm 1\n", 1), std::pair(".maxnreg 80\n", 1)}) {
    auto world = makeWorld(1);
    const Kernel kernel = makeKernel("wide", {{"p0", "*i64", 8, 1}}, 0, fmt::format(fmt::runtime(wide), directive));
    (void)takeLog();
    const auto loaded = world->rank(0).device()->loadForLaunch(kernel);
    ASSERT_TRUE(ok(loaded.status()));
    const std::string log = takeLog();
    EXPECT_EQ(count(log, "cuModuleLoadDataEx"), loads) << directive;
    EXPECT_EQ(count(log, "cuModuleUnload"), 0) << directive;        // it might wait for what runs
    EXPECT_EQ((*loaded)->resources()->localBytes, 0u) << directive; // not the one of three blocks, which has 200
  }
}

TEST(CudaLoad, ResidentBlocksStandBehindTheSizeOfABlock) {
  EXPECT_EQ(cuda::withResidentBlocks(".entry k()\n.reqntid 256\n{ ret; }", 3),
            ".entry k()\n.reqntid 256\n.minnctapersm 3\n{ ret; }");
  EXPECT_EQ(cuda::withResidentBlocks(".entry k()\n{ ret; }", 3), std::nullopt);
  EXPECT_EQ(cuda::withResidentBlocks(".entry k()\n.reqntid 256\n.minnctapersm 1\n{ ret; }", 3), std::nullopt);
}

TEST(CudaLoad, TheDriverTellsWhatThreadsTake) {
  auto world = makeWorld(1);
  for (const auto &[name, localBytes] : {std::pair("spill", 4096u), std::pair("store", 0u)}) {
    const Kernel kernel = makeKernel(name, {{"p0", "*i64", 8, 1}});
    const auto loaded = world->rank(0).device()->loadForLaunch(kernel);
    ASSERT_TRUE(ok(loaded.status()));
    const Expected<KernelResources> resources = (*loaded)->resources();
    ASSERT_TRUE(ok(resources.status()));
    EXPECT_EQ(resources->registers, 40u);
    EXPECT_EQ(resources->localBytes, localBytes);
  }
}

/// The GPU was busy when the kernel was loaded for launches: it is loaded for the answer.
TEST(CudaLoad, WhatThreadsTakeIsAskedOfAKernelThatIsNotLoadedYet) {
  Ring ring(2);
  const Kernel first = meetKernel(), second = meetKernel();
  ASSERT_TRUE(ok(ring.world->rank(0).device()->load(first)));
  ASSERT_TRUE(ok(ring.launch(first, 0))); // runs until the other rank's
  (void)takeCalls();
  const auto loaded = ring.world->rank(0).device()->loadForLaunch(second, StreamHandle(0));
  ASSERT_TRUE(ok(loaded.status()));
  EXPECT_THAT(takeCalls(), Not(HasSubstr("cuModuleLoad")));
  const Expected<KernelResources> resources = (*loaded)->resources();
  ASSERT_TRUE(ok(resources.status()));
  EXPECT_EQ(resources->registers, 40u);
  EXPECT_THAT(takeCalls(), HasSubstr("cuModuleLoad"));
  ASSERT_TRUE(ok(ring.launch(first, 1)));
  EXPECT_TRUE(ok(ring.world->synchronize()));
}

/// Kernels that give up their waits end what the load waits for: what they report says who was loading.
TEST(CudaLoad, ReportsOfWaitsTellOfLoads) {
  Ring ring(2);
  const Kernel first = meetKernel(), second = meetKernel();
  ASSERT_TRUE(ok(ring.world->rank(0).device()->load(first)));
  const LoadsWait loadsWait;
  ASSERT_TRUE(ok(ring.launch(first, 0)));
  auto *report = reinterpret_cast<cuda::WaitReport *>(ring.world->rank(0).device()->waitBounds().reportAddress);
  std::thread gpu([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1800));
    report->kernel = cuda::hashOfName("meet");
    report->address = reinterpret_cast<uint64_t>(ring.words.on(0).address);
    report->wordBytes = 8;
    report->state = 2;
    const int64_t one = 1;
    std::memcpy(ring.words.on(0).address, &one, sizeof(one)); // the kernel ends
  });
  EXPECT_TRUE(ok(ring.launch(second, 1)));
  const Status status = ring.world->synchronize();
  gpu.join();
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("waits for words[0] on rank 0"), HasSubstr("rank 1 has loaded kernel meet in 1.")));
}

/// A GPU that stays busy is not waited for: the driver may be one that loads beside kernels that run.
TEST(CudaLoad, ABusyGpuGetsNoCodeForOthers) {
  Ring ring(2);
  const Kernel first = meetKernel(), second = meetKernel();
  ASSERT_TRUE(ok(ring.world->rank(0).device()->load(first)));
  ASSERT_TRUE(ok(ring.launch(first, 0)));
  (void)takeLog();
  ASSERT_TRUE(ok(ring.launch(second, 1)));
  ASSERT_TRUE(ok(ring.world->synchronize()));
  EXPECT_EQ(takeLog(), "cuModuleLoadDataEx\ncuLaunchKernel(meet blocks=1 threads=128 shared=0)\n");
}

/// A stream that is being captured must not be asked whether it is idle.
TEST(CudaLoad, CapturesAreLeftAlone) {
  auto world = makeWorld(2);
  SymmetricBuffer words = *world->allocateSymmetric(DataType::I64, 1, "words");
  Stream &captured = world->rank(1).stream();
  ASSERT_TRUE(ok(captured.beginCapture()));
  ASSERT_TRUE(ok(captured.signalWrite(words.on(1), 3)));
  ASSERT_TRUE(ok(world->rank(0).stream().launch(storeKernel(), {}, {words.on(0), int64_t(2)})));
  const Expected<Graph> graph = captured.endCapture();
  ASSERT_TRUE(ok(graph.status()));
  ASSERT_TRUE(ok(captured.launch(*graph)));
  ASSERT_TRUE(ok(world->synchronize()));
  EXPECT_EQ(word(words, 1), 3);
}

/// What a process asks of the driver until its first kernel of one rank runs.
TEST(CudaStart, CallsToTheFirstKernel) {
  const uint64_t before = livePhysicalBytes();
  (void)takeCalls();
  auto world = World::local(1, "cuda");
  ASSERT_TRUE(ok(world.status()));
  const std::string start = takeCalls();
  const Buffer words = *(*world)->rank(0).allocate(DataType::I64, 1, "words");
  ASSERT_TRUE(ok((*world)->rank(0).stream().launch(storeKernel(), {}, {words, int64_t(1)})));
  const std::string launch = takeCalls();
  // One call each, for: the world view's and the team barriers' heap; the default stream and the one for what is immediate; the report of
  // waits and the board of waits; the kernels of streams. cuInit is the driver's own affair the second time.
  const std::pair<const char *, int> accepted[] = {{"cuInit", 2},
                                                   {"cuDevicePrimaryCtxRetain", 1},
                                                   {"cuMemCreate", 2},
                                                   {"cuMemMap", 2},
                                                   {"cuMemSetAccess", 2},
                                                   {"cuMemHostAlloc", 1},
                                                   {"cuMemHostRegister_v2", 1},
                                                   {"cuModuleLoadDataEx", 1},
                                                   {"cuStreamCreateWithPriority", 2},
                                                   {"cuEventCreate", 1},
                                                   {"cuMemcpyHtoDAsync_v2", 1},
                                                   {"cuMemsetD8Async", 2}};
  for (const auto &[call, times] : accepted)
    EXPECT_EQ(count(start, call), times) << call;
  EXPECT_LE(std::ranges::count(start, '\n'), 71) << start;
  EXPECT_EQ(
      launch,
      "cuCtxPushCurrent_v2\ncuMemsetD8Async\ncuStreamSynchronize\ncuStreamQuery\ncuCtxPopCurrent_v2\n"
      "cuCtxPushCurrent_v2\ncuStreamGetCaptureInfo\ncuCtxPopCurrent_v2\n"
      "cuCtxPushCurrent_v2\ncuModuleLoadDataEx\ncuModuleGetFunction\ncuFuncLoad\ncuFuncGetAttribute\ncuCtxGetLimit\n"
      "cuCtxPopCurrent_v2\ncuCtxPushCurrent_v2\ncuLaunchKernel\ncuCtxPopCurrent_v2\n");
  EXPECT_LE(livePhysicalBytes() - before, uint64_t(16) << 20);
}

/// Memory for small arrays of all ranks is there when one of them has some: none is mapped while a kernel may run.
TEST(CudaStart, HeapsOfAllRanksGrowTogether) {
  Ring ring(3);
  const LoadsWait loadsWait;
  const Kernel meet = meetKernel();
  std::vector<Buffer> arrays;
  const uint64_t mebibytes[] = {1, 9, 20, 40};
  for (int64_t round = 0; round < 4; ++round)
    for (uint32_t r = 0; r < 3; ++r) {
      arrays.push_back(*ring.world->rank(r).allocate(DataType::U8, mebibytes[round] << 20, "array"));
      ASSERT_TRUE(ok(ring.launch(meet, r, round)));
    }
  ASSERT_TRUE(ok(ring.world->synchronize()));
}

/// Of the four GPUs that the machine has.
TEST(CudaStart, OnlyGpusOfRanksGetAContext) {
  (void)takeLog();
  {
    auto world = World::local(2, "cuda");
  }
  const std::string log = takeLog();
  EXPECT_THAT(log, AllOf(HasSubstr("cuDevicePrimaryCtxRelease(0)"), HasSubstr("cuDevicePrimaryCtxRelease(1)"),
                         Not(HasSubstr("Release(2)")), Not(HasSubstr("Release(3)"))));
}

} // namespace
