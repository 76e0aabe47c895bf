//===- cuda_world_test.cpp - Worlds of GPUs, on a stand-in for the driver -----------------------------------------===//
//
// The program's run path has fake_cuda's libcuda.so.1 in it: a machine of four GPUs, two of which cannot reach each other.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "CudaTest.h"

#include "ditron/abi/EventRing.h"
#include "ditron/abi/WorldView.h"
#include "ditron/explain/board/BoardReader.h"
#include "ditron/runtime/TargetChoice.h"
#include "ditron/runtime/cuda/CudaDevice.h"
#include "ditron/runtime/cuda/CudaSystem.h"

#include <sys/wait.h>
#include <unistd.h>

using namespace ditron;
using namespace ditron::runtime;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace {

TEST(CudaWorld, TargetOfTheMachine) {
  EXPECT_EQ(resolveTarget("cuda")->text, "cuda:sm_90a");
  EXPECT_EQ(resolveTarget("sim")->text, "sim:sm_80");
  EXPECT_EQ(cudaTargetFor(8, 6)->text, "cuda:sm_80");
  EXPECT_EQ(cudaTargetFor(8, 9)->text, "cuda:sm_89");
  EXPECT_EQ(cudaTargetFor(12, 0)->text, "cuda:sm_89"); // sm_90a and sm_100a run nowhere else
  EXPECT_FALSE(cudaTargetFor(7, 5).isOk());
}

TEST(CudaWorld, NamesThePairThatCannotReachEachOther) {
  const Status status = World::local(4, "cuda").status();
  EXPECT_EQ(status.code(), StatusCode::Unsupported);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("GPU 0"), HasSubstr("GPU 3"), HasSubstr("ranks 0 and 3")));
  EXPECT_THAT(World::local(5, "cuda").status().message(), AllOf(HasSubstr("5 GPUs"), HasSubstr("shows 4")));
  EXPECT_THAT(World::local(1, "cuda:sm_100a").status().message(), HasSubstr("does not run on GPU 0"));
}

TEST(CudaWorld, WorldViewNamesEveryHeap) {
  auto world = makeWorld(3);
  for (uint32_t r = 0; r < 3; ++r) {
    int64_t words[7];
    ASSERT_TRUE(ok(world->rank(r).device()->download(words, static_cast<int64_t *>(world->rank(r).worldView()) - 2,
                                                     sizeof(words))));
    EXPECT_EQ(words[0], 10'000'000'000); // ten seconds
    EXPECT_NE(words[1], 0);              // the report
    EXPECT_EQ(words[2], r);
    EXPECT_EQ(words[3], 3);
    for (uint32_t peer = 0; peer < 3; ++peer)
      EXPECT_EQ(words[4 + peer], reinterpret_cast<int64_t>(world->rank(peer).device()->symmetricBase()));
  }
}

TEST(CudaWorld, LaunchesLoadOnceAndPassArguments) {
  auto world = makeWorld(2);
  SymmetricBuffer words = *world->allocateSymmetric(DataType::I64, 4, "words");
  const Kernel store = storeKernel(100 << 10);
  (void)takeLog();
  for (int call = 0; call < 3; ++call)
    for (uint32_t r = 0; r < 2; ++r)
      ASSERT_TRUE(
          ok(world->rank(r).stream().launch(store, {.grid = {7, 1, 1}}, {words.on(1 - r) + 1, int64_t(40 + r)})));
  ASSERT_TRUE(ok(world->synchronize()));
  int64_t values[4];
  ASSERT_TRUE(ok(words.download(0, values, sizeof(values))));
  EXPECT_THAT(values, testing::ElementsAre(0, 41, 0, 0));
  const std::string log = takeLog();
  auto count = [&](const std::string &text) {
    size_t n = 0;
    for (size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1))
      ++n;
    return n;
  };
  EXPECT_EQ(count("cuModuleLoadDataEx"), 2u); // once for each GPU
  EXPECT_EQ(count("cuFuncSetAttribute(8=102400)"), 2u);
  EXPECT_EQ(count("cuLaunchKernel(store blocks=7 threads=128 shared=102400)"), 6u);
}

