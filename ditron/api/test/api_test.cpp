//===- api_test.cpp - The C interface, as a program sees it that links the shared library -----------------------------===//
#include "ditron/api/test/ApiTest.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

namespace ditron::api::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

constexpr const char *addSource = R"(import triton
import triton.language as tl


@triton.jit
def add(X, Y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(Y + offsets, tl.load(X + offsets, mask=mask) + 1, mask=mask)
)";

TEST_F(Api, AKernelRunsOnTheCallersOwnMemory) {
  load(addSource, "add");
  EXPECT_EQ(ditron_kernel_parameter_count(kernel), 4u);
  EXPECT_STREQ(ditron_kernel_parameter_name(kernel, 3), "BLOCK");
  EXPECT_TRUE(ditron_kernel_parameter_is_constexpr(kernel, 3));
  EXPECT_FALSE(ditron_kernel_parameter_is_constexpr(kernel, 2));
  EXPECT_EQ(ditron_kernel_parameter_name(kernel, 4), nullptr);
  std::vector<float> x(1000), y(1000);
  std::iota(x.begin(), x.end(), 0.0f);
  ditron_memory_h xMemory = adopt(x, "x"), yMemory = adopt(y, "y");
  const ditron_launch_t launch = launchOf(8);
  const ditron_argument_t arguments[] = {pointer(x.data(), DITRON_F32), pointer(y.data(), DITRON_F32), integer(1000),
                                         integer(128, "BLOCK")};
  ASSERT_DONE(ditron_kernel_launch(kernel, stream, &launch, arguments, 4));
  ASSERT_DONE(ditron_stream_synchronize(stream));
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(y[i], x[i] + 1) << i;
  ditron_memory_destroy(xMemory);
  ditron_memory_destroy(yMemory);
}

TEST_F(Api, AVariantIsLaunchedAgainWithOtherValues) {
  load(addSource, "add");
  std::vector<float> x(256, 1), y(256), z(256);
  ditron_memory_h memories[] = {adopt(x, "x"), adopt(y, "y"), adopt(z, "z")};
  const ditron_launch_t launch = launchOf(2);
  const ditron_argument_t arguments[] = {pointer(x.data(), DITRON_F32), pointer(y.data(), DITRON_F32), integer(250),
                                         integer(128, "BLOCK")};
  ditron_variant_h variant = nullptr;
  ASSERT_DONE(ditron_kernel_specialise(kernel, &launch, arguments, 4, &variant));
  ditron_variant_info_t info;
  DITRON_INIT(info);
  ASSERT_DONE(ditron_variant_info(variant, &info));
  EXPECT_STREQ(info.name, "add");
  EXPECT_STREQ(info.target, "sim:sm_80");
  ASSERT_EQ(info.parameter_count, 3u);
  EXPECT_STREQ(ditron_variant_parameter_name(variant, 2), "n");
  EXPECT_STREQ(ditron_variant_parameter_type(variant, 0), "*fp32");
  ditron_variant_resources_t resources;
  DITRON_INIT(resources);
  ASSERT_DONE(ditron_variant_resources(variant, &resources));
  EXPECT_EQ(resources.registers, 248u); // 512 would fit; a thread cannot have more than 255
  EXPECT_EQ(resources.local_bytes, 0u);
  EXPECT_EQ(ditron_variant_resources(nullptr, &resources), DITRON_INVALID_ARGUMENT);
  EXPECT_EQ(ditron_variant_resources(variant, nullptr), DITRON_INVALID_ARGUMENT);
  for (float *target : {y.data(), z.data()}) {
    const float *source = x.data();
    const int32_t n = target == y.data() ? 250 : 3;
    const void *values[] = {&source, &target, &n};
    ASSERT_DONE(ditron_variant_launch(variant, stream, launch.grid, values));
  }
  ASSERT_DONE(ditron_context_synchronize(context));
  EXPECT_EQ(std::count(y.begin(), y.end(), 2.0f), 250);
  EXPECT_EQ(std::count(z.begin(), z.end(), 2.0f), 3);
  const char *text = nullptr;
  ASSERT_DONE(ditron_variant_text(variant, "tile", &text));
  EXPECT_THAT(text, HasSubstr("tile.load"));
  EXPECT_EQ(ditron_variant_text(variant, "ptx", &text), DITRON_INVALID_ARGUMENT);
  ditron_variant_destroy(variant);
  for (ditron_memory_h memory : memories)
    ditron_memory_destroy(memory);
}

