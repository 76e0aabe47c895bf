//===- distributed_test.cpp - Several ranks: symmetric memory, signals, waits -----------------------------------------===//
//
// Every test runs with two seeds and with one slow rank, so that the ranks meet in different orders.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

/// (ranks, seed, slow rank or -1)
using Setting = std::tuple<uint32_t, uint64_t, int>;

class Distributed : public KernelTest, public testing::WithParamInterface<Setting> {
protected:
  void SetUp() override {
    auto [count, seed, slow] = GetParam();
    ranks = count;
    REQUIRE_RANKS(ranks);
    start(ranks, seeded(seed, slow < 0 ? std::nullopt : std::optional<uint32_t>(slow % ranks)));
  }
  /// Enqueues the kernel on every rank with the arguments of that rank, then waits for all.
  Status runEverywhere(std::string_view text, std::string_view kernel, const LaunchShape &shape,
                       const std::function<jit::CallArguments(uint32_t)> &argumentsOf) {
    for (uint32_t r = 0; r < ranks; ++r)
      DITRON_RETURN_IF_ERROR(launch(text, kernel, shape, argumentsOf(r), r));
    return world().synchronize();
  }
  /// One buffer of zeros on each rank.
  std::vector<Buffer> everywhere(DataType type, uint64_t count, std::string_view name) {
    std::vector<Buffer> buffers;
    for (uint32_t r = 0; r < ranks; ++r)
      buffers.push_back(zeros(type, count, name, r));
    return buffers;
  }
  uint32_t ranks = 1;
};

std::string settingName(const testing::TestParamInfo<Setting> &info) {
  auto [ranks, seed, slow] = info.param;
  return fmt::format("ranks{}_seed{}{}", ranks, seed, slow < 0 ? "" : "_slow" + std::to_string(slow));
}
INSTANTIATE_TEST_SUITE_P(Worlds, Distributed,
                         testing::Values(Setting(1, 0, -1), Setting(2, 1, -1), Setting(2, 2, 1), Setting(4, 1, -1),
                                         Setting(4, 2, 0), Setting(8, 1, -1), Setting(8, 2, 5)),
                         settingName);

TEST_P(Distributed, RanksKnowThemselves) {
  const char *text = R"(
@triton.jit
def who(out_ptr):
    tl.store(out_ptr, dl.rank())
    tl.store(out_ptr + 1, dl.num_ranks())
)";
  std::vector<Buffer> out = everywhere(DataType::I32, 2, "out");
  ASSERT_OK(runEverywhere(text, "who", {.numWarps = 1}, [&](uint32_t r) { return jit::CallArguments{{out[r]}, {}}; }));
  for (uint32_t r = 0; r < ranks; ++r)
    expectSame(get<int32_t>(out[r]), {int32_t(r), int32_t(ranks)});
}

/// The kernel of README.md, word for word.
const char *const ring = R"(
@triton.jit
def ring(x_ptr, inbox_ptr, signal_ptr, out_ptr, n, BLOCK: tl.constexpr):
    rank = dl.rank()
    world = dl.num_ranks()
    right = (rank + 1) % world
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(dl.symm_at(inbox_ptr, right) + offsets, x, mask=mask)
    dl.notify(signal_ptr, right, signal=1, sig_op="set", comm_scope="intra_node")
    token = dl.wait(signal_ptr, 1, "sys", "acquire", waitValue=1)
    inbox_ptr = dl.consume_token(inbox_ptr, token)
    tl.store(out_ptr + offsets, x + tl.load(inbox_ptr + offsets, mask=mask), mask=mask)
)";