/// The caller gives the grid of programs; the GPU has 132 multiprocessors, each of which holds two blocks of every kernel.
TEST(CudaWorld, KernelsThatLoopOverProgramsGetTheGridAsValues) {
  auto world = makeWorld(1);
  Stream &stream = world->rank(0).stream();
  SymmetricBuffer words = *world->allocateSymmetric(DataType::I64, 6, "words");
  Artifact artifact = makeKernel("grid", {{"out", "*i64", 8, 1}}).artifact();
  artifact.code = testPtx;
  artifact.loopsOverPrograms = true;
  const Kernel kernel = *Kernel::create(std::move(artifact), {});
  auto seen = [&] {
    EXPECT_TRUE(ok(world->synchronize()));
    std::vector<int64_t> values(6);
    EXPECT_TRUE(ok(words.download(0, values.data(), 48)));
    return values;
  };
  (void)takeLog();
  ASSERT_TRUE(ok(stream.launch(kernel, {.grid = {64, 32, 2}}, {words.on(0)})));
  EXPECT_THAT(seen(), testing::ElementsAre(64, 32, 2, 0, 0, 0));
  EXPECT_THAT(takeLog(), HasSubstr("cuLaunchKernel(grid blocks=264 "));
  ASSERT_TRUE(ok(stream.launch(kernel, {.grid = {5, 3, 1}}, {words.on(0) + 3})));
  EXPECT_THAT(seen(), testing::ElementsAre(64, 32, 2, 5, 3, 1));
  EXPECT_THAT(takeLog(), HasSubstr("cuLaunchKernel(grid blocks=15 "));

  // In a graph, and with another address there.
  PreparedLaunch prepared = *PreparedLaunch::create(world->rank(0).device(), kernel, {.grid = {7, 100, 1}},
                                                    std::vector<Argument>{words.on(0)});
  ASSERT_TRUE(ok(stream.beginCapture()));
  ASSERT_TRUE(ok(prepared.enqueue(stream)));
  const GraphNode node = *stream.capturedKernel();
  const Graph graph = *stream.endCapture();
  ASSERT_TRUE(ok(stream.launch(graph)));
  EXPECT_THAT(seen(), testing::ElementsAre(7, 100, 1, 5, 3, 1));
  EXPECT_THAT(takeLog(), HasSubstr("cuLaunchKernel(grid blocks=264 "));
  ASSERT_TRUE(ok(prepared.setPointer(0, (words.on(0) + 3).address)));
  ASSERT_TRUE(ok(prepared.patch(stream, graph, node)));
  ASSERT_TRUE(ok(stream.launch(graph)));
  EXPECT_THAT(seen(), testing::ElementsAre(7, 100, 1, 7, 100, 1));
  EXPECT_THAT(takeLog(), HasSubstr("cuGraphExecKernelNodeSetParams(grid)"));

  EXPECT_THAT(stream.launch(kernel, {.grid = {1u << 20, 4096, 1}}, {words.on(0)}).message(),
              HasSubstr("4294967296 programs; its blocks run one after the other, and count at most 1073741824"));
}

TEST(CudaWorld, TensorMapsAreEncodedOnce) {
  auto world = makeWorld(1);
  Buffer tensor = *world->rank(0).allocate(DataType::BF16, 100 * 72, "tensor");
  TensorMapDescription map;
  map.base = tensor.address();
  map.type = DataType::BF16;
  map.rank = 2;
  map.swizzleBytes = 128;
  map.sizes = {70, 100};
  map.stridesBytes = {2, 144};
  map.box = {64, 128};
  (void)takeLog();
  const Expected<TensorMap> encoded = world->rank(0).device()->encodeTensorMap(map);
  ASSERT_TRUE(ok(encoded.status()));
  EXPECT_EQ(encoded->bytes[127], std::byte(0xAB));
  EXPECT_EQ(takeLog(), "cuTensorMapEncodeTiled(9 70/0/64 100/144/128 swizzle 3 promotion 3 fill 0)\n");
  ASSERT_TRUE(ok(world->rank(0).device()->encodeTensorMap(map).status()));
  EXPECT_EQ(takeLog(), "");
  map.sizes[0] = 60;
  map.fillNan = true;
  ASSERT_TRUE(ok(world->rank(0).device()->encodeTensorMap(map).status()));
  EXPECT_EQ(takeLog(), "cuTensorMapEncodeTiled(9 60/0/64 100/144/128 swizzle 3 promotion 3 fill 1)\n");
  map.base = nullptr;
  EXPECT_TRUE(ok(world->rank(0).device()->encodeTensorMap(map).status()));
  (void)takeLog();
  map.base = static_cast<std::byte *>(tensor.address()) + 2;
  EXPECT_THAT(world->rank(0).device()->encodeTensorMap(map).status().message(),
              HasSubstr("description of a tensor of 2 dimensions"));
}

TEST(CudaWorld, RanksOnOneGpuShareItsKernels) {
  WorldOptions options;
  options.shareGpus = true;
  Expected<std::unique_ptr<World>> world = World::local(6, "cuda", options);
  // GPUs 0 and 3 still have to reach each other.
  EXPECT_THAT(world.status().message(), HasSubstr("ranks 0 and 3"));
}

