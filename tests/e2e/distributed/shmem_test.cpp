//===- shmem_test.cpp - OpenSHMEM within kernels ----------------------------------------------------------------------===//
//
// Every put, get, signal, barrier and collective of libshmem_device between 2, 4 and 8 ranks, against plain C++. What the standard
// leaves open the simulator uses: tests that only it runs show that a forgotten fence or quiet is seen there.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

#include <numeric>
#include <cstring>

namespace ditron::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const char *const imports = "from triton_dist.language.extra import libshmem_device\n";

/// The condition under which a function of a scope is called: by one thread, one warp, or the block.
std::string callers(std::string_view name) {
  if (name.ends_with("_block") || name.ends_with("_wg") || name.ends_with("_vec"))
    return "True";
  if (name.ends_with("_warp") || name.ends_with("_wave"))
    return "tid(0) // 32 == 0";
  return "tid(0) == 0";
}

/// The name of a test with a function or word as parameter.
std::string nameOf(const testing::TestParamInfo<const char *> &info) {
  std::string name;
  for (char c : std::string_view(info.param))
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_')
      name += c;
  return name.empty() ? "thread" : name;
}

/// One node; and in the simulator every rank on a node of its own, where the network carries all.
std::vector<uint32_t> nodeSizes() { return isSimulated() ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>{0}; }
WorldOptions inNodes(uint32_t ranksPerNode) {
  WorldOptions options;
  options.ranksPerNode = ranksPerNode;
  return options;
}

std::vector<int8_t> randomBytes(size_t count, uint64_t seed) { return convertAll<int8_t>(randomIntegers(count, seed, -128, 127)); }

class Shmem : public KernelTest {
protected:
  /// The same launch on all ranks, then waits.
  Status runAll(const std::string &text, std::string_view kernel, const LaunchShape &shape,
                const std::function<jit::CallArguments(uint32_t)> &arguments) {
    for (uint32_t r = 0; r < world().numRanks(); ++r)
      DITRON_RETURN_IF_ERROR(launch(imports + text, kernel, shape, arguments(r), r));
    return world().synchronize();
  }
  std::vector<Buffer> onAll(DataType type, uint64_t count, std::string_view name) {
    std::vector<Buffer> buffers;
    for (uint32_t r = 0; r < world().numRanks(); ++r)
      buffers.push_back(zeros(type, count, name, r));
    return buffers;
  }
};

//===- Copies -----------------------------------------------------------------------------------------------------===//

class ShmemCopies : public Shmem, public testing::WithParamInterface<const char *> {};
INSTANTIATE_TEST_SUITE_P(Functions, ShmemCopies,
                         testing::Values("putmem", "putmem_block", "putmem_warp", "putmem_wave", "putmem_wg", "putmem_nbi",
                                         "putmem_nbi_block", "putmem_nbi_warp", "putmem_nbi_wave", "putmem_nbi_wg", "putmem_rma",
                                         "putmem_rma_block", "putmem_rma_warp", "putmem_rma_nbi", "putmem_rma_nbi_block",
                                         "putmem_rma_nbi_warp", "getmem", "getmem_block", "getmem_warp", "getmem_wave", "getmem_wg",
                                         "getmem_nbi", "getmem_nbi_block", "getmem_nbi_warp", "getmem_nbi_wave", "getmem_nbi_wg"),
                         nameOf);

/// Odd sizes and all kinds of alignment; a put goes to the right neighbour, a get comes from it. Nothing beside is touched.
TEST_P(ShmemCopies, MoveExactlyTheirBytes) {
  const std::string name = GetParam();
  const bool isGet = name.starts_with("get");
  const std::string text = fmt::format(R"(
@triton.jit
def copy(dest_ptr, src_ptr, dest_offset, src_offset, size):
    peer = (libshmem_device.my_pe() + 1) % libshmem_device.n_pes()
    if {}:
        libshmem_device.{}(dest_ptr + dest_offset, src_ptr + src_offset, size, peer)
        libshmem_device.quiet()
    libshmem_device.barrier_all_block()
)",
                                       callers(name), name);
  const uint32_t ranks = 2;
  REQUIRE_RANKS(ranks);
  for (uint32_t perNode : nodeSizes()) {
    start(ranks, inNodes(perNode));
    constexpr size_t room = 5000;
    SymmetricBuffer dest = symmetric(DataType::I8, room, "dest"), src = symmetric(DataType::I8, room, "src");
    const struct {
      int32_t dest, src, size;
    } cases[] = {{0, 0, 0},   {0, 0, 1},  {16, 16, 16}, {0, 0, 64},   {1, 1, 100},  {3, 19, 47}, {8, 0, 129},
                 {4, 12, 77}, {2, 6, 31}, {5, 2, 1001}, {0, 0, 4096}, {7, 7, 4099}, {1, 0, 333}, {13, 13, 2}};
    for (const auto &one : cases) {
      std::vector<std::vector<int8_t>> sent;
      const std::vector<int8_t> empty(room, 0x55);
      for (uint32_t r = 0; r < ranks; ++r) {
        sent.push_back(randomBytes(room, 7 * r + one.size));
        ASSERT_OK(src.upload(r, sent[r].data(), room));
        ASSERT_OK(dest.upload(r, empty.data(), room));
      }
      ASSERT_OK(runAll(text, "copy", {.numWarps = 2}, [&](uint32_t r) {
        return jit::CallArguments{{dest.on(r), src.on(r), one.dest, one.src, one.size}, {}};
      }));
      for (uint32_t r = 0; r < ranks; ++r) {
        std::vector<int8_t> expected = empty;
        const std::vector<int8_t> &from = sent[isGet ? (r + 1) % ranks : (r + ranks - 1) % ranks];
        std::copy_n(from.begin() + one.src, one.size, expected.begin() + one.dest);
        expectSame(get<int8_t>(dest, r), expected,
                   fmt::format("{} bytes to +{} from +{}", one.size, one.dest, one.src));
      }
    }
  }
}

