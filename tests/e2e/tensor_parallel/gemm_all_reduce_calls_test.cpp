//===- gemm_all_reduce_calls_test.cpp - Calls of GEMM+AllReduce one after the other and side by side -------------------===//
//
// Changing shapes, replays of graphs with eager calls between them, two operators on two streams, what overlaps, and what is refused.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/Timeline.h"
#include "tensor_parallel/GemmAllReduceOperands.h"

namespace ditron::e2e {
namespace {

using ops::AllReduceForm;
using ops::GemmAllReduce;
using testing::AllOf;
using testing::HasSubstr;
using Problem = GemmAllReduceProblem;
using Operands = GemmAllReduceOperands;

/// Shapes, and with them grids and forms, change from call to call, all of which are enqueued before the first runs.
TEST_F(GemmAllReduceOperator, CallsOfChangingShapesMayQueueUp) {
  for (uint64_t seed : {1, 2, 3}) {
    Problem p = onTarget(
        {.name = "queue", .form = AllReduceForm::Auto, .ranks = 3, .n = 150, .k = 48, .seed = seed, .slowRank = 2});
    startFor(p);
    auto op = GemmAllReduce::create(world(), sharedJit(), p.options(300));
    ASSERT_OK(op);
    std::vector<Operands> calls;
    int set = 0;
    for (int64_t m : {1, 100, 7, 200, 128, 1, 300, 33, 2, 2}) {
      calls.emplace_back(p, m);
      ASSERT_OK(calls.back().allocate(world()));
      ASSERT_OK(calls.back().upload(set++));
      for (uint32_t r = 0; r < p.ranks; ++r)
        ASSERT_OK(op->prepare(rank(r), m, p.depthOf(r)));
    }
    for (uint32_t r = 0; r < p.ranks; ++r)
      for (Operands &each : calls)
        ASSERT_OK(each.enqueue(*op, rank(r), rank(r).stream()));
    ASSERT_OK(world().synchronize());
    for (size_t i = 0; i < calls.size(); ++i)
      calls[i].check(fmt::format("seed {}, call {}", seed, i));
  }
}

/// A graph of both forms for each rank, replayed with new data and then without a pause; eager calls of other shapes between them.
TEST_F(GemmAllReduceOperator, CapturedCallsCanBeReplayed) {
  const int replays = isSimulated() ? 6 : 1000;
  for (uint64_t seed : {5, 6}) {
    const Problem p = onTarget({.name = "graph",
                                .form = AllReduceForm::Auto,
                                .ranks = 2,
                                .n = 72,
                                .k = 48,
                                .chunks = 2,
                                .seed = seed,
                                .slowRank = 1});
    startFor(p);
    auto op = GemmAllReduce::create(world(), sharedJit(), p.options(200));
    ASSERT_OK(op);
    Operands few(p, 9), many(p, 160), other(p, 40);
    std::vector<runtime::Graph> graphs;
    for (Operands *each : {&few, &many, &other})
      ASSERT_OK(each->allocate(world()));
    for (uint32_t r = 0; r < p.ranks; ++r)
      for (int64_t m : {9, 160, 40})
        ASSERT_OK(op->prepare(rank(r), m, p.depthOf(r)));
    for (uint32_t r = 0; r < p.ranks; ++r) {
      runtime::Stream &stream = rank(r).stream();
      ASSERT_OK(stream.beginCapture());
      for (Operands *each : {&few, &many, &few})
        ASSERT_OK(each->enqueue(*op, rank(r), stream));
      auto graph = stream.endCapture();
      ASSERT_OK(graph);
      graphs.push_back(*graph);
      for (int64_t m : {9, 160, 40}) // again: what the graph has stays
        ASSERT_OK(op->prepare(rank(r), m, p.depthOf(r)));
    }
    for (int replay = 0; replay < replays; ++replay) {
      for (Operands *each : {&few, &many, &other})
        ASSERT_OK(each->upload(3 * replay));
      for (uint32_t r = 0; r < p.ranks; ++r) {
        ASSERT_OK(rank(r).stream().launch(graphs[r]));
        if (replay % 2)
          ASSERT_OK(other.enqueue(*op, rank(r), rank(r).stream()));
      }
      ASSERT_OK(world().synchronize());
      few.check(fmt::format("9 rows, replay {}", replay));
      many.check(fmt::format("160 rows, replay {}", replay));
      if (replay % 2)
        other.check(fmt::format("40 rows, replay {}", replay));
      if (HasFailure())
        return;
    }
    for (int replay = 0; replay < replays; ++replay)
      for (uint32_t r = 0; r < p.ranks; ++r)
        ASSERT_OK(rank(r).stream().launch(graphs[r]));
    ASSERT_OK(world().synchronize());
    few.check("9 rows, without a pause");
    many.check("160 rows, without a pause");
  }
}

TEST_F(GemmAllReduceOperator, TwoOperatorsOnTwoStreams) {
  for (uint64_t seed : {1, 2, 3}) {
    const Problem p = onTarget({.name = "streams",
                                .form = AllReduceForm::Auto,
                                .ranks = 3,
                                .n = 64,
                                .k = 48,
                                .chunks = 2,
                                .seed = seed,
                                .slowRank = 0});
    startFor(p);
    auto first = GemmAllReduce::create(world(), sharedJit(), p.options(150)),
         second = GemmAllReduce::create(world(), sharedJit(), p.options(150));
    ASSERT_OK(first);
    ASSERT_OK(second);
    std::vector<Operands> ones, others;
    std::vector<runtime::Stream> streams;
    for (int64_t m : {5, 150, 20}) {
      ones.emplace_back(p, m);
      others.emplace_back(p, m);
      for (Operands *each : {&ones.back(), &others.back()}) {
        ASSERT_OK(each->allocate(world()));
        ASSERT_OK(each->upload(m + (each == &ones.back())));
      }
      for (uint32_t r = 0; r < p.ranks; ++r)
        for (GemmAllReduce *op : {&*first, &*second})
          ASSERT_OK(op->prepare(rank(r), m, p.depthOf(r)));
    }
    for (uint32_t r = 0; r < p.ranks; ++r) {
      auto stream = rank(r).createStream("second");
      ASSERT_OK(stream);
      streams.push_back(std::move(stream).value());
    }
    for (uint32_t r = 0; r < p.ranks; ++r)
      for (size_t i = 0; i < ones.size(); ++i) {
        ASSERT_OK(ones[i].enqueue(*first, rank(r), rank(r).stream()));
        ASSERT_OK(others[i].enqueue(*second, rank(r), streams[r]));
      }
    ASSERT_OK(world().synchronize());
    for (size_t i = 0; i < ones.size(); ++i) {
      ones[i].check(fmt::format("first, seed {}, call {}", seed, i));
      others[i].check(fmt::format("second, seed {}, call {}", seed, i));
    }
  }
}

TEST_F(GemmAllReduceOperator, ProductAndExchangeOverlap) {
  if (!isSimulated())
    GTEST_SKIP() << "needs the simulator's timeline";
  const bool isHopper = targetUnderTest() == "sim:sm_90a";
  run({.name = "overlap",
       .form = AllReduceForm::TwoShot,
       .m = 512,
       .n = 128,
       .k = isHopper ? 1024 : 256,
       .chunks = 2,
       .tile = wideTile,
       .seed = 0});
  for (uint32_t r = 0; r < 4; ++r) {
    auto overlap = runtime::overlapWithCopies(world(), r, GemmAllReduce::kernelName, runtime::CopyDirection::Outgoing,
                                              GemmAllReduce::copyName);
    ASSERT_OK(overlap);
    EXPECT_GT(overlap->kernelEnd, overlap->firstCopyEnd) << "rank " << r;
  }
}

TEST_F(GemmAllReduceOperator, WrongOptionsAreRefused) {
  start(ranksOnTarget(2));
  auto changed = [&](auto change) {
    GemmAllReduce::Options options = {.maxRows = 128, .columns = 64};
    change(options);
    Status status = GemmAllReduce::create(world(), sharedJit(), options).status();
    EXPECT_FALSE(status.isOk());
    return status.message();
  };
  EXPECT_THAT(changed([](auto &o) { o.dtype = DataType::I16; }), AllOf(HasSubstr("i16"), HasSubstr("fp8e5 and i8")));
  EXPECT_THAT(changed([](auto &o) { o.partialType = DataType::F16; }), HasSubstr("fp16"));
  EXPECT_THAT(changed([](auto &o) { o.tile.blockM = 48; }), AllOf(HasSubstr("blockM"), HasSubstr("48")));
  EXPECT_THAT(changed([](auto &o) { o.maxRows = 0; }), HasSubstr("maxRows"));
  EXPECT_THAT(changed([](auto &o) { o.columns = -1; }), HasSubstr("-1"));
  EXPECT_THAT(changed([](auto &o) { o.exchangeBlocks = 500; }), HasSubstr("500"));
  EXPECT_THAT(changed([](auto &o) { o.chunks = 129; }), AllOf(HasSubstr("129 chunks"), HasSubstr("at most")));
  EXPECT_THAT(changed([](auto &o) { o.form = AllReduceForm::OneShot, o.maxRows = 10000; }),
              AllOf(HasSubstr("one_shot"), HasSubstr("10000")));
  auto op = GemmAllReduce::create(world(), sharedJit(), {.maxRows = 128, .columns = 64});
  ASSERT_OK(op);
  Buffer a = zeros(DataType::BF16, 128 * 32, "a"), b = zeros(DataType::BF16, 64 * 32, "b"),
         out = zeros(DataType::BF16, 128 * 64, "out"), wrong = zeros(DataType::F32, 64, "wrong");
  EXPECT_THAT(op->enqueue(rank(), rank().stream(), a, b, out, 129, 32).message(),
              AllOf(HasSubstr("129"), HasSubstr("128")));
  EXPECT_THAT(op->enqueue(rank(), rank().stream(), a, wrong, out, 128, 32).message(),
              AllOf(HasSubstr("fp32"), HasSubstr("bf16")));
  EXPECT_THAT(op->enqueue(rank(), rank().stream(), a, {nullptr, DataType::BF16}, out, 128, 32).message(),
              HasSubstr("null"));
}

/// A block for each multiprocessor with about the same share of the weights, and bytes enough on their way; and places for the blocks of as
/// many calls as there may be at once.
TEST_F(GemmAllReduceOperator, SeveralChunksNeedPlacesForAllCallsAtOnce) {
  if (!isSimulated())
    GTEST_SKIP() << "a GPU has enough";
  for (const auto &[sms, calls, chunks] : {std::tuple(4u, 1u, 3u), std::tuple(4u, 2u, 1u), std::tuple(5u, 2u, 3u),
                                           std::tuple(8u, 3u, 3u), std::tuple(8u, 4u, 1u)}) {
    WorldOptions options = seeded(1);
    options.sms = sms;
    start(2, options);
    const auto op = GemmAllReduce::create(world(), sharedJit(),
                                          {.maxRows = 96,
                                           .columns = 32,
                                           .form = AllReduceForm::TwoShot,
                                           .tile = {.blockM = 32, .blockN = 32, .blockK = 32},
                                           .chunks = 3,
                                           .concurrentCalls = calls});
    ASSERT_OK(op);
    EXPECT_THAT(op->planText(96), HasSubstr(fmt::format("chunks {}", chunks))) << sms << " SMs, " << calls << " calls";
  }
}

/// No kernel of a pushed call but its meeting waits for other ranks: two calls find places in any order, also where there is one multiprocessor for
/// each.
TEST_F(GemmAllReduceOperator, PushedCallsNeedNoPlacesForEachOther) {
  if (!isSimulated())
    GTEST_SKIP() << "a GPU has more multiprocessors";
  for (uint64_t seed : {1, 2, 3, 4}) {
    WorldOptions options = seeded(seed);
    options.sms = 2;
    start(3, options);
    const Problem p =
        onTarget({.name = "places", .form = AllReduceForm::Pushed, .ranks = 3, .n = 64, .k = 48, .chunks = 3});
    std::vector<GemmAllReduce> ops;
    std::vector<Operands> operands;
    std::vector<runtime::Stream> streams;
    for (int i = 0; i < 2; ++i) {
      auto op = GemmAllReduce::create(world(), sharedJit(), p.options(400));
      ASSERT_OK(op);
      ops.push_back(std::move(op).value());
      operands.emplace_back(p, 400);
      ASSERT_OK(operands.back().allocate(world()));
      ASSERT_OK(operands.back().upload(seed + i));
      for (uint32_t r = 0; r < p.ranks; ++r) {
        auto stream = rank(r).createStream(fmt::format("stream {}", i));
        ASSERT_OK(stream);
        streams.push_back(std::move(stream).value());
      }
    }
    for (uint32_t r = 0; r < p.ranks; ++r)
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t which = (i + r) % 2; // ranks begin with different ones
        ASSERT_OK(operands[which].enqueue(ops[which], rank(r), streams[which * p.ranks + r]));
      }
    ASSERT_OK(world().synchronize());
    for (size_t i = 0; i < 2; ++i)
      operands[i].check(fmt::format("seed {}, operator {}", seed, i));
  }
}

} // namespace
} // namespace ditron::e2e
