//===- api_test.cpp - The C interface, as a program sees it that links the shared library -----------------------------===//
#include <ditron/ditron.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char *addSource = R"(import triton
import triton.language as tl


@triton.jit
def add(X, Y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(Y + offsets, tl.load(X + offsets, mask=mask) + 1, mask=mask)
)";

ditron_error_t lastError() {
  ditron_error_t error;
  DITRON_INIT(error);
  ditron_last_error(&error);
  return error;
}

std::string lastMessage() { return lastError().message; }

#define EXPECT_DONE(call) EXPECT_EQ((call), DITRON_OK) << lastMessage()
#define ASSERT_DONE(call) ASSERT_EQ((call), DITRON_OK) << lastMessage()

ditron_argument_t pointer(void *address, ditron_dtype_t dtype) {
  ditron_argument_t argument = {};
  argument.kind = DITRON_ARGUMENT_POINTER;
  argument.dtype = dtype;
  argument.value.pointer = address;
  return argument;
}

ditron_argument_t integer(int64_t value, const char *name = nullptr) {
  ditron_argument_t argument = {};
  argument.name = name;
  argument.kind = DITRON_ARGUMENT_INT;
  argument.value.integer = value;
  return argument;
}

ditron_launch_t launchOf(uint32_t blocks) {
  ditron_launch_t launch;
  DITRON_INIT(launch);
  launch.grid[0] = blocks;
  launch.grid[1] = launch.grid[2] = 1;
  return launch;
}

class Api : public testing::Test {
protected:
  void SetUp() override {
    ditron_context_options_t options;
    DITRON_INIT(options);
    options.target = "sim:sm_80";
    options.ranks = 2;
    ASSERT_DONE(ditron_context_create(&options, &context));
    ASSERT_DONE(ditron_stream_create(context, 0, "work", &stream));
  }
  void TearDown() override {
    ditron_kernel_destroy(kernel);
    ditron_stream_destroy(stream);
    ditron_context_destroy(context);
  }

  void load(const char *text, const char *name) {
    ditron_source_t source;
    DITRON_INIT(source);
    source.path = "add.py";
    source.text = text;
    ASSERT_DONE(ditron_kernel_load(context, &source, name, &kernel));
  }
  ditron_memory_h adopt(std::vector<float> &values, const char *name) {
    ditron_memory_h memory = nullptr;
    EXPECT_DONE(ditron_memory_adopt(context, 0, values.data(), values.size() * sizeof(float), name, &memory));
    return memory;
  }

  ditron_context_h context = nullptr;
  ditron_stream_h stream = nullptr;
  ditron_kernel_h kernel = nullptr;
};

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
  EXPECT_THAT(error.message, HasSubstr("x (512 bytes"));
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

/// One of the two operators with fp32 data on every rank, against sums in double.
struct Product {
  int64_t m, n, k;
  bool gathers;
  std::vector<ditron_memory_h> a, b, c;

  static float valueOf(uint32_t rank, int64_t index) { return static_cast<float>((index * 7 + rank * 3) % 11 - 5); }
};