class ShmemPutSignal : public Shmem, public testing::WithParamInterface<const char *> {};
INSTANTIATE_TEST_SUITE_P(Functions, ShmemPutSignal,
                         testing::Values("putmem_signal", "putmem_signal_block", "putmem_signal_warp", "putmem_signal_wave",
                                         "putmem_signal_wg", "putmem_signal_nbi", "putmem_signal_nbi_block", "putmem_signal_nbi_warp",
                                         "putmem_signal_nbi_wave", "putmem_signal_nbi_wg", "putmem_signal_rma",
                                         "putmem_signal_rma_block", "putmem_signal_rma_warp", "putmem_signal_rma_nbi",
                                         "putmem_signal_rma_nbi_block", "putmem_signal_rma_nbi_warp"),
                         nameOf);

/// All-to-all: each rank sends a part to every rank, with a signal; who has seen the signal has the data. Called twice, signals grow.
TEST_P(ShmemPutSignal, DataBeforeItsSignal) {
  const std::string name = GetParam();
  const std::string text = fmt::format(R"(
@triton.jit
def exchange(out_ptr, dest_ptr, src_ptr, signal_ptr, generation, SIZE: tl.constexpr):
    me = libshmem_device.my_pe()
    n = libshmem_device.n_pes()
    for step in range(n):
        peer = (me + step) % n
        if {}:
            libshmem_device.{}(dest_ptr + me * SIZE, src_ptr + peer * SIZE, SIZE * 4, signal_ptr + me, generation,
                               libshmem_device.NVSHMEM_SIGNAL_SET, peer)
    offsets = tl.arange(0, SIZE)
    for r in range(n):
        seen = libshmem_device.signal_wait_until(signal_ptr + r, libshmem_device.NVSHMEM_CMP_GE, generation)
        __syncthreads()
        tl.store(out_ptr + r * SIZE + offsets, tl.load(dest_ptr + r * SIZE + offsets))
    libshmem_device.barrier_all_block()
)",
                                       callers(name), name);
  constexpr uint32_t size = 256;
  for (uint32_t ranks : {2u, 4u})
    for (auto [seed, perNode] : {std::pair{0, 0u}, {1, 0u}, {0, 1u}, {1, 1u}}) {
      if (ranksOnTarget(ranks) < ranks || (perNode && !isSimulated()))
        continue;
      WorldOptions options = seeded(seed, ranks - 1);
      options.ranksPerNode = perNode;
      start(ranks, options);
      SymmetricBuffer dest = symmetric(DataType::I32, size * ranks, "dest"), src = symmetric(DataType::I32, size * ranks, "src");
      SymmetricBuffer signal = symmetric(DataType::I64, ranks, "signals");
      std::vector<Buffer> out;
      for (uint32_t r = 0; r < ranks; ++r)
        out.push_back(zeros(DataType::I32, size * ranks, "out", r));
      for (int64_t generation : {1, 2}) {
        std::vector<std::vector<int32_t>> sent;
        for (uint32_t r = 0; r < ranks; ++r) {
          sent.push_back(convertAll<int32_t>(randomIntegers(size * ranks, 100 * r + generation, -100000, 100000)));
          ASSERT_OK(src.upload(r, sent[r].data(), src.bytes()));
        }
        ASSERT_OK(runAll(text, "exchange", {.numWarps = 2}, [&](uint32_t r) {
          return jit::CallArguments{{out[r], dest.on(r), src.on(r), signal.on(r), generation}, {{"SIZE", int64_t(size)}}};
        }));
        for (uint32_t r = 0; r < ranks; ++r) {
          std::vector<int32_t> expected;
          for (uint32_t from = 0; from < ranks; ++from)
            expected.insert(expected.end(), sent[from].begin() + r * size, sent[from].begin() + (r + 1) * size);
          expectSame(get<int32_t>(out[r]), expected, fmt::format("rank {} of {}, call {}", r, ranks, generation));
        }
      }
    }
}

//===- Order ------------------------------------------------------------------------------------------------------===//