TEST_P(Distributed, RingOfTheReadme) {
  const int n = 100;
  SymmetricBuffer inbox = symmetric(DataType::F32, n, "inbox"), signal = symmetric(DataType::I64, 1, "signal");
  std::vector<Buffer> x, out = everywhere(DataType::F32, n, "out");
  std::vector<std::vector<float>> data;
  for (uint32_t r = 0; r < ranks; ++r) {
    data.push_back(randomFloats(n, 100 + r));
    x.push_back(put(data[r], "x", r));
  }
  ASSERT_OK(runEverywhere(ring, "ring", {}, [&](uint32_t r) {
    return jit::CallArguments{{x[r], inbox.on(r), signal.on(r), out[r], n}, {{"BLOCK", 128}}};
  }));
  for (uint32_t r = 0; r < ranks; ++r) {
    std::vector<float> expected(n);
    for (int i = 0; i < n; ++i)
      expected[i] = data[r][i] + data[(r + ranks - 1) % ranks][i];
    expectSame(get<float>(out[r]), expected, fmt::format("rank {}", r));
  }
}

/// Every rank adds to everyone's counter and waits until all have.
TEST_P(Distributed, NotifyAddsAndWaitCompares) {
  const char *text = R"(
@triton.jit
def count(counter_ptr, out_ptr, WORLD: tl.constexpr):
    for r in range(WORLD):
        dl.notify(counter_ptr, r, signal=dl.rank() + 1, sig_op="add", comm_scope="inter_node")
    token = dl.wait(counter_ptr, 1, "sys", "acquire", waitValue=WORLD * (WORLD + 1) // 2)
    counter_ptr = dl.consume_token(counter_ptr, token)
    tl.store(out_ptr, tl.load(counter_ptr))
)";
  for (DataType type : {DataType::I64, DataType::U64, DataType::I32}) {
    SymmetricBuffer counter = symmetric(type, 1, "counter");
    std::vector<Buffer> out = everywhere(DataType::I64, 1, "out");
    ASSERT_OK(runEverywhere(text, "count", {.numWarps = 2}, [&](uint32_t r) {
      return jit::CallArguments{{counter.on(r), out[r]}, {{"WORLD", ranks}}};
    }));
    for (uint32_t r = 0; r < ranks; ++r)
      expectSame(get<int64_t>(out[r]), {int64_t(ranks * (ranks + 1) / 2)}, toString(type));
  }
}

/// Sums over all ranks and stores to all ranks, each by one access. GPUs need multicast memory for it, which the runtime does not map.
TEST_P(Distributed, MulticastAccessesReachAllRanks) {
  if (!isSimulated())
    GTEST_SKIP() << "needs a multicast address";
  const char *text = R"(
@triton.jit
def fill(x_ptr):
    for i in range(4):
        st(x_ptr + tid(0) * 4 + i, tl.cast((dl.rank() + 1) * (tid(0) * 4 + i), tl.float32))

@triton.jit
def spread(x_ptr, all_ptr, words_ptr, flags_ptr):
    thread = tid(0)
    a, b, c, d = multimem_ld_reduce_v4(x_ptr + thread * 4)
    if thread % dl.num_ranks() == dl.rank():
        multimem_st_v4(all_ptr + thread * 4, a, b, c, d)
        multimem_st_b64(words_ptr + thread, tl.cast(thread, tl.int64) << 32)
        multimem_st_b32(flags_ptr + thread, dl.rank() + 1)

@triton.jit
def collect(all_ptr, words_ptr, flags_ptr, out_ptr, out_words_ptr):
    i = tl.arange(0, 128)
    tl.store(out_ptr + i, tl.load(all_ptr + i))
    j = tl.arange(0, 32)
    tl.store(out_words_ptr + j, tl.load(words_ptr + j) + tl.load(flags_ptr + j))
)";
  const int threads = 32;
  SymmetricBuffer x = symmetric(DataType::F32, 4 * threads, "x"), all = symmetric(DataType::F32, 4 * threads, "all"),
                  words = symmetric(DataType::I64, threads, "words"),
                  flags = symmetric(DataType::I32, threads, "flags");
  std::vector<Buffer> out = everywhere(DataType::F32, 4 * threads, "out"),
                      outWords = everywhere(DataType::I64, threads, "words");
  ASSERT_OK(
      runEverywhere(text, "fill", {.numWarps = 1}, [&](uint32_t r) { return jit::CallArguments{{x.on(r)}, {}}; }));
  ASSERT_OK(runEverywhere(text, "spread", {.numWarps = 1}, [&](uint32_t r) {
    return jit::CallArguments{{x.on(r), all.on(r), words.on(r), flags.on(r)}, {}};
  }));
  ASSERT_OK(runEverywhere(text, "collect", {.numWarps = 1}, [&](uint32_t r) {
    return jit::CallArguments{{all.on(r), words.on(r), flags.on(r), out[r], outWords[r]}, {}};
  }));
  for (uint32_t r = 0; r < ranks; ++r) {
    std::vector<float> sums;
    std::vector<int64_t> marks;
    for (int i = 0; i < 4 * threads; ++i)
      sums.push_back(static_cast<float>(ranks * (ranks + 1) / 2 * i));
    for (int64_t thread = 0; thread < threads; ++thread)
      marks.push_back((thread << 32) + thread % ranks + 1);
    expectSame(get<float>(out[r]), sums, fmt::format("rank {}", r));
    expectSame(get<int64_t>(outWords[r]), marks, fmt::format("rank {}", r));
  }
}

