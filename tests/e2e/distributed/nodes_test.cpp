//===- nodes_test.cpp - Ranks on several nodes ------------------------------------------------------------------------===//
//
// What kernels do between simulated nodes: the two-level AllGather of examples/, barriers and collectives of teams, notify, and what
// stays on a node: loads, stores, copies and operators of the library. Puts, gets and signals of all forms: shmem_test.cpp.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include "ditron/ops/tensor_parallel/GemmAllReduce.h"

#include <fmt/format.h>

#include <fstream>

namespace ditron::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const char *const imports = "from triton_dist.language.extra import libshmem_device\n";

class Nodes : public KernelTest {
protected:
  void SetUp() override {
    if (!isSimulated())
      GTEST_SKIP() << "GPUs of one machine are one node";
  }
  void startNodes(uint32_t ranks, uint32_t perNode, uint64_t seed = 0) {
    WorldOptions options;
    options.ranksPerNode = perNode;
    options.seed = seed;
    start(ranks, options);
  }
  Status runAll(const std::string &text, std::string_view kernel, const LaunchShape &shape,
                const std::function<jit::CallArguments(uint32_t)> &arguments) {
    for (uint32_t r = 0; r < world().numRanks(); ++r)
      DITRON_RETURN_IF_ERROR(launch(imports + text, kernel, shape, arguments(r), r));
    return world().synchronize();
  }
  /// A launch of a whole file's kernel, not behind the prologue.
  static Status launchFile(Rank &rank, const compiler::KernelSource &source, std::string_view kernel,
                           const LaunchShape &shape, const jit::CallArguments &arguments) {
    DITRON_ASSIGN_OR_RETURN(jit::KernelFunction function, sharedJit().load(source, kernel));
    return sharedJit().launch(rank.stream(), function, {.grid = shape.grid}, arguments, {.numWarps = shape.numWarps, .numStages = 1});
  }
  /// The error of one launch on rank 0.
  std::string errorOf(const std::string &text, std::string_view kernel, const jit::CallArguments &arguments) {
    EXPECT_OK(launch(imports + text, kernel, {.numWarps = 1}, arguments));
    return world().synchronize().message();
  }
};

/// Two calls with growing generations, under several schedules; the shards do not fill whole blocks.
TEST_F(Nodes, TwoLevelAllGather) {
  std::ifstream file(DITRON_ALL_GATHER_EXAMPLE);
  const compiler::KernelSource source{"two_level_all_gather.py", std::string(std::istreambuf_iterator<char>(file), {})};
  for (auto [ranks, perNode] : {std::pair{4u, 2u}, {8u, 4u}, {8u, 2u}, {4u, 1u}, {3u, 3u}})
    for (uint64_t seed = 0; seed < 12; ++seed) {
      startNodes(ranks, perNode, seed);
      constexpr int32_t n = 333;
      SymmetricBuffer out = symmetric(DataType::F32, uint64_t(n) * ranks, "out"),
                      arrived = symmetric(DataType::I64, ranks, "arrived");
      std::vector<Buffer> x;
      for (uint32_t r = 0; r < ranks; ++r)
        x.push_back(zeros(DataType::F32, n, "x", r));
      for (int32_t generation : {1, 2}) {
        std::vector<float> everything;
        for (uint32_t r = 0; r < ranks; ++r) {
          const auto shard = convertAll<float>(randomIntegers(n, 100 * generation + r, -1000, 1000));
          ASSERT_OK(x[r].uploadFloats(shard));
          everything.insert(everything.end(), shard.begin(), shard.end());
        }
        for (uint32_t r = 0; r < ranks; ++r)
          ASSERT_OK(launchFile(rank(r), source, "all_gather", {.grid = {ranks / perNode, 1, 1}, .numWarps = 2},
                               {{x[r], out.on(r), arrived.on(r), n, generation}, {{"BLOCK", 128}}}));
        ASSERT_OK(world().synchronize());
        for (uint32_t r = 0; r < ranks; ++r)
          expectSame(get<float>(out, r), everything, fmt::format("rank {} of {} in nodes of {}", r, ranks, perNode));
      }
    }
}

