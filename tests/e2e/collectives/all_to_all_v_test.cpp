//===- all_to_all_v_test.cpp - Uneven all-to-all with sizes on the device ----------------------------------------===//
//
// Bytes are drawn at random and must arrive as they are, where they belong, and nowhere else. Matrices of counts with zeros, on one to eight
// ranks; calls after each other with other counts, also replayed from one graph; sizes that cannot be.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "collectives/TransferTest.h"
#include "ditron/ops/collectives/AllToAllV.h"

#include <fmt/format.h>
#include <numeric>

namespace ditron::e2e {
namespace {

using ops::AllToAllV;
using ops::AllToAllVOptions;
using ops::CollectiveForm;
using ops::CollectivePlan;
using testing::HasSubstr;

using Counts = std::vector<std::vector<int64_t>>; ///< [from][to]

class AllToAllVs : public Transfers {
protected:
  /// A third of them zeros; some ranks send or receive nothing at all.
  Counts randomCounts(int64_t most) {
    Counts counts(ranks(), std::vector<int64_t>(ranks()));
    for (auto &row : counts)
      for (int64_t &count : row)
        count = draw(0, 2) == 0 ? 0 : draw(0, 3) == 0 ? most : draw(0, most);
    if (draw(0, 2) == 0)
      std::ranges::fill(counts[draw(0, ranks() - 1)], 0);
    return counts;
  }

  /// The memory of an operator's calls, and what a call must leave there.
  struct Call {
    std::vector<Buffer> in, sendCounts, sendOffsets, out, receiveCounts, receiveOffsets;
    int64_t inRows = 0, outRows = 0, shift = 0;
    std::vector<Bytes> expected;
    Counts arrived, places;
  };

  /// `shift`: of in and out, in elements.
  Call makeCall(const AllToAllVOptions &options, int64_t shift = 0) {
    Call call;
    call.shift = shift;
    call.inRows = call.outRows = ranks() * (options.maxRows + 2) + 3;
    for (uint32_t r = 0; r < ranks(); ++r) {
      const int64_t elements = call.inRows * options.rowElements + shift;
      call.in.push_back(zeros(options.dtype, elements, "in", r));
      call.out.push_back(zeros(options.dtype, elements, "out", r));
      for (auto *buffers : {&call.sendCounts, &call.sendOffsets, &call.receiveCounts, &call.receiveOffsets})
        buffers->push_back(zeros(DataType::I64, ranks(), "sizes", r));
    }
    return call;
  }

  /// Draws data and places, and says what must come out.
  void fill(const AllToAllVOptions &options, Call &call, const Counts &counts) {
    const int64_t size = sizeOf(options.dtype), rowBytes = options.rowElements * size;
    std::vector<Bytes> given;
    Counts offsets(ranks(), std::vector<int64_t>(ranks()));
    call.places = call.arrived = offsets;
    // Parts in any order, with gaps.
    const auto lay = [&](std::vector<int64_t> &places, const auto &countOf) {
      std::vector<uint32_t> order(ranks());
      std::iota(order.begin(), order.end(), 0);
      std::ranges::shuffle(order, random);
      int64_t at = draw(0, 2);
      for (uint32_t peer : order) {
        places[peer] = at;
        at += countOf(peer) + draw(0, 1);
      }
    };
    for (uint32_t r = 0; r < ranks(); ++r) {
      lay(offsets[r], [&](uint32_t peer) { return counts[r][peer]; });
      given.push_back(randomBytes(call.in[r].bytes()));
      EXPECT_OK(call.in[r].upload(given[r].data(), given[r].size()));
      EXPECT_OK(call.sendCounts[r].upload(counts[r].data(), call.sendCounts[r].bytes()));
      EXPECT_OK(call.sendOffsets[r].upload(offsets[r].data(), call.sendOffsets[r].bytes()));
    }
    call.expected.clear();
    for (uint32_t r = 0; r < ranks(); ++r) {
      if (options.packed)
        for (uint32_t peer = 1; peer < ranks(); ++peer)
          call.places[r][peer] = call.places[r][peer - 1] + counts[peer - 1][r];
      else
        lay(call.places[r], [&](uint32_t peer) { return counts[peer][r]; });
      Bytes old = randomBytes(call.out[r].bytes());
      EXPECT_OK(call.out[r].upload(old.data(), old.size()));
      const std::vector<int64_t> nothing(ranks(), -7);
      EXPECT_OK(call.receiveCounts[r].upload(nothing.data(), call.receiveCounts[r].bytes()));
      EXPECT_OK(call.receiveOffsets[r].upload(options.packed ? nothing.data() : call.places[r].data(),
                                              call.receiveOffsets[r].bytes()));
      for (uint32_t peer = 0; peer < ranks(); ++peer) {
        call.arrived[r][peer] = counts[peer][r];
        const auto from = given[peer].begin() + call.shift * size + offsets[peer][r] * rowBytes;
        std::copy(from, from + counts[peer][r] * rowBytes,
                  old.begin() + call.shift * size + call.places[r][peer] * rowBytes);
      }
      call.expected.push_back(std::move(old));
    }
  }

