//===- collectives_test.cpp - Collectives against a plain reference ---------------------------------------------------===//
//
// Small integers as data: every sum is exact, so that results must be the reference's bits, whatever the type. Sizes around every
// border of packets, chunks and parts; calls of all sizes after each other with new data and a slow rank; in place; addresses that
// are multiples of the element only; graphs replayed between eager calls.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/collectives/Collective.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>

namespace ditron::e2e {
namespace {

using ops::Collective;
using ops::CollectiveForm;
using ops::CollectiveKind;
using ops::CollectiveOptions;
using ops::CollectivePlan;
using ops::Reduction;
using testing::HasSubstr;

int64_t inputParts(CollectiveKind kind, uint32_t ranks) {
  return kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll ? ranks : 1;
}
int64_t outputParts(CollectiveKind kind, uint32_t ranks) {
  return kind == CollectiveKind::AllGather || kind == CollectiveKind::AllToAll ? ranks : 1;
}

double combined(const CollectiveOptions &options, const std::vector<double> &values) {
  double result = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    if (options.reduction == Reduction::Max)
      result = std::max(result, values[i]);
    else if (options.reduction == Reduction::Min)
      result = std::min(result, values[i]);
    else
      result += values[i];
  }
  if (options.reduction == Reduction::Average)
    result = isFloat(options.dtype) ? static_cast<float>(result) / static_cast<float>(values.size())
                                    : std::trunc(result / static_cast<double>(values.size()));
  return ops::roundedTo(options.dtype, result);
}

/// What each rank must get, from what each has given.
std::vector<std::vector<double>> expectedResults(const CollectiveOptions &options, int64_t n,
                                                 const std::vector<std::vector<double>> &inputs) {
  const uint32_t ranks = static_cast<uint32_t>(inputs.size());
  std::vector<std::vector<double>> results(ranks);
  for (uint32_t r = 0; r < ranks; ++r) {
    std::vector<double> &result = results[r];
    for (int64_t part = 0; part < outputParts(options.kind, ranks); ++part)
      for (int64_t i = 0; i < n; ++i) {
        switch (options.kind) {
        case CollectiveKind::AllReduce:
        case CollectiveKind::ReduceScatter: {
          const int64_t at = options.kind == CollectiveKind::AllReduce ? i : r * n + i;
          std::vector<double> values;
          for (const std::vector<double> &input : inputs)
            values.push_back(options.scale
                                 ? ops::roundedTo(options.dtype, static_cast<float>(input[at]) * *options.scale)
                                 : input[at]);
          result.push_back(combined(options, values));
          break;
        }
        case CollectiveKind::AllGather: result.push_back(inputs[part][i]); break;
        case CollectiveKind::AllToAll: result.push_back(inputs[part][r * n + i]); break;
        case CollectiveKind::Broadcast: result.push_back(inputs[options.root][i]); break;
        }
      }
  }
  return results;
}

class Collectives : public KernelTest {
protected:
  struct Call {
    int64_t elements = 0;
    bool inPlace = false;
    int64_t offset = 0; ///< Of the operands' addresses, in elements.
  };

  /// Buffers for one operator and its largest size.
  struct Operands {
    std::vector<Buffer> in, out;
  };
  static constexpr int64_t mostOffset = 16;

  Operands operandsFor(const CollectiveOptions &options) {
    Operands operands;
    const uint32_t ranks = world().numRanks();
    for (uint32_t r = 0; r < ranks; ++r) {
      operands.in.push_back(
          zeros(options.dtype, inputParts(options.kind, ranks) * options.maxElements + mostOffset, "in", r));
      operands.out.push_back(
          zeros(options.dtype, outputParts(options.kind, ranks) * options.maxElements + mostOffset, "out", r));
    }
    return operands;
  }

  /// Where a call reads and writes on a rank.
  std::pair<Pointer, Pointer> addresses(const CollectiveOptions &options, const Operands &operands, const Call &call,
                                        uint32_t r) {
    Pointer in = operands.in[r].pointer() + call.offset, out = operands.out[r].pointer() + call.offset;
    if (call.inPlace && options.kind == CollectiveKind::AllGather)
      in = out + r * call.elements;
    else if (call.inPlace && options.kind == CollectiveKind::ReduceScatter)
      out = in + r * call.elements;
    else if (call.inPlace)
      in = out;
    return {in, out};
  }