TEST_F(Api, AVariantIsLaunchedAsItWasSpecialised) {
  load(addSource, "add");
  std::vector<float> x(128, 1);
  ditron_memory_h memory = adopt(x, "x");
  ditron_launch_t launch = launchOf(1);
  launch.cooperative = 1;
  const ditron_argument_t arguments[] = {pointer(x.data(), DITRON_F32), pointer(x.data(), DITRON_F32), integer(128),
                                         integer(128, "BLOCK")};
  ditron_variant_h variant = nullptr;
  ASSERT_DONE(ditron_kernel_specialise(kernel, &launch, arguments, 4, &variant));
  const float *address = x.data();
  const int32_t n = 128;
  const void *values[] = {&address, &address, &n};
  ASSERT_DONE(ditron_variant_launch(variant, stream, launch.grid, values));
  ASSERT_DONE(ditron_stream_synchronize(stream));
  EXPECT_EQ(std::count(x.begin(), x.end(), 2.0f), 128);
  const uint32_t tooMany[] = {1u << 20, 1, 1};
  EXPECT_EQ(ditron_variant_launch(variant, stream, tooMany, values), DITRON_RESOURCE_EXHAUSTED);
  EXPECT_THAT(lastMessage(), HasSubstr("cooperative launch of 1048576 blocks"));
  ditron_variant_destroy(variant);
  ditron_memory_destroy(memory);
}

TEST_F(Api, ErrorsCarryKindAndPlace) {
  ditron_source_t source;
  DITRON_INIT(source);
  source.path = "wrong.py";
  source.text =
      "import triton\nimport triton.language as tl\n\n@triton.jit\ndef wrong(X):\n    tl.store(X, tl.lod(X))\n";
  ASSERT_DONE(ditron_kernel_load(context, &source, "wrong", &kernel));
  float word = 0;
  const ditron_launch_t launch = launchOf(1);
  const ditron_argument_t argument = pointer(&word, DITRON_F32);
  EXPECT_EQ(ditron_kernel_launch(kernel, stream, &launch, &argument, 1), DITRON_COMPILE_ERROR);
  const ditron_error_t error = lastError();
  EXPECT_EQ(error.status, DITRON_COMPILE_ERROR);
  EXPECT_STREQ(error.file, "wrong.py");
  EXPECT_EQ(error.line, 6u);
  EXPECT_THAT(error.message, AllOf(HasSubstr("wrong.py:6:"), HasSubstr("^")));
  ditron_kernel_h none = nullptr;
  EXPECT_EQ(ditron_kernel_load(context, &source, "other", &none), DITRON_NOT_FOUND);
  EXPECT_EQ(none, nullptr);
}

