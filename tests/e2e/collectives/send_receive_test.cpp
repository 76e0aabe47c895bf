//===- send_receive_test.cpp - Messages between pairs of ranks, and the barrier ----------------------------------===//
//
// Bytes are drawn at random and must arrive as they are, where they belong, and nowhere else: in random groups, to oneself, in a circle; of
// sizes that differ between the ends; messages that nobody receives. What ranks store before a barrier must be seen behind it.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "collectives/TransferTest.h"
#include "ditron/ops/collectives/Barrier.h"
#include "ditron/ops/collectives/SendReceive.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

using ops::Barrier;
using ops::SendReceive;
using testing::HasSubstr;

class SendReceives : public Transfers {
protected:
  struct Planned {
    uint32_t from = 0, to = 0;
    int64_t elements = 0, shift = 0;
  };

  struct Group {
    std::vector<SendReceive::Message> sends, receives;
    /// Whether there is a message for the peer at that end.
    bool has(bool isSend, uint32_t peer) const {
      return std::ranges::any_of(isSend ? sends : receives, [&](const auto &message) { return message.peer == peer; });
    }
  };

  /// All messages, on each rank in the order of the list: as one group, or each rank's `cut` at random into groups without two messages for one
  /// peer. All ends however the ranks cut: the first message that is not complete is in the running groups of both of its ranks.
  void runGroup(SendReceive &op, const std::vector<Planned> &messages, const std::string &what, bool cut = false) {
    const DataType type = op.options().dtype;
    struct Ends {
      Buffer source, target;
      Bytes given, expected;
    };
    std::vector<Ends> ends;
    std::vector<std::vector<Group>> groups(ranks(), std::vector<Group>(1));
    for (const Planned &message : messages) {
      Ends &end = ends.emplace_back();
      const uint64_t count = message.elements + message.shift + 3;
      end.source = zeros(type, count, "source", message.from);
      end.target = zeros(type, count, "target", message.to);
      end.given = randomBytes(end.source.bytes());
      end.expected = randomBytes(end.target.bytes());
      EXPECT_OK(end.source.upload(end.given.data(), end.given.size()));
      EXPECT_OK(end.target.upload(end.expected.data(), end.expected.size()));
      const int64_t begin = message.shift * sizeOf(type), bytes = message.elements * sizeOf(type);
      std::copy_n(end.given.begin() + begin, bytes, end.expected.begin() + begin);
      const auto groupFor = [&](uint32_t r, bool isSend, uint32_t peer) -> Group & {
        if (cut && (groups[r].back().has(isSend, peer) || (message.from != message.to && draw(0, 2) == 0)))
          groups[r].emplace_back();
        return groups[r].back();
      };
      groupFor(message.from, true, message.to)
          .sends.push_back({message.to, end.source.pointer() + message.shift, message.elements});
      groupFor(message.to, false, message.from)
          .receives.push_back({message.from, end.target.pointer() + message.shift, message.elements});
    }
    ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
      for (const Group &group : groups[me.id()])
        DITRON_RETURN_IF_ERROR(op.enqueue(me, me.stream(), group.sends, group.receives));
      return me.stream().synchronize();
    }));
    for (uint32_t r = 0; r < ranks(); ++r)
      EXPECT_OK(op.check(rank(r)));
    for (size_t i = 0; i < ends.size(); ++i) {
      Bytes bytes(ends[i].target.bytes());
      EXPECT_OK(ends[i].target.download(bytes.data(), bytes.size()));
      EXPECT_TRUE(bytes == ends[i].expected) << what << ": message " << i << ", " << messages[i].from << " to "
                                             << messages[i].to << ", " << messages[i].elements << " elements";
    }
  }

  std::vector<Planned> randomGroup(int64_t most) {
    std::vector<Planned> messages;
    for (int64_t i = draw(1, 2 * ranks()); i > 0; --i)
      messages.push_back({static_cast<uint32_t>(draw(0, ranks() - 1)), static_cast<uint32_t>(draw(0, ranks() - 1)),
                          draw(0, 3) == 0 ? 0 : draw(1, most), draw(0, 3) == 0 ? 1 : 0});
    return messages;
  }
};

TEST_F(SendReceives, RandomGroupsOnOneToEightRanks) {
  for (uint32_t wanted = 1; wanted <= 8; ++wanted) {
    if (ranksOnTarget(wanted) != wanted)
      continue;
    start(wanted, seeded(wanted, wanted - 1, 5));
    for (DataType type : {DataType::BF16, DataType::U8, DataType::F64}) {
      auto op = SendReceive::create(world(), sharedJit(), {.dtype = type, .plan = smallRings});
      ASSERT_OK(op);
      for (int group = 0; group < 4; ++group) {
        runGroup(*op, randomGroup(3000), fmt::format("{} ranks, {}, group {}", wanted, toString(type), group));
        if (HasFatalFailure() || HasFailure())
          return;
      }
    }
  }
}