/// Each rank puts the number of its round to all others, without an order of its own: after the barrier it is there.
TEST_F(Nodes, BarriersCompletePutsOfAllNodes) {
  const char *text = R"(
@triton.jit
def rounds(bad_ptr, word_ptr):
    me = libshmem_device.my_pe()
    n = libshmem_device.n_pes()
    for i in range(1, 5):
        if tid(0) < n:
            libshmem_device.int_p(word_ptr + me, i, tid(0))
        libshmem_device.barrier_all_block()
        if tid(0) < n:
            if ld(word_ptr + tid(0), "sys", "acquire") != i:
                atomic_add(bad_ptr, 1)
        libshmem_device.barrier_all_block()
)";
  for (auto [ranks, perNode] : {std::pair{4u, 2u}, {4u, 1u}})
    for (uint64_t seed = 0; seed < 10; ++seed) {
      startNodes(ranks, perNode, seed);
      SymmetricBuffer word = symmetric(DataType::I32, ranks, "word");
      std::vector<Buffer> bad;
      for (uint32_t r = 0; r < ranks; ++r)
        bad.push_back(zeros(DataType::I32, 1, "bad", r));
      ASSERT_OK(runAll(text, "rounds", {.numWarps = 1},
                       [&](uint32_t r) { return jit::CallArguments{{bad[r], word.on(r)}, {}}; }));
      for (uint32_t r = 0; r < ranks; ++r)
        EXPECT_EQ(get<int32_t>(bad[r])[0], 0) << "rank " << r << ", seed " << seed;
    }
}

/// Over the world, the node, and those with one place on all nodes.
TEST_F(Nodes, CollectivesOfTeams) {
  const char *text = R"(
@triton.jit
def collect(world_ptr, node_ptr, across_ptr, one_ptr, src_ptr, count):
    libshmem_device.fcollect_block(libshmem_device.NVSHMEM_TEAM_WORLD, world_ptr, src_ptr, count)
    libshmem_device.fcollect_block(libshmem_device.NVSHMEMX_TEAM_NODE, node_ptr, src_ptr, count)
    libshmem_device.fcollect_block(libshmem_device.NVSHMEMX_TEAM_SAME_MYPE_NODE, across_ptr, src_ptr, count)
    libshmem_device.broadcast_block(libshmem_device.NVSHMEM_TEAM_WORLD, one_ptr, src_ptr, count, 3)
)";
  const uint32_t ranks = 6, perNode = 2, nodes = 3;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    startNodes(ranks, perNode, seed);
    constexpr int32_t count = 37;
    SymmetricBuffer all = symmetric(DataType::I32, count * ranks, "all"),
                    node = symmetric(DataType::I32, count * perNode, "node"),
                    across = symmetric(DataType::I32, count * nodes, "across"),
                    one = symmetric(DataType::I32, count, "one"), src = symmetric(DataType::I32, count, "src");
    std::vector<std::vector<int32_t>> sent;
    for (uint32_t r = 0; r < ranks; ++r) {
      sent.push_back(convertAll<int32_t>(randomIntegers(count, 50 * r + seed, -1000, 1000)));
      ASSERT_OK(src.upload(r, sent[r].data(), src.bytes()));
    }
    ASSERT_OK(runAll(text, "collect", {.numWarps = 2}, [&](uint32_t r) {
      return jit::CallArguments{{all.on(r), node.on(r), across.on(r), one.on(r), src.on(r), count}, {}};
    }));
    const auto joined = [&](auto isMember) {
      std::vector<int32_t> result;
      for (uint32_t r = 0; r < ranks; ++r)
        if (isMember(r))
          result.insert(result.end(), sent[r].begin(), sent[r].end());
      return result;
    };
    for (uint32_t r = 0; r < ranks; ++r) {
      expectSame(get<int32_t>(all, r), joined([](uint32_t) { return true; }), "world");
      expectSame(get<int32_t>(node, r), joined([&](uint32_t other) { return other / perNode == r / perNode; }), "node");
      expectSame(get<int32_t>(across, r), joined([&](uint32_t other) { return other % perNode == r % perNode; }),
                 "across nodes");
      expectSame(get<int32_t>(one, r), sent[3], "broadcast");
    }
  }
}