/// A put, what `between` is, and a signal; how many of the words the receiver finds old.
class ShmemOrder : public Shmem {
protected:
  /// With `checkRaces` off, as on a GPU, the run goes on with what it finds.
  Status runTell(const std::string &put, const std::string &between, const std::string &tell, uint64_t seed,
                 bool checkRaces, size_t &stale) {
    const std::string text = fmt::format(R"(
@triton.jit
def tell(out_ptr, dest_ptr, src_ptr, signal_ptr):
    me = libshmem_device.my_pe()
    offsets = tl.arange(0, 1024)
    if me == 0:
        libshmem_device.{}(dest_ptr, src_ptr, 4096, 1)
        {}
    {}
    if me == 1:
        tl.store(out_ptr + offsets, tl.load(dest_ptr + offsets))
)",
                                         put, between, tell);
    runtime::WorldOptions options = seeded(seed);
    options.checkRaces = checkRaces;
    options.ranksPerNode = perNode;
    start(2, options);
    SymmetricBuffer dest = symmetric(DataType::I32, 1024, "dest"), src = symmetric(DataType::I32, 1024, "src");
    SymmetricBuffer signal = symmetric(DataType::I64, 2, "signal");
    std::vector<int32_t> sent(1024);
    std::iota(sent.begin(), sent.end(), 1);
    EXPECT_OK(src.upload(0, sent.data(), src.bytes()));
    std::vector<Buffer> out = onAll(DataType::I32, 1024, "out");
    DITRON_RETURN_IF_ERROR(runAll(text, "tell", {.numWarps = 2}, [&](uint32_t r) {
      return jit::CallArguments{{out[r], dest.on(r), src.on(r), signal.on(r)}, {}};
    }));
    const std::vector<int32_t> got = get<int32_t>(out[1]);
    for (size_t i = 0; i < got.size(); ++i)
      stale += got[i] != sent[i];
    return Status::ok();
  }
  /// On one node, and between two, which must be alike in that something is old or nothing is.
  size_t staleInAnySeed(const std::string &put, const std::string &between, const std::string &tell) {
    size_t stale = 0;
    for (uint32_t size : nodeSizes()) {
      perNode = size;
      const size_t here = staleHere(put, between, tell);
      EXPECT_TRUE(size == 0 || (stale == 0) == (here == 0)) << stale << " on one node, " << here << " between two";
      stale += here;
    }
    return stale;
  }
  size_t staleHere(const std::string &put, const std::string &between, const std::string &tell) {
    size_t stale = 0;
    for (uint64_t seed = 0; seed < 4; ++seed)
      EXPECT_OK(runTell(put, between, tell, seed, /*checkRaces=*/false, stale));
    // What is stale in some run is a race in each, and what never is, in none.
    for (uint64_t seed = 0; seed < 4 && isSimulated(); ++seed) {
      size_t ignored = 0;
      EXPECT_EQ(runTell(put, between, tell, seed, /*checkRaces=*/true, ignored).code(),
                stale ? StatusCode::DataRace : StatusCode::Ok);
    }
    return stale;
  }
  const std::string signal = R"(if me == 0:
        if tid(0) == 0:
            libshmem_device.signal_op(signal_ptr, 1, libshmem_device.NVSHMEM_SIGNAL_SET, 1)
    else:
        libshmem_device.signal_wait_until(signal_ptr, libshmem_device.NVSHMEM_CMP_EQ, 1)
        __syncthreads())";
  const std::string sync = "libshmem_device.sync_all_block()";
  uint32_t perNode = 0;
};

TEST_F(ShmemOrder, FenceOrQuietBeforeASignal) {
  REQUIRE_RANKS(2u);
  for (const char *put : {"putmem_block", "putmem_nbi_block"})
    for (const char *order : {"libshmem_device.fence()", "libshmem_device.quiet()", "libshmem_device.quiet_pe(1)"})
      EXPECT_EQ(staleInAnySeed(put, order, signal), 0u) << put << ", " << order;
}
TEST_F(ShmemOrder, WithoutAFenceTheSignalOvertakes) {
  if (!isSimulated())
    GTEST_SKIP() << "a GPU may, but need not";
  for (const char *put : {"putmem_block", "putmem_nbi_block"})
    EXPECT_GT(staleInAnySeed(put, "pass", signal), 0u) << put;
}
TEST_F(ShmemOrder, QuietBeforeASync) {
  REQUIRE_RANKS(2u);
  EXPECT_EQ(staleInAnySeed("putmem_nbi_block", "libshmem_device.quiet()", sync), 0u);
  EXPECT_EQ(staleInAnySeed("putmem_nbi_block", "pass", "libshmem_device.barrier_all_block()"), 0u) << "a barrier includes quiet";
}
TEST_F(ShmemOrder, ASyncCompletesNothing) {
  if (!isSimulated())
    GTEST_SKIP() << "a GPU may, but need not";
  EXPECT_GT(staleInAnySeed("putmem_nbi_block", "pass", sync), 0u);
  EXPECT_GT(staleInAnySeed("putmem_nbi_block", "libshmem_device.fence()", sync), 0u) << "a fence is no quiet";
}

/// Two puts to one place: between fences the later one stands.
TEST_F(Shmem, FenceBetweenPuts) {
  const char *text = R"(
@triton.jit
def twice(dest_ptr, src_ptr):
    if libshmem_device.my_pe() == 0:
        for i in range(8):
            libshmem_device.putmem_nbi_block(dest_ptr, src_ptr + i * 64, 256, 1)
            libshmem_device.fence()
    libshmem_device.barrier_all_block()
)";
  REQUIRE_RANKS(2u);
  for (uint64_t seed = 0; seed < 4; ++seed) {
    start(2, seeded(seed));
    SymmetricBuffer dest = symmetric(DataType::I32, 64, "dest"), src = symmetric(DataType::I32, 512, "src");
    std::vector<int32_t> sent(512);
    std::iota(sent.begin(), sent.end(), 0);
    ASSERT_OK(src.upload(0, sent.data(), src.bytes()));
    ASSERT_OK(runAll(text, "twice", {.numWarps = 1}, [&](uint32_t r) { return jit::CallArguments{{dest.on(r), src.on(r)}, {}}; }));
    expectSame(get<int32_t>(dest, 1), std::vector<int32_t>(sent.end() - 64, sent.end()));
  }
}

TEST_F(Shmem, ANonblockingGetComesWithTheQuiet) {
  if (!isSimulated())
    GTEST_SKIP() << "a GPU may, but need not";
  const char *text = R"(
@triton.jit
def early(out_ptr, dest_ptr, src_ptr):
    offsets = tl.arange(0, 64)
    libshmem_device.getmem_nbi_block(dest_ptr, src_ptr, 256, 1 - libshmem_device.my_pe())
    tl.store(out_ptr + offsets, tl.load(dest_ptr + offsets))
    __syncthreads()
    libshmem_device.quiet()
    __syncthreads()
    tl.store(out_ptr + 64 + offsets, tl.load(dest_ptr + offsets))
)";
  runtime::WorldOptions options;
  options.checkRaces = false; // it reads too early, to see what is there
  start(2, options);
  SymmetricBuffer src = symmetric(DataType::I32, 64, "src");
  std::vector<Buffer> dest, out;
  for (uint32_t r = 0; r < 2; ++r) {
    std::vector<int32_t> values(64, 10 + int32_t(r));
    ASSERT_OK(src.upload(r, values.data(), src.bytes()));
    dest.push_back(zeros(DataType::I32, 64, "dest", r));
    out.push_back(zeros(DataType::I32, 128, "out", r));
  }
  ASSERT_OK(runAll(text, "early", {.numWarps = 2}, [&](uint32_t r) { return jit::CallArguments{{out[r], dest[r], src.on(r)}, {}}; }));
  for (int32_t r = 0; r < 2; ++r) {
    std::vector<int32_t> expected(64, -1);
    expected.resize(128, 11 - r);
    expectSame(get<int32_t>(out[r]), expected);
  }
}