  std::vector<std::vector<double>> randomInputs(const CollectiveOptions &options, int64_t n, uint64_t seed) {
    const uint32_t ranks = world().numRanks();
    std::vector<std::vector<double>> inputs;
    const bool isUnsigned = isInteger(options.dtype) && !isSignedInteger(options.dtype);
    for (uint32_t r = 0; r < ranks; ++r)
      inputs.push_back(convertAll<double>(
          randomIntegers(inputParts(options.kind, ranks) * n, seed * 100 + r, isUnsigned ? 0 : -3, 3)));
    return inputs;
  }

  /// Through the host, to exactly where a call reads. Other elements of the buffers get 64, which no call gives.
  void give(const CollectiveOptions &options, Operands &operands, const Call &call,
            const std::vector<std::vector<double>> &inputs) {
    for (uint32_t r = 0; r < world().numRanks(); ++r) {
      const auto [in, out] = addresses(options, operands, call, r);
      for (Buffer *buffer : {&operands.in[r], &operands.out[r]}) {
        std::vector<std::byte> bytes(buffer->bytes());
        const size_t size = sizeOf(options.dtype);
        for (size_t i = 0; i < buffer->count(); ++i)
          storeElement(options.dtype, bytes.data() + i * size, 64);
        const auto *base = static_cast<std::byte *>(buffer->pointer().address);
        const auto *address = static_cast<std::byte *>(in.address);
        if (address >= base && address < base + bytes.size())
          for (size_t i = 0; i < inputs[r].size(); ++i)
            storeElement(options.dtype, bytes.data() + (address - base) + i * size, inputs[r][i]);
        EXPECT_OK(buffer->upload(bytes.data(), bytes.size()));
      }
    }
  }

  void expectResults(const CollectiveOptions &options, const Operands &operands, const Call &call,
                     const std::vector<std::vector<double>> &inputs, const std::string &what) {
    const auto expected = expectedResults(options, call.elements, inputs);
    for (uint32_t r = 0; r < world().numRanks(); ++r) {
      const auto [in, out] = addresses(options, operands, call, r);
      const bool inInput = call.inPlace && options.kind == CollectiveKind::ReduceScatter;
      const Buffer &buffer = inInput ? operands.in[r] : operands.out[r];
      std::vector<std::byte> bytes(buffer.bytes());
      EXPECT_OK(buffer.download(bytes.data(), bytes.size()));
      const size_t size = sizeOf(options.dtype),
                   begin = static_cast<std::byte *>(out.address) - static_cast<std::byte *>(buffer.pointer().address);
      std::vector<double> actual;
      for (size_t i = 0; i < expected[r].size(); ++i)
        actual.push_back(loadElement(options.dtype, bytes.data() + begin + i * size));
      expectSame(actual, expected[r],
                 fmt::format("{} of {}, {} elements, rank {}", what, toString(options.dtype), call.elements, r));
      // Nothing beyond the result was written.
      if (!inInput && begin / size + expected[r].size() < buffer.count())
        EXPECT_EQ(loadElement(options.dtype, bytes.data() + begin + expected[r].size() * size), 64) << what;
      if (HasFailure())
        return;
    }
  }