/// What each of `said.size()` processes gets from an agreement in which all are equal, and from one in which each says its own.
std::vector<std::string> agreementsOfProcesses(const std::vector<std::string> &said) {
  std::vector<std::string> got;
  std::vector<std::pair<pid_t, int>> children;
  const std::string job = "agreement" + std::to_string(getpid());
  for (size_t rank = 0; rank < said.size(); ++rank) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      const std::string number = std::to_string(rank), size = std::to_string(said.size());
      for (const char *name : {"RANK", "LOCAL_RANK"})
        setenv(name, number.c_str(), 1);
      for (const char *name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"})
        setenv(name, size.c_str(), 1);
      setenv("DITRON_JOB_ID", job.c_str(), 1);
      WorldOptions options;
      options.heapBytes = 64 << 20;
      options.bootstrapLimitSeconds = 5;
      std::string text;
      Expected<std::unique_ptr<World>> world = World::fromEnvironment("cuda", options);
      if (world.isOk()) {
        const Rank &own = (*world)->rank((*world)->localRanks().front());
        text = (*world)->agree(own, "the plan", "a").message() + "|";
        // One that says nothing has died before it came to this.
        if (!said[rank].empty())
          text += (*world)->agree(own, "the plan", said[rank]).message();
      } else {
        text = world.status().message();
      }
      (void)!write(ends[1], text.data(), text.size());
      _exit(0);
    }
    close(ends[1]);
    children.emplace_back(child, ends[0]);
  }
  for (const auto &[child, end] : children) {
    std::string &text = got.emplace_back();
    char buffer[512];
    for (ssize_t count; (count = read(end, buffer, sizeof(buffer))) > 0;)
      text.append(buffer, static_cast<size_t>(count));
    close(end);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  return got;
}

TEST(CudaWorld, ProcessesAgreeOrAllGetAnErrorThatNamesThem) {
  for (const std::string &text : agreementsOfProcesses({"b", "b", "b"}))
    EXPECT_EQ(text, "|");
  for (const std::string &text : agreementsOfProcesses({"b", "c", "b"}))
    EXPECT_EQ(text, "|the plan: the ranks differ: ranks 0, 2: b; rank 1: c");
  const std::vector<std::string> withoutOne = agreementsOfProcesses({"b", "b", ""});
  EXPECT_EQ(withoutOne[2], "|");
  for (const size_t rank : {0, 1})
    EXPECT_THAT(withoutOne[rank], HasSubstr("rank 2"));
}

TEST(CudaWorld, AProcessOfAJobTakesTheGpuThatIsNamed) {
  const std::pair<const char *, const char *> environment[] = {
      {"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}};
  for (const auto &[name, value] : environment)
    setenv(name, value, 1);
  WorldOptions options;
  options.heapBytes = 64 << 20;
  options.gpus = {2};
  (void)takeLog();
  EXPECT_TRUE(ok(World::fromEnvironment("cuda", options).status()));
  EXPECT_THAT(takeLog(), AllOf(HasSubstr(": 2)"), Not(HasSubstr(": 0)"))));
  options.gpus = {2, 1};
  EXPECT_THAT(World::fromEnvironment("cuda", options).status().message(),
              HasSubstr("2 GPUs are named for 1 ranks; accepted is one for each"));
  options.gpus = {4};
  EXPECT_THAT(World::fromEnvironment("cuda", options).status().message(),
              HasSubstr("GPU 4 does not exist; accepted are 0 to 3"));
  for (const auto &[name, value] : environment)
    unsetenv(name);
}

TEST(CudaWorld, SymmetricBuffersLieAtOneOffset) {
  auto world = makeWorld(3);
  SymmetricBuffer first = *world->allocateSymmetric(DataType::F32, 1000, "first");
  {
    SymmetricBuffer gap = *world->allocateSymmetric(DataType::F32, 5000, "gap");
    EXPECT_GT(gap.offset(), first.offset());
  }
  SymmetricBuffer again = *world->allocateSymmetric(DataType::F32, 5000, "again");
  EXPECT_EQ(again.offset(), first.offset() + 4096); // the freed gap, in pieces of 512 bytes
  for (uint32_t r = 0; r < 3; ++r) {
    EXPECT_EQ(again.on(r).address, static_cast<std::byte *>(world->rank(r).device()->symmetricBase()) + again.offset());
    EXPECT_EQ(again.downloadFloats(r)->at(4999), 0.0f);
  }
}

TEST(CudaWorld, HeapsAreAccessibleToAllGpusAndGrow) {
  auto world = makeWorld(2);
  takeLog();
  // The first 8 MiB are there already, with the words of the team barriers in them; what goes beyond is mapped on both GPUs.
  auto big = world->allocateSymmetric(DataType::U8, 200 << 20, "big");
  ASSERT_TRUE(ok(big.status()));
  EXPECT_THAT(takeLog(), AllOf(HasSubstr("cuMemCreate("), HasSubstr(": 0 1)")));
  const Status status = world->rank(0).allocate(DataType::U8, uint64_t(960) << 20, "too big").status();
  EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("'too big'"), HasSubstr("GPU 0"), HasSubstr("MiB are free")));
  EXPECT_TRUE(ok(world->rank(0).allocate(DataType::U8, 1 << 20, "still works").status()));
}