  Status enqueue(AllToAllV &op, Rank &me, const Call &call) {
    const uint32_t r = me.id();
    return op.enqueue(me, me.stream(),
                      {.in = call.in[r].pointer() + call.shift,
                       .inRows = call.inRows,
                       .sendCounts = call.sendCounts[r],
                       .sendOffsets = call.sendOffsets[r],
                       .out = call.out[r].pointer() + call.shift,
                       .outRows = call.outRows,
                       .receiveCounts = call.receiveCounts[r],
                       .receiveOffsets = call.receiveOffsets[r]});
  }

  void expectResults(AllToAllV &op, const Call &call, const std::string &what) {
    for (uint32_t r = 0; r < ranks(); ++r) {
      const std::string where = fmt::format("{}, rank {}", what, r);
      EXPECT_OK(op.check(rank(r)));
      expectSame(get<int64_t>(call.receiveCounts[r]), call.arrived[r], where + ", counts");
      expectSame(get<int64_t>(call.receiveOffsets[r]), call.places[r], where + ", offsets");
      Bytes bytes(call.out[r].bytes());
      EXPECT_OK(call.out[r].download(bytes.data(), bytes.size()));
      const auto [wrong, expected] = std::ranges::mismatch(bytes, call.expected[r]);
      EXPECT_TRUE(wrong == bytes.end()) << where << ": byte " << wrong - bytes.begin() << " of " << bytes.size();
      if (HasFailure())
        return;
    }
  }

  void runCalls(const AllToAllVOptions &options, int calls, const std::string &what, int64_t shift = 0) {
    auto op = AllToAllV::create(world(), sharedJit(), options);
    ASSERT_OK(op);
    for (uint32_t r = 0; r < ranks(); ++r)
      ASSERT_OK(op->prepare(rank(r)));
    Call call = makeCall(options, shift);
    for (int i = 0; i < calls; ++i) {
      fill(options, call, randomCounts(options.maxRows));
      ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
        DITRON_RETURN_IF_ERROR(enqueue(*op, me, call));
        return me.stream().synchronize();
      }));
      expectResults(*op, call, fmt::format("{}, call {}", what, i));
      if (HasFailure())
        return;
    }
  }
};

TEST_F(AllToAllVs, RandomCountsOnOneToEightRanks) {
  for (uint32_t wanted = 1; wanted <= 8; ++wanted) {
    if (ranksOnTarget(wanted) != wanted)
      continue;
    start(wanted, seeded(wanted, wanted - 1, 5));
    // All by rings, all by packets, and each part as its size says.
    for (uint64_t packetBytes : {uint64_t{0}, uint64_t{1} << 20, uint64_t{256}})
      for (const auto &[row, most] : {std::pair{int64_t{1}, int64_t{700}}, {5, 150}, {16, 60}}) {
        const bool packed = (wanted + row) % 2;
        runCalls({.dtype = DataType::BF16,
                  .rowElements = row,
                  .maxRows = most,
                  .packed = packed,
                  .packetBytes = packetBytes,
                  .plan = smallRings},
                 3, fmt::format("{} ranks, rows of {}, packets up to {} bytes", wanted, row, packetBytes));
        if (HasFatalFailure() || HasFailure())
          return;
      }
  }
}

TEST_F(AllToAllVs, TypesAndAlignments) {
  start(ranksOnTarget(3), seeded(3));
  for (DataType type : {DataType::F8E4NV, DataType::U8, DataType::F16, DataType::F32, DataType::I64, DataType::F64})
    for (int64_t row : {1, 32})
      for (int64_t shift : {0, 1}) {
        runCalls({.dtype = type,
                  .rowElements = row,
                  .maxRows = 300 / row,
                  .packed = shift == 0,
                  .packetBytes = 200,
                  .plan = smallRings},
                 2, fmt::format("{}, rows of {}, shifted by {}", toString(type), row, shift), shift);
        if (HasFatalFailure() || HasFailure())
          return;
      }
}

/// Under schedules in which ranks, blocks and threads come in other orders and stores come late; the race detector watches.
TEST_F(AllToAllVs, AnySchedule) {
  if (!isSimulated())
    GTEST_SKIP() << "the simulator draws schedules";
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    start(4, seeded(seed, seed % 4, 3));
    runCalls(
        {.rowElements = 8, .maxRows = 100, .packed = seed % 2 == 0, .packetBytes = seed % 3 * 150, .plan = smallRings},
        3, fmt::format("seed {}", seed));
    if (HasFatalFailure() || HasFailure())
      return;
  }
}

