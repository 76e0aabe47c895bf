//===- contracts_test.cpp - What every distributed operator promises ----------------------------------------------===//
//
// Over all operators of OperatorUnderContract.h: replays of graphs between eager calls, groups of ranks that overlap, two operators
// on two streams, operators that come and go, and the race detector under many schedules. CONTRACT_REPLAYS=10000 and
// CONTRACT_SCHEDULES=100 run so many instead of a few.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "contracts/OperatorUnderContract.h"

#include <cstdlib>
#include <fmt/format.h>

namespace ditron::e2e {
namespace {

using runtime::Graph;
using runtime::Stream;

class OperatorContract : public KernelTest, public testing::WithParamInterface<ContractEntry> {
protected:
  using Op = std::unique_ptr<OperatorUnderContract>;

  void SetUp() override {
    if (GetParam().isBetweenNodes && !isSimulated())
      GTEST_SKIP() << "GPUs of one machine are one node";
  }
  void start(uint32_t ranks, WorldOptions options = {}, uint32_t ranksPerNode = 1) {
    makeNodes(GetParam(), options, ranksPerNode);
    KernelTest::start(ranks, options);
  }

  /// The operator for its typical calls.
  static ContractChoice typicalChoice(const ContractEntry &entry, uint64_t draw = 0) {
    ContractChoice choice;
    choice.dtype = entry.dtypes.front();
    choice.draw = draw;
    for (const CallSizes &sizes : entry.typical)
      choice.most = {std::max(choice.most.m, sizes.m), std::max(choice.most.n, sizes.n),
                     std::max(choice.most.k, sizes.k)};
    return choice;
  }
  Op make(World &in, const ContractEntry &entry, uint64_t draw = 0) {
    auto made = entry.make(in, typicalChoice(entry, draw));
    EXPECT_OK(made);
    return made.isOk() ? std::move(made).value() : nullptr;
  }
  static Status prepareAll(World &in, OperatorUnderContract &op, const CallSizes &sizes) {
    for (uint32_t r = 0; r < in.numRanks(); ++r)
      DITRON_RETURN_IF_ERROR(op.prepare(in.rank(r), sizes));
    return Status::ok();
  }

  /// An operator, its world, and calls of it that are enqueued on a stream of each rank.
  struct Caller {
    World *in;
    std::string name;
    Op op;
    std::vector<Stream> streams;
    std::vector<ContractCall> calls;

