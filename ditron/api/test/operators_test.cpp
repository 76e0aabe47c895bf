//===- operators_test.cpp - The operators through the C interface -----------------------------------------------------===//
#include "ditron/api/test/ApiTest.h"
#include "ditron/api/test/CppRanks.h"

#include <algorithm>
#include <utility>

namespace ditron::api::test {
namespace {

using testing::HasSubstr;

/// One of the operators with fp32 data on every rank, against sums in double.
struct Product {
  int64_t m, n, k;
  ditron_operator_kind_t kind;
  std::vector<ditron_memory_h> a, b, c;

  bool gathers() const { return kind == DITRON_ALL_GATHER_GEMM; }
  bool scatters() const { return kind == DITRON_GEMM_REDUCE_SCATTER; }
  static float valueOf(uint32_t rank, int64_t index) { return static_cast<float>((index * 7 + rank * 3) % 11 - 5); }
};

class ApiOperator : public Api {
protected:
  void prepare(Product &product) {
    ditron_operator_options_t options;
    DITRON_INIT(options);
    options.kind = product.kind;
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
      product.a.push_back(filled(rank, (product.gathers() ? rows : product.m) * product.k));
      product.b.push_back(filled(rank, product.k * product.n));
      product.c.push_back(filled(rank, (product.scatters() ? rows : product.m) * product.n));
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
    const int64_t aShape[] = {(product.gathers() ? rows : product.m) + extraRows, product.k},
                  bShape[] = {product.k, product.n}, cShape[] = {product.scatters() ? rows : product.m, product.n};
    const ditron_tensor_t a = tensor(product.a[rank], rank, aShape), b = tensor(product.b[rank], rank, bShape),
                          c = tensor(product.c[rank], rank, cShape);
    return ditron_plan_enqueue(plan, streams[rank], &a, &b, &c);
  }
  void verify(const Product &product) {
    const int64_t shard = (product.m + 1) / 2;
    for (uint32_t rank = 0; rank < 2; ++rank) {
      const int64_t rows = product.scatters() ? ditron_plan_rows(plan, rank) : product.m;
      std::vector<float> result(rows * product.n);
      ASSERT_DONE(ditron_memory_download(product.c[rank], rank, 0, result.data(), result.size() * sizeof(float)));
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < product.n; ++column) {
          double sum = 0;
          for (int64_t k = 0; k < product.k; ++k) {
            if (product.gathers()) {
              const uint32_t owner = static_cast<uint32_t>(row / shard);
              sum +=
                  Product::valueOf(owner, row % shard * product.k + k) * Product::valueOf(rank, k * product.n + column);
            } else {
              for (uint32_t other = 0; other < 2; ++other)
                sum += Product::valueOf(other, ((product.scatters() ? rank * shard : 0) + row) * product.k + k) *
                       Product::valueOf(other, k * product.n + column);
            }
          }
          ASSERT_EQ(result[row * product.n + column], sum) << "rank " << rank << " [" << row << ", " << column << "]";
        }
    }
  }
  /// From here on the context is one whose symmetric memory is the test's own.
  void adoptHeap() {
    constexpr uint64_t bytes = 1 << 20;
    void *addresses[2];
    for (int rank : {0, 1}) {
      heap[rank].resize(bytes / sizeof(double) + 16 * rank);
      addresses[rank] = heap[rank].data() + 16 * rank;
    }
    ditron_symmetric_heap_t given;
    DITRON_INIT(given);
    given.addresses = addresses;
    given.count = 2;
    given.bytes = bytes;
    whole = context;
    ASSERT_DONE(ditron_context_adopt_symmetric(whole, &given, &context));
  }
  void computeInAdoptedHeap(Product product) {
    adoptHeap();
    prepare(product);
    for (int call = 0; call < 3; ++call)
      for (uint32_t rank = 0; rank < 2; ++rank)
        ASSERT_DONE(enqueue(product, rank));
    ASSERT_DONE(ditron_context_synchronize(context));
    verify(product);
    for (uint32_t rank : {0, 1}) // the workspace is there and was used
      EXPECT_NE(heap[rank], std::vector<double>(heap[rank].size()));
  }
  void TearDown() override {
    ditron_operator_destroy(op);
    ditron_plan_destroy(plan);
    for (ditron_stream_h each : streams)
      ditron_stream_destroy(each);
    for (ditron_memory_h memory : memories)
      ditron_memory_destroy(memory);
    ditron_context_destroy(whole);
    Api::TearDown();
  }