//===- Signals ----------------------------------------------------------------------------------------------------===//

class ShmemCompare : public Shmem, public testing::WithParamInterface<const char *> {};
INSTANTIATE_TEST_SUITE_P(All, ShmemCompare, testing::Values("EQ", "NE", "GT", "LE", "LT", "GE"), nameOf);

/// The word passes through 10, 20, 30, -5; a wait for each comparison ends with a word that satisfies it.
TEST_P(ShmemCompare, EndsWithTheWordThatSatisfies) {
  const std::string compare = GetParam();
  const std::string text = fmt::format(R"(
@triton.jit
def watch(out_ptr, signal_ptr, wanted):
    if libshmem_device.my_pe() == 0:
        if tid(0) == 0:
            libshmem_device.signal_op(signal_ptr, 10, libshmem_device.NVSHMEM_SIGNAL_SET, 1)
            libshmem_device.signal_op(signal_ptr, 10, libshmem_device.NVSHMEM_SIGNAL_ADD, 1)
            libshmem_device.signal_op(signal_ptr, 10, 1, 1)
            libshmem_device.signal_op(signal_ptr, {}, 0, 1)
    else:
        seen = libshmem_device.signal_wait_until(signal_ptr, libshmem_device.NVSHMEM_CMP_{}, wanted)
        st(out_ptr + tid(0), seen)
)",
                                       compare == "LE" || compare == "LT" ? -5 : 30, compare);
  const int64_t wanted = compare == "EQ" ? 30 : compare == "NE" ? 0 : compare == "GT" ? 29 : compare == "GE" ? 30 : compare == "LE" ? -5 : -4;
  auto holds = [&](int64_t seen) {
    return compare == "EQ"   ? seen == wanted
           : compare == "NE" ? seen != wanted
           : compare == "GT" ? seen > wanted
           : compare == "GE" ? seen >= wanted
           : compare == "LE" ? seen <= wanted
                             : seen < wanted;
  };
  REQUIRE_RANKS(2u);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    start(2, seeded(seed, seed % 2));
    SymmetricBuffer signal = symmetric(DataType::I64, 1, "signal");
    std::vector<Buffer> out = onAll(DataType::I64, 64, "out");
    ASSERT_OK(runAll(text, "watch", {.numWarps = 2},
                     [&](uint32_t r) { return jit::CallArguments{{out[r], signal.on(r), wanted}, {}}; }));
    for (int64_t seen : get<int64_t>(out[1]))
      EXPECT_TRUE(holds(seen)) << seen;
  }
}

TEST_F(Shmem, SingleNumbersAndTypedForms) {
  const char *text = R"(
@triton.jit
def numbers(out_ptr, cells_ptr, words_ptr, src_ptr, signal_ptr):
    me = libshmem_device.my_pe()
    n = libshmem_device.n_pes()
    right = (me + 1) % n
    if tid(0) == 0:
        for r in range(n):
            libshmem_device.int_p(cells_ptr + me, 100 + me, r)
        libshmem_device.ulong_put_signal(words_ptr, src_ptr, 3, signal_ptr, 7, libshmem_device.NVSHMEM_SIGNAL_ADD, right)
    libshmem_device.barrier_all_block()
    libshmem_device.uint64_wait_until_equals(signal_ptr, 7)
    if tid(0) < n:
        st(out_ptr + tid(0), ld(cells_ptr + tid(0)).to(tl.int64))
    if tid(0) < 3:
        st(out_ptr + n + tid(0), ld(words_ptr + tid(0)))
)";
  for (uint32_t ranks : {2u, 4u, 8u}) {
    if (ranksOnTarget(ranks) < ranks)
      continue;
    start(ranks);
    SymmetricBuffer cells = symmetric(DataType::I32, ranks, "cells"), words = symmetric(DataType::I64, 3, "words"),
                    src = symmetric(DataType::I64, 3, "src"), signal = symmetric(DataType::I64, 1, "signal");
    std::vector<Buffer> out;
    for (uint32_t r = 0; r < ranks; ++r) {
      const std::vector<int64_t> values = {r + 1ll, (r + 2ll) << 40, -int64_t(r)};
      ASSERT_OK(src.upload(r, values.data(), src.bytes()));
      out.push_back(zeros(DataType::I64, ranks + 3, "out", r));
    }
    ASSERT_OK(runAll(text, "numbers", {.numWarps = 1}, [&](uint32_t r) {
      return jit::CallArguments{{out[r], cells.on(r), words.on(r), src.on(r), signal.on(r)}, {}};
    }));
    for (uint32_t r = 0; r < ranks; ++r) {
      const int64_t left = (r + ranks - 1) % ranks;
      std::vector<int64_t> expected;
      for (uint32_t i = 0; i < ranks; ++i)
        expected.push_back(100 + i);
      expected.insert(expected.end(), {left + 1, (left + 2) << 40, -left});
      expectSame(get<int64_t>(out[r]), expected);
    }
  }
}

//===- Barriers, teams, collectives -------------------------------------------------------------------------------===//

class ShmemBarrier : public Shmem, public testing::WithParamInterface<const char *> {};
INSTANTIATE_TEST_SUITE_P(Functions, ShmemBarrier,
                         testing::Values("barrier_all()", "barrier_all_block()", "barrier_all_warp()", "barrier_all_wave()",
                                         "barrier_all_wg()", "barrier_all_vec()", "barrier(2)", "barrier_block(0)", "barrier_warp(1)",
                                         "sync_all()", "sync_all_block()", "sync_all_warp()", "sync_all_wave()", "sync_all_wg()",
                                         "team_sync_block(0)", "team_sync_warp(2)"),
                         nameOf);

