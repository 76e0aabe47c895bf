//===- cuda_call_sequence_test.cpp - Repeated calls and what they ask of the driver ---------------------------------===//
//
// On a stand-in for the driver, which tells the calls that it got.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "CudaTest.h"

#include "ditron/runtime/CallSequence.h"

using namespace ditron;
using namespace ditron::runtime;
using testing::HasSubstr;

namespace {

/// Writes 7 to a word of the caller's, copies it to the peer, and then writes 9 to a second word of the caller's.
struct Call {
  explicit Call(const WorldOptions &options = {}, Lane first = Lane::Main) {
    world = makeWorld(2, options);
    words = *world->allocateSymmetric(DataType::I64, 8, "words");
    own = world->rank(0).device();
    sequence = CallSequence(*SideStream::create(world->rank(0), "test"));
    begin = *PreparedLaunch::create(own, storeKernel(), {}, std::vector<Argument>{words.on(0), int64_t(7)});
    end = *PreparedLaunch::create(own, storeKernel(), {}, std::vector<Argument>{words.on(0) + 1, int64_t(9)});
    if (first == Lane::Side)
      sequence.join(Lane::Side);
    sequence.launch(first, begin);
    if (first == Lane::Main)
      sequence.join(Lane::Side);
    sequence.copy(Lane::Side, Copy::of(words.on(1) + 2, words.on(0), 1, "push"));
    sequence.join(Lane::Main);
    sequence.launch(Lane::Main, end);
    recorded = sequence.record(world->rank(0));
    (void)takeLog();
  }
  Status enqueue(int64_t at) { return enqueue(at, world->rank(0).stream()); }
  Status enqueue(int64_t at, Stream &stream) {
    DITRON_RETURN_IF_ERROR(end.setPointer(0, (words.on(0) + at).address));
    return sequence.enqueue(stream);
  }
  /// Of the words of a rank.
  std::vector<int64_t> values(uint32_t rank) {
    EXPECT_TRUE(ok(world->synchronize()));
    std::vector<int64_t> result(8);
    EXPECT_TRUE(ok(words.download(rank, result.data(), 64)));
    return result;
  }