  /// Calls of one operator after each other, without waiting where `calls` ask for the same memory only.
  void runCalls(const CollectiveOptions &options, const std::vector<Call> &calls, const std::string &what) {
    auto collective = Collective::create(world(), sharedJit(), options);
    ASSERT_OK(collective);
    Operands operands = operandsFor(options);
    uint64_t seed = 0;
    for (const Call &call : calls)
      for (uint32_t r = 0; r < world().numRanks(); ++r)
        if (call.offset == 0)
          ASSERT_OK(collective->prepare(rank(r), call.elements));
    for (const Call &call : calls) {
      const auto inputs = randomInputs(options, call.elements, ++seed);
      give(options, operands, call, inputs);
      ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
        const auto [in, out] = addresses(options, operands, call, me.id());
        DITRON_RETURN_IF_ERROR(collective->enqueue(me, me.stream(), in, out, call.elements));
        return me.stream().synchronize();
      }));
      expectResults(options, operands, call, inputs, fmt::format("{}, call {}", what, seed));
      if (HasFailure())
        return;
    }
  }

  /// Two sizes captured in one graph per rank, replayed with new data between eager calls.
  void replayGraphs(const CollectiveOptions &options, int replays) {
    auto collective = Collective::create(world(), sharedJit(), options);
    ASSERT_OK(collective);
    const Call small{.elements = 40}, large{.elements = 1500};
    Operands first = operandsFor(options), second = operandsFor(options);
    std::vector<runtime::Graph> graphs;
    const auto enqueue = [&](const Operands &operands, const Call &call, uint32_t r) {
      const auto [in, out] = addresses(options, operands, call, r);
      return collective->enqueue(rank(r), rank(r).stream(), in, out, call.elements);
    };
    for (uint32_t r = 0; r < world().numRanks(); ++r) {
      ASSERT_OK(collective->prepare(rank(r), small.elements));
      ASSERT_OK(collective->prepare(rank(r), large.elements));
    }
    for (uint32_t r = 0; r < world().numRanks(); ++r) {
      ASSERT_OK(rank(r).stream().beginCapture());
      ASSERT_OK(enqueue(first, small, r));
      ASSERT_OK(enqueue(second, large, r));
      auto graph = rank(r).stream().endCapture();
      ASSERT_OK(graph);
      graphs.push_back(*graph);
    }
    for (int replay = 0; replay < replays; ++replay) {
      const auto firstInputs = randomInputs(options, small.elements, replay % 7),
                 secondInputs = randomInputs(options, large.elements, replay % 7 + 7);
      give(options, first, small, firstInputs);
      give(options, second, large, secondInputs);
      ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
        DITRON_RETURN_IF_ERROR(me.stream().launch(graphs[me.id()]));
        if (replay % 2)
          DITRON_RETURN_IF_ERROR(enqueue(second, large, me.id()));
        return me.stream().synchronize();
      }));
      expectResults(options, first, small, firstInputs, fmt::format("replay {}", replay));
      expectResults(options, second, large, secondInputs, fmt::format("replay {}", replay));
      if (HasFailure())
        return;
    }
  }
};

bool hasTensorCopies() { return targetUnderTest() == "sim:sm_90a" || targetUnderTest() == "cuda"; }

bool isMultimem(CollectiveForm form) {
  return form == CollectiveForm::Multimem || form == CollectiveForm::OneShotMultimem;
}
/// Switches add some types, and nothing else.
bool canReduce(CollectiveForm form, DataType type, Reduction reduction) {
  return !isMultimem(form) ||
         (reduction == Reduction::Sum && (type == DataType::BF16 || type == DataType::F16 || type == DataType::F32));
}

/// A plan of each form of the kind, with several blocks and chunks where data is small. On the simulated Hopper what no other target has:
/// the others are the same programs there.
std::vector<CollectivePlan> plansOf(CollectiveKind kind, bool forNodes = false) {
  std::vector<CollectivePlan> plans;
  for (CollectiveForm form : ops::formsOf(kind)) {
    const bool forHopper = form == CollectiveForm::TensorCopies;
    if (ops::isForNodes(form) != forNodes || (isSimulated() ? forHopper != hasTensorCopies() : isMultimem(form)))
      continue;
    const bool chunked = ops::hasChunks(form);
    plans.push_back({form, 3, chunked ? 2u : 1u, chunked ? 512u : 0});
  }
  return plans;
}