TEST(CudaWorld, SymmetricMemoryOfTheCallers) {
  auto world = makeWorld(2);
  constexpr uint64_t bytes = 1 << 16, reserved = 96;
  const Buffer before = *world->rank(1).allocate(DataType::U8, 4096, "before"); // the pieces lie at no equal offsets
  Buffer pieces[2];
  for (uint32_t r : {0, 1}) {
    pieces[r] = *world->rank(r).allocate(DataType::U8, bytes, "torch buffer");
    const std::vector<std::byte> given(bytes, std::byte(0x55));
    ASSERT_TRUE(ok(pieces[r].upload(given.data(), bytes)));
  }
  AdoptedHeapOptions heap;
  heap.addresses = {pieces[0].address(), pieces[1].address()};
  heap.bytes = bytes;
  heap.reservedBytes = reserved;
  auto over = world->over(heap);
  ASSERT_TRUE(ok(over.status()));
  SymmetricBuffer words = *(*over)->allocateSymmetric(DataType::I64, 4, "words");
  for (uint32_t r : {0, 1}) {
    EXPECT_EQ(words.on(r).address, static_cast<std::byte *>(pieces[r].address()) + words.offset());
    EXPECT_EQ(word(words, r), 0); // cleared
    int64_t view[4], first = 0;
    ASSERT_TRUE(ok(world->rank(r).device()->download(view, (*over)->rank(r).worldView(), sizeof(view))));
    EXPECT_THAT(view, testing::ElementsAre(r, 2, reinterpret_cast<int64_t>(pieces[0].address()),
                                           reinterpret_cast<int64_t>(pieces[1].address())));
    ASSERT_TRUE(ok(pieces[r].download(&first, 8, reserved - 8)));
    EXPECT_EQ(first, 0x5555555555555555); // the caller's
  }
  ASSERT_TRUE(ok((*over)->rank(0).stream().launch(storeKernel(), {}, {words.on(1), int64_t(7)})));
  ASSERT_TRUE(ok((*over)->synchronize()));
  EXPECT_EQ(word(words, 1), 7);
  // What is given back is there again.
  const uint64_t offset = words.offset();
  words = SymmetricBuffer();
  EXPECT_EQ((*over)->allocateSymmetric(DataType::I64, 4, "again")->offset(), offset);
}

TEST(CudaWorld, EverythingIsReleased) {
  const uint64_t before = livePhysicalBytes();
  {
    auto world = makeWorld(2);
    Buffer outlives = *world->rank(0).allocate(DataType::F32, 10, "x");
    EXPECT_GT(livePhysicalBytes(), before);
    world.reset();
    EXPECT_TRUE(ok(outlives.uploadFloats(std::vector<float>(10, 1.0f)))); // buffers keep their device alive
  }
  EXPECT_EQ(livePhysicalBytes(), before);
}

TEST(CudaWorld, SignalsByTheDriverWhereItCan) {
  auto world = makeWorld(1);
  SymmetricBuffer words = *world->allocateSymmetric(DataType::I64, 2, "words");
  Stream &stream = world->rank(0).stream();
  (void)takeLog();
  ASSERT_TRUE(ok(stream.signalWrite(words.on(0), 5)));
  ASSERT_TRUE(ok(stream.signalWait(words.on(0), Compare::GreaterEqual, 5)));
  ASSERT_TRUE(ok(stream.signalWait(words.on(0), Compare::Equal, 5)));
  ASSERT_TRUE(ok(stream.signalAdd(words.on(0), 2)));
  ASSERT_TRUE(ok(stream.signalWait(words.on(0), Compare::NotEqual, 5)));
  ASSERT_TRUE(ok(stream.synchronize()));
  EXPECT_EQ(word(words, 0), 7);
  EXPECT_EQ(takeLog(), "cuStreamWriteValue64\ncuStreamWaitValue64(flags=0)\ncuStreamWaitValue64(flags=1)\n"
                       "cuLaunchKernel(ditron_signal_add_64 blocks=1 threads=1 shared=0)\n"
                       "cuLaunchKernel(ditron_signal_wait_64 blocks=1 threads=1 shared=0)\n");
}