/// All-to-all, pushed by one block per peer; the consumer's blocks wait for all words at once.
TEST_P(Distributed, AllToAllWaitsForSeveralWords) {
  const char *text = R"(
@triton.jit
def all_to_all(x_ptr, inbox_ptr, signal_ptr, out_ptr, n, BLOCK: tl.constexpr):
    me = dl.rank()
    world = dl.num_ranks()
    peer = (me + tl.program_id(0)) % world
    i = tl.arange(0, BLOCK)
    mask = i < n
    tl.store(dl.symm_at(inbox_ptr, peer) + me * n + i, tl.load(x_ptr + peer * n + i, mask=mask), mask=mask)
    dl.notify(signal_ptr + me, peer, signal=7, sig_op="set")
    if tl.program_id(0) == world - 1:
        token = dl.wait(signal_ptr, world, "sys", "acquire", waitValue=7)
        inbox_ptr = dl.consume_token(inbox_ptr, token)
        for r in range(0, world):
            tl.store(out_ptr + r * n + i, tl.load(inbox_ptr + r * n + i, mask=mask), mask=mask)
)";
  const int n = 70;
  SymmetricBuffer inbox = symmetric(DataType::I32, ranks * n, "inbox"),
                  signal = symmetric(DataType::I64, ranks, "signal");
  std::vector<Buffer> x, out = everywhere(DataType::I32, ranks * n, "out");
  for (uint32_t r = 0; r < ranks; ++r) {
    std::vector<int32_t> data(ranks * n);
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = int32_t(r * 100000 + i);
    x.push_back(put(data, "x", r));
  }
  ASSERT_OK(runEverywhere(text, "all_to_all", {.grid = {ranks, 1, 1}}, [&](uint32_t r) {
    return jit::CallArguments{{x[r], inbox.on(r), signal.on(r), out[r], n}, {{"BLOCK", 128}}};
  }));
  for (uint32_t r = 0; r < ranks; ++r) {
    std::vector<int32_t> expected;
    for (uint32_t from = 0; from < ranks; ++from)
      for (int i = 0; i < n; ++i)
        expected.push_back(int32_t(from * 100000 + r * n + i));
    expectSame(get<int32_t>(out[r]), expected, fmt::format("rank {}", r));
  }
}