/// Every form of every kind, sizes around the borders of packets, blocks, chunks and rings, calls of all of them after each other.
TEST_F(Collectives, SizesOneAfterTheOther) {
  for (uint32_t wanted : {1u, 2u, 3u, 4u, 8u}) {
    const uint32_t ranks = ranksOnTarget(wanted);
    if (ranks != wanted)
      continue;
    start(ranks, seeded(wanted, ranks - 1, 5));
    for (CollectiveKind kind : ops::allCollectiveKinds())
      for (const CollectivePlan &plan : plansOf(kind)) {
        std::vector<Call> calls;
        // All sizes on three ranks; each of them on two or on four besides.
        const std::vector<int64_t> sizes = ranks == 3   ? std::vector<int64_t>{1, 4, 0, 3, 256, 257, 1000, 4100, 2049}
                                           : ranks == 2 ? std::vector<int64_t>{1, 4, 0, 257, 4100}
                                           : ranks == 4 ? std::vector<int64_t>{3, 256, 0, 1000, 2049}
                                                        : std::vector<int64_t>{1, 0, 257, 3000};
        for (int64_t n : sizes)
          calls.push_back({.elements = n, .inPlace = n % 3 == 0});
        runCalls({.kind = kind,
                  .root = kind == CollectiveKind::Broadcast ? ranks - 1 : 0,
                  .maxElements = 4100,
                  .plan = plan},
                 calls, fmt::format("{} by {} on {} ranks", toString(kind), toString(plan.form), ranks));
        if (HasFatalFailure() || HasFailure())
          return;
      }
  }
}

/// In place where a block has more threads than elements, so that several threads hold each of them; the own part is where it must be
/// before anybody has copied anything.
TEST_F(Collectives, InPlaceWithMoreThreadsThanElements) {
  start(ranksOnTarget(3), seeded(11));
  for (CollectiveKind kind : ops::allCollectiveKinds())
    for (CollectivePlan plan : plansOf(kind)) {
      if (!canReduce(plan.form, DataType::F64, Reduction::Sum))
        continue;
      plan.numWarps = 4;
      runCalls({.kind = kind, .dtype = DataType::F64, .maxElements = 130, .plan = plan},
               {{.elements = 4, .inPlace = true},
                {.elements = 38, .inPlace = true, .offset = 2},
                {.elements = 130, .inPlace = true}},
               fmt::format("{} by {}", toString(kind), toString(plan.form)));
      if (HasFatalFailure() || HasFailure())
        return;
    }
}

/// Of the words that Lamport packets have a use of their own for, and others, by all forms; again and again, so that what one call leaves would be seen by the next.
TEST_F(Collectives, EveryWordArrives) {
  constexpr int64_t words[] = {-1, std::numeric_limits<int64_t>::max(), 0, std::numeric_limits<int64_t>::min(), 1, -2};
  const uint32_t ranks = ranksOnTarget(3);
  start(ranks, seeded(5));
  constexpr int64_t n = 130;
  for (CollectiveKind kind : {CollectiveKind::AllGather, CollectiveKind::AllToAll, CollectiveKind::AllReduce})
    for (const CollectivePlan &plan : plansOf(kind)) {
      if (isMultimem(plan.form))
        continue;
      const std::string what = fmt::format("{} by {}", toString(kind), toString(plan.form));
      const bool gives = kind == CollectiveKind::AllToAll, gets = kind != CollectiveKind::AllReduce;
      auto collective = Collective::create(world(), sharedJit(),
                                           {.kind = kind,
                                            .dtype = DataType::I64,
                                            .reduction = gets ? Reduction::Sum : Reduction::Max,
                                            .maxElements = n,
                                            .plan = plan});
      ASSERT_OK(collective);
      std::vector<Buffer> in, out;
      for (uint32_t r = 0; r < ranks; ++r) {
        in.push_back(zeros(DataType::I64, (gives ? ranks : 1) * n, "in", r));
        out.push_back(zeros(DataType::I64, (gets ? ranks : 1) * n, "out", r));
        ASSERT_OK(collective->prepare(rank(r), n));
      }
      for (int64_t call = 0; call < 4; ++call) {
        const auto given = [&](int64_t source, int64_t i) {
          return words[(call + source + i + i / 7) % std::size(words)];
        };
        for (uint32_t r = 0; r < ranks; ++r) {
          std::vector<int64_t> values(in[r].count());
          for (size_t i = 0; i < values.size(); ++i)
            values[i] = given(r, static_cast<int64_t>(i));
          ASSERT_OK(in[r].upload(values.data(), in[r].bytes()));
        }
        ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
          DITRON_RETURN_IF_ERROR(collective->enqueue(me, me.stream(), in[me.id()], out[me.id()], n));
          return me.stream().synchronize();
        }));
        for (uint32_t r = 0; r < ranks; ++r) {
          std::vector<int64_t> values(out[r].count()), expected(values.size(), std::numeric_limits<int64_t>::min());
          ASSERT_OK(out[r].download(values.data(), out[r].bytes()));
          for (int64_t source = 0; source < ranks; ++source)
            for (int64_t i = 0; i < n; ++i) {
              int64_t &element = expected[gets ? source * n + i : i];
              element = std::max(element, given(source, gives ? r * n + i : i));
            }
          ASSERT_EQ(values, expected) << what << ", call " << call << ", rank " << r;
        }
      }
    }
}