TEST(CudaWorld, SignalsByKernelsWhenAsked) {
  WorldOptions options;
  options.kernelSignals = true;
  auto world = makeWorld(1, options);
  SymmetricBuffer words = *world->allocateSymmetric(DataType::I32, 2, "words");
  Stream &stream = world->rank(0).stream();
  ASSERT_TRUE(ok(stream.signalWrite(words.on(0), 9)));
  ASSERT_TRUE(ok(stream.signalWait(words.on(0), Compare::GreaterEqual, 9)));
  ASSERT_TRUE(ok(stream.synchronize()));
  EXPECT_THAT(takeLog(), Not(HasSubstr("cuStreamW")));
}

TEST(CudaWorld, StreamsWaitForEachOther) {
  auto world = makeWorld(2);
  SymmetricBuffer words = *world->allocateSymmetric(DataType::I64, 2, "words");
  Stream &first = world->rank(0).stream(), &second = world->rank(1).stream();
  bool called = false;
  ASSERT_TRUE(ok(second.signalWait(words.on(1), Compare::GreaterEqual, 3)));
  ASSERT_TRUE(ok(second.hostCallback([&] { called = true; })));
  EXPECT_FALSE(called);
  ASSERT_TRUE(ok(first.signalWrite(words.on(1), 3)));
  ASSERT_TRUE(ok(world->synchronize()));
  EXPECT_TRUE(called);
}

TEST(CudaWorld, CopiesWithPitch) {
  auto world = makeWorld(1);
  Buffer from = *world->rank(0).allocate(DataType::F32, 12, "from"),
         to = *world->rank(0).allocate(DataType::F32, 6, "to");
  ASSERT_TRUE(ok(from.uploadFloats(std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})));
  Copy copy;
  copy.source = from.address();
  copy.destination = to.address();
  copy.rowBytes = 8;
  copy.rows = 3;
  copy.sourcePitch = 16;
  Stream &stream = world->rank(0).stream();
  ASSERT_TRUE(ok(stream.copy(copy)));
  ASSERT_TRUE(ok(stream.synchronize()));
  EXPECT_THAT(*to.downloadFloats(), testing::ElementsAre(0, 1, 4, 5, 8, 9));
  EXPECT_THAT(takeLog(), HasSubstr("cuMemcpy2DAsync(8x3)"));
}

TEST(CudaWorld, GraphsReplay) {
  auto world = makeWorld(1);
  Rank &rank = world->rank(0);
  Stream copies = *rank.createStream("copies", 1);
  Event forked = *rank.createEvent(), joined = *rank.createEvent();
  SymmetricBuffer words = *world->allocateSymmetric(DataType::I64, 2, "words");
  int calls = 0;
  ASSERT_TRUE(ok(rank.stream().beginCapture()));
  ASSERT_TRUE(ok(rank.stream().record(forked)));
  ASSERT_TRUE(ok(copies.wait(forked)));
  ASSERT_TRUE(ok(copies.signalAdd(words.on(0), 1)));
  ASSERT_TRUE(ok(copies.hostCallback([&calls] { ++calls; })));
  ASSERT_TRUE(ok(copies.record(joined)));
  ASSERT_TRUE(ok(rank.stream().wait(joined)));
  Expected<Graph> graph = rank.stream().endCapture();
  ASSERT_TRUE(ok(graph.status()));
  EXPECT_EQ(word(words, 0), 0); // kept, not run
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(ok(rank.stream().launch(*graph)));
  ASSERT_TRUE(ok(rank.synchronize()));
  EXPECT_EQ(word(words, 0), 1000);
  EXPECT_EQ(calls, 1000);
}

TEST(CudaWorld, PriorityIsTurnedRound) {
  auto world = makeWorld(1);
  (void)takeLog();
  Stream urgent = *world->rank(0).createStream("urgent", 2), excessive = *world->rank(0).createStream("excessive", 99);
  EXPECT_EQ(takeLog(), "cuStreamCreate(flags=1 priority=-2)\ncuStreamCreate(flags=1 priority=-5)\n");
}

TEST(CudaWorld, CompilerErrorsNameTheSourceLine) {
  auto world = makeWorld(1);
  const Kernel bad = makeKernel("store", {{"p0", "*i64", 8, 1}, {"p1", "i64", 8, 1}}, 0,
                                ".version 8.0\n.file 1 \"gemm.py\"\n.visible .entry store()\n{\n  .loc 1 12 5\n"
                                "  bad_instruction.x %r1;\n  ret;\n}\n");
  SymmetricBuffer words = *world->allocateSymmetric(DataType::I64, 2, "words");
  const Status status = world->rank(0).stream().launch(bad, {}, {words.on(0), int64_t(1)});
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("kernel 'store'"), HasSubstr("CUDA_ERROR_INVALID_PTX"), HasSubstr("line 6"),
                    HasSubstr("at gemm.py:12:5, in the PTX: bad_instruction.x %r1;")));
  EXPECT_TRUE(ok(world->synchronize())); // not the end of the run
}