class ApiOperator : public Api {
protected:
  void prepare(Product &product) {
    ditron_operator_options_t options;
    DITRON_INIT(options);
    options.kind = product.gathers ? DITRON_ALL_GATHER_GEMM : DITRON_GEMM_REDUCE_SCATTER;
    options.dtype = DITRON_F32;
    options.m = product.m;
    options.n = product.n;
    options.k = product.k;
    ASSERT_DONE(ditron_operator_create(context, &options, &op));
    ASSERT_DONE(ditron_operator_prepare(op, product.m, product.n, product.k, &plan));
    for (uint32_t rank = 0; rank < 2; ++rank) {
      ditron_stream_h stream = nullptr;
      ASSERT_DONE(ditron_stream_create(context, rank, "operator", &stream));
      streams.push_back(stream);
      const int64_t rows = ditron_plan_rows(plan, rank);
      product.a.push_back(filled(rank, (product.gathers ? rows : product.m) * product.k));
      product.b.push_back(filled(rank, product.k * product.n));
      product.c.push_back(filled(rank, (product.gathers ? product.m : rows) * product.n));
    }
  }
  ditron_memory_h filled(uint32_t rank, int64_t count) {
    ditron_memory_h memory = nullptr;
    std::vector<float> values(count);
    for (int64_t i = 0; i < count; ++i)
      values[i] = Product::valueOf(rank, i);
    EXPECT_DONE(ditron_memory_allocate(context, rank, count * sizeof(float), "operand", &memory));
    EXPECT_DONE(ditron_memory_upload(memory, rank, 0, values.data(), count * sizeof(float)));
    memories.push_back(memory);
    return memory;
  }
  static ditron_tensor_t tensor(ditron_memory_h memory, uint32_t rank, const int64_t *shape) {
    ditron_tensor_t result;
    DITRON_INIT(result);
    result.address = ditron_memory_address(memory, rank);
    result.dtype = DITRON_F32;
    result.dimensions = 2;
    result.shape = shape;
    return result;
  }
  ditron_status_t enqueue(const Product &product, uint32_t rank, int64_t extraRows = 0) {
    const int64_t rows = ditron_plan_rows(plan, rank);
    const int64_t aShape[] = {(product.gathers ? rows : product.m) + extraRows, product.k},
                  bShape[] = {product.k, product.n}, cShape[] = {product.gathers ? product.m : rows, product.n};
    const ditron_tensor_t a = tensor(product.a[rank], rank, aShape), b = tensor(product.b[rank], rank, bShape),
                          c = tensor(product.c[rank], rank, cShape);
    return ditron_plan_enqueue(plan, streams[rank], &a, &b, &c);
  }
  void verify(const Product &product) {
    const int64_t shard = (product.m + 1) / 2;
    for (uint32_t rank = 0; rank < 2; ++rank) {
      const int64_t rows = product.gathers ? product.m : ditron_plan_rows(plan, rank);
      std::vector<float> result(rows * product.n);
      ASSERT_DONE(ditron_memory_download(product.c[rank], rank, 0, result.data(), result.size() * sizeof(float)));
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < product.n; ++column) {
          double sum = 0;
          for (int64_t k = 0; k < product.k; ++k) {
            if (product.gathers) {
              const uint32_t owner = static_cast<uint32_t>(row / shard);
              sum +=
                  Product::valueOf(owner, row % shard * product.k + k) * Product::valueOf(rank, k * product.n + column);
            } else {
              for (uint32_t other = 0; other < 2; ++other)
                sum += Product::valueOf(other, (rank * shard + row) * product.k + k) *
                       Product::valueOf(other, k * product.n + column);
            }
          }
          ASSERT_EQ(result[row * product.n + column], sum) << "rank " << rank << " [" << row << ", " << column << "]";
        }
    }
  }
  void TearDown() override {
    ditron_operator_destroy(op);
    ditron_plan_destroy(plan);
    for (ditron_stream_h each : streams)
      ditron_stream_destroy(each);
    for (ditron_memory_h memory : memories)
      ditron_memory_destroy(memory);
    Api::TearDown();
  }

  ditron_operator_h op = nullptr;
  ditron_plan_h plan = nullptr;
  std::vector<ditron_stream_h> streams;
  std::vector<ditron_memory_h> memories;
};

TEST_F(ApiOperator, AllGatherGemmIsTheProductOfAllRows) {
  Product product = {65, 40, 32, true, {}, {}, {}};
  prepare(product);
  for (int call = 0; call < 2; ++call)
    for (uint32_t rank = 0; rank < 2; ++rank)
      ASSERT_DONE(enqueue(product, rank));
  ASSERT_DONE(ditron_context_synchronize(context));
  verify(product);
}

TEST_F(ApiOperator, GemmReduceScatterAddsTheRanks) {
  Product product = {33, 48, 16, false, {}, {}, {}};
  prepare(product);
  for (int call = 0; call < 2; ++call)
    for (uint32_t rank = 0; rank < 2; ++rank)
      ASSERT_DONE(enqueue(product, rank));
  ASSERT_DONE(ditron_context_synchronize(context));
  verify(product);
}

TEST_F(ApiOperator, APlanIsCapturedAndReplayed) {
  Product product = {32, 32, 32, true, {}, {}, {}};
  prepare(product);
  std::vector<ditron_graph_h> graphs(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    ASSERT_DONE(ditron_capture_begin(streams[rank]));
    ASSERT_DONE(enqueue(product, rank));
    ASSERT_DONE(ditron_capture_end(streams[rank], &graphs[rank]));
  }
  for (int replay = 0; replay < 3; ++replay)
    for (uint32_t rank = 0; rank < 2; ++rank)
      ASSERT_DONE(ditron_graph_launch(graphs[rank], streams[rank]));
  ASSERT_DONE(ditron_context_synchronize(context));
  verify(product);
  for (ditron_graph_h graph : graphs)
    ditron_graph_destroy(graph);
}