TEST_F(Collectives, TypesAndReductions) {
  const uint32_t ranks = ranksOnTarget(3);
  start(ranks, seeded(3));
  // Every type with a sum and one more reduction, every reduction with several types.
  constexpr Reduction others[] = {Reduction::Max, Reduction::Average, Reduction::Min};
  int number = 0;
  for (DataType type : {DataType::BF16, DataType::F16, DataType::F32, DataType::F64, DataType::F8E5, DataType::F8E4NV,
                        DataType::I8, DataType::U8, DataType::I16, DataType::I32, DataType::U32, DataType::I64}) {
    const CollectiveKind kind = number % 2 ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce;
    for (const CollectivePlan &plan : plansOf(kind))
      for (Reduction reduction : {Reduction::Sum, others[number % 3]}) {
        CollectiveOptions options{
            .kind = kind, .dtype = type, .reduction = reduction, .maxElements = 300, .plan = plan};
        if (!canReduce(plan.form, type, reduction)) {
          EXPECT_THAT(std::string(Collective::create(world(), sharedJit(), options).status().message()),
                      HasSubstr("switches"));
          continue;
        }
        if (reduction == Reduction::Sum && isFloat(type))
          options.scale = 0.5f;
        runCalls(options, {{.elements = 296}, {.elements = 299}},
                 fmt::format("{} {} by {}", toString(reduction), toString(kind), toString(plan.form)));
        if (HasFatalFailure() || HasFailure())
          return;
      }
    ++number;
  }
}

/// What is moved and not added, in types of every size.
TEST_F(Collectives, TypesThatAreMoved) {
  const uint32_t ranks = ranksOnTarget(3);
  start(ranks, seeded(7));
  for (CollectiveKind kind : {CollectiveKind::AllGather, CollectiveKind::AllToAll, CollectiveKind::Broadcast})
    for (DataType type : {DataType::U8, DataType::BF16, DataType::F32, DataType::F64})
      for (const CollectivePlan &plan : plansOf(kind)) {
        runCalls({.kind = kind, .dtype = type, .maxElements = 300, .plan = plan},
                 {{.elements = 299}, {.elements = 288}}, fmt::format("{} by {}", toString(kind), toString(plan.form)));
        if (HasFatalFailure() || HasFailure())
          return;
      }
}

TEST_F(Collectives, AnyAlignment) {
  const uint32_t ranks = ranksOnTarget(2);
  start(ranks, seeded(4));
  for (CollectiveKind kind : ops::allCollectiveKinds())
    for (const CollectivePlan &plan : plansOf(kind)) {
      runCalls({.kind = kind, .maxElements = 600, .plan = plan},
               {{.elements = 600, .offset = 1},
                {.elements = 600, .offset = 8},
                {.elements = 599, .offset = 3},
                {.elements = 600}},
               fmt::format("{} by {}", toString(kind), toString(plan.form)));
      if (HasFatalFailure() || HasFailure())
        return;
    }
}

/// What a sum of bf16 is, bit by bit, where it cannot be exact. In the order of the ranks, in fp32, rounded once; around a ring from the
/// rank behind the part's owner to the owner, rounded by each rank; of several nodes by nodes, each node's sum rounded.
float sumOf(const std::vector<float> &values, CollectiveForm form, size_t owner, size_t perNode) {
  const auto round = [](float value) { return static_cast<float>(ops::roundedTo(DataType::BF16, value)); };
  float total = 0;
  if (form == CollectiveForm::Ring) {
    for (size_t k = 1; k <= values.size(); ++k)
      total = round(total + values[(owner + k) % values.size()]);
    return total;
  }
  const size_t share = form == CollectiveForm::TwoLevel ? perNode : 1;
  for (size_t first = 0; first < values.size(); first += share)
    total += round(std::accumulate(values.begin() + first, values.begin() + first + share, 0.0f));
  return round(total);
}