/// Pulling: reads through symm_at after a barrier made of single words per rank.
TEST_P(Distributed, RemoteReadsAfterABarrier) {
  const char *text = R"(
@triton.jit
def barrier_all(word_ptr, generation):
    __syncthreads()
    thread = tid(0)
    if thread < dl.num_ranks():
        st(dl.symm_at(word_ptr, thread) + dl.rank(), generation, scope="sys", semantic="release")
        while ld(word_ptr + thread, scope="sys", semantic="acquire") < generation:
            pass
    __syncthreads()

@triton.jit
def reduce_all(data_ptr, word_ptr, out_ptr, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for round in range(ROUNDS):
        tl.store(data_ptr + i, (dl.rank() + 1) * (round + 1) + i)
        barrier_all(word_ptr, (2 * round + 1).to(tl.int64))
        total = tl.zeros([BLOCK], tl.int32)
        for r in range(dl.num_ranks()):
            total += tl.load(dl.symm_at(data_ptr, r) + i)
        tl.store(out_ptr + round * BLOCK + i, total)
        barrier_all(word_ptr, (2 * round + 2).to(tl.int64))
)";
  const int block = 64, rounds = 3;
  SymmetricBuffer data = symmetric(DataType::I32, block, "data"), word = symmetric(DataType::I64, ranks, "word");
  std::vector<Buffer> out = everywhere(DataType::I32, block * rounds, "out");
  ASSERT_OK(runEverywhere(text, "reduce_all", {.numWarps = 2}, [&](uint32_t r) {
    return jit::CallArguments{{data.on(r), word.on(r), out[r]}, {{"ROUNDS", rounds}, {"BLOCK", block}}};
  }));
  std::vector<int32_t> expected;
  for (int round = 0; round < rounds; ++round)
    for (int i = 0; i < block; ++i)
      expected.push_back(int32_t(ranks * (ranks + 1) / 2) * (round + 1) + i * int32_t(ranks));
  for (uint32_t r = 0; r < ranks; ++r)
    expectSame(get<int32_t>(out[r]), expected, fmt::format("rank {}", r));
}

/// Atomics on another rank's memory, by threads and by blocks.
TEST_P(Distributed, RemoteAtomics) {
  const char *text = R"(
@triton.jit
def remote(sum_ptr, ticket_ptr, out_ptr, N: tl.constexpr):
    target = (dl.rank() + 1) % dl.num_ranks()
    tl.atomic_add(dl.symm_at(sum_ptr, target) + tl.arange(0, N), 1, sem="release", scope="sys")
    thread = tid(0)
    if thread < 4:
        ticket = atomic_add(dl.symm_at(ticket_ptr, 0), 1, scope="sys", semantic="acq_rel")
        st(dl.symm_at(out_ptr, 0) + ticket, dl.rank(), scope="sys", semantic="relaxed")
)";
  const uint32_t blocks = 3, n = 32;
  SymmetricBuffer sum = symmetric(DataType::I32, n, "sum"), ticket = symmetric(DataType::I32, 1, "ticket"),
                  out = symmetric(DataType::I32, ranks * blocks * 4, "out");
  ASSERT_OK(runEverywhere(text, "remote", {.grid = {blocks, 1, 1}, .numWarps = 1}, [&](uint32_t r) {
    return jit::CallArguments{{sum.on(r), ticket.on(r), out.on(r)}, {{"N", n}}};
  }));
  for (uint32_t r = 0; r < ranks; ++r)
    expectSame(get<int32_t>(sum, r), std::vector<int32_t>(n, blocks));
  std::vector<int32_t> who = get<int32_t>(out, 0);
  std::vector<int> seen(ranks);
  for (int32_t each : who)
    ++seen.at(each);
  EXPECT_EQ(seen, std::vector<int>(ranks, blocks * 4));
}