/// With what the library chooses, at sizes that use it.
TEST_F(AllToAllVs, LibraryPlan) {
  start(ranksOnTarget(4));
  for (bool packed : {false, true}) {
    runCalls({.rowElements = 512, .maxRows = isSimulated() ? 200 : 4096, .packed = packed}, 2,
             packed ? "packed" : "given offsets");
    if (HasFatalFailure() || HasFailure())
      return;
  }
}

/// One graph of two calls, replayed with other counts each time, between eager calls; the last rank is slow.
TEST_F(AllToAllVs, GraphsWhoseCountsChange) {
  start(ranksOnTarget(4), seeded(6, ranksOnTarget(4) - 1, 3));
  const AllToAllVOptions options{
      .rowElements = 4, .maxRows = 200, .packed = true, .packetBytes = 300, .plan = smallRings};
  auto op = AllToAllV::create(world(), sharedJit(), options);
  ASSERT_OK(op);
  Call first = makeCall(options), second = makeCall(options);
  std::vector<runtime::Graph> graphs;
  for (uint32_t r = 0; r < ranks(); ++r)
    ASSERT_OK(op->prepare(rank(r)));
  for (uint32_t r = 0; r < ranks(); ++r) {
    ASSERT_OK(rank(r).stream().beginCapture());
    ASSERT_OK(enqueue(*op, rank(r), first));
    ASSERT_OK(enqueue(*op, rank(r), second));
    auto graph = rank(r).stream().endCapture();
    ASSERT_OK(graph);
    graphs.push_back(*graph);
  }
  const int replays = isSimulated() ? 8 : 1000;
  for (int replay = 0; replay < replays; ++replay) {
    fill(options, first, randomCounts(options.maxRows));
    fill(options, second, randomCounts(options.maxRows));
    ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
      DITRON_RETURN_IF_ERROR(me.stream().launch(graphs[me.id()]));
      if (replay % 2)
        DITRON_RETURN_IF_ERROR(enqueue(*op, me, first));
      return me.stream().synchronize();
    }));
    expectResults(*op, first, fmt::format("replay {}, first", replay));
    expectResults(*op, second, fmt::format("replay {}, second", replay));
    if (HasFailure())
      return;
  }
}

/// What cannot be is left out and told; everything else of the call arrives, and the next call is as if nothing had been.
TEST_F(AllToAllVs, SizesThatCannotBe) {
  REQUIRE_RANKS(2);
  start(2, seeded(4));
  for (uint64_t packetBytes : {uint64_t{0}, uint64_t{1} << 20}) {
    const AllToAllVOptions options{
        .dtype = DataType::I32, .rowElements = 4, .maxRows = 50, .packetBytes = packetBytes, .plan = smallRings};
    auto op = AllToAllV::create(world(), sharedJit(), options);
    ASSERT_OK(op);
    Call call = makeCall(options);
    const auto runOnce = [&] {
      return world().runRanks([&](Rank &me) -> Status {
        DITRON_RETURN_IF_ERROR(enqueue(*op, me, call));
        return me.stream().synchronize();
      });
    };
    struct Case {
      int64_t count, offset, place; ///< Of what rank 0 sends to rank 1.
      std::string sender, receiver; ///< What check() says; empty: nothing.
    };
    const int64_t rows = call.inRows;
    const Case cases[] = {
        {51, 0, 0, "all_to_all_v on rank 0: its count for rank 1 is 51; 0 to 50 rows are accepted",
         "rank 0 has a count of 51 for it"},
        {-1, 0, 0, "its count for rank 1 is -1", "rank 0 has a count of -1 for it; 0 to 50 rows"},
        {std::numeric_limits<int64_t>::max(), 0, 0, "is 9223372036854775807", "count of 9223372036854775807"},
        {50, rows - 49, 0, fmt::format("its part for rank 1 ends at {} of the {} rows", rows + 1, rows), ""},
        {50, -1, 0, "or begins before them", ""},
        {50, 0, rows - 49, "", fmt::format("the part from rank 0 would end at {} of the {} rows", rows + 1, rows)},
        {50, 0, -2, "", "or begin before them. It was dropped"},
    };
    for (const Case &c : cases) {
      // Rank 0 sends nothing to rank 1 but what is wrong.
      Counts counts = randomCounts(options.maxRows);
      counts[0][1] = 0;
      fill(options, call, counts);
      std::vector<int64_t> sendCounts = get<int64_t>(call.sendCounts[0]),
                           sendOffsets = get<int64_t>(call.sendOffsets[0]);
      sendCounts[1] = c.count;
      sendOffsets[1] = c.offset;
      call.places[1][0] = c.place;
      ASSERT_OK(call.sendCounts[0].upload(sendCounts.data(), call.sendCounts[0].bytes()));
      ASSERT_OK(call.sendOffsets[0].upload(sendOffsets.data(), call.sendOffsets[0].bytes()));
      ASSERT_OK(call.receiveOffsets[1].upload(call.places[1].data(), call.receiveOffsets[1].bytes()));
      ASSERT_OK(runOnce());
      const Status sender = op->check(rank(0)), receiver = op->check(rank(1));
      EXPECT_EQ(sender.isOk(), c.sender.empty()) << sender.message();
      EXPECT_EQ(receiver.isOk(), c.receiver.empty()) << receiver.message();
      EXPECT_THAT(sender.message(), HasSubstr(c.sender));
      EXPECT_THAT(receiver.message(), HasSubstr(c.receiver));
      // It was told; the rest of the call is right.
      expectResults(*op, call, fmt::format("count {}, offset {}, place {}", c.count, c.offset, c.place));
      fill(options, call, randomCounts(options.maxRows));
      ASSERT_OK(runOnce());
      expectResults(*op, call, "the next call");
      if (HasFailure())
        return;
    }
  }
}

