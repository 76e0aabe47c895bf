//===- collectives_test.cpp - Collectives through the C interface, and its C++ header ---------------------------------===//
//
// Data are small integers, so that results are exact.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/api/test/ApiTest.h"
#include "ditron/api/test/CppRanks.h"

#include <ditron/ditron.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace ditron::api::test {
namespace {

using testing::HasSubstr;

constexpr uint32_t ranks = 2;
constexpr int64_t most = 40'000; ///< Elements; of fp32 beyond the sizes that go by packets.

class ApiCollective : public Api {
protected:
  void SetUp() override {
    Api::SetUp();
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      ASSERT_DONE(ditron_stream_create(context, rank, "collective", &streams[rank]));
      ASSERT_DONE(ditron_memory_allocate(context, rank, ranks * most * sizeof(float), "in", &in[rank]));
      ASSERT_DONE(ditron_memory_allocate(context, rank, ranks * most * sizeof(float), "out", &out[rank]));
    }
  }
  void TearDown() override {
    ditron_collective_destroy(collective);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      ditron_stream_destroy(streams[rank]);
      ditron_memory_destroy(in[rank]);
      ditron_memory_destroy(out[rank]);
    }
    Api::TearDown();
  }

  static ditron_collective_options_t optionsOf(ditron_collective_kind_t kind) {
    ditron_collective_options_t options;
    DITRON_INIT(options);
    options.kind = kind;
    options.dtype = DITRON_F32;
    options.max_elements = most;
    return options;
  }
  void create(const ditron_collective_options_t &options) {
    ditron_collective_destroy(std::exchange(collective, nullptr));
    ASSERT_DONE(ditron_collective_create(context, &options, &collective));
  }
  static float valueOf(uint32_t rank, int64_t index) { return static_cast<float>((index * 7 + rank * 3) % 11 - 5); }
  void give(ditron_memory_h *memories, int64_t count) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      std::vector<float> values(count);
      for (int64_t i = 0; i < count; ++i)
        values[i] = valueOf(rank, i);
      ASSERT_DONE(ditron_memory_upload(memories[rank], rank, 0, values.data(), count * sizeof(float)));
    }
  }
  static float *addressOf(ditron_memory_h *memories, uint32_t rank, int64_t offset = 0) {
    return static_cast<float *>(ditron_memory_address(memories[rank], rank)) + offset;
  }
  void enqueueAll(ditron_memory_h *from, ditron_memory_h *to, int64_t n) {
    for (uint32_t rank = 0; rank < ranks; ++rank)
      ASSERT_DONE(ditron_collective_enqueue(collective, streams[rank], addressOf(from, rank), addressOf(to, rank), n));
  }
  std::vector<float> result(ditron_memory_h *memories, uint32_t rank, int64_t count) {
    std::vector<float> values(count);
    EXPECT_DONE(ditron_memory_download(memories[rank], rank, 0, values.data(), count * sizeof(float)));
    return values;
  }
  /// What a rank must get where each has given valueOf.
  static std::vector<float> expected(ditron_collective_kind_t kind, uint32_t rank, int64_t n) {
    std::vector<float> all;
    const uint32_t parts = kind == DITRON_ALL_GATHER || kind == DITRON_ALL_TO_ALL ? ranks : 1;
    for (uint32_t part = 0; part < parts; ++part)
      for (int64_t i = 0; i < n; ++i)
        all.push_back(kind == DITRON_ALL_REDUCE       ? valueOf(0, i) + valueOf(1, i)
                      : kind == DITRON_ALL_GATHER     ? valueOf(part, i)
                      : kind == DITRON_REDUCE_SCATTER ? valueOf(0, rank * n + i) + valueOf(1, rank * n + i)
                      : kind == DITRON_ALL_TO_ALL     ? valueOf(part, rank * n + i)
                                                      : valueOf(1, i));
    return all;
  }

  ditron_collective_h collective = nullptr;
  ditron_stream_h streams[ranks] = {};
  ditron_memory_h in[ranks] = {}, out[ranks] = {};
};