/// Producer and consumer kernels on two streams of a rank, ordered by signals with generations only; the copies are made by
/// the copy engine.
TEST_P(Distributed, StreamsCopiesAndSignals) {
  const char *text = R"(
@triton.jit
def consume(inbox_ptr, ready_ptr, out_ptr, generation, n, BLOCK: tl.constexpr):
    source = tl.program_id(0)
    token = dl.wait(ready_ptr + source, 1, "sys", "acquire", waitValue=generation, compare="ge")
    inbox_ptr = dl.consume_token(inbox_ptr, token)
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + source * n + i, tl.load(inbox_ptr + source * n + i, mask=i < n) * 2, mask=i < n)
)";
  const int n = 90;
  SymmetricBuffer inbox = symmetric(DataType::F32, ranks * n, "inbox"),
                  ready = symmetric(DataType::I64, ranks, "ready");
  std::vector<Buffer> out = everywhere(DataType::F32, ranks * n, "out"), x = everywhere(DataType::F32, n, "x");
  for (int64_t generation = 1; generation <= 3; ++generation) {
    ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
      const uint32_t r = me.id();
      DITRON_RETURN_IF_ERROR(x[r].uploadFloats(randomFloats(n, 1000 * generation + r)));
      DITRON_ASSIGN_OR_RETURN(runtime::Stream copies, me.createStream("copies"));
      DITRON_RETURN_IF_ERROR(launch(
          text, "consume", {.grid = {ranks, 1, 1}, .numWarps = 2},
          {{inbox.on(r), ready.on(r), out[r], Argument::typed(DataType::I64, generation), n}, {{"BLOCK", 128}}}, r));
      for (uint32_t step = 0; step < ranks; ++step) {
        uint32_t to = (r + step) % ranks;
        DITRON_RETURN_IF_ERROR(copies.copy(inbox.on(to) + r * n, x[r], n, "push"));
        DITRON_RETURN_IF_ERROR(copies.signalWrite(ready.on(to) + r, generation));
      }
      DITRON_RETURN_IF_ERROR(me.stream().synchronize());
      DITRON_RETURN_IF_ERROR(copies.synchronize());
      return me.hostBarrier();
    }));
    for (uint32_t r = 0; r < ranks; ++r) {
      std::vector<float> expected;
      for (uint32_t from = 0; from < ranks; ++from)
        for (float each : randomFloats(n, 1000 * generation + from))
          expected.push_back(each * 2);
      expectSame(get<float>(out[r]), expected, fmt::format("generation {}, rank {}", generation, r));
    }
  }
}

/// Tiles that need no flag: elements that are not 0 have come. Stores that others read at the same time are volatile, and so are those loads.
TEST_P(Distributed, TilesOfWhichEachElementIsItsFlag) {
  const char *text = R"(
@triton.jit
def exchange(inbox_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    value = tl.cast(i + 1000 * (dl.rank() + 1), inbox_ptr.dtype.element_ty)
    for peer in range(dl.num_ranks()):
        tl.store(dl.symm_at(inbox_ptr, peer) + dl.rank() * n + i, value, mask=mask, volatile=True)
    for source in range(dl.num_ranks()):
        found = tl.zeros((BLOCK,), inbox_ptr.dtype.element_ty)
        while tl.min(tl.where(mask & (found == 0), 0, 1)) == 0:
            found = tl.load(inbox_ptr + source * n + i, mask=mask, volatile=True)
        tl.store(out_ptr + source * n + i, found, mask=mask)
)";
  const int n = 203;
  for (const DataType type : {DataType::I16, DataType::I32}) {
    SymmetricBuffer inbox = symmetric(type, ranks * n, "inbox");
    std::vector<Buffer> out = everywhere(type, ranks * n, "out");
    ASSERT_OK(runEverywhere(text, "exchange", {.numWarps = 2}, [&](uint32_t r) {
      return jit::CallArguments{{inbox.on(r), out[r], n}, {{"BLOCK", 256}}};
    }));
    std::vector<int32_t> expected;
    for (uint32_t source = 0; source < ranks; ++source)
      for (int i = 0; i < n; ++i)
        expected.push_back(i + 1000 * int32_t(source + 1));
    for (uint32_t r = 0; r < ranks; ++r) {
      const std::vector<int32_t> found = type == DataType::I32 ? get<int32_t>(out[r]) : [&] {
        const std::vector<int16_t> narrow = get<int16_t>(out[r]);
        return std::vector<int32_t>(narrow.begin(), narrow.end());
      }();
      expectSame(found, expected, fmt::format("{}, rank {}", toString(type), r));
    }
  }
}