TEST_F(Collectives, SumsAreRoundedAsTheFormSays) {
  constexpr int64_t n = 1501, line = 64; // parts of an AllReduce begin at lines of 128 bytes
  for (uint32_t perNode : {4u, 2u}) {
    const uint32_t ranks = ranksOnTarget(4);
    const bool forNodes = perNode < ranks;
    if (forNodes && !isSimulated())
      continue;
    WorldOptions worldOptions = seeded(9);
    worldOptions.ranksPerNode = forNodes ? perNode : 0;
    start(ranks, worldOptions);
    for (CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter})
      for (const CollectivePlan &plan : plansOf(kind, forNodes)) {
        const CollectiveOptions options{.kind = kind, .maxElements = n, .plan = plan};
        auto collective = Collective::create(world(), sharedJit(), options);
        ASSERT_OK(collective);
        Operands operands = operandsFor(options);
        std::vector<std::vector<float>> given;
        for (uint32_t r = 0; r < ranks; ++r)
          given.push_back(randomFloats(operands.in[r].count(), 40 + r, -1, 1, DataType::BF16));
        ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
          DITRON_RETURN_IF_ERROR(operands.in[me.id()].uploadFloats(given[me.id()]));
          DITRON_RETURN_IF_ERROR(collective->enqueue(me, me.stream(), operands.in[me.id()], operands.out[me.id()], n));
          return me.stream().synchronize();
        }));
        const int64_t part = (n + ranks * line - 1) / (ranks * line) * line;
        for (uint32_t r = 0; r < ranks; ++r) {
          std::vector<float> expected;
          for (int64_t i = 0; i < n; ++i) {
            const bool all = kind == CollectiveKind::AllReduce;
            std::vector<float> values;
            for (const std::vector<float> &each : given)
              values.push_back(each[all ? i : r * n + i]);
            expected.push_back(sumOf(values, plan.form, all ? i / part : r, perNode));
          }
          std::vector<float> actual = getFloats(operands.out[r]);
          actual.resize(n);
          expectSame(actual, expected, fmt::format("{} by {}, rank {}", toString(kind), toString(plan.form), r));
        }
      }
  }
}

/// Each form under schedules in which ranks, blocks and threads come in other orders and stores come late; the race detector watches.
TEST_F(Collectives, AnySchedule) {
  if (!isSimulated())
    GTEST_SKIP() << "the simulator draws schedules";
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    start(4, seeded(seed, seed % 4, 3));
    for (CollectiveKind kind : ops::allCollectiveKinds())
      for (const CollectivePlan &plan : plansOf(kind)) {
        runCalls({.kind = kind, .maxElements = 2000, .plan = plan},
                 {{.elements = 100}, {.elements = 2000}, {.elements = 700}},
                 fmt::format("{} by {}, seed {}", toString(kind), toString(plan.form), seed));
        if (HasFatalFailure() || HasFailure())
          return;
      }
  }
}

/// Nodes on which all goes by two levels; puts between them come late, in pieces and in any order.
TEST_F(Collectives, SeveralNodes) {
  if (!isSimulated())
    GTEST_SKIP() << "GPUs of one machine are one node";
  for (auto [nodes, perNode] : {std::pair{2u, 1u}, {2u, 2u}, {3u, 2u}, {4u, 2u}, {2u, 4u}, {2u, 8u}, {4u, 8u}}) {
    const uint32_t ranks = nodes * perNode;
    for (uint64_t seed = 1; seed <= (ranks > 8 ? 1 : 2); ++seed) {
      WorldOptions world = seeded(seed, seed % ranks, 4);
      world.ranksPerNode = perNode;
      start(ranks, world);
      for (CollectiveKind kind :
           {CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter}) {
        for (const CollectivePlan &plan : plansOf(kind, /*forNodes=*/true)) {
          // Each packet costs the simulator's race detector something.
          const bool packets = plan.form == CollectiveForm::TwoLevelPackets;
          if (packets && ranks > 8)
            continue;
          std::vector<Call> calls;
          for (int64_t n :
               packets ? std::vector<int64_t>{1, 257, 0, 600, 4} : std::vector<int64_t>{1, 700, 0, 257, 2051, 2048})
            calls.push_back({.elements = n, .inPlace = n % 3 == 1, .offset = n % 2 ? 3 : 0});
          runCalls({.kind = kind, .maxElements = 2051, .plan = plan}, calls,
                   fmt::format("{} by {} on {} nodes of {}, seed {}", toString(kind), toString(plan.form), nodes,
                               perNode, seed));
          if (HasFatalFailure() || HasFailure())
            return;
        }
      }
    }
  }
}