TEST(CudaWorld, CooperativeLaunchThatDoesNotFit) {
  auto world = makeWorld(1);
  SymmetricBuffer words = *world->allocateSymmetric(DataType::I64, 2, "words");
  LaunchConfig config{.grid = {265, 1, 1}, .cooperative = true};
  const Status status = world->rank(0).stream().launch(storeKernel(), config, {words.on(0), int64_t(1)});
  EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("265 blocks"), HasSubstr("264 at once")));
}

TEST(CudaWorld, AKernelThatWaitsByItselfStartsWhileThoseBeforeItEnd) {
  auto world = makeWorld(1);
  SymmetricBuffer words = *world->allocateSymmetric(DataType::I64, 2, "words");
  const Kernel early = makeKernel("store", {{"p0", "*i64", 8, 1}, {"p1", "i64", 8, 1}}, 0,
                                  std::string(testPtx) + "// griddepcontrol.wait;\n");
  Stream &stream = world->rank(0).stream();
  ASSERT_TRUE(ok(stream.launch(storeKernel(), {}, {words.on(0), int64_t(1)})));
  (void)takeLog();
  ASSERT_TRUE(ok(stream.launch(early, {}, {words.on(0), int64_t(2)})));
  ASSERT_TRUE(ok(stream.launch(storeKernel(), {}, {words.on(0) + 1, int64_t(3)})));
  EXPECT_THAT(takeLog(), testing::ContainsRegex("cuLaunchKernelEx.store .*\ncuLaunchKernel.store "));
  EXPECT_TRUE(ok(stream.synchronize()));
}

TEST(CudaWorld, ClustersThatDoNotFillTheGrid) {
  auto world = makeWorld(1);
  SymmetricBuffer words = *world->allocateSymmetric(DataType::I64, 2, "words");
  const Kernel pairs = makeKernel("pairs", {{"p0", "*i64", 8, 1}});
  Stream &stream = world->rank(0).stream();
  const Status status = stream.launch(pairs, {.grid = {3, 1, 1}}, {words.on(0)});
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("grid.x is 3; it runs in clusters of 2 blocks, multiples of 2 are accepted"));
  EXPECT_TRUE(ok(stream.launch(pairs, {.grid = {4, 1, 1}}, {words.on(0)})));
  EXPECT_TRUE(ok(stream.synchronize()));
}

TEST(CudaWorld, RanksHaveThreadsOfTheirOwn) {
  auto world = makeWorld(3);
  std::array<uint64_t, 3> offsets = {};
  const Status status = world->runRanks([&](Rank &rank) -> Status {
    DITRON_ASSIGN_OR_RETURN(SymmetricBuffer words, world->allocateSymmetric(DataType::I64, 8, "words"));
    offsets[rank.id()] = words.offset();
    DITRON_RETURN_IF_ERROR(rank.stream().signalWrite(words.on((rank.id() + 1) % 3), 100 + rank.id()));
    DITRON_RETURN_IF_ERROR(rank.stream().synchronize());
    DITRON_RETURN_IF_ERROR(rank.hostBarrier());
    EXPECT_EQ(word(words, rank.id()), 100 + (rank.id() + 2) % 3);
    return rank.hostBarrier();
  });
  EXPECT_TRUE(ok(status));
  EXPECT_EQ(offsets[0], offsets[2]);
}

TEST(CudaWorld, ARankThatFailsReleasesTheOthers) {
  auto world = makeWorld(2);
  const Status status = world->runRanks([&](Rank &rank) -> Status {
    return rank.id() == 1 ? invalidArgument("rank 1 has had enough") : rank.hostBarrier();
  });
  EXPECT_EQ(status.message(), "rank 1 has had enough");
  EXPECT_TRUE(ok(world->runRanks([](Rank &rank) { return rank.hostBarrier(); })));
}

TEST(CudaWorld, HangsEndWithinTheTimeLimit) {
  WorldOptions options;
  options.timeLimitSeconds = 0.2;
  auto world = makeWorld(2, options);
  SymmetricBuffer words = *world->allocateSymmetric(DataType::I64, 2, "words");
  const auto prepared = PreparedLaunch::create(world->rank(1).device(), storeKernel(), {},
                                               std::vector<Argument>{words.on(0), int64_t(2)});
  ASSERT_TRUE(ok(prepared.status()));
  ASSERT_TRUE(ok(prepared->enqueue(world->rank(1).stream())));
  ASSERT_TRUE(ok(world->rank(1).stream().signalWait(words.on(1), Compare::GreaterEqual, 1)));
  const Status status = world->synchronize();
  EXPECT_EQ(status.code(), StatusCode::TimeOut);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("rank 1, stream default (last kernel: store)"), HasSubstr("0.2 seconds")));
  EXPECT_EQ(world->rank(0).stream().signalAdd(words.on(0), 1).code(), StatusCode::TimeOut); // the run is over
  EXPECT_EQ(world->status().code(), StatusCode::TimeOut);
}