/// A packed result that does not fit loses the parts that do not, and says the first.
TEST_F(AllToAllVs, PackedResultsThatDoNotFit) {
  REQUIRE_RANKS(2);
  start(2);
  const AllToAllVOptions options{
      .dtype = DataType::I32, .maxRows = 50, .packed = true, .packetBytes = 100, .plan = smallRings};
  auto op = AllToAllV::create(world(), sharedJit(), options);
  ASSERT_OK(op);
  Call call = makeCall(options);
  fill(options, call, {{50, 10}, {50, 10}});
  call.outRows = 60;
  ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
    DITRON_RETURN_IF_ERROR(enqueue(*op, me, call));
    return me.stream().synchronize();
  }));
  EXPECT_THAT(op->check(rank(0)).message(), HasSubstr("the part from rank 1 would end at 100 of the 60 rows"));
  EXPECT_OK(op->check(rank(1)));
  expectSame(get<int64_t>(call.receiveCounts[0]), {50, 0});
  Bytes bytes(call.out[0].bytes());
  EXPECT_OK(call.out[0].download(bytes.data(), bytes.size()));
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 50 * 4, call.expected[0].begin()));
}

TEST_F(AllToAllVs, Refusals) {
  start(ranksOnTarget(2));
  const auto error = [&](const AllToAllVOptions &options) {
    auto made = AllToAllV::create(world(), sharedJit(), options);
    return made.isOk() ? std::string() : std::string(made.status().message());
  };
  EXPECT_THAT(error({}), HasSubstr("all_to_all_v: maxRows is 0; 1 to"));
  EXPECT_THAT(error({.rowElements = 0, .maxRows = 4}), HasSubstr("rowElements is 0"));
  EXPECT_THAT(error({.dtype = DataType::I1, .maxRows = 4}), HasSubstr("send them as u8"));
  EXPECT_THAT(error({.maxRows = 4, .plan = CollectivePlan{CollectiveForm::Packets, 2, 2, 0}}),
              HasSubstr("chunks is accepted"));
  auto op = AllToAllV::create(world(), sharedJit(), {.maxRows = 4});
  ASSERT_OK(op);
  Buffer x = zeros(DataType::BF16, 8, "x"), words = zeros(DataType::I64, 8, "words"),
         ints = zeros(DataType::I32, 8, "ints");
  AllToAllV::Operands operands{x, 8, words, words, x, 8, words, words};
  operands.sendCounts = ints;
  EXPECT_THAT(op->enqueue(rank(0), rank(0).stream(), operands).message(),
              HasSubstr("operand send_counts is of type i32"));
  operands.sendCounts = words;
  operands.outRows = -1;
  EXPECT_THAT(op->enqueue(rank(0), rank(0).stream(), operands).message(), HasSubstr("outRows is -1"));
  operands.outRows = 8;
  ASSERT_OK(rank(0).stream().beginCapture());
  EXPECT_THAT(op->enqueue(rank(0), rank(0).stream(), operands).message(), HasSubstr("call prepare"));
  (void)rank(0).stream().endCapture();
  // A rank of a larger world, whose number this one does not have.
  auto other = runtime::World::local(ranksOnTarget(3), targetUnderTest());
  ASSERT_OK(other);
  Rank &strange = (*other)->rank((*other)->numRanks() - 1);
  EXPECT_THAT(op->prepare(strange).message(), HasSubstr("of another world"));
  EXPECT_THAT(op->enqueue(strange, strange.stream(), operands).message(), HasSubstr("of another world"));
}

} // namespace
} // namespace ditron::e2e