/// What goes from rank to rank through the network, by the timeline.
uint64_t networkBytes(const World &world) {
  auto text = world.chromeTrace();
  EXPECT_OK(text.status());
  const nlohmann::json trace = nlohmann::json::parse(*text);
  uint64_t bytes = 0;
  for (const auto &event : trace["traceEvents"])
    if (event.value("name", "").starts_with("put with signal to rank") && event.contains("args"))
      bytes += event["args"].value("bytes", uint64_t{0});
  return bytes;
}

TEST_F(Collectives, EachByteGoesToANodeOnce) {
  if (!isSimulated())
    GTEST_SKIP() << "GPUs of one machine are one node";
  constexpr int64_t n = 1200; // whole packets
  for (auto [nodes, perNode] : {std::pair{2u, 2u}, {3u, 2u}, {2u, 4u}})
    for (CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter})
      for (const CollectivePlan &plan : plansOf(kind, /*forNodes=*/true)) {
        WorldOptions world = seeded(3);
        world.ranksPerNode = perNode;
        world.trace = true;
        start(nodes * perNode, world);
        runCalls({.kind = kind, .maxElements = n, .plan = plan}, {{.elements = n}}, "traced");
        // AllReduce by two levels sends the parts' sums to their owners and from there; else each rank has something for each other node.
        const uint64_t elements =
            kind == CollectiveKind::AllReduce && plan.form == CollectiveForm::TwoLevel ? 2 * n : n * nodes * perNode;
        EXPECT_EQ(networkBytes(this->world()), elements * (nodes - 1) * sizeOf(DataType::BF16))
            << toString(kind) << " by " << toString(plan.form) << " on " << nodes << " nodes of " << perNode;
      }
}

TEST_F(Collectives, TypesAndReductionsOfNodes) {
  if (!isSimulated())
    GTEST_SKIP() << "GPUs of one machine are one node";
  WorldOptions world = seeded(5);
  world.ranksPerNode = 2;
  start(4, world);
  int number = 0;
  for (DataType type : {DataType::BF16, DataType::F16, DataType::F32, DataType::F64, DataType::F8E5, DataType::I8,
                        DataType::U8, DataType::I16, DataType::U32, DataType::I64})
    for (Reduction reduction : {Reduction::Sum, Reduction::Max, Reduction::Min, Reduction::Average}) {
      const CollectiveKind kind = ++number % 2 ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce;
      CollectiveOptions options{.kind = kind, .dtype = type, .reduction = reduction, .maxElements = 300};
      if (reduction == Reduction::Sum && isFloat(type))
        options.scale = 0.5f;
      runCalls(options, {{.elements = 296}, {.elements = 299}},
               fmt::format("{} {} on 2 nodes of 2", toString(reduction), toString(kind)));
      if (HasFatalFailure() || HasFailure())
        return;
    }
}

/// The plans of the library, which are for large sizes, with what they choose.
TEST_F(Collectives, LibraryPlans) {
  const uint32_t ranks = ranksOnTarget(4);
  start(ranks);
  for (CollectiveKind kind : ops::allCollectiveKinds()) {
    const int64_t most = isSimulated() ? 600000 : 33000001;
    std::vector<Call> calls;
    for (int64_t n : {int64_t{8}, int64_t{4096}, int64_t{40001}, most / 8 * 8})
      calls.push_back({.elements = n});
    runCalls({.kind = kind, .maxElements = most}, calls, fmt::format("{} as the library does it", toString(kind)));
    if (HasFatalFailure() || HasFailure())
      return;
  }
}