TEST_F(ApiCollective, EachKindInSizesOfEachForm) {
  for (ditron_collective_kind_t kind :
       {DITRON_ALL_REDUCE, DITRON_ALL_GATHER, DITRON_REDUCE_SCATTER, DITRON_ALL_TO_ALL, DITRON_BROADCAST}) {
    ditron_collective_options_t options = optionsOf(kind);
    options.root = kind == DITRON_BROADCAST ? 1 : 0;
    create(options);
    give(in, ranks * most);
    for (int64_t n : {int64_t{1000}, int64_t{7}, most}) {
      SCOPED_TRACE(testing::Message() << "kind " << kind << ", " << n << " elements");
      ASSERT_DONE(ditron_collective_prepare(collective, n));
      for (int call = 0; call < 3; ++call)
        enqueueAll(in, out, n);
      ASSERT_DONE(ditron_context_synchronize(context));
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        const std::vector<float> right = expected(kind, rank, n);
        ASSERT_EQ(result(out, rank, static_cast<int64_t>(right.size())), right) << "rank " << rank;
      }
    }
  }
}

TEST_F(ApiCollective, InPlace) {
  constexpr int64_t n = 500;
  for (ditron_collective_kind_t kind : {DITRON_ALL_REDUCE, DITRON_ALL_TO_ALL, DITRON_BROADCAST}) {
    ditron_collective_options_t options = optionsOf(kind);
    options.root = kind == DITRON_BROADCAST ? 1 : 0;
    create(options);
    give(in, ranks * n);
    enqueueAll(in, in, n);
    ASSERT_DONE(ditron_context_synchronize(context));
    const std::vector<float> right = expected(kind, 0, n);
    EXPECT_EQ(result(in, 0, static_cast<int64_t>(right.size())), right) << "kind " << kind;
  }
  create(optionsOf(DITRON_REDUCE_SCATTER));
  give(in, ranks * n);
  for (uint32_t rank = 0; rank < ranks; ++rank)
    ASSERT_DONE(
        ditron_collective_enqueue(collective, streams[rank], addressOf(in, rank), addressOf(in, rank, rank * n), n));
  ASSERT_DONE(ditron_context_synchronize(context));
  const std::vector<float> whole = result(in, 1, ranks * n);
  EXPECT_EQ(std::vector<float>(whole.begin() + n, whole.end()), expected(DITRON_REDUCE_SCATTER, 1, n));
}

TEST_F(ApiCollective, ReductionsAndScale) {
  constexpr int64_t n = 64;
  for (ditron_reduction_t reduction :
       {DITRON_REDUCE_MAX, DITRON_REDUCE_MIN, DITRON_REDUCE_AVERAGE, DITRON_REDUCE_SUM}) {
    ditron_collective_options_t options = optionsOf(DITRON_ALL_REDUCE);
    options.reduction = reduction;
    options.has_scale = reduction == DITRON_REDUCE_SUM;
    options.scale = 0.5f;
    create(options);
    give(in, n);
    enqueueAll(in, out, n);
    ASSERT_DONE(ditron_context_synchronize(context));
    const std::vector<float> found = result(out, 1, n);
    for (int64_t i = 0; i < n; ++i) {
      const float a = valueOf(0, i), b = valueOf(1, i);
      ASSERT_EQ(found[i], reduction == DITRON_REDUCE_MAX   ? std::max(a, b)
                          : reduction == DITRON_REDUCE_MIN ? std::min(a, b)
                                                           : (a + b) / 2)
          << "reduction " << reduction << " [" << i << "]";
    }
  }
}

TEST_F(ApiCollective, InSymmetricMemoryOfTheCallersThatIsNotEmpty) {
  std::vector<double> heap[ranks];
  void *addresses[ranks];
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    heap[rank].assign(1 << 18, 1.5);
    addresses[rank] = heap[rank].data();
  }
  ditron_symmetric_heap_t given;
  DITRON_INIT(given);
  given.addresses = addresses;
  given.count = ranks;
  given.bytes = heap[0].size() * sizeof(double);
  ditron_context_h over = nullptr;
  ASSERT_DONE(ditron_context_adopt_symmetric(context, &given, &over));
  const ditron_collective_options_t options = optionsOf(DITRON_ALL_REDUCE);
  for (int turn = 0; turn < 2; ++turn) { // the second gets the memory of the first
    ASSERT_DONE(ditron_collective_create(over, &options, &collective));
    EXPECT_EQ(ditron_collective_enqueue(collective, streams[0], addressOf(in, 0), addressOf(out, 0), 10),
              DITRON_INVALID_ARGUMENT);
    EXPECT_THAT(lastMessage(), HasSubstr("the collective and the stream are of different contexts"));
    for (ditron_stream_h &stream : streams)
      ditron_stream_destroy(std::exchange(stream, nullptr));
    for (uint32_t rank = 0; rank < ranks; ++rank)
      ASSERT_DONE(ditron_stream_create(over, rank, "over", &streams[rank]));
    give(in, most);
    for (int64_t n : {int64_t{10}, most})
      enqueueAll(in, out, n);
    ASSERT_DONE(ditron_context_synchronize(over));
    EXPECT_EQ(result(out, 1, most), expected(DITRON_ALL_REDUCE, 1, most));
    ditron_collective_destroy(std::exchange(collective, nullptr));
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      ditron_stream_destroy(std::exchange(streams[rank], nullptr));
      ASSERT_DONE(ditron_stream_create(context, rank, "collective", &streams[rank]));
    }
  }
  ditron_context_destroy(over);
}