    Status enqueue(uint32_t r, size_t call) { return calls[call].enqueue(*op, in->rank(r), streams[r]); }
  };
  /// With two calls of each typical size, of which `set` is uploaded.
  Expected<Caller> caller(World &in, const ContractEntry &entry, uint64_t draw, uint64_t set) {
    Caller made = {.in = &in, .name = entry.name, .op = make(in, entry, draw), .streams = {}, .calls = {}};
    if (!made.op)
      return internalError("no operator");
    for (uint32_t r = 0; r < in.numRanks(); ++r) {
      DITRON_ASSIGN_OR_RETURN(Stream stream, in.rank(r).createStream(entry.name));
      made.streams.push_back(std::move(stream));
    }
    for (size_t i = 0; i < 6; ++i) {
      const CallSizes &sizes = entry.typical[i % 3];
      DITRON_RETURN_IF_ERROR(prepareAll(in, *made.op, sizes));
      DITRON_ASSIGN_OR_RETURN(ContractCall call, ContractCall::create(in, *made.op, sizes));
      made.calls.push_back(std::move(call));
      DITRON_RETURN_IF_ERROR(made.calls.back().upload(set + i));
    }
    return made;
  }
  /// All calls of all callers, none of which waits for another's but on its own streams; then checks them.
  void runTogether(std::vector<Caller> &callers, const std::string &what) {
    // Every rank of the world gets the callers in another order.
    for (uint32_t turn = 0; turn < callers.size(); ++turn)
      for (uint32_t member = 0; member < world().numRanks(); ++member)
        for (size_t i = 0; i < callers.size(); ++i) {
          if (i != (turn + member) % callers.size() || member >= callers[i].in->numRanks())
            continue;
          for (size_t call = 0; call < callers[i].calls.size(); ++call)
            ASSERT_OK(callers[i].enqueue(member, call));
        }
    ASSERT_OK(world().synchronize());
    for (Caller &each : callers)
      for (ContractCall &call : each.calls)
        call.check(fmt::format("{}, {}", what, each.name));
  }
};

INSTANTIATE_TEST_SUITE_P(All, OperatorContract, testing::ValuesIn(operatorsUnderContract()),
                         [](const auto &info) { return info.param.name; });

/// A graph for each of three sizes and one with all of them, replayed and mixed with eager calls in bursts that change all the time;
/// the last rank is slow. Every result of every burst is compared bit by bit.
TEST_P(OperatorContract, ReplaysBetweenEagerCalls) {
  const int wanted = casesWanted("CONTRACT_REPLAYS", isSimulated() ? 15 : 1000);
  const uint32_t ranks = ranksOnTarget(4);
  WorldOptions options = seeded(21, ranks - 1, 3);
  // SilentUnderEverySchedule looks for races; in the long form that would take half of the time.
  options.checkRaces = wanted <= 300;
  start(ranks, options, 2);
  const Op op = make(world(), GetParam());
  ASSERT_TRUE(op);
  // Of each size one call that only graphs make, one that only eager code makes, and one in the graph of all.
  constexpr size_t sizes = 3, kinds = 3;
  std::vector<ContractCall> calls;
  for (size_t i = 0; i < sizes * kinds; ++i) {
    ASSERT_OK(prepareAll(world(), *op, GetParam().typical[i % sizes]));
    auto call = ContractCall::create(world(), *op, GetParam().typical[i % sizes]);
    ASSERT_OK(call);
    calls.push_back(std::move(call).value());
  }
  const std::vector<std::vector<size_t>> captured = {{0}, {1}, {2}, {6, 8, 7}};
  std::vector<std::vector<Graph>> graphs(captured.size());
  for (size_t g = 0; g < captured.size(); ++g)
    for (uint32_t r = 0; r < ranks; ++r) {
      ASSERT_OK(rank(r).stream().beginCapture());
      for (size_t call : captured[g])
        ASSERT_OK(calls[call].enqueue(*op, rank(r), rank(r).stream()));
      auto graph = rank(r).stream().endCapture();
      ASSERT_OK(graph);
      graphs[g].push_back(std::move(graph).value());
    }
  std::mt19937_64 random(5);
  for (int replays = 0; replays < wanted && !HasFailure();) {
    // What the burst does: 0 to 3 a graph, 4 to 6 an eager call; each at most once, so that every result can be looked at.
    std::vector<size_t> burst = {0, 1, 2, 3, 4, 5, 6};
    std::ranges::shuffle(burst, random);
    burst.resize(1 + random() % burst.size());
    std::vector<size_t> made;
    for (size_t step : burst)
      if (step < captured.size())
        made.insert(made.end(), captured[step].begin(), captured[step].end());
      else
        made.push_back(step - captured.size() + sizes);
    for (size_t call : made)
      ASSERT_OK(calls[call].upload(random() % 8));
    for (uint32_t r = 0; r < ranks; ++r)
      for (size_t step : burst)
        ASSERT_OK(step < captured.size()
                      ? rank(r).stream().launch(graphs[step][r])
                      : calls[step - captured.size() + sizes].enqueue(*op, rank(r), rank(r).stream()));
    ASSERT_OK(world().synchronize());
    for (size_t step : burst)
      replays += step < captured.size();
    for (size_t call : made)
      calls[call].check(fmt::format("replay {}", replays));
  }
  // Without a pause: more is queued up than hardware holds.
  const std::vector<size_t> inGraphs = {0, 1, 2, 6, 7, 8};
  for (size_t call : inGraphs)
    ASSERT_OK(calls[call].upload(call));
  const size_t launches = std::max(graphs.size(), static_cast<size_t>(wanted) / 10);
  for (size_t replay = 0; replay < launches; ++replay)
    for (uint32_t r = 0; r < ranks; ++r)
      ASSERT_OK(rank(r).stream().launch(graphs[replay % graphs.size()][r]));
  ASSERT_OK(world().synchronize());
  for (size_t call : inGraphs)
    calls[call].check("without a pause");
}

/// Ranks 1 and 2 are in both groups, under other numbers; the groups know nothing of each other.
TEST_P(OperatorContract, TwoGroupsOnOverlappingRanks) {
  REQUIRE_RANKS(4);
  for (uint64_t seed : {1, 2}) {
    start(4, seeded(seed, static_cast<uint32_t>(seed)));
    auto first = world().group({0, 1, 2}), second = world().group({2, 3, 1});
    ASSERT_OK(first);
    ASSERT_OK(second);
    std::vector<Caller> callers;
    for (World *group : {first->get(), second->get()}) {
      auto made = caller(*group, GetParam(), 0, callers.size() + seed);
      ASSERT_OK(made);
      callers.push_back(std::move(made).value());
    }
    runTogether(callers, fmt::format("groups, seed {}", seed));
    if (HasFailure())
      return;
  }
}

/// Pairs of ranks around a ring: every rank is in two groups.
TEST_P(OperatorContract, RingOfGroups) {
  const uint32_t ranks = ranksOnTarget(4);
  if (ranks < 3)
    GTEST_SKIP() << "needs 3 GPUs";
  start(ranks, seeded(4, 0));
  std::vector<std::unique_ptr<World>> groups;
  std::vector<Caller> callers;
  for (uint32_t r = 0; r < ranks; ++r) {
    auto group = world().group({r, (r + 1) % ranks});
    ASSERT_OK(group);
    groups.push_back(std::move(group).value());
    auto made = caller(*groups.back(), GetParam(), 0, r);
    ASSERT_OK(made);
    callers.push_back(std::move(made).value());
  }
  runTogether(callers, "ring of groups");
}

/// This operator and another, each on a stream of its own, in other orders on the ranks. Over all entries each meets itself and others.
TEST_P(OperatorContract, TwoOperatorsOnTwoStreams) {
  const std::vector<ContractEntry> &table = operatorsUnderContract();
  const size_t own =
      static_cast<size_t>(std::ranges::find(table, GetParam().name, &ContractEntry::name) - table.begin());
  const uint32_t ranks = ranksOnTarget(4);
  for (size_t distance : {size_t{0}, size_t{1}, size_t{7}}) {
    const ContractEntry &other = companionOf(GetParam(), distance);
    start(ranks, seeded(distance + 1, static_cast<uint32_t>(own % ranks)), 2);
    std::vector<Caller> callers;
    for (const ContractEntry *entry : {&GetParam(), &other}) {
      auto made = caller(world(), *entry, 0, callers.size());
      ASSERT_OK(made);
      callers.push_back(std::move(made).value());
    }
    runTogether(callers, fmt::format("beside {}", other.name));
    if (HasFailure())
      return;
  }
}

/// Symmetric memory that is given out again as soon as it is free; the simulator's own is not, so that late uses are found.
class ReusedMemory {
public:
  static constexpr uint64_t bytes = 64 << 20;