TEST_F(SendReceives, AnySchedule) {
  if (!isSimulated())
    GTEST_SKIP() << "the simulator draws schedules";
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    start(3, seeded(seed, seed % 3, 3));
    auto op = SendReceive::create(world(), sharedJit(), {.plan = smallRings});
    ASSERT_OK(op);
    for (int group = 0; group < 3; ++group)
      runGroup(*op, randomGroup(2500), fmt::format("seed {}, group {}", seed, group));
    if (HasFatalFailure() || HasFailure())
      return;
  }
}

TEST_F(SendReceives, CircleInAGraphWithTheLibrarysPlan) {
  start(ranksOnTarget(4), seeded(2, 0, 4));
  auto op = SendReceive::create(world(), sharedJit(), {.dtype = DataType::F32});
  ASSERT_OK(op);
  const int64_t n = isSimulated() ? 50001 : 5000001;
  std::vector<Buffer> x, y;
  std::vector<runtime::Graph> graphs;
  for (uint32_t r = 0; r < ranks(); ++r) {
    x.push_back(zeros(DataType::F32, n, "x", r));
    y.push_back(zeros(DataType::F32, n, "y", r));
    ASSERT_OK(op->prepare(rank(r)));
  }
  for (uint32_t r = 0; r < ranks(); ++r) {
    ASSERT_OK(rank(r).stream().beginCapture());
    const SendReceive::Message send{(r + 1) % ranks(), x[r], n}, receive{(r + ranks() - 1) % ranks(), y[r], n};
    ASSERT_OK(op->enqueue(rank(r), rank(r).stream(), {&send, 1}, {&receive, 1}));
    auto graph = rank(r).stream().endCapture();
    ASSERT_OK(graph);
    graphs.push_back(*graph);
  }
  const int replays = isSimulated() ? 3 : 50;
  for (int replay = 0; replay < replays; ++replay) {
    std::vector<Bytes> given;
    for (uint32_t r = 0; r < ranks(); ++r) {
      given.push_back(randomBytes(x[r].bytes()));
      ASSERT_OK(x[r].upload(given[r].data(), given[r].size()));
    }
    ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
      DITRON_RETURN_IF_ERROR(me.stream().launch(graphs[me.id()]));
      return me.stream().synchronize();
    }));
    for (uint32_t r = 0; r < ranks(); ++r) {
      Bytes bytes(y[r].bytes());
      ASSERT_OK(y[r].download(bytes.data(), bytes.size()));
      ASSERT_TRUE(bytes == given[(r + ranks() - 1) % ranks()]) << "replay " << replay << ", rank " << r;
    }
  }
}

/// A message waits for its own receiver, not for those of others in its group. Messages are larger than a ring.
TEST_F(SendReceives, GroupsThatRanksCutDifferently) {
  for (uint32_t wanted = 2; wanted <= 5; ++wanted) {
    if (ranksOnTarget(wanted) != wanted)
      continue;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      start(wanted, seeded(seed, seed % wanted, 4));
      auto op = SendReceive::create(world(), sharedJit(), {.dtype = DataType::U8, .plan = smallRings});
      ASSERT_OK(op);
      for (int group = 0; group < 3; ++group) {
        runGroup(*op, randomGroup(12000), fmt::format("{} ranks, seed {}, group {}", wanted, seed, group), true);
        if (HasFatalFailure() || HasFailure())
          return;
      }
    }
  }
}

/// Nothing is stored, both ranks go on, and the receiver is told.
TEST_F(SendReceives, SizesThatDiffer) {
  REQUIRE_RANKS(2);
  start(2, seeded(3));
  auto op = SendReceive::create(world(), sharedJit(), {.dtype = DataType::I32, .plan = smallRings});
  ASSERT_OK(op);
  for (const auto &[sent, wanted] : {std::pair{1000, 999}, {0, 7}, {7, 0}, {40, 5000}, {5000, 40}}) {
    Buffer source = zeros(DataType::I32, 5000, "source"),
           target = put<int32_t>(std::vector<int32_t>(5000, 3), "target", 1);
    ASSERT_OK(world().runRanks([&, sent = sent, wanted = wanted](Rank &me) -> Status {
      const SendReceive::Message send{1, source, sent}, receive{0, target, wanted};
      if (me.id() == 0)
        DITRON_RETURN_IF_ERROR(op->enqueue(me, me.stream(), {&send, 1}, {}));
      else
        DITRON_RETURN_IF_ERROR(op->enqueue(me, me.stream(), {}, {&receive, 1}));
      return me.stream().synchronize();
    }));
    EXPECT_OK(op->check(rank(0)));
    EXPECT_THAT(op->check(rank(1)).message(),
                HasSubstr(fmt::format("send_receive on rank 1: rank 0 has sent {} elements, and {} were to be received",
                                      sent, wanted)));
    EXPECT_OK(op->check(rank(1)));
    expectSame(get<int32_t>(target), std::vector<int32_t>(5000, 3));
    runGroup(*op, {{0, 1, 1234}, {1, 0, 77}}, "afterwards");
    if (HasFailure())
      return;
  }
}