  std::unique_ptr<World> world;
  SymmetricBuffer words;
  std::shared_ptr<Device> own;
  PreparedLaunch begin, end;
  CallSequence sequence;
  Status recorded;
};

constexpr const char *oneByOne =
    "cuLaunchKernel(store blocks=1 threads=128 shared=0)\ncuEventRecord\ncuStreamWaitEvent\n"
    "cuMemcpyAsync(8)\ncuEventRecord\ncuStreamWaitEvent\n"
    "cuLaunchKernel(store blocks=1 threads=128 shared=0)\n";

TEST(CudaCallSequence, ACallIsOneCallOfTheDriverAndOneForEachKernelWithOtherAddresses) {
  Call call;
  ASSERT_TRUE(ok(call.recorded));
  ASSERT_TRUE(call.sequence.isRecorded());
  EXPECT_THAT(call.values(0), testing::Each(0)); // recorded, not run
  ASSERT_TRUE(ok(call.enqueue(1)));
  EXPECT_EQ(takeLog(), "cuGraphLaunch\n");
  EXPECT_THAT(call.values(0), testing::ElementsAre(7, 9, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(call.values(1), testing::ElementsAre(0, 0, 7, 0, 0, 0, 0, 0));
}

TEST(CudaCallSequence, LaunchesWithoutASideStream) {
  Call call;
  CallSequence launches{nullptr};
  launches.launch(Lane::Main, call.begin);
  launches.launch(Lane::Main, call.end);
  ASSERT_TRUE(ok(launches.record(call.world->rank(0))));
  EXPECT_FALSE(launches.isRecorded());
  (void)takeLog();
  ASSERT_TRUE(ok(launches.enqueue(call.world->rank(0).stream())));
  EXPECT_EQ(
      takeLog(),
      "cuLaunchKernel(store blocks=1 threads=128 shared=0)\ncuLaunchKernel(store blocks=1 threads=128 shared=0)\n");
  launches.join(Lane::Side);
  EXPECT_THAT(std::string(launches.enqueue(call.world->rank(0).stream()).message()),
              HasSubstr("without a side stream"));
}

TEST(CudaCallSequence, OnlyAddressesThatChangedAreTold) {
  Call call;
  ASSERT_TRUE(ok(call.enqueue(3)));
  EXPECT_EQ(takeLog(), "cuGraphExecKernelNodeSetParams(store)\ncuGraphLaunch\n");
  ASSERT_TRUE(ok(call.enqueue(3)));
  EXPECT_EQ(takeLog(), "cuGraphLaunch\n");
  ASSERT_TRUE(ok(call.enqueue(4)));
  EXPECT_EQ(takeLog(), "cuGraphExecKernelNodeSetParams(store)\ncuGraphLaunch\n");
  EXPECT_THAT(call.values(0), testing::ElementsAre(7, 0, 0, 9, 9, 0, 0, 0));
}

TEST(CudaCallSequence, LaunchesUnderWayKeepTheirAddresses) {
  Call call;
  Stream &stream = call.world->rank(0).stream();
  SymmetricBuffer gate = *call.world->allocateSymmetric(DataType::I64, 1, "gate");
  ASSERT_TRUE(ok(stream.signalWait(gate.on(0), Compare::GreaterEqual, 1)));
  for (int64_t at : {4, 5, 6})
    ASSERT_TRUE(ok(call.enqueue(at)));
  ASSERT_TRUE(ok(call.world->rank(1).stream().signalWrite(gate.on(0), 1)));
  EXPECT_THAT(call.values(0), testing::ElementsAre(7, 0, 0, 0, 9, 9, 9, 0));
}

TEST(CudaCallSequence, AKernelOfTheSideStreamIsToldItsAddressesToo) {
  Call call({}, Lane::Side);
  ASSERT_TRUE(ok(call.recorded));
  ASSERT_TRUE(ok(call.begin.setPointer(0, (call.words.on(0) + 5).address)));
  ASSERT_TRUE(ok(call.enqueue(6)));
  EXPECT_THAT(call.values(0), testing::ElementsAre(0, 0, 0, 0, 0, 7, 9, 0));
}

TEST(CudaCallSequence, TheSideLaneBelongsToTheCallOnlyOnceItHasJoined) {
  Call call;
  CallSequence wrong(*SideStream::create(call.world->rank(0), "wrong"));
  wrong.launch(Lane::Side, call.begin);
  wrong.join(Lane::Main);
  EXPECT_EQ(wrong.record(call.world->rank(0)).code(), StatusCode::Internal);
  EXPECT_THAT(call.values(0), testing::Each(0));
}

TEST(CudaCallSequence, LaunchesWithoutASideStreamAreNoGraph) {
  Call call;
  CallSequence launches;
  launches.launch(Lane::Main, call.begin);
  ASSERT_TRUE(ok(launches.record(call.world->rank(0))));
  EXPECT_FALSE(launches.isRecorded());
  ASSERT_TRUE(ok(launches.enqueue(call.world->rank(0).stream())));
  EXPECT_EQ(takeLog(), "cuLaunchKernel(store blocks=1 threads=128 shared=0)\n");
  EXPECT_THAT(call.values(0), testing::ElementsAre(7, 0, 0, 0, 0, 0, 0, 0));
  launches.join(Lane::Main);
  EXPECT_EQ(launches.enqueue(call.world->rank(0).stream()).code(), StatusCode::Internal);
}

TEST(CudaCallSequence, ACaptureAndAWorldWithoutGraphsGetTheOperationsOneByOne) {
  Call call;
  Stream &stream = call.world->rank(0).stream();
  ASSERT_TRUE(ok(stream.beginCapture()));
  ASSERT_TRUE(ok(call.enqueue(3)));
  EXPECT_EQ(takeLog(), oneByOne);
  Graph graph = *stream.endCapture();
  // What has been captured keeps its addresses, whatever the sequence does meanwhile.
  ASSERT_TRUE(ok(call.enqueue(4)));
  ASSERT_TRUE(ok(stream.launch(graph)));
  EXPECT_THAT(call.values(0), testing::ElementsAre(7, 0, 0, 9, 9, 0, 0, 0));

  WorldOptions oneByOneOptions;
  oneByOneOptions.callGraphs = false;
  Call plain(oneByOneOptions);
  EXPECT_FALSE(plain.sequence.isRecorded());
  ASSERT_TRUE(ok(plain.enqueue(3)));
  EXPECT_EQ(takeLog(), oneByOne);
}

TEST(CudaCallSequence, AnotherStreamMayTakeTheNextCall) {
  Call call;
  Stream other = *call.world->rank(0).createStream("other");
  ASSERT_TRUE(ok(call.enqueue(3)));
  ASSERT_TRUE(ok(call.enqueue(4, other)));
  ASSERT_TRUE(ok(call.enqueue(5)));
  EXPECT_THAT(call.values(0), testing::ElementsAre(7, 0, 0, 9, 9, 9, 0, 0));
}

TEST(CudaCallSequence, AfterALaunchThatFailedTheNextOneWorks) {
  Call call;
  hook<decltype(fakeCudaBreak)>("fakeCudaBreak")(2);
  const Status failed = call.enqueue(3);
  hook<decltype(fakeCudaBreak)>("fakeCudaBreak")(0);
  EXPECT_THAT(failed.message(), HasSubstr("kernel 'store'"));
  EXPECT_THAT(failed.message(), HasSubstr("out of memory"));
  EXPECT_THAT(call.values(0), testing::Each(0));
  ASSERT_TRUE(ok(call.enqueue(3)));
  EXPECT_THAT(call.values(0), testing::ElementsAre(7, 0, 0, 9, 0, 0, 0, 0));
}

TEST(CudaCallSequence, ReportsNameTheKernelThatTheGraphEndsWith) {
  WorldOptions options;
  options.timeLimitSeconds = 0.2;
  Call call(options);
  Stream &stream = call.world->rank(0).stream();
  SymmetricBuffer gate = *call.world->allocateSymmetric(DataType::I64, 1, "gate");
  ASSERT_TRUE(ok(stream.signalWait(gate.on(0), Compare::GreaterEqual, 1)));
  ASSERT_TRUE(ok(call.enqueue(3)));
  const Status status = stream.synchronize();
  EXPECT_EQ(status.code(), StatusCode::TimeOut);
  EXPECT_THAT(status.message(), HasSubstr("last kernel: store"));
}

} // namespace