  explicit ReusedMemory(World &world) : world(world) {
    runtime::AdoptedHeapOptions heap;
    heap.bytes = bytes;
    for (uint32_t r = 0; r < world.numRanks(); ++r) {
      if (isSimulated()) {
        pieces.push_back(std::aligned_alloc(4096, bytes));
        EXPECT_OK(world.rank(r).device()->adoptMemory(pieces.back(), bytes, heap.name, 1));
        heap.addresses.push_back(pieces.back());
      } else {
        auto buffer = world.rank(r).allocate(DataType::U8, bytes, heap.name);
        EXPECT_OK(buffer);
        heap.addresses.push_back(buffer->address());
        buffers.push_back(std::move(buffer).value());
      }
    }
    auto made = world.over(std::move(heap));
    EXPECT_OK(made);
    over = std::move(made).value();
  }
  ~ReusedMemory() {
    over.reset();
    for (uint32_t r = 0; r < pieces.size(); ++r) {
      EXPECT_OK(world.rank(r).device()->releaseMemory(pieces[r]));
      std::free(pieces[r]);
    }
  }
  World &operator*() { return *over; }

private:
  World &world;
  std::vector<void *> pieces;
  std::vector<Buffer> buffers;
  std::unique_ptr<World> over;
};

/// Others are made, run and destroyed between its calls, in the same memory; what they leave there harms nobody, and all of it comes
/// back.
TEST_P(OperatorContract, OperatorsComeAndGo) {
  if (GetParam().isBetweenNodes)
    GTEST_SKIP() << "worlds over memory that is given out again are of one node";
  start(ranksOnTarget(3), seeded(6, 0));
  ReusedMemory memory(world());
  const auto freePlace = [&] {
    auto probe = (*memory).allocateSymmetric(DataType::I64, 1, "probe");
    return probe.isOk() ? probe->offset() : 0;
  };
  const uint64_t before = freePlace();
  for (size_t round = 0; round < 2 && !HasFailure(); ++round) {
    auto passing = caller(*memory, companionOf(GetParam(), 3 * round + 1), 0, round);
    ASSERT_OK(passing);
    auto made = caller(*memory, GetParam(), 0, round);
    ASSERT_OK(made);
    std::vector<Caller> callers;
    callers.push_back(std::move(passing).value());
    callers.push_back(std::move(made).value());
    runTogether(callers, fmt::format("round {}", round));
    callers.erase(callers.begin());
    // In the memory that is free now.
    auto next = caller(*memory, companionOf(GetParam(), 5 * round + 2), 0, round + 1);
    ASSERT_OK(next);
    callers.push_back(std::move(next).value());
    for (ContractCall &call : callers.front().calls)
      ASSERT_OK(call.upload(round + 9));
    runTogether(callers, fmt::format("round {}, after one is gone", round));
  }
  EXPECT_EQ(freePlace(), before) << "symmetric memory was not given back";
}

/// Prepared again, an operator keeps what graphs have of it.
TEST_P(OperatorContract, PreparedAgainWhileGraphsLive) {
  const uint32_t ranks = ranksOnTarget(2);
  start(ranks, seeded(7));
  auto made = caller(world(), GetParam(), 0, 0);
  ASSERT_OK(made);
  std::vector<Graph> graphs;
  for (uint32_t r = 0; r < ranks; ++r) {
    ASSERT_OK(made->streams[r].beginCapture());
    for (size_t call = 0; call < made->calls.size(); ++call)
      ASSERT_OK(made->enqueue(r, call));
    auto graph = made->streams[r].endCapture();
    ASSERT_OK(graph);
    graphs.push_back(std::move(graph).value());
  }
  for (int turn = 0; turn < 3; ++turn) {
    for (const CallSizes &sizes : GetParam().typical)
      ASSERT_OK(prepareAll(world(), *made->op, sizes));
    for (size_t call = 0; call < made->calls.size(); ++call)
      ASSERT_OK(made->calls[call].upload(turn + call));
    for (uint32_t r = 0; r < ranks; ++r)
      ASSERT_OK(made->streams[r].launch(graphs[r]));
    ASSERT_OK(world().synchronize());
    for (ContractCall &call : made->calls)
      call.check(fmt::format("turn {}", turn));
  }
}

/// All calls are queued up; what a GPU leaves open is drawn anew each time, and the race detector watches.
TEST_P(OperatorContract, SilentUnderEverySchedule) {
  if (!isSimulated())
    GTEST_SKIP() << "the simulator draws schedules";
  const int schedules = casesWanted("CONTRACT_SCHEDULES", 5);
  for (int number = 1; number <= schedules && !HasFailure(); ++number) {
    const uint32_t ranks = 2 + static_cast<uint32_t>(number) % 3;
    start(ranks, seeded(1000 + static_cast<uint64_t>(number)), ranks == 4 ? 2 : 1);
    auto made = caller(world(), GetParam(), static_cast<uint64_t>(number) % 3, static_cast<uint64_t>(number));
    ASSERT_OK(made);
    std::vector<Caller> callers;
    callers.push_back(std::move(made).value());
    runTogether(callers, fmt::format("schedule {}", 1000 + number));
  }
}

} // namespace
} // namespace ditron::e2e