TEST_F(ApiCollective, OnlyTheRootOfABroadcastNeedsAnInput) {
  create(optionsOf(DITRON_BROADCAST));
  give(in, 100);
  ASSERT_DONE(ditron_collective_enqueue(collective, streams[0], addressOf(in, 0), addressOf(out, 0), 100));
  ASSERT_DONE(ditron_collective_enqueue(collective, streams[1], nullptr, addressOf(out, 1), 100));
  ASSERT_DONE(ditron_context_synchronize(context));
  EXPECT_EQ(result(out, 1, 100), result(in, 0, 100));
}

TEST_F(ApiCollective, CapturedCallsAndEagerOnesByTurns) {
  constexpr int64_t n = 300;
  create(optionsOf(DITRON_ALL_REDUCE));
  ASSERT_DONE(ditron_collective_prepare(collective, n));
  ASSERT_DONE(ditron_collective_prepare(collective, n)); // does nothing
  ditron_graph_h graphs[ranks] = {};
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    ASSERT_DONE(ditron_capture_begin(streams[rank]));
    ASSERT_DONE(ditron_collective_enqueue(collective, streams[rank], addressOf(in, rank), addressOf(out, rank), n));
    EXPECT_EQ(ditron_collective_enqueue(collective, streams[rank], addressOf(in, rank), addressOf(out, rank), n + 1),
              DITRON_INVALID_ARGUMENT);
    EXPECT_THAT(lastMessage(), HasSubstr("all_reduce: a call with 301 elements"));
    EXPECT_THAT(lastMessage(), HasSubstr("call prepare before the capture begins"));
    ASSERT_DONE(ditron_capture_end(streams[rank], &graphs[rank]));
  }
  give(in, n);
  for (int turn = 0; turn < 3; ++turn) {
    for (uint32_t rank = 0; rank < ranks; ++rank)
      ASSERT_DONE(ditron_graph_launch(graphs[rank], streams[rank]));
    enqueueAll(in, out, n - 1);
  }
  ASSERT_DONE(ditron_context_synchronize(context));
  EXPECT_EQ(result(out, 1, n), expected(DITRON_ALL_REDUCE, 1, n));
  for (ditron_graph_h graph : graphs)
    ditron_graph_destroy(graph);
}

TEST_F(ApiCollective, CollectivesOfOneContextMix) {
  create(optionsOf(DITRON_ALL_GATHER));
  ditron_collective_h other = nullptr;
  const ditron_collective_options_t options = optionsOf(DITRON_REDUCE_SCATTER);
  ASSERT_DONE(ditron_collective_create(context, &options, &other));
  give(in, 500);
  for (int call = 0; call < 3; ++call)
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      ASSERT_DONE(ditron_collective_enqueue(collective, streams[rank], addressOf(in, rank), addressOf(out, rank), 500));
      ASSERT_DONE(
          ditron_collective_enqueue(other, streams[rank], addressOf(out, rank), addressOf(out, rank, 1000), 500));
    }
  ASSERT_DONE(ditron_context_synchronize(context));
  ditron_collective_destroy(other);
  const std::vector<float> found = result(out, 1, 1500);
  for (int64_t i = 0; i < 500; ++i)
    ASSERT_EQ(found[1000 + i], 2 * valueOf(1, i));
}