/// Rounds in which each rank counts up its word; after the barrier nobody's word is behind, before the next none is ahead by two.
TEST_P(ShmemBarrier, NobodyGoesOnAlone) {
  const std::string call = GetParam();
  const std::string text = fmt::format(R"(
@triton.jit
def rounds(bad_ptr, word_ptr, first):
    me = libshmem_device.my_pe()
    for i in range(6):
        value = first + i
        if tid(0) == 0:
            st(word_ptr, value, "sys", "release")
        __syncthreads()
        if {}:
            libshmem_device.{}
        __syncthreads()
        if tid(0) < libshmem_device.n_pes():
            seen = ld(libshmem_device.remote_ptr(word_ptr, tid(0)), "sys", "acquire")
            if (seen < value) | (seen > value + 1):
                atomic_add(bad_ptr, 1)
        __syncthreads()
)",
                                       callers(call.substr(0, call.find('('))), call);
  for (uint32_t ranks : {2u, 4u, 8u}) {
    if (ranksOnTarget(ranks) < ranks)
      continue;
    start(ranks, seeded(ranks, ranks / 2));
    SymmetricBuffer word = symmetric(DataType::I32, 1, "word");
    std::vector<Buffer> bad;
    for (uint32_t r = 0; r < ranks; ++r)
      bad.push_back(zeros(DataType::I32, 1, "bad", r));
    for (int32_t first : {1, 7}) // called twice: words of barriers are not reset
      ASSERT_OK(runAll(text, "rounds", {.numWarps = 2}, [&](uint32_t r) {
        return jit::CallArguments{{bad[r], word.on(r), first}, {}};
      }));
    for (uint32_t r = 0; r < ranks; ++r)
      EXPECT_EQ(get<int32_t>(bad[r])[0], 0) << "rank " << r << " of " << ranks;
  }
}

/// Several threads at once in the form of single threads: nobody hangs.
TEST_F(Shmem, EveryThreadInABarrier) {
  REQUIRE_RANKS(2u);
  start(2);
  const char *text = R"(
@triton.jit
def crowd(out_ptr):
    libshmem_device.barrier_all()
    st(out_ptr + tid(0), 1)
)";
  std::vector<Buffer> out = onAll(DataType::I32, 64, "out");
  ASSERT_OK(runAll(text, "crowd", {.numWarps = 2}, [&](uint32_t r) { return jit::CallArguments{{out[r]}, {}}; }));
  expectSame(get<int32_t>(out[1]), std::vector<int32_t>(64, 1));
}

TEST_F(Shmem, TeamsOfSimulatedNodes) {
  if (!isSimulated())
    GTEST_SKIP() << "GPUs of one machine are one node";
  const char *text = R"(
@triton.jit
def teams(out_ptr):
    at = 0
    for team in tl.static_range(4):
        st(out_ptr + at, libshmem_device.team_my_pe(team))
        st(out_ptr + at + 1, libshmem_device.team_n_pes(team))
        at += 2
    for source in tl.static_range(4):
        for dest in tl.static_range(4):
            for pe in range(-1, libshmem_device.n_pes() + 1):
                st(out_ptr + at, libshmem_device.team_translate_pe(source, pe, dest))
                at += 1
)";
  for (auto [ranks, perNode] : {std::pair{4u, 2u}, {8u, 4u}, {8u, 8u}, {6u, 2u}}) {
    WorldOptions options;
    options.ranksPerNode = perNode;
    start(ranks, options);
    std::vector<Buffer> out;
    for (uint32_t r = 0; r < ranks; ++r)
      out.push_back(zeros(DataType::I32, 8 + 16 * (ranks + 2), "out", r));
    ASSERT_OK(runAll(text, "teams", {.numWarps = 1}, [&](uint32_t r) { return jit::CallArguments{{out[r]}, {}}; }));
    for (uint32_t r = 0; r < ranks; ++r) {
      std::vector<std::vector<int32_t>> members(4);
      for (uint32_t other = 0; other < ranks; ++other) {
        members[0].push_back(other);
        if (other / perNode == r / perNode)
          members[1].push_back(other), members[2].push_back(other);
        if (other % perNode == r % perNode)
          members[3].push_back(other);
      }
      auto place = [&](int team, int32_t pe) -> int32_t {
        auto it = std::find(members[team].begin(), members[team].end(), pe);
        return it == members[team].end() ? -1 : int32_t(it - members[team].begin());
      };
      std::vector<int32_t> expected;
      for (int team = 0; team < 4; ++team)
        expected.insert(expected.end(), {place(team, int32_t(r)), int32_t(members[team].size())});
      for (int source = 0; source < 4; ++source)
        for (int dest = 0; dest < 4; ++dest)
          for (int32_t pe = -1; pe <= int32_t(ranks); ++pe)
            expected.push_back(pe < 0 || pe >= int32_t(members[source].size()) ? -1 : place(dest, members[source][pe]));
      expectSame(get<int32_t>(out[r]), expected, fmt::format("rank {} of {} in nodes of {}", r, ranks, perNode));
    }
  }
}

class ShmemCollective : public Shmem, public testing::WithParamInterface<const char *> {};
INSTANTIATE_TEST_SUITE_P(Scopes, ShmemCollective, testing::Values("", "_warp", "_block"), nameOf);