/// remote_ptr is null beyond the node, as nvshmem_ptr.
TEST_F(Nodes, RemotePointersEndAtTheNode) {
  const char *text = R"(
@triton.jit
def reach(out_ptr, word_ptr):
    for pe in range(4):
        theirs = libshmem_device.remote_ptr(word_ptr, pe)
        if theirs.to(tl.int64) != 0:
            st(out_ptr + pe, 1)
)";
  startNodes(4, 2);
  SymmetricBuffer word = symmetric(DataType::I32, 1, "word");
  for (uint32_t r : {0u, 3u}) {
    Buffer out = zeros(DataType::I32, 4, "out", r);
    ASSERT_OK(launch(imports + std::string(text), "reach", {.numWarps = 1}, {{out, word.on(r)}, {}}, r));
    ASSERT_OK(world().synchronize());
    expectSame(get<int32_t>(out), r == 0 ? std::vector<int32_t>{1, 1, 0, 0} : std::vector<int32_t>{0, 0, 1, 1});
  }
}

TEST_F(Nodes, AccessesBeyondTheNodeAreExplained) {
  const char *text = R"(
@triton.jit
def store_there(word_ptr):
    tl.store(dl.symm_at(word_ptr, 2) + 1, 7)

@triton.jit
def wait_there(word_ptr):
    dl.wait(dl.symm_at(word_ptr, 2), 1, "sys", "acquire")

@triton.jit
def add_there(word_ptr):
    tl.atomic_add(libshmem_device.remote_ptr(word_ptr, 2) + 1, 7, scope="sys")

@triton.jit
def notify_there(word_ptr):
    dl.notify(word_ptr, 2, signal=1, comm_scope="intra_node")
)";
  const std::string explanation =
      "is memory of node 1, and rank 0 is on node 0: loads, stores, atomics, copies and stream signals stay "
      "on a node. Between nodes libshmem_device carries bytes: putmem_block";
  for (auto [kernel, message] : {std::pair{"store_there", "store of 4 bytes at word[1] of rank 2"},
                                 {"wait_there", "load of 4 bytes at word[0] of rank 2"},
                                 {"notify_there", "word[0] of rank 2"}}) {
    startNodes(4, 2);
    SymmetricBuffer word = symmetric(DataType::I32, 2, "word");
    EXPECT_THAT(errorOf(text, kernel, {{word.on(0)}, {}}), AllOf(HasSubstr(message), HasSubstr(explanation))) << kernel;
  }
  startNodes(4, 2);
  SymmetricBuffer word = symmetric(DataType::I32, 2, "word");
  EXPECT_THAT(errorOf(text, "add_there", {{word.on(0)}, {}}),
              AllOf(HasSubstr("at 0x4"), HasSubstr("remote_ptr has given null at kernel.py:"),
                    HasSubstr("PE 2 is on node 1 and this one on node 0")));
}

/// Without bounds checks nothing but the address itself can tell.
TEST_F(Nodes, AccessesBeyondTheNodeFaultWithoutBoundsChecks) {
  WorldOptions options;
  options.ranksPerNode = 1;
  options.checkBounds = false;
  start(2, options);
  SymmetricBuffer word = symmetric(DataType::I32, 2, "word");
  EXPECT_THAT(errorOf("@triton.jit\ndef store_there(word_ptr):\n    tl.store(dl.symm_at(word_ptr, 1) + 1, 7)\n",
                      "store_there", {{word.on(0)}, {}}),
              AllOf(HasSubstr("word[1] of rank 1"), HasSubstr("memory of node 1")));
}

TEST_F(Nodes, NotifyReachesOtherNodes) {
  const char *text = R"(
@triton.jit
def ring(out_ptr, word_ptr):
    right = (dl.rank() + 1) % dl.num_ranks()
    dl.notify(word_ptr, right, signal=3, sig_op="add", comm_scope="inter_node")
    dl.wait(word_ptr, 1, "sys", "acquire", waitValue=3)
    tl.store(out_ptr, 1)
)";
  for (uint64_t seed = 0; seed < 5; ++seed) {
    startNodes(4, 2, seed);
    SymmetricBuffer word = symmetric(DataType::I64, 1, "word");
    std::vector<Buffer> out;
    for (uint32_t r = 0; r < 4; ++r)
      out.push_back(zeros(DataType::I32, 1, "out", r));
    ASSERT_OK(runAll(text, "ring", {.numWarps = 1},
                     [&](uint32_t r) { return jit::CallArguments{{out[r], word.on(r)}, {}}; }));
    for (uint32_t r = 0; r < 4; ++r)
      EXPECT_EQ(get<int32_t>(out[r])[0], 1);
  }
}