/// Two collectives, each on a stream of its own, which the ranks begin in other orders: with too few multiprocessors for both each waits for a
/// place that the other has.
TEST_F(ApiCollective, CollectivesOnStreamsThatNothingOrders) {
  for (const uint32_t calls : {0u, 2u}) {
    ditron_collective_options_t options = optionsOf(DITRON_ALL_REDUCE);
    options.concurrent_calls = calls;
    create(options);
    ditron_collective_h other = nullptr;
    ASSERT_DONE(ditron_collective_create(context, &options, &other));
    give(in, most);
    give(out, most);
    std::vector<ditron_stream_h> others(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank)
      ASSERT_DONE(ditron_stream_create(context, rank, "other", &others[rank]));
    for (uint32_t rank = 0; rank < ranks; ++rank)
      for (const bool first : {rank == 0, rank != 0})
        ASSERT_DONE(
            first ? ditron_collective_enqueue(collective, streams[rank], addressOf(in, rank), addressOf(in, rank), most)
                  : ditron_collective_enqueue(other, others[rank], addressOf(out, rank), addressOf(out, rank), most));
    const ditron_status_t ended = ditron_context_synchronize(context);
    if (calls == 0) {
      EXPECT_NE(ended, DITRON_OK);
      EXPECT_THAT(lastMessage(), HasSubstr("deadlock"));
    } else {
      EXPECT_DONE(ended);
      const std::vector<float> found = result(in, 0, most), beside = result(out, 1, most);
      for (int64_t i = 0; i < most; ++i)
        ASSERT_TRUE(found[i] == valueOf(0, i) + valueOf(1, i) && beside[i] == found[i]) << i;
    }
    ditron_collective_destroy(other);
    ditron_collective_destroy(std::exchange(collective, nullptr));
    for (ditron_stream_h stream : others)
      ditron_stream_destroy(stream);
    if (calls == 0) {
      TearDown();
      SetUp();
    }
  }
}

TEST_F(ApiCollective, WhatIsWrongIsNamed) {
  ditron_collective_h made = nullptr;
  const auto refused = [&](const ditron_collective_options_t &options, const char *words) {
    EXPECT_EQ(ditron_collective_create(context, &options, &made), DITRON_INVALID_ARGUMENT);
    EXPECT_THAT(lastMessage(), HasSubstr(words));
    EXPECT_EQ(made, nullptr);
  };
  ditron_collective_options_t options = optionsOf(static_cast<ditron_collective_kind_t>(0));
  refused(options, "a collective of kind 0; accepted are the members of ditron_collective_kind_t, 1 to 5");
  options = optionsOf(DITRON_ALL_REDUCE);
  options.max_elements = 0;
  refused(options, "max_elements is 0; accepted are 1 and more");
  options = optionsOf(DITRON_ALL_REDUCE);
  options.reduction = static_cast<ditron_reduction_t>(9);
  refused(options, "a reduction 9");
  options = optionsOf(DITRON_ALL_REDUCE);
  options.root = 1;
  refused(options, "root 1 of 2 ranks; 0 is accepted");
  options = optionsOf(DITRON_ALL_GATHER);
  options.reduction = DITRON_REDUCE_MAX;
  refused(options, "it combines nothing");
  options = optionsOf(DITRON_ALL_REDUCE);
  options.struct_size = 0;
  refused(options, "DITRON_INIT");

  create(optionsOf(DITRON_ALL_REDUCE));
  float *x = addressOf(in, 0);
  EXPECT_EQ(ditron_collective_enqueue(collective, streams[0], x, x, most + 1), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("40001 elements; 0 to 40000"));
  EXPECT_EQ(ditron_collective_enqueue(collective, streams[0], nullptr, x, 4), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("operand in is a null pointer"));
  EXPECT_EQ(ditron_collective_enqueue(collective, nullptr, x, x, 4), DITRON_INVALID_ARGUMENT);
  EXPECT_EQ(ditron_collective_enqueue(nullptr, streams[0], x, x, 4), DITRON_INVALID_ARGUMENT);
  EXPECT_EQ(ditron_collective_prepare(collective, -1), DITRON_INVALID_ARGUMENT);
  ASSERT_DONE(ditron_collective_enqueue(collective, streams[0], nullptr, nullptr, 0)); // alone, and nothing happens
  ASSERT_DONE(ditron_context_synchronize(context));
  ditron_collective_destroy(nullptr);
}