TEST_P(ShmemCollective, BroadcastAndCollect) {
  const std::string scope = GetParam();
  const std::string text = fmt::format(R"(
@triton.jit
def collect(one_ptr, all_ptr, bytes_ptr, src_ptr, count, root):
    if {}:
        libshmem_device.broadcast{}(0, one_ptr, src_ptr, count, root)
        libshmem_device.fcollect{}(libshmem_device.NVSHMEMX_TEAM_NODE, all_ptr, src_ptr, count)
        libshmem_device.broadcastmem{}(1, bytes_ptr, src_ptr, 6, root)
        libshmem_device.fcollectmem{}(0, bytes_ptr + 4, src_ptr, 6)
)",
                                       callers(scope), scope, scope, scope, scope);
  for (uint32_t ranks : {2u, 4u, 8u}) {
    if (ranksOnTarget(ranks) < ranks)
      continue;
    start(ranks, seeded(3, ranks - 1));
    constexpr int32_t count = 37;
    SymmetricBuffer one = symmetric(DataType::I32, count, "one"), all = symmetric(DataType::I32, count * ranks, "all"),
                    bytes = symmetric(DataType::I16, 4 + 3 * ranks, "bytes"), src = symmetric(DataType::I32, count, "src");
    for (int32_t root : {0, int32_t(ranks) - 1}) {
      std::vector<std::vector<int32_t>> sent;
      for (uint32_t r = 0; r < ranks; ++r) {
        sent.push_back(convertAll<int32_t>(randomIntegers(count, 50 * r + root, -1000000, 1000000)));
        ASSERT_OK(src.upload(r, sent[r].data(), src.bytes()));
      }
      ASSERT_OK(runAll(text, "collect", {.numWarps = 2}, [&](uint32_t r) {
        return jit::CallArguments{{one.on(r), all.on(r), bytes.on(r), src.on(r), count, root}, {}};
      }));
      std::vector<int32_t> everything;
      std::vector<int16_t> halves(4 + 3 * ranks, 0);
      std::memcpy(halves.data(), sent[root].data(), 6);
      for (uint32_t r = 0; r < ranks; ++r) {
        everything.insert(everything.end(), sent[r].begin(), sent[r].end());
        std::memcpy(halves.data() + 4 + 3 * r, sent[r].data(), 6);
      }
      for (uint32_t r = 0; r < ranks; ++r) {
        expectSame(get<int32_t>(one, r), sent[root], "broadcast");
        expectSame(get<int32_t>(all, r), everything, "fcollect");
        expectSame(get<int16_t>(bytes, r), halves, "in bytes");
      }
    }
  }
}

//===- Mistakes ---------------------------------------------------------------------------------------------------===//

TEST_F(Shmem, ReportsADeadlock) {
  REQUIRE_RANKS(2u);
  WorldOptions options;
  options.waitLimitSeconds = 0.3;
  start(2, options);
  const char *text = R"(
@triton.jit
def stuck(signal_ptr):
    if tid(0) == 0:
        libshmem_device.signal_op(signal_ptr + 1, 4, libshmem_device.NVSHMEM_SIGNAL_SET, libshmem_device.my_pe())
    libshmem_device.signal_wait_until(signal_ptr + 1, libshmem_device.NVSHMEM_CMP_GT, 8)
)";
  SymmetricBuffer signal = symmetric(DataType::I64, 2, "doorbell");
  const Status status = runAll(text, "stuck", {.numWarps = 1}, [&](uint32_t r) { return jit::CallArguments{{signal.on(r)}, {}}; });
  EXPECT_EQ(status.code(), endlessWaitCode());
  EXPECT_THAT(status.message(), AllOf(HasSubstr("deadlock"), HasSubstr(fmt::format("kernel.py:{}:", prologueLines() + 7)),
                                      HasSubstr("block (0,0,0)"), HasSubstr("waits for doorbell[1] on rank"),
                                      HasSubstr("has 4, wants > 8")));
}

TEST_F(Shmem, NamesABarrierThatARankDoesNotEnter) {
  REQUIRE_RANKS(2u);
  WorldOptions options;
  options.waitLimitSeconds = 0.3;
  start(2, options);
  const char *text = R"(
@triton.jit
def alone():
    if libshmem_device.my_pe() == 0:
        libshmem_device.barrier_all_block()
)";
  const Status status = runAll(text, "alone", {.numWarps = 1}, [&](uint32_t) { return jit::CallArguments{}; });
  EXPECT_EQ(status.code(), endlessWaitCode());
  EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 0, kernel alone"), HasSubstr("waits for team barriers[2]")));
}

TEST_F(Shmem, RefusesPesThatDoNotExist) {
  if (!isSimulated())
    GTEST_SKIP() << "GPUs do not check";
  const char *text = R"(
@triton.jit
def far(dest_ptr, src_ptr, pe):
    libshmem_device.putmem_block(dest_ptr, src_ptr, 4, pe)
)";
  for (auto [pe, message] : {std::pair{4, "put: PE 4 is not one of 0..3"}, {-1, "put: PE -1 is not one of 0..3"}}) {
    start(4, inNodes(2));
    SymmetricBuffer data = symmetric(DataType::I32, 4, "data");
    const Status status = launch(imports + std::string(text), "far", {}, {{data.on(0), data.on(0), int32_t(pe)}, {}});
    ASSERT_OK(status);
    EXPECT_THAT(world().synchronize().message(), HasSubstr(message));
  }
}

TEST_F(Shmem, ChecksTheBoundsOfCopies) {
  if (!isSimulated())
    GTEST_SKIP() << "GPUs do not check";
  start(2);
  const char *text = R"(
@triton.jit
def far(dest_ptr, src_ptr):
    libshmem_device.putmem_block(dest_ptr, src_ptr, 20, 1)
)";
  SymmetricBuffer dest = symmetric(DataType::I32, 4, "dest"), src = symmetric(DataType::I32, 8, "src");
  ASSERT_OK(launch(imports + std::string(text), "far", {}, {{dest.on(0), src.on(0)}, {}}));
  EXPECT_THAT(world().synchronize().message(), AllOf(HasSubstr("put to the destination of 20 bytes"), HasSubstr("dest")));
}