/// Ranks of a group are numbered by the group; their nodes are those of the world.
TEST_F(Nodes, Groups) {
  const char *text = R"(
@triton.jit
def exchange(dest_ptr, src_ptr, signal_ptr, sizes_ptr):
    peer = 1 - dl.rank()
    libshmem_device.putmem_signal_block(dest_ptr, src_ptr, 4, signal_ptr, 1, libshmem_device.NVSHMEM_SIGNAL_SET, peer)
    dl.wait(signal_ptr, 1, "sys", "acquire")
    tl.store(sizes_ptr, libshmem_device.team_n_pes(libshmem_device.NVSHMEMX_TEAM_NODE))
)";
  startNodes(4, 2);
  for (auto [members, perNode] : {std::pair{std::vector<uint32_t>{3, 1}, 1u}, {std::vector<uint32_t>{2, 3}, 2u}}) {
    auto group = world().group(members);
    ASSERT_OK(group.status());
    EXPECT_EQ((*group)->ranksPerNode(), perNode);
    auto dest = (*group)->allocateSymmetric(DataType::I32, 1, "dest"),
         src = (*group)->allocateSymmetric(DataType::I32, 1, "src"),
         signal = (*group)->allocateSymmetric(DataType::I64, 1, "signal");
    std::vector<Buffer> sizes;
    for (uint32_t r = 0; r < 2; ++r) {
      const int32_t value = 40 + int32_t(r);
      ASSERT_OK(src->upload(r, &value, sizeof value));
      sizes.push_back(zeros(DataType::I32, 1, "sizes", members[r]));
    }
    for (uint32_t r = 0; r < 2; ++r)
      ASSERT_OK(launchFile((*group)->rank(r), {"kernel.py", std::string(kernelPrologue) + imports + text}, "exchange",
                           {.numWarps = 1}, {{dest->on(r), src->on(r), signal->on(r), sizes[r]}, {}}));
    ASSERT_OK(world().synchronize());
    for (uint32_t r = 0; r < 2; ++r) {
      EXPECT_EQ(get<int32_t>(*dest, r)[0], 41 - int32_t(r));
      EXPECT_EQ(get<int32_t>(sizes[r])[0], int32_t(perNode));
    }
  }
  EXPECT_THAT(world().group({0, 1, 2}).status().message(), HasSubstr("equally many ranks of each of its nodes"));
  EXPECT_THAT(world().group({0, 2, 1, 3}).status().message(), HasSubstr("next to each other in the list"));
}

/// But AllGather+GEMM and GEMM+ReduceScatter: inter_node_test.cpp.
TEST_F(Nodes, OperatorsOfTheLibraryAreForOneNode) {
  startNodes(4, 2);
  ops::GemmAllReduce::Options options;
  options.maxRows = 256, options.columns = 64;
  EXPECT_THAT(
      ops::GemmAllReduce::create(world(), sharedJit(), options).status().message(),
      HasSubstr(
          "GemmAllReduce of 4 ranks on 2 nodes of 2: its ranks reach each other by loads, stores and copies, which "
          "stay on a node; make it of a group of one node's ranks"));
  auto group = world().group({2, 3});
  ASSERT_OK(group.status());
  EXPECT_OK(ops::GemmAllReduce::create(**group, sharedJit(), options).status());
}

TEST_F(Nodes, CopiesStayOnTheNode) {
  startNodes(4, 2);
  SymmetricBuffer data = symmetric(DataType::I32, 16, "data");
  EXPECT_OK(world().rank(0).stream().copy(data.on(1), data.on(0), 16));
  EXPECT_THAT(world().rank(0).stream().copy(data.on(2), data.on(0), 16).message(),
              AllOf(HasSubstr("data[0] of rank 2 is memory of node 1"), HasSubstr("putmem_block")));
  EXPECT_OK(world().synchronize());
  EXPECT_OK(world().runRanks([](Rank &rank) { return rank.hostBarrier(); }));
}

TEST_F(Nodes, SizesThatDoNotDivideAreRefused) {
  WorldOptions options;
  options.ranksPerNode = 4;
  EXPECT_THAT(World::local(6, "sim:sm_80", options).status().message(),
              HasSubstr("6 ranks do not fill nodes of 4; ranks per node may be 1, 2, 3, 6"));
}

} // namespace
} // namespace ditron::e2e