TEST(CudaWorld, BoundedWaitsAreReportedInTheSimulatorsWords) {
  auto world = makeWorld(2);
  SymmetricBuffer ready = *world->allocateSymmetric(DataType::I64, 8, "ready");
  ASSERT_TRUE(ok(world->rank(1).stream().launch(storeKernel(), {}, {ready.on(0), int64_t(2)})));
  // What the code with bounded waits does on the GPU.
  auto *report = reinterpret_cast<cuda::WaitReport *>(world->rank(1).device()->waitBounds().reportAddress);
  report->rank = 1;
  report->block[0] = 4;
  report->thread = 31;
  report->line = 12;
  report->column = 5;
  report->compare = 5;
  report->wordBytes = 8;
  report->kernel = cuda::hashOfName("store");
  report->address = reinterpret_cast<uint64_t>((ready.on(1) + 3).address);
  report->seen = 1;
  report->wanted = 2;
  report->state = 2;
  const Status status = world->synchronize();
  EXPECT_EQ(status.code(), StatusCode::TimeOut);
  EXPECT_EQ(status.message(), "deadlock: a wait passed its time limit\nwaiting:\n"
                              "  rank 1, kernel store at store.py:12:5, block (4,0,0), thread 31\n"
                              "    waits for ready[3] on rank 1: has 1, wants >= 2");
}

TEST(CudaWorld, WaitsArePublishedForOtherProcesses) {
  const std::vector<uint32_t> self = {static_cast<uint32_t>(getpid())};
  auto world = makeWorld(2);
  SymmetricBuffer ready = *world->allocateSymmetric(DataType::I64, 8, "ready");
  ASSERT_TRUE(ok(world->rank(1).stream().launch(storeKernel(), {}, {ready.on(0), int64_t(2)})));
  // Where kernels look for it: in front of the world view.
  int64_t words[2];
  ASSERT_TRUE(ok(
      world->rank(1).device()->download(words, static_cast<int64_t *>(world->rank(1).worldView()) - 7, sizeof(words))));
  EXPECT_EQ(words[0], DITRON_BOARD_SLOTS - 1);
  auto *slot = reinterpret_cast<DitronWaitSlot *>(words[1]) + 17;
  slot->kernel = cuda::hashOfName("store");
  slot->line = 12;
  slot->compare = 5;
  slot->wordBytes = 8;
  slot->address = reinterpret_cast<uint64_t>((ready.on(0) + 3).address); // on the other rank
  slot->wanted = 2;
  slot->state = DITRON_SLOT_WAITING;
  Expected<explain::BoardReading> reading = explain::readBoards(self, std::chrono::milliseconds(1));
  ASSERT_TRUE(ok(reading.status()));
  ASSERT_EQ(reading->boards.size(), 2u);
  ASSERT_EQ(reading->waits.size(), 1u);
  const explain::PublishedWait &wait = reading->waits[0];
  EXPECT_EQ(wait.rank, 1u);
  EXPECT_EQ(wait.kernel, "store");
  EXPECT_EQ(wait.sourceFile, "store.py");
  EXPECT_EQ(wait.memory, "ready");
  EXPECT_EQ(wait.element, 3u);
  EXPECT_EQ(wait.homeRank, 0u);
  slot->state = DITRON_SLOT_FREE;
  ready = {}; // memory keeps its GPU
  world.reset();
  EXPECT_FALSE(explain::readBoards(self, std::chrono::milliseconds(1)).isOk()) << "they go with the world";

  WorldOptions silent;
  silent.publishWaits = false;
  world = makeWorld(1, silent);
  EXPECT_EQ(world->rank(0).device()->waitBounds().slotsAddress, 0u);
}

TEST(CudaWorld, AnIllegalAccessEndsTheRun) {
  auto world = makeWorld(1);
  hook<decltype(fakeCudaBreak)>("fakeCudaBreak")(cuda::errorIllegalAddress);
  const Status status = world->synchronize();
  hook<decltype(fakeCudaBreak)>("fakeCudaBreak")(0);
  EXPECT_EQ(status.code(), StatusCode::OutOfBounds);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 0"), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS")));
  EXPECT_EQ(world->status().code(), StatusCode::OutOfBounds);
}