TEST_F(ApiOperator, TensorsOfOtherShapesAreRefused) {
  Product product = {64, 32, 32, true, {}, {}, {}};
  prepare(product);
  EXPECT_EQ(enqueue(product, 0, 1), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(
      lastMessage(),
      HasSubstr("tensor a has shape [33, 32]; the plan for m = 64, n = 32, k = 32 takes [32, 32] on this rank"));
  ditron_plan_h other = nullptr;
  EXPECT_EQ(ditron_operator_prepare(op, 64, 32, 33, &other), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("k is 33; the operator was made for 32"));
  EXPECT_EQ(ditron_operator_prepare(op, 65, 32, 32, &other), DITRON_INVALID_ARGUMENT);
  ASSERT_DONE(ditron_operator_prepare(op, 1, 7, 32, &other));
  EXPECT_EQ(ditron_plan_rows(other, 0), 1);
  EXPECT_EQ(ditron_plan_rows(other, 1), 0);
  ditron_plan_destroy(other);
}

TEST(ApiGroup, TwoGroupsComputeApartFromEachOther) {
  ditron_context_options_t options;
  DITRON_INIT(options);
  options.target = "sim:sm_80";
  options.ranks = 4;
  ditron_context_h whole = nullptr;
  ASSERT_DONE(ditron_context_create(&options, &whole));
  const uint32_t members[2][2] = {{2, 0}, {1, 3}};
  ditron_context_h groups[2] = {};
  std::vector<ditron_stream_h> streams;
  std::vector<ditron_kernel_h> kernels;
  ditron_memory_h words[2] = {};
  // Every rank writes its number in the group, and the group's size, into its neighbour's memory.
  ditron_source_t source;
  DITRON_INIT(source);
  source.path = "neighbour.py";
  source.text =
      "import triton\nimport triton.language as tl\nimport triton_dist.language as dl\n\n@triton.jit\ndef tell(X):\n"
      "    rank = dl.rank()\n    size = dl.num_ranks()\n"
      "    tl.store(dl.symm_at(X, (rank + 1) % size), rank * 10 + size)\n";
  for (int group = 0; group < 2; ++group) {
    ASSERT_DONE(ditron_context_group(whole, members[group], 2, &groups[group]));
    EXPECT_EQ(ditron_context_ranks(groups[group]), 2u);
    ASSERT_DONE(ditron_memory_allocate_symmetric(groups[group], 8, "words", &words[group]));
    ditron_kernel_h kernel = nullptr;
    ASSERT_DONE(ditron_kernel_load(groups[group], &source, "tell", &kernel));
    kernels.push_back(kernel);
    for (uint32_t rank = 0; rank < 2; ++rank) {
      ditron_stream_h stream = nullptr;
      ASSERT_DONE(ditron_stream_create(groups[group], rank, "group", &stream));
      streams.push_back(stream);
      const ditron_launch_t launch = launchOf(1);
      const ditron_argument_t argument = pointer(ditron_memory_address(words[group], rank), DITRON_I64);
      ASSERT_DONE(ditron_kernel_launch(kernel, stream, &launch, &argument, 1));
    }
  }
  ASSERT_DONE(ditron_context_synchronize(whole));
  for (int group = 0; group < 2; ++group)
    for (uint32_t rank = 0; rank < 2; ++rank) {
      int64_t word = 0;
      ASSERT_DONE(ditron_memory_download(words[group], rank, 0, &word, 8));
      EXPECT_EQ(word, (1 - rank) * 10 + 2) << "group " << group << ", rank " << rank;
    }
  ditron_context_h wrong = nullptr;
  const uint32_t twice[] = {1, 1}, absent[] = {1, 4};
  EXPECT_EQ(ditron_context_group(whole, twice, 2, &wrong), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("group of ranks 1, 1: 1 is there twice"));
  EXPECT_EQ(ditron_context_group(whole, absent, 2, &wrong), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("4 does not exist; ranks are 0 to 3"));
  EXPECT_EQ(ditron_context_group(whole, absent, 0, &wrong), DITRON_INVALID_ARGUMENT);
  ditron_context_destroy(whole); // groups keep what they need
  for (int group = 0; group < 2; ++group) {
    EXPECT_DONE(ditron_context_synchronize(groups[group]));
    ditron_memory_destroy(words[group]);
    ditron_context_destroy(groups[group]);
  }
  for (ditron_kernel_h kernel : kernels)
    ditron_kernel_destroy(kernel);
  for (ditron_stream_h stream : streams)
    ditron_stream_destroy(stream);
}

TEST(ApiVersion, OfLibraryAndHeaderAgree) {
  EXPECT_EQ(ditron_version(), static_cast<uint32_t>(DITRON_VERSION_NUMBER));
  EXPECT_THAT(ditron_version_text(), HasSubstr(DITRON_VERSION_STRING));
  EXPECT_TRUE(ditron_has_compiler());
}

} // namespace