TEST_F(Api, AnotherThreadInterruptsARunAndRestartBeginsAnother) {
  load(R"(import triton
import triton.language as tl


@triton.jit
def spin(X):
    while tl.atomic_add(X, 1) >= 0:
        pass
)",
       "spin");
  std::vector<int32_t> x(1);
  ditron_memory_h memory = nullptr;
  ASSERT_DONE(ditron_memory_adopt(context, 0, x.data(), sizeof(int32_t), "x", &memory));
  const ditron_launch_t launch = launchOf(1);
  const ditron_argument_t argument = pointer(x.data(), DITRON_I32);
  std::atomic<bool> done = false;
  for (int turn = 0; turn < 2; ++turn) {
    ASSERT_DONE(ditron_kernel_launch(kernel, stream, &launch, &argument, 1));
    done = false;
    std::thread other([&] {
      for (; !done; std::this_thread::sleep_for(std::chrono::milliseconds(50)))
        ditron_interrupt(2);
    });
    EXPECT_EQ(ditron_context_synchronize(context), DITRON_TIMEOUT);
    EXPECT_THAT(lastMessage(),
                AllOf(HasSubstr("the run was interrupted by signal 2 (Interrupt)"), HasSubstr("kernel spin")));
    done = true;
    other.join();
    ASSERT_DONE(ditron_context_restart(context));
    ditron_stream_destroy(stream);
    ASSERT_DONE(ditron_stream_create(context, 0, "work", &stream));
  }
  x[0] = -1;
  ASSERT_DONE(ditron_kernel_launch(kernel, stream, &launch, &argument, 1));
  ASSERT_DONE(ditron_context_synchronize(context));
  EXPECT_EQ(x[0], 0);
  ditron_memory_destroy(memory);
}

TEST_F(Api, AWildAccessEndsTheRunAndRestartBeginsAnother) {
  load(addSource, "add");
  std::vector<float> x(128, 1), y(128);
  ditron_memory_h xMemory = adopt(x, "x"), yMemory = adopt(y, "y");
  const ditron_launch_t launch = launchOf(2);
  const ditron_argument_t arguments[] = {pointer(x.data(), DITRON_F32), pointer(y.data(), DITRON_F32), integer(200),
                                         integer(128, "BLOCK")};
  ASSERT_DONE(ditron_kernel_launch(kernel, stream, &launch, arguments, 4));
  EXPECT_EQ(ditron_stream_synchronize(stream), DITRON_OUT_OF_BOUNDS);
  const ditron_error_t error = lastError();
  EXPECT_STREQ(error.file, "add.py");
  EXPECT_EQ(error.line, 9u);
  // Whether y follows x in memory is the caller's.
  EXPECT_THAT(error.message, ContainsRegex("x \\((rank 0, )?512 bytes"));
  EXPECT_EQ(ditron_context_check(context), DITRON_OUT_OF_BOUNDS);
  ASSERT_DONE(ditron_context_restart(context));
  ASSERT_DONE(ditron_context_check(context));
  EXPECT_EQ(ditron_stream_synchronize(stream), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("ended before ditron_context_restart"));
  ditron_stream_destroy(stream);
  ASSERT_DONE(ditron_stream_create(context, 0, "again", &stream));
  const ditron_argument_t inside[] = {arguments[0], arguments[1], integer(128), arguments[3]};
  ASSERT_DONE(ditron_kernel_launch(kernel, stream, &launch, inside, 4));
  ASSERT_DONE(ditron_stream_synchronize(stream));
  EXPECT_EQ(std::count(y.begin(), y.end(), 2.0f), 128);
  ditron_memory_destroy(xMemory);
  ditron_memory_destroy(yMemory);
}

TEST_F(Api, AdoptedMemoryIsCounted) {
  std::vector<float> x(64);
  ditron_memory_h first = adopt(x, "x"), second = adopt(x, "x");
  ditron_memory_destroy(first);
  ditron_memory_h part = nullptr;
  ASSERT_DONE(ditron_memory_adopt(context, 1, x.data() + 8, 16, "part of it, for another rank", &part));
  ditron_memory_destroy(second);
  ditron_memory_h meeting = nullptr;
  EXPECT_EQ(ditron_memory_adopt(context, 0, x.data() + 60, 32, "beyond the end", &meeting), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("meet memory that the simulator has already"));
  ditron_memory_destroy(part);
  ASSERT_DONE(ditron_memory_adopt(context, 0, x.data() + 8, 16, "part", &part));
  EXPECT_EQ(ditron_memory_address(part, 0), x.data() + 8);
  EXPECT_EQ(ditron_memory_address(part, 1), nullptr);
  ditron_memory_destroy(part);
}