/// Of a small tile all warps have copies. A volatile load of it gives all of them the same, whoever raises a flag meanwhile: else warps would leave the loop at different times.
TEST_P(Distributed, WarpsAgreeOnFlagsThatAreRaisedMeanwhile) {
  const char *text = R"(
@triton.jit
def meet(flags_ptr, out_ptr, RANKS: tl.constexpr, BLOCK: tl.constexpr):
    thread = tid(0)
    if thread < RANKS:
        st(dl.symm_at(flags_ptr, thread) + dl.rank(), 1, scope="sys", semantic="release")
    raised = 0
    turns = 0
    while raised != RANKS:
        raised = tl.sum(tl.load(flags_ptr + tl.arange(0, RANKS), volatile=True))
        turns += tl.sum(tl.full((BLOCK,), 1, tl.int32))
    tl.store(out_ptr, raised)
    tl.store(out_ptr + 1, turns % BLOCK)
)";
  for (int call = 0; call < 3; ++call) {
    SymmetricBuffer flags = symmetric(DataType::I32, ranks, "flags");
    std::vector<Buffer> out = everywhere(DataType::I32, 2, "out");
    ASSERT_OK(runEverywhere(text, "meet", {.numWarps = 4}, [&](uint32_t r) {
      return jit::CallArguments{{flags.on(r), out[r]}, {{"RANKS", ranks}, {"BLOCK", 256}}};
    }));
    for (uint32_t r = 0; r < ranks; ++r)
      expectSame(get<int32_t>(out[r]), {int32_t(ranks), 0}, fmt::format("call {}, rank {}", call, r));
  }
}

/// The same of one word: a scalar is one value of the block, also where others change it while its threads look.
TEST_P(Distributed, ThreadsAgreeOnAWordThatIsChangedMeanwhile) {
  const char *text = R"(
@triton.jit
def meet(count_ptr, out_ptr, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    wanted = ROUNDS * dl.num_ranks()
    seen = 0
    sum = 0
    turns = 0
    while seen != wanted:
        if turns < ROUNDS:
            for step in range(dl.num_ranks()):
                tl.atomic_add(dl.symm_at(count_ptr, (dl.rank() + step) % dl.num_ranks()), 1, sem="relaxed", scope="sys")
        seen = tl.load(count_ptr, volatile=True)
        sum += tl.sum(tl.full((BLOCK,), seen, tl.int32)) - BLOCK * seen
        turns += 1
    tl.store(out_ptr, seen)
    tl.store(out_ptr + 1, sum)
)";
  constexpr int32_t rounds = 5;
  for (int call = 0; call < 3; ++call) {
    SymmetricBuffer count = symmetric(DataType::I32, 1, "count");
    std::vector<Buffer> out = everywhere(DataType::I32, 2, "out");
    ASSERT_OK(runEverywhere(text, "meet", {.numWarps = 4}, [&](uint32_t r) {
      return jit::CallArguments{{count.on(r), out[r]}, {{"ROUNDS", rounds}, {"BLOCK", 256}}};
    }));
    for (uint32_t r = 0; r < ranks; ++r)
      expectSame(get<int32_t>(out[r]), {rounds * int32_t(ranks), 0}, fmt::format("call {}, rank {}", call, r));
  }
}

TEST_P(Distributed, CapturedAndReplayed) {
  const char *text = R"(
@triton.jit
def step(counter_ptr, out_ptr, generation_ptr):
    generation = tl.load(generation_ptr) + 1
    __syncthreads()
    tl.store(generation_ptr, generation)
    dl.notify(counter_ptr, (dl.rank() + 1) % dl.num_ranks(), signal=generation, sig_op="set", comm_scope="intra_node")
    token = dl.wait(counter_ptr, 1, "sys", "acquire", waitValue=generation, compare="ge")
    tl.store(out_ptr + generation, tl.load(dl.consume_token(counter_ptr, token), volatile=True))
)";
  SymmetricBuffer counter = symmetric(DataType::I64, 1, "counter");
  std::vector<Buffer> out = everywhere(DataType::I64, 8, "out"),
                      generation = everywhere(DataType::I64, 1, "generation");
  std::vector<runtime::Graph> graphs(ranks);
  for (uint32_t r = 0; r < ranks; ++r) {
    ASSERT_OK(rank(r).stream().beginCapture());
    ASSERT_OK(launch(text, "step", {.numWarps = 1}, {{counter.on(r), out[r], generation[r]}, {}}, r));
    auto graph = rank(r).stream().endCapture();
    ASSERT_OK(graph);
    graphs[r] = *graph;
  }
  ASSERT_OK(world().synchronize());
  for (uint32_t r = 0; r < ranks; ++r)
    expectSame(get<int64_t>(generation[r]), {0}, "captured, not run");
  const int replays = 5;
  for (int replay = 0; replay < replays; ++replay)
    for (uint32_t r = 0; r < ranks; ++r)
      ASSERT_OK(rank(r).stream().launch(graphs[r]));
  ASSERT_OK(world().synchronize());
  for (uint32_t r = 0; r < ranks; ++r) {
    expectSame(get<int64_t>(generation[r]), {replays});
    std::vector<int64_t> seen = get<int64_t>(out[r]);
    for (int g = 1; g <= replays; ++g)
      EXPECT_GE(seen[g], g); // a neighbour may already be ahead
  }
}