TEST(CudaWorld, TheCallersContextIsRestored) {
  auto world = makeWorld(1);
  (void)world->rank(0).allocate(DataType::F32, 10, "x");
  EXPECT_EQ(hook<decltype(fakeCudaContextDepth)>("fakeCudaContextDepth")(), 0u);
}

TEST(CudaWorld, SlowRanksAreDelayed) {
  WorldOptions options;
  options.slowRanks[1] = 5;
  auto world = makeWorld(2, options);
  SymmetricBuffer words = *world->allocateSymmetric(DataType::I64, 2, "words");
  (void)takeLog();
  for (uint32_t r = 0; r < 2; ++r)
    ASSERT_TRUE(ok(world->rank(r).stream().launch(storeKernel(), {}, {words.on(r), int64_t(1)})));
  EXPECT_THAT(takeLog(), HasSubstr("cuLaunchKernel(ditron_delay"));
}

/// A kernel that waits for a copy may fill the GPU: what delays the copy must not need a place there.
TEST(CudaWorld, DelaysOfCopiesAreNoKernels) {
  WorldOptions options;
  options.slowRanks[0] = 20;
  auto world = makeWorld(2, options);
  SymmetricBuffer words = *world->allocateSymmetric(DataType::I64, 2, "words");
  (void)takeLog();
  ASSERT_TRUE(ok(world->rank(0).stream().copy(words.on(1), words.on(0), 2)));
  ASSERT_TRUE(ok(world->synchronize()));
  EXPECT_EQ(takeLog(), "cuMemcpyDtoHAsync(4194304)\ncuMemcpyDtoHAsync(4194304)\ncuMemcpyDtoHAsync(1111392)\n"
                       "cuMemcpyAsync(16)\n");
}

/// Streams that share a queue of the hardware wait for each other.
TEST(CudaWorld, StreamsHaveQueuesOfTheirOwn) {
  auto world = makeWorld(1);
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
}

TEST(CudaWorld, TracesComeFromTheRingInFrontOfTheWorldView) {
  WorldOptions options;
  options.trace = true;
  auto world = makeWorld(2, options);
  SymmetricBuffer ready = *world->allocateSymmetric(DataType::I64, 8, "ready");
  ASSERT_TRUE(ok(world->rank(1).stream().launch(storeKernel(), {}, {ready.on(0), int64_t(2)})));
  ASSERT_TRUE(ok(world->synchronize()));
  int64_t address = 0;
  ASSERT_TRUE(ok(world->rank(1).device()->download(
      &address, static_cast<int64_t *>(world->rank(1).worldView()) + DITRON_WORLD_EVENT_RING, sizeof(address))));
  // What a kernel does with it.
  DitronEvent event{};
  event.sequence = 1;
  event.kindOperation = DITRON_EVENT_BLOCK;
  event.kernel = cuda::hashOfName("store");
  event.begin = 1000;
  event.end = 4000;
  DitronEvent wait = event;
  wait.sequence = 2;
  wait.kindOperation = DITRON_EVENT_WAIT;
  wait.begin = 2000;
  wait.address = reinterpret_cast<uint64_t>((ready.on(0) + 3).address);
  const uint64_t claimed = 2;
  auto *ring = reinterpret_cast<char *>(address);
  ASSERT_TRUE(ok(world->rank(1).device()->upload(ring, &claimed, sizeof(claimed))));
  ASSERT_TRUE(ok(world->rank(1).device()->upload(ring + sizeof(DitronEventRing), &event, sizeof(event))));
  ASSERT_TRUE(ok(world->rank(1).device()->upload(ring + sizeof(DitronEventRing) + sizeof(event), &wait, sizeof(wait))));
  Expected<std::string> trace = world->chromeTrace();
  ASSERT_TRUE(ok(trace.status()));
  EXPECT_THAT(*trace,
              AllOf(HasSubstr(R"("ph":"X","name":"store","cat":"block","pid":1,"tid":0,"ts":0.000,"dur":3.000)"),
                    HasSubstr(R"("name":"wait ready[3] on rank 0","cat":"wait","pid":1)"),
                    HasSubstr("the clocks of the GPUs")));
  EXPECT_EQ(makeWorld(1)->rank(0).device()->waitBounds().eventRing, 0u) << "nothing is kept unless asked for";
}

TEST(CudaDriver, TellsWhatIsMissing) {
  EXPECT_THAT(cuda::CudaDriver::open("libnowhere.so.9").status().message(),
              AllOf(HasSubstr("libnowhere.so.9"), HasSubstr("--gpus all")));
  EXPECT_THAT(cuda::CudaDriver::open("libm.so.6").status().message(), AllOf(HasSubstr("cuInit"), HasSubstr("too old")));
}

} // namespace