TEST_F(Api, SymmetricMemoryIsOfAllRanks) {
  ditron_memory_h memory = nullptr;
  ASSERT_DONE(ditron_memory_allocate_symmetric(context, 1000, "words", &memory));
  EXPECT_NE(ditron_memory_address(memory, 0), ditron_memory_address(memory, 1));
  EXPECT_EQ(ditron_memory_address(memory, 2), nullptr);
  const int32_t sent = 42;
  int32_t received = 0;
  ASSERT_DONE(ditron_memory_upload(memory, 0, 996, &sent, 4));
  ASSERT_DONE(ditron_copy(stream, ditron_memory_address(memory, 1), ditron_memory_address(memory, 0), 1000));
  ASSERT_DONE(ditron_stream_synchronize(stream));
  ASSERT_DONE(ditron_memory_download(memory, 1, 996, &received, 4));
  EXPECT_EQ(received, 42);
  EXPECT_EQ(ditron_memory_upload(memory, 0, 997, &sent, 4), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("bytes [997, 1001) of memory that has 1000"));
  ditron_memory_destroy(memory);
}

TEST_F(Api, GraphsAreReplayed) {
  ditron_memory_h memory = nullptr;
  ASSERT_DONE(ditron_memory_allocate(context, 0, 256, "bytes", &memory));
  ditron_graph_h graph = nullptr;
  ASSERT_DONE(ditron_capture_begin(stream));
  ASSERT_DONE(ditron_fill(stream, ditron_memory_address(memory, 0), 7, 128));
  ASSERT_DONE(ditron_capture_end(stream, &graph));
  ASSERT_DONE(ditron_graph_launch(graph, stream));
  ASSERT_DONE(ditron_stream_synchronize(stream));
  std::vector<uint8_t> bytes(256);
  ASSERT_DONE(ditron_memory_download(memory, 0, 0, bytes.data(), 256));
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 7), 128);
  ditron_graph_destroy(graph);
  ditron_memory_destroy(memory);
}

TEST_F(Api, EventsTellTheTimeBetween) {
  ditron_event_h begin = nullptr, end = nullptr;
  ditron_memory_h memory = nullptr;
  ASSERT_DONE(ditron_event_create(context, 0, &begin));
  ASSERT_DONE(ditron_event_create(context, 0, &end));
  ASSERT_DONE(ditron_memory_allocate(context, 0, 1 << 20, "bytes", &memory));
  ASSERT_DONE(ditron_event_record(begin, stream));
  ASSERT_DONE(ditron_fill(stream, ditron_memory_address(memory, 0), 1, 1 << 20));
  ASSERT_DONE(ditron_event_record(end, stream));
  ASSERT_DONE(ditron_event_synchronize(end));
  double microseconds = 0;
  ASSERT_DONE(ditron_event_elapsed(begin, end, &microseconds));
  EXPECT_GT(microseconds, 0);
  ditron_event_destroy(begin);
  ditron_event_destroy(end);
  ditron_memory_destroy(memory);
}