/// The report names the word, what it is and what it would have to be, and who could raise it.
TEST_F(SendReceives, AMessageThatNobodyReceives) {
  if (!isSimulated())
    GTEST_SKIP() << "a GPU waits until its time is over";
  for (const bool isSent : {true, false}) {
    start(2);
    auto op = SendReceive::create(world(), sharedJit(), {.plan = smallRings});
    ASSERT_OK(op);
    Buffer data = zeros(DataType::BF16, 10, "data", 0);
    const SendReceive::Message message{1, data, 10};
    const std::span<const SendReceive::Message> group(&message, 1), none;
    ASSERT_OK(op->enqueue(rank(0), rank(0).stream(), isSent ? group : none, isSent ? none : group));
    const Status status = world().synchronize();
    EXPECT_EQ(status.code(), StatusCode::Deadlock);
    EXPECT_THAT(status.message(), HasSubstr("rank 0, kernel send_receive at "));
    EXPECT_THAT(status.message(),
                HasSubstr(isSent ? "waits for send_receive_taken[1] on rank 0: has 0, wants >= 1; never written"
                                 : "waits for send_receive_arrived[1] on rank 0: has 0, wants >= 1; never written"));
    EXPECT_THAT(status.message(), HasSubstr("rank 1:\n    idle"));
  }
}

TEST_F(SendReceives, SeveralMessagesThatNobodyReceives) {
  if (!isSimulated())
    GTEST_SKIP() << "the simulator finds deadlocks";
  start(3, seeded(3));
  auto op = SendReceive::create(world(), sharedJit(), {.dtype = DataType::U8, .plan = smallRings});
  ASSERT_OK(op);
  Buffer x = zeros(DataType::U8, 5000, "x", 0);
  const SendReceive::Message sends[] = {{1, x, 5000}, {2, x, 5000}};
  ASSERT_OK(op->enqueue(rank(0), rank(0).stream(), sends, {}));
  const Status status = rank(0).stream().synchronize();
  EXPECT_EQ(status.code(), StatusCode::Deadlock) << status.message();
  for (uint32_t peer : {1, 2})
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(fmt::format("waits for send_receive_taken[{}] on rank 0: has 0, polls it", peer)));
}

TEST_F(SendReceives, Refusals) {
  start(ranksOnTarget(2));
  auto op = SendReceive::create(world(), sharedJit(), {});
  ASSERT_OK(op);
  Buffer x = zeros(DataType::BF16, 8, "x"), wrong = zeros(DataType::F32, 8, "x");
  const auto error = [&](const SendReceive::Message &message) {
    return std::string(op->enqueue(rank(0), rank(0).stream(), {&message, 1}, {}).message());
  };
  EXPECT_THAT(error({9, x, 8}), HasSubstr("send_receive on rank 0: a send to rank 9; 0 to "));
  EXPECT_THAT(error({0, x, -1}), HasSubstr("of -1 elements"));
  EXPECT_THAT(error({0, wrong, 8}), HasSubstr("of type fp32"));
  EXPECT_THAT(std::string(SendReceive::create(world(), sharedJit(), {.dtype = DataType::I1}).status().message()),
              HasSubstr("u8"));
  ASSERT_OK(rank(0).stream().beginCapture());
  EXPECT_THAT(error({0, x, 8}), HasSubstr("call prepare"));
  (void)rank(0).stream().endCapture();
  // A rank of a larger world, whose number this one does not have.
  auto other = runtime::World::local(ranksOnTarget(3), targetUnderTest());
  ASSERT_OK(other);
  Rank &strange = (*other)->rank((*other)->numRanks() - 1);
  EXPECT_THAT(op->prepare(strange).message(), HasSubstr("of another world"));
  EXPECT_THAT(op->enqueue(strange, strange.stream(), {}, {}).message(), HasSubstr("of another world"));
}

class Barriers : public KernelTest {};