/// The last rank is slow.
TEST_F(Collectives, GraphsBetweenEagerCalls) {
  const uint32_t ranks = ranksOnTarget(4);
  start(ranks, seeded(6, ranks - 1, 3));
  for (CollectiveKind kind : ops::allCollectiveKinds())
    for (const CollectivePlan &plan : plansOf(kind)) {
      replayGraphs({.kind = kind, .maxElements = 1500, .plan = plan}, isSimulated() ? 5 : 1000);
      if (HasFatalFailure() || HasFailure())
        return;
    }
}

TEST_F(Collectives, GraphsOfNodes) {
  if (!isSimulated())
    GTEST_SKIP() << "GPUs of one machine are one node";
  for (uint64_t seed : {1, 2}) {
    WorldOptions world = seeded(seed, 2, 3);
    world.ranksPerNode = 2;
    start(6, world);
    for (CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter})
      for (const CollectivePlan &plan : plansOf(kind, /*forNodes=*/true)) {
        replayGraphs({.kind = kind, .maxElements = 1500, .plan = plan}, 3);
        if (HasFatalFailure() || HasFailure())
          return;
      }
  }
}

TEST_F(Collectives, Refusals) {
  start(ranksOnTarget(2));
  const auto error = [&](const CollectiveOptions &options) {
    auto made = Collective::create(world(), sharedJit(), options);
    return made.isOk() ? std::string() : std::string(made.status().message());
  };
  EXPECT_THAT(error({}), HasSubstr("all_reduce: maxElements is 0; 1 to"));
  EXPECT_THAT(error({.dtype = DataType::I1, .maxElements = 4}), HasSubstr("send them as u8"));
  EXPECT_THAT(error({.kind = CollectiveKind::AllGather, .reduction = Reduction::Max, .maxElements = 4}),
              HasSubstr("combines nothing"));
  EXPECT_THAT(error({.dtype = DataType::I32, .scale = 2.0f, .maxElements = 4}), HasSubstr("of floats"));
  EXPECT_THAT(error({.kind = CollectiveKind::Broadcast, .root = 9, .maxElements = 4}), HasSubstr("root 9"));
  EXPECT_THAT(error({.root = 1, .maxElements = 4}), HasSubstr("root 1"));
  if (!hasTensorCopies())
    EXPECT_THAT(error({.maxElements = 4, .plan = CollectivePlan{CollectiveForm::TensorCopies, 3, 2, 512}}),
                HasSubstr("all_reduce by tensor_copies on sim:sm_80: GPUs of compute capability 9.0"));
  const CollectivePlan nodes{CollectiveForm::TwoLevel, 3, 2, 512};
  EXPECT_THAT(error({.maxElements = 4, .plan = nodes}),
              HasSubstr("all_reduce by two_level on 1 node; its forms there are: packets, two_shot_packets, lamport, "
                        "two_shot_lamport, chunks"));
  auto group = world().group({0});
  ASSERT_OK(group.status());
  auto withoutMulticast = Collective::create(
      **group, sharedJit(), {.maxElements = 4, .plan = CollectivePlan{CollectiveForm::Multimem, 3, 2, 512}});
  EXPECT_THAT(std::string(withoutMulticast.status().message()),
              HasSubstr("all_reduce by multimem: there is no multicast memory"));
  auto made = Collective::create(world(), sharedJit(), {.maxElements = 4});
  ASSERT_OK(made);
  Buffer x = zeros(DataType::BF16, 8, "x"), wrong = zeros(DataType::F32, 8, "x");
  EXPECT_THAT(std::string(made->enqueue(rank(0), rank(0).stream(), x, x, 5).message()),
              HasSubstr("5 elements; 0 to 4 (maxElements)"));
  EXPECT_THAT(std::string(made->enqueue(rank(0), rank(0).stream(), wrong, x, 4).message()), HasSubstr("fp32"));
  ASSERT_OK(rank(0).stream().beginCapture());
  EXPECT_THAT(std::string(made->enqueue(rank(0), rank(0).stream(), x, x, 4).message()), HasSubstr("call prepare"));
  (void)rank(0).stream().endCapture();
}

} // namespace
} // namespace ditron::e2e