TEST_F(Api, WrongCallsAreErrors) {
  ditron_stream_h none = nullptr;
  EXPECT_EQ(ditron_stream_create(context, 5, "s", &none), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("rank 5 does not exist; accepted are 0 to 1"));
  EXPECT_EQ(ditron_stream_create(nullptr, 0, "s", &none), DITRON_INVALID_ARGUMENT);
  EXPECT_EQ(ditron_stream_adopt(context, 0, nullptr, &none), DITRON_UNSUPPORTED);
  EXPECT_EQ(ditron_stream_synchronize(nullptr), DITRON_INVALID_ARGUMENT);
  ditron_memory_h memory = nullptr;
  ASSERT_DONE(ditron_memory_allocate(context, 0, 16, "bytes", &memory));
  EXPECT_EQ(ditron_memory_upload(memory, 0, 0, nullptr, 9), DITRON_INVALID_ARGUMENT);
  EXPECT_EQ(ditron_memory_download(memory, 0, 0, nullptr, 9), DITRON_INVALID_ARGUMENT);
  ditron_memory_destroy(memory);
  EXPECT_EQ(none, nullptr);
  ditron_context_options_t options = {};
  ditron_context_h made = nullptr;
  EXPECT_EQ(ditron_context_create(&options, &made), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("struct_size is 0; DITRON_INIT sets it to"));
  options.struct_size = sizeof(options);
  options.target = "sim:sm_12";
  EXPECT_NE(ditron_context_create(&options, &made), DITRON_OK);
  EXPECT_EQ(made, nullptr);
  EXPECT_STREQ(ditron_status_name(DITRON_TIMEOUT), "time limit passed");
  EXPECT_STREQ(ditron_dtype_name(DITRON_BF16), "bf16");
  EXPECT_EQ(ditron_dtype_name(static_cast<ditron_dtype_t>(99)), nullptr);
  EXPECT_EQ(ditron_dtype_size(DITRON_F8E5), 1u);
}

TEST_F(Api, StructuresOfOtherVersions) {
  struct {
    ditron_context_options_t options;
    uint64_t future;
  } newer = {};
  newer.options.struct_size = sizeof(newer);
  newer.options.target = "sim";
  ditron_context_h made = nullptr;
  ASSERT_DONE(ditron_context_create(&newer.options, &made)); // the member that we do not know is zero
  ditron_context_destroy(made);
  newer.future = 1;
  EXPECT_EQ(ditron_context_create(&newer.options, &made), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("it is older than the program"));
  newer.options.struct_size =
      offsetof(ditron_context_options_t, ranks); // a program older than all but the first members
  newer.options.ranks = 70000;
  ASSERT_DONE(ditron_context_create(&newer.options, &made));
  EXPECT_EQ(ditron_context_ranks(made), 1u);
  ditron_context_destroy(made);
}

TEST_F(Api, ObjectsOfOtherContextsAreRefused) {
  ditron_context_h other = nullptr;
  ditron_event_h event = nullptr;
  ditron_context_options_t options;
  DITRON_INIT(options);
  options.target = "sim:sm_90a";
  ASSERT_DONE(ditron_context_create(&options, &other));
  ASSERT_DONE(ditron_event_create(other, 0, &event));
  EXPECT_EQ(ditron_event_record(event, stream), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("the event and the stream are of different contexts"));
  EXPECT_EQ(ditron_event_wait(event, stream), DITRON_INVALID_ARGUMENT);
  ditron_event_destroy(event);
  ditron_context_destroy(other);
  options.struct_size = 12; // in the middle of a member
  EXPECT_EQ(ditron_context_create(&options, &other), DITRON_INVALID_ARGUMENT);
}

TEST_F(Api, ASimulatedContextIsOfItsThread) {
  ditron_status_t status = DITRON_OK;
  std::string message;
  std::thread([&] {
    status = ditron_stream_synchronize(stream);
    message = lastMessage();
  }).join();
  EXPECT_EQ(status, DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(message, HasSubstr("the thread that made it"));
}

TEST_F(Api, HandlesAreDestroyedInAnyOrder) {
  load(addSource, "add");
  ditron_memory_h memory = nullptr;
  ASSERT_DONE(ditron_memory_allocate(context, 1, 64, "left", &memory));
  ditron_context_destroy(context);
  context = nullptr;
  EXPECT_DONE(ditron_stream_synchronize(stream));
  ditron_memory_destroy(memory);
  ditron_memory_destroy(nullptr);
}

TEST(ApiVersion, OfLibraryAndHeaderAgree) {
  EXPECT_EQ(ditron_version(), static_cast<uint32_t>(DITRON_VERSION_NUMBER));
  EXPECT_THAT(ditron_version_text(), HasSubstr(DITRON_VERSION_STRING));
  EXPECT_TRUE(ditron_has_compiler());
}

} // namespace
} // namespace ditron::api::test