/// What ranks store before it is seen behind it, call after call, from graphs too.
constexpr std::string_view ring = R"(
@triton.jit
def give(box, round, rank, WORLD: tl.constexpr):
    for peer in tl.static_range(WORLD):
        tl.store(dl.symm_at(box, peer) + rank, tl.load(round) + rank)

@triton.jit
def look(box, round, seen, WORLD: tl.constexpr):
    wrong = 0
    for peer in tl.static_range(WORLD):
        wrong += (tl.load(box + peer) != tl.load(round) + peer).to(tl.int32)
    tl.store(seen, tl.load(seen) + wrong)
    tl.store(round, tl.load(round) + 1)
)";

TEST_F(Barriers, OnOneToEightRanks) {
  for (uint32_t wanted = 1; wanted <= 8; ++wanted) {
    if (ranksOnTarget(wanted) != wanted)
      continue;
    start(wanted, seeded(wanted, wanted - 1, 6));
    auto barrier = Barrier::create(world(), sharedJit());
    ASSERT_OK(barrier);
    SymmetricBuffer box = symmetric(DataType::I32, wanted, "box");
    std::vector<Buffer> round, seen;
    const auto enqueueRound = [&](uint32_t r) -> Status {
      DITRON_RETURN_IF_ERROR(launch(ring, "give", {.numWarps = 1}, {{box.on(r), round[r], r}, {{"WORLD", wanted}}}, r));
      DITRON_RETURN_IF_ERROR(barrier->enqueue(rank(r), rank(r).stream()));
      DITRON_RETURN_IF_ERROR(
          launch(ring, "look", {.numWarps = 1}, {{box.on(r), round[r], seen[r]}, {{"WORLD", wanted}}}, r));
      return barrier->enqueue(rank(r), rank(r).stream());
    };
    for (uint32_t r = 0; r < wanted; ++r) {
      round.push_back(put<int32_t>({1000}, "round", r));
      seen.push_back(zeros(DataType::I32, 1, "seen", r));
      ASSERT_OK(barrier->prepare(rank(r)));
    }
    constexpr int eager = 4, replays = 4;
    for (int i = 0; i < eager; ++i)
      for (uint32_t r = 0; r < wanted; ++r)
        ASSERT_OK(enqueueRound(r));
    ASSERT_OK(world().synchronize());
    std::vector<runtime::Graph> graphs;
    for (uint32_t r = 0; r < wanted; ++r) {
      ASSERT_OK(rank(r).stream().beginCapture());
      ASSERT_OK(enqueueRound(r));
      auto graph = rank(r).stream().endCapture();
      ASSERT_OK(graph);
      graphs.push_back(*graph);
    }
    for (int i = 0; i < replays; ++i)
      for (uint32_t r = 0; r < wanted; ++r)
        ASSERT_OK(rank(r).stream().launch(graphs[r]));
    ASSERT_OK(world().synchronize());
    for (uint32_t r = 0; r < wanted; ++r) {
      EXPECT_EQ(get<int32_t>(round[r])[0], 1000 + eager + replays);
      EXPECT_EQ(get<int32_t>(seen[r])[0], 0) << wanted << " ranks, rank " << r;
    }
  }
}

TEST_F(Barriers, OfAGroup) {
  REQUIRE_RANKS(3);
  start(3, seeded(5, 2, 8));
  auto group = world().group({0, 2});
  ASSERT_OK(group);
  auto barrier = Barrier::create(**group, sharedJit());
  ASSERT_OK(barrier);
  const auto enqueue = [&](uint32_t member) {
    return barrier->enqueue((*group)->rank(member), (*group)->rank(member).stream());
  };
  for (int i = 0; i < 3; ++i)
    for (uint32_t member : {0, 1})
      ASSERT_OK(enqueue(member));
  ASSERT_OK(world().synchronize()); // without rank 1 of the world
  EXPECT_THAT(barrier->enqueue(rank(2), rank(2).stream()).message(), HasSubstr("of another world"));
  EXPECT_THAT(barrier->prepare(rank(2)).message(), HasSubstr("of another world"));
  ASSERT_OK(rank(0).stream().beginCapture());
  auto other = Barrier::create(world(), sharedJit());
  ASSERT_OK(other);
  EXPECT_THAT(other->enqueue(rank(0), rank(0).stream()).message(), HasSubstr("it was not prepared on rank 0"));
  (void)rank(0).stream().endCapture();
  if (!isSimulated())
    return;
  ASSERT_OK(enqueue(0));
  const Status status = world().synchronize();
  EXPECT_EQ(status.code(), StatusCode::Deadlock);
  EXPECT_THAT(status.message(), HasSubstr("barrier_entered[1] on rank 0: has 3, wants >= 4"));
}

} // namespace
} // namespace ditron::e2e