//===- Multicast --------------------------------------------------------------------------------------------------===//

/// On GPUs the runtime maps no multicast memory: the address is null, and the kernel takes the other way.
TEST_F(Shmem, MulticastOfEveryWidth) {
  const char *text = R"(
from triton_dist.language.extra.language_extra import (multimem_st_v2, multimem_st_p_b32, multimem_ld_reduce_p_v4)

@triton.jit
def multicast(found_ptr, f32_ptr, half_ptr, out_ptr, sums_ptr, marks_ptr, pairs_ptr):
    thread = tid(0)
    f32_mc = libshmem_device.remote_mc_ptr(libshmem_device.NVSHMEMX_TEAM_NODE, f32_ptr)
    half_mc = libshmem_device.remote_mc_ptr(libshmem_device.NVSHMEMX_TEAM_NODE, half_ptr)
    out_mc = libshmem_device.remote_mc_ptr(libshmem_device.NVSHMEMX_TEAM_NODE, out_ptr)
    found = f32_mc.to(tl.int64) != 0
    tl.store(found_ptr, found.to(tl.int32))
    libshmem_device.barrier_all_block()
    if found:
        a, b, c, d = multimem_ld_reduce_v4(f32_mc + thread * 4)
        st(sums_ptr + thread * 4, a)
        st(sums_ptr + thread * 4 + 1, b)
        st(sums_ptr + thread * 4 + 2, c)
        st(sums_ptr + thread * 4 + 3, d)
        e, f, g, h = multimem_ld_reduce_v4(half_mc + thread * 8, acc_dtype=tl.float32)
        if dl.rank() == 0:
            multimem_st_v4(out_mc + thread * 8, e, f, g, h)
        x, y, z, w = multimem_ld_reduce_p_v4(f32_mc, thread == 3)
        st(marks_ptr + thread, (x + y + z + w).to(tl.int32))
        pairs_mc = libshmem_device.remote_mc_ptr(0, pairs_ptr)
        if dl.rank() == 1:
            multimem_st_v2(pairs_mc + thread * 4, thread, thread + 1)
            multimem_st_p_b32(pairs_mc + thread * 4 + 2, 77, thread % 2 == 0)
            multimem_st_b32(pairs_mc + thread * 4 + 3, 5)
    libshmem_device.barrier_all_block()
)";
  for (DataType half : {DataType::F16, DataType::BF16})
    for (uint32_t ranks : {2u, 4u}) {
      if (ranksOnTarget(ranks) < ranks)
        continue;
      start(ranks);
      constexpr uint32_t threads = 32;
      SymmetricBuffer f32 = symmetric(DataType::F32, threads * 4, "f32"), halves = symmetric(half, threads * 8, "halves"),
                      out = symmetric(half, threads * 8, "out"), pairs = symmetric(DataType::I32, threads * 4, "pairs");
      std::vector<Buffer> found, sums, marks;
      std::vector<float> sum(threads * 4, 0), halfSum(threads * 8, 0);
      for (uint32_t r = 0; r < ranks; ++r) {
        found.push_back(zeros(DataType::I32, 1, "found", r));
        sums.push_back(zeros(DataType::F32, threads * 4, "sums", r));
        marks.push_back(zeros(DataType::I32, threads, "marks", r));
        // Whole numbers: every order of additions gives the same.
        const auto a = convertAll<float>(randomIntegers(threads * 4, r, -100, 100)), b = convertAll<float>(randomIntegers(threads * 8, r + 9, -20, 20));
        ASSERT_OK(f32.uploadFloats(r, a));
        ASSERT_OK(halves.uploadFloats(r, b));
        for (size_t i = 0; i < a.size(); ++i)
          sum[i] += a[i];
        for (size_t i = 0; i < b.size(); ++i)
          halfSum[i] += b[i];
      }
      ASSERT_OK(runAll(text, "multicast", {.numWarps = 1}, [&](uint32_t r) {
        return jit::CallArguments{{found[r], f32.on(r), halves.on(r), out.on(r), sums[r], marks[r], pairs.on(r)}, {}};
      }));
      EXPECT_EQ(get<int32_t>(found[0])[0], isSimulated());
      if (!isSimulated())
        continue;
      std::vector<int32_t> expectedPairs, expectedMarks(threads, 0);
      for (int32_t t = 0; t < int32_t(threads); ++t)
        expectedPairs.insert(expectedPairs.end(), {t, t + 1, t % 2 == 0 ? 77 : 0, 5});
      expectedMarks[3] = int32_t(sum[0] + sum[1] + sum[2] + sum[3]);
      for (uint32_t r = 0; r < ranks; ++r) {
        expectSame(getFloats(sums[r]), sum, "fp32");
        Expected<std::vector<float>> got = out.downloadFloats(r);
        ASSERT_OK(got);
        expectSame(*got, halfSum, "halves");
        expectSame(get<int32_t>(marks[r]), expectedMarks, "masked");
        expectSame(get<int32_t>(pairs, r), expectedPairs, "pairs");
      }
    }
}

//===- The library's barriers over plain words --------------------------------------------------------------------===//

class CommonOps : public Shmem {
protected:
  const std::string names = R"(
from triton_dist.kernels.nvidia.common_ops import (barrier_on_this_grid, cooperative_barrier_on_this_grid,
    unsafe_barrier_on_this_grid, barrier_all_intra_node_atomic_cas_block, barrier_all_intra_node_non_atomic,
    barrier_all_intra_node_non_atomic_block, bisect_left_kernel, bisect_right_kernel, bisect_left_kernel_aligned,
    bisect_right_kernel_aligned)
)";
};