  ditron_operator_h op = nullptr;
  ditron_plan_h plan = nullptr;
  std::vector<double> heap[2]; ///< Outlives what was made from it.
  ditron_context_h whole = nullptr;
  std::vector<ditron_stream_h> streams;
  std::vector<ditron_memory_h> memories;
};

TEST_F(ApiOperator, AllGatherGemmIsTheProductOfAllRows) {
  Product product = {65, 40, 32, DITRON_ALL_GATHER_GEMM, {}, {}, {}};
  prepare(product);
  for (int call = 0; call < 2; ++call)
    for (uint32_t rank = 0; rank < 2; ++rank)
      ASSERT_DONE(enqueue(product, rank));
  ASSERT_DONE(ditron_context_synchronize(context));
  verify(product);
}

TEST_F(ApiOperator, GemmReduceScatterAddsTheRanks) {
  Product product = {33, 48, 16, DITRON_GEMM_REDUCE_SCATTER, {}, {}, {}};
  prepare(product);
  for (int call = 0; call < 2; ++call)
    for (uint32_t rank = 0; rank < 2; ++rank)
      ASSERT_DONE(enqueue(product, rank));
  ASSERT_DONE(ditron_context_synchronize(context));
  verify(product);
}

TEST_F(ApiOperator, GemmAllReduceAddsTheRanksEverywhere) {
  for (int64_t m : {3, 200}) { // in one launch, and in two halves
    Product product = {m, 48, 16, DITRON_GEMM_ALL_REDUCE, {}, {}, {}};
    prepare(product);
    EXPECT_EQ(ditron_plan_rows(plan, 1), m);
    for (int call = 0; call < 3; ++call)
      for (uint32_t rank = 0; rank < 2; ++rank)
        ASSERT_DONE(enqueue(product, rank));
    ASSERT_DONE(ditron_context_synchronize(context));
    verify(product);
    ditron_plan_destroy(std::exchange(plan, nullptr));
    ditron_operator_destroy(std::exchange(op, nullptr));
    for (ditron_stream_h each : std::exchange(streams, {}))
      ditron_stream_destroy(each);
  }
}

TEST_F(ApiOperator, GemmAllReduceInSymmetricMemoryOfTheCallers) {
  computeInAdoptedHeap({33, 48, 16, DITRON_GEMM_ALL_REDUCE, {}, {}, {}});
}
TEST_F(ApiOperator, AllGatherGemmInSymmetricMemoryOfTheCallers) {
  computeInAdoptedHeap({65, 40, 32, DITRON_ALL_GATHER_GEMM, {}, {}, {}});
}
TEST_F(ApiOperator, GemmReduceScatterInSymmetricMemoryOfTheCallers) {
  computeInAdoptedHeap({33, 48, 16, DITRON_GEMM_REDUCE_SCATTER, {}, {}, {}});
}

TEST_F(ApiOperator, APlanIsCapturedAndReplayed) {
  Product product = {32, 32, 32, DITRON_ALL_GATHER_GEMM, {}, {}, {}};
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
  Product product = {64, 32, 32, DITRON_ALL_GATHER_GEMM, {}, {}, {}};
  prepare(product);
  EXPECT_EQ(enqueue(product, 0, 1), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(
      lastMessage(),
      HasSubstr("tensor a has shape [33, 32]; the plan for m = 64, n = 32, k = 32 takes [32, 32] on this rank"));
  ditron_plan_h other = nullptr;
  EXPECT_EQ(ditron_operator_prepare(op, 64, 32, 33, &other), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("k is 33; 32 is accepted, for which the operator was made"));
  EXPECT_EQ(ditron_operator_prepare(op, 65, 32, 32, &other), DITRON_INVALID_ARGUMENT);
  ASSERT_DONE(ditron_operator_prepare(op, 1, 7, 32, &other));
  EXPECT_EQ(ditron_plan_rows(other, 0), 1);
  EXPECT_EQ(ditron_plan_rows(other, 1), 0);
  ditron_plan_destroy(other);
}

/// int8 with a scale for each row of A and column of B, a bias, relu, padded rows: everything that the options have, in exact numbers.
TEST_F(ApiOperator, ScalesBiasActivationAndPaddedRows) {
  constexpr int64_t m = 33, n = 24, k = 40, strideA = 48, strideB = 56, strideC = 32, shard = 17;
  ditron_operator_options_t options;
  DITRON_INIT(options);
  options.kind = DITRON_ALL_GATHER_GEMM;
  options.dtype = DITRON_I8;
  options.result_dtype = DITRON_F32;
  options.m = m;
  options.n = n;
  options.k = k;
  options.weight_transposed = 1;
  options.scales_a = options.scales_b = DITRON_SCALES_VECTOR;
  options.bias_dtype = DITRON_F32;
  options.activation = DITRON_ACTIVATION_RELU;
  ASSERT_DONE(ditron_operator_create(context, &options, &op));
  ditron_plan_options_t strided;
  DITRON_INIT(strided);
  strided.m = m;
  strided.n = n;
  strided.k = k;
  strided.row_stride_a = strideA;
  strided.row_stride_b = strideB - 20;
  EXPECT_EQ(ditron_operator_prepare_strided(op, &strided, &plan), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("rows of B are 36 elements apart and have 40 columns"));
  strided.row_stride_b = strideB;
  strided.row_stride_c = strideC;
  ASSERT_DONE(ditron_operator_prepare_strided(op, &strided, &plan));

  auto put = [&](uint32_t rank, const auto &values) {
    ditron_memory_h memory = nullptr;
    const uint64_t bytes = values.size() * sizeof(values[0]);
    EXPECT_DONE(ditron_memory_allocate(context, rank, bytes, "operand", &memory));
    EXPECT_DONE(ditron_memory_upload(memory, rank, 0, values.data(), bytes));
    memories.push_back(memory);
    return memory;
  };
  auto valueOf = [](uint32_t rank, int64_t i) { return static_cast<int8_t>((i * 37 + rank * 11) % 255 - 127); };
  auto scaleOf = [](int64_t i) { return i % 3 == 0 ? 0.5f : i % 3 == 1 ? 2.0f : 1.0f; };
  std::vector<float> biasValues, scaleValues;
  for (int64_t i = 0; i < n; ++i)
    biasValues.push_back(static_cast<float>(i * 100 - 1000));
  for (int64_t i = 0; i < m; ++i)
    scaleValues.push_back(scaleOf(i));
  std::vector<ditron_memory_h> results;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    ditron_stream_h stream = nullptr;
    ASSERT_DONE(ditron_stream_create(context, rank, "operator", &stream));
    streams.push_back(stream);
    const int64_t rows = ditron_plan_rows(plan, rank);
    std::vector<int8_t> a(rows * strideA), b(n * strideB);
    for (int64_t i = 0; i < rows * k; ++i)
      a[i / k * strideA + i % k] = valueOf(0, rank * shard * k + i);
    for (int64_t i = 0; i < n * k; ++i)
      b[i / k * strideB + i % k] = valueOf(rank + 1, i);
    const ditron_memory_h aMemory = put(rank, a), bMemory = put(rank, b), bias = put(rank, biasValues),
                          scalesB = put(rank, scaleValues);
    const ditron_memory_h scalesA =
        put(rank, std::vector<float>(scaleValues.begin() + rank * shard, scaleValues.begin() + rank * shard + rows));
    results.push_back(put(rank, std::vector<float>(m * strideC, -7)));
    const int64_t aShape[] = {rows, k}, aStrides[] = {strideA, 1}, bShape[] = {n, k}, bStrides[] = {strideB, 1},
                  cShape[] = {m, n}, cStrides[] = {strideC, 1}, rowShape[] = {rows}, columnShape[] = {n};
    auto tensorOf = [&](ditron_memory_h memory, ditron_dtype_t dtype, uint32_t dimensions, const int64_t *shape,
                        const int64_t *strides) {
      ditron_tensor_t made = tensor(memory, rank, shape);
      made.dtype = dtype;
      made.dimensions = dimensions;
      made.strides = strides;
      return made;
    };
    const ditron_tensor_t aTensor = tensorOf(aMemory, DITRON_I8, 2, aShape, aStrides),
                          bTensor = tensorOf(bMemory, DITRON_I8, 2, bShape, bStrides),
                          cTensor = tensorOf(results[rank], DITRON_F32, 2, cShape, cStrides),
                          denseC = tensorOf(results[rank], DITRON_F32, 2, cShape, nullptr),
                          rowScales = tensorOf(scalesA, DITRON_F32, 1, rowShape, nullptr),
                          columnScales = tensorOf(scalesB, DITRON_F32, 1, columnShape, nullptr),
                          biasTensor = tensorOf(bias, DITRON_F32, 1, columnShape, nullptr);
    ditron_epilogue_tensors_t epilogue;
    DITRON_INIT(epilogue);
    epilogue.scales_a = &rowScales;
    epilogue.scales_b = &columnScales;
    EXPECT_EQ(ditron_plan_enqueue_with(plan, stream, &aTensor, &bTensor, &cTensor, &epilogue), DITRON_INVALID_ARGUMENT);
    EXPECT_THAT(lastMessage(), HasSubstr("tensor bias: is null"));
    epilogue.bias = &biasTensor;
    for (auto *call : {ditron_plan_check_with, ditron_plan_enqueue_with}) {
      EXPECT_EQ(call(plan, stream, &aTensor, &bTensor, &denseC, &epilogue), DITRON_INVALID_ARGUMENT);
      EXPECT_THAT(lastMessage(), HasSubstr("tensor c has strides [24, 1]; accepted are [32, 1]"));
    }
    // Nothing is enqueued: else this rank would make two calls, the second of which the other one does not.
    ASSERT_DONE(ditron_plan_check_with(plan, stream, &aTensor, &bTensor, &cTensor, &epilogue));
    ASSERT_DONE(ditron_plan_enqueue_with(plan, stream, &aTensor, &bTensor, &cTensor, &epilogue));
  }
  ASSERT_DONE(ditron_context_synchronize(context));
  for (uint32_t rank = 0; rank < 2; ++rank) {
    std::vector<float> result(m * strideC);
    ASSERT_DONE(ditron_memory_download(results[rank], rank, 0, result.data(), result.size() * sizeof(float)));
    for (int64_t row = 0; row < m; ++row)
      for (int64_t column = 0; column < strideC; ++column) {
        int64_t sum = 0;
        for (int64_t i = 0; i < k && column < n; ++i)
          sum += valueOf(0, row * k + i) * valueOf(rank + 1, column * k + i);
        const float expected =
            column < n ? std::max(float(sum) * scaleOf(row) * scaleOf(column) + biasValues[column], 0.0f) : -7;
        ASSERT_EQ(result[row * strideC + column], expected) << "rank " << rank << " [" << row << ", " << column << "]";
      }
  }
}

TEST_F(ApiOperator, WrongEpiloguesAreRefused) {
  ditron_operator_options_t options;
  DITRON_INIT(options);
  options.kind = DITRON_GEMM_REDUCE_SCATTER;
  options.m = options.n = options.k = 32;
  options.activation = DITRON_ACTIVATION_SILU;
  EXPECT_EQ(ditron_operator_create(context, &options, &op), DITRON_UNSUPPORTED);
  EXPECT_THAT(lastMessage(), HasSubstr("activation silu; none is accepted"));
  options.activation = static_cast<ditron_activation_t>(9);
  EXPECT_EQ(ditron_operator_create(context, &options, &op), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("activation is 9; accepted are 0 to 4"));
  options.activation = DITRON_ACTIVATION_NONE;
  options.scales_b = static_cast<ditron_scaling_t>(3);
  EXPECT_EQ(ditron_operator_create(context, &options, &op), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("scales_b is 3; accepted are 0 to 2"));
  options.scales_b = DITRON_SCALES_NONE;
  options.bias_dtype = DITRON_I32;
  EXPECT_EQ(ditron_operator_create(context, &options, &op), DITRON_UNSUPPORTED);
  EXPECT_THAT(lastMessage(), HasSubstr("a bias of type i32; bf16, fp16 and fp32 are accepted"));
}

class CppOperators : public CppRanks {};

TEST_F(CppOperators, WhatOneRankIsRefusedNoRankNeedCall) {
  constexpr int64_t m = 6, n = 16, k = 8;
  ditron_operator_options_t options;
  DITRON_INIT(options);
  options.kind = DITRON_GEMM_ALL_REDUCE;
  options.dtype = DITRON_F32;
  options.bias_dtype = DITRON_F32;
  options.m = m;
  options.n = n;
  options.k = k;
  Operator op = context->createOperator(options).value();
  Plan plan = op.prepare(m, n, k).value();
  std::vector<float> a[ranks], b[ranks], c[ranks], bias[ranks];
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    a[rank].assign(m * k, 1);
    b[rank].assign(k * n, static_cast<float>(rank + 1));
    c[rank].assign(m * n, -1);
    bias[rank].assign(n, 0.5f);
    for (std::vector<float> *each : {&a[rank], &b[rank], &c[rank], &bias[rank]})
      lend(rank, *each);
  }
  const auto viewsOf = [&](uint32_t rank, int64_t columns) {
    return std::tuple(TensorView(a[rank].data(), DITRON_F32, {m, k}), TensorView(b[rank].data(), DITRON_F32, {k, n}),
                      TensorView(c[rank].data(), DITRON_F32, {m, n}),
                      TensorView(bias[rank].data(), DITRON_F32, {columns}));
  };
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const auto [aView, bView, cView, wrong] = viewsOf(rank, n - 1);
    EXPECT_THAT(plan.check(streams[rank], aView, bView, cView, {nullptr, nullptr, &wrong}).message(),
                HasSubstr("tensor bias has shape [15]"));
    EXPECT_THAT(plan.check(streams[rank], aView, bView, cView, {}).message(), HasSubstr("tensor bias: is null"));
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const auto [aView, bView, cView, biasView] = viewsOf(rank, n);
    const Plan::Epilogue epilogue = {nullptr, nullptr, &biasView};
    EXPECT_TRUE(plan.check(streams[rank], aView, bView, cView, epilogue).ok());
    ASSERT_TRUE(plan.enqueue(streams[rank], aView, bView, cView, epilogue).ok());
  }
  ASSERT_TRUE(context->synchronize().ok());
  for (uint32_t rank = 0; rank < ranks; ++rank)
    EXPECT_EQ(c[rank], std::vector<float>(m * n, k * 3 + 0.5f)); // rank 0's bias, once
}

} // namespace
} // namespace ditron::api::test