/// Relaxed accesses order nothing: who is told by one that a word has been stored, and stores it then, may come first after all. What a kernel has stored that has ended has been
/// performed: there it cannot (docs/memory-model.md, "Streams").
class StoresOfEndedKernels : public KernelTest {
protected:
  /// Rank 0 stores 7, and tells rank 1, in two kernels, or in one that waits for the end of all this; rank 1 then stores 9 there. What is left.
  int64_t left(uint64_t seed, bool inTwoKernels) {
    const char *text = R"(
@triton.jit
def store_and_tell(x_ptr, told_ptr, done_ptr, STORES: tl.constexpr, TELLS: tl.constexpr):
    if tid(0) == 0:
        if STORES:
            st(x_ptr, tl.cast(7, tl.int64), scope="sys", semantic="relaxed")
        if TELLS:
            st(dl.symm_at(told_ptr, 1), tl.cast(1, tl.int64), scope="sys", semantic="relaxed")
        if STORES and TELLS:
            while ld(done_ptr, scope="sys", semantic="relaxed") == 0:
                pass

@triton.jit
def hear(told_ptr):
    if tid(0) == 0:
        while ld(told_ptr, scope="sys", semantic="relaxed") == 0:
            pass

@triton.jit
def store_behind(x_ptr, done_ptr):
    if tid(0) == 0:
        st(dl.symm_at(x_ptr, 0), tl.cast(9, tl.int64), scope="sys", semantic="relaxed")
        st(dl.symm_at(done_ptr, 0), tl.cast(1, tl.int64), scope="sys", semantic="relaxed")
)";
    start(2, seeded(seed));
    SymmetricBuffer x = symmetric(DataType::I64, 1, "x"), told = symmetric(DataType::I64, 1, "told"),
                    done = symmetric(DataType::I64, 1, "done");
    const auto tell = [&](bool stores, bool tells) {
      return launch(text, "store_and_tell", {.numWarps = 1},
                    {{x.on(0), told.on(0), done.on(0)}, {{"STORES", stores}, {"TELLS", tells}}}, 0);
    };
    EXPECT_OK(tell(true, !inTwoKernels));
    if (inTwoKernels)
      EXPECT_OK(tell(false, true));
    EXPECT_OK(launch(text, "hear", {.numWarps = 1}, {{told.on(1)}, {}}, 1));
    EXPECT_OK(launch(text, "store_behind", {.numWarps = 1}, {{x.on(1), done.on(1)}, {}}, 1));
    EXPECT_OK(world().synchronize());
    return get<int64_t>(x, 0)[0];
  }
};

TEST_F(StoresOfEndedKernels, ComeFirst) {
  REQUIRE_RANKS(2);
  for (uint64_t seed = 1; seed <= 40; ++seed)
    ASSERT_EQ(left(seed, true), 9) << "seed " << seed;
}

TEST_F(StoresOfEndedKernels, ThoseOfRunningOnesNeedNot) {
  if (!isSimulated())
    GTEST_SKIP() << "the simulator draws orders";
  int overtaken = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed)
    overtaken += left(seed, false) == 7;
  EXPECT_GT(overtaken, 0);
}

} // namespace
} // namespace ditron::e2e