TEST_F(CommonOps, AGridMeets) {
  const std::string text = names + R"(
@triton.jit
def grid(bad_ptr, words_ptr, barrier_ptr):
    me = tl.program_id(0) + tl.num_programs(0) * tl.program_id(1)
    n = tl.num_programs(0) * tl.num_programs(1)
    for i in range(5):
        if tid(0) == 0:
            st(words_ptr + me, ld(words_ptr + me) + 1)
        barrier_on_this_grid(barrier_ptr, True)
        if tid(0) < n:
            if ld(words_ptr + tid(0)) < ld(words_ptr + me):
                atomic_add(bad_ptr, 1)
        cooperative_barrier_on_this_grid(barrier_ptr)
)";
  for (uint64_t seed = 0; seed < 3; ++seed) {
    start(1, seeded(seed));
    Buffer bad = zeros(DataType::I32, 1, "bad"), words = zeros(DataType::I32, 8, "words"), barrier = zeros(DataType::I32, 1, "barrier");
    for (int call = 1; call <= 2; ++call) {
      ASSERT_OK(run(text, "grid", {.grid = {4, 2, 1}, .numWarps = 2}, {{bad, words, barrier}, {}}));
      expectSame(get<int32_t>(words), std::vector<int32_t>(8, 5 * call));
      EXPECT_EQ(get<int32_t>(bad)[0], 0);
    }
  }
}

TEST_F(CommonOps, AGridThatDoesNotFitIsReported) {
  if (!isSimulated())
    GTEST_SKIP() << "a GPU hangs";
  start(1);
  Buffer barrier = zeros(DataType::I32, 1, "barrier");
  const std::string text = names + R"(
@triton.jit
def grid(barrier_ptr):
    unsafe_barrier_on_this_grid(barrier_ptr)
)";
  const Status status = run(text, "grid", {.grid = {200, 1, 1}, .numWarps = 1}, {{barrier}, {}});
  EXPECT_EQ(status.code(), endlessWaitCode());
  EXPECT_THAT(status.message(), AllOf(HasSubstr("barrier[0]"), HasSubstr("blocks of kernel grid never started"), HasSubstr("cooperative")));
}

TEST_F(CommonOps, RanksMeet) {
  const std::string text = names + R"(
@triton.jit
def meet(bad_ptr, word_ptr, cas_ptr, flags_ptr, grid_flags_ptr, first):
    me = dl.rank()
    n = dl.num_ranks()
    for i in range(3):
        for kind in tl.static_range(3):
            value = (first + i) * 3 + kind
            if tid(0) + tl.program_id(0) == 0:
                st(word_ptr, value, "sys", "release")
            if kind == 0:
                if tl.program_id(0) == 0:
                    barrier_all_intra_node_atomic_cas_block(me, me, n, cas_ptr)
            elif kind == 1:
                if tl.program_id(0) == 0:
                    barrier_all_intra_node_non_atomic_block(me, me, n, flags_ptr, value)
            else:
                barrier_all_intra_node_non_atomic(me, me, n, grid_flags_ptr, value)
            if (tid(0) < n) & ((kind == 2) | (tl.program_id(0) == 0)):
                if ld(dl.symm_at(word_ptr, tid(0)), "sys", "acquire") < value:
                    atomic_add(bad_ptr, 1)
            barrier_on_this_grid(grid_flags_ptr + 2 * n)
)";
  for (uint32_t ranks : {2u, 4u}) {
    if (ranksOnTarget(ranks) < ranks)
      continue;
    start(ranks, seeded(5, 1));
    SymmetricBuffer word = symmetric(DataType::I32, 1, "word"), cas = symmetric(DataType::I32, ranks, "cas"),
                    flags = symmetric(DataType::I32, 2 * ranks, "flags"), gridFlags = symmetric(DataType::I32, 2 * ranks + 1, "grid_flags");
    std::vector<Buffer> bad;
    for (uint32_t r = 0; r < ranks; ++r)
      bad.push_back(zeros(DataType::I32, 1, "bad", r));
    for (int32_t first : {1, 4})
      ASSERT_OK(runAll(text, "meet", {.grid = {2, 1, 1}, .numWarps = 1}, [&](uint32_t r) {
        return jit::CallArguments{{bad[r], word.on(r), cas.on(r), flags.on(r), gridFlags.on(r), first}, {}};
      }));
    for (uint32_t r = 0; r < ranks; ++r)
      EXPECT_EQ(get<int32_t>(bad[r])[0], 0);
  }
}

TEST_F(CommonOps, Searches) {
  const std::string text = names + R"(
@triton.jit
def search(out_ptr, values_ptr, targets_ptr, n, N: tl.constexpr):
    for i in range(n):
        target = tl.load(targets_ptr + i)
        tl.store(out_ptr + 4 * i, bisect_left_kernel(values_ptr, target, N))
        tl.store(out_ptr + 4 * i + 1, bisect_right_kernel(values_ptr, target, N))
        tl.store(out_ptr + 4 * i + 2, bisect_left_kernel_aligned(values_ptr, target, N))
        tl.store(out_ptr + 4 * i + 3, bisect_right_kernel_aligned(values_ptr, target, N))
)";
  std::vector<int32_t> values = convertAll<int32_t>(randomIntegers(64, 5, 0, 40)), targets, expected;
  std::sort(values.begin(), values.end());
  for (int32_t target = -1; target <= 41; ++target) {
    targets.push_back(target);
    const auto left = int32_t(std::lower_bound(values.begin(), values.end(), target) - values.begin());
    const auto right = int32_t(std::upper_bound(values.begin(), values.end(), target) - values.begin());
    expected.insert(expected.end(), {left, right, left, right});
  }
  Buffer out = zeros(DataType::I32, expected.size()), v = put(values), t = put(targets);
  ASSERT_OK(run(text, "search", {.numWarps = 2}, {{out, v, t, int32_t(targets.size())}, {{"N", int64_t(64)}}}));
  expectSame(get<int32_t>(out), expected);
}

} // namespace
} // namespace ditron::e2e