TEST(CppCollective, IsTheSameFromTheHeader) {
  Context::Options options;
  options.target = "sim:sm_80";
  options.ranks = 2;
  Context context = Context::create(options).value();
  Collective::Options wanted;
  wanted.dtype = DITRON_F32;
  wanted.maxElements = 256;
  wanted.scale = 2.0f;
  Collective reduce = context.createCollective(wanted).value();
  ASSERT_TRUE(reduce.prepare(256).ok());
  std::vector<float> x[2] = {std::vector<float>(256, 1), std::vector<float>(256, 2)};
  std::vector<Memory> lent;
  std::vector<Stream> streams;
  for (uint32_t rank : {0u, 1u}) {
    lent.push_back(context.adopt(rank, x[rank].data(), 256 * sizeof(float), "x").value());
    streams.push_back(context.stream(rank).value());
  }
  EXPECT_THAT(reduce.check(streams[0], x[0].data(), x[0].data() + 1, 255).message(), HasSubstr("and overlaps in"));
  EXPECT_THAT(reduce.enqueue(streams[0], x[0].data() + 1, x[0].data(), 255).message(), HasSubstr("and overlaps in"));
  for (uint32_t rank : {0u, 1u}) {
    EXPECT_TRUE(reduce.check(streams[rank], x[rank].data(), x[rank].data(), 256).ok()); // which enqueues nothing
    ASSERT_TRUE(reduce.enqueue(streams[rank], x[rank].data(), x[rank].data(), 256).ok());
  }
  ASSERT_TRUE(context.synchronize().ok());
  EXPECT_EQ(x[0], std::vector<float>(256, 6));
  EXPECT_EQ(x[1], x[0]);
  wanted.maxElements = 0;
  EXPECT_THAT(context.createCollective(wanted).status().message(), HasSubstr("max_elements is 0"));
}

class CppAllReduceRmsNorm : public CppRanks {};

TEST_F(CppAllReduceRmsNorm, IsTheThreeSteps) {
  constexpr int64_t rows = 5, columns = 12;
  AllReduceRmsNorm::Options options;
  options.dtype = DITRON_F32;
  options.columns = columns;
  options.maxRows = rows;
  options.epsilon = 0.5;
  AllReduceRmsNorm norm = context->createAllReduceRmsNorm(options).value();
  ASSERT_TRUE(norm.prepare(rows).ok());
  std::vector<float> x[ranks], residual[ranks], weight[ranks], out[ranks];
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (int64_t i = 0; i < rows * columns; ++i) {
      x[rank].push_back(static_cast<float>((i * 5 + rank * 3) % 7 - 3));
      residual[rank].push_back(static_cast<float>(i % 3));
    }
    for (int64_t i = 0; i < columns; ++i)
      weight[rank].push_back(static_cast<float>(i + 1));
    out[rank].assign(rows * columns, -1);
    for (std::vector<float> *each : {&x[rank], &residual[rank], &weight[rank], &out[rank]})
      lend(rank, *each);
  }
  const std::vector<float> given = residual[0];
  for (uint32_t rank = 0; rank < ranks; ++rank) // the residual in place
    ASSERT_TRUE(norm.enqueue(streams[rank],
                             {x[rank].data(), residual[rank].data(), weight[rank].data(), out[rank].data(),
                              residual[rank].data()},
                             rows)
                    .ok());
  ASSERT_TRUE(context->synchronize().ok());
  for (int64_t row = 0; row < rows; ++row) {
    double squares = 0;
    std::vector<double> sums;
    for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
      sums.push_back(double(given[i]) + x[0][i] + x[1][i]);
      squares += sums.back() * sums.back();
    }
    for (int64_t column = 0; column < columns; ++column)
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(residual[rank][row * columns + column], sums[column]);
        EXPECT_NEAR(out[rank][row * columns + column],
                    sums[column] / std::sqrt(squares / columns + options.epsilon) * weight[rank][column], 1e-4);
      }
  }
  EXPECT_THAT(norm.enqueue(streams[0], {x[0].data()}, rows).message(), HasSubstr("residual"));
  options.columns = 3;
  EXPECT_THAT(context->createAllReduceRmsNorm(options).status().message(), HasSubstr("3 columns of fp32"));
  EXPECT_EQ(ditron_all_reduce_rms_norm_prepare(nullptr, 1), DITRON_INVALID_ARGUMENT);
  ditron_all_reduce_rms_norm_destroy(nullptr);
}

} // namespace
} // namespace ditron::api::test
