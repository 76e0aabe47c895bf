//===- jit_test.cpp - Kernels from Triton source, run on simulated ranks ------------------------------------------===//
#include "ditron/jit/Jit.h"
#include "ditron/runtime/PreparedLaunch.h"
#include "ditron/runtime/World.h"
#include "ditron/sim/AbiSymbols.h"

#include <atomic>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <thread>

using namespace ditron;
using namespace ditron::jit;
using runtime::Argument;
using runtime::Buffer;
using runtime::Rank;
using runtime::SymmetricBuffer;
using runtime::World;
using testing::AllOf;
using testing::HasSubstr;

namespace {

const compiler::KernelSource source = {"kernels.py", R"(import triton
import triton.language as tl
import triton_dist.language as dl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)

@triton.jit
def ring(data, signal, out, BLOCK: tl.constexpr):
    rank = dl.rank()
    size = dl.num_ranks()
    peer = (rank + 1) % size
    offsets = tl.arange(0, BLOCK)
    remote = dl.symm_at(data, peer)
    tl.store(remote + offsets, offsets + rank * 1000)
    dl.notify(signal, peer, signal=1, sig_op="add", comm_scope="intra_node")
    token = dl.wait(signal, 1, "sys", "acquire", waitValue=1)
    mine = dl.consume_token(data, token)
    tl.store(out + offsets, tl.load(mine + offsets))
)"};

testing::AssertionResult ok(const Status &status) {
  return status.isOk() ? testing::AssertionSuccess() : testing::AssertionFailure() << status.message();
}

std::unique_ptr<Jit> makeJit() {
  Expected<std::unique_ptr<Jit>> jit = Jit::create("sim");
  EXPECT_TRUE(ok(jit.status()));
  return std::move(jit).value();
}

} // namespace

TEST(Jit, everyAbiFunctionHasAnAddress) {
  EXPECT_GE(sim::abiSymbols().size(), 35u);
  for (const sim::AbiSymbol &symbol : sim::abiSymbols())
    EXPECT_NE(symbol.address, nullptr) << symbol.name;
}

TEST(Jit, addsVectorsOfOddLength) {
  std::unique_ptr<World> world = *World::local(2, "sim");
  std::unique_ptr<Jit> jit = makeJit();
  Expected<KernelFunction> add = jit->load(source, "add");
  ASSERT_TRUE(ok(add.status()));
  EXPECT_TRUE(add->isConstexpr("BLOCK"));
  EXPECT_FALSE(add->isConstexpr("n"));
  constexpr int n = 1003;
  for (DataType type : {DataType::F32, DataType::BF16, DataType::I32}) {
    std::vector<Buffer> outs;
    std::vector<Buffer> inputs;
    for (uint32_t r = 0; r < 2; ++r) {
      Rank &rank = world->rank(r);
      std::vector<float> values(n);
      for (int i = 0; i < n; ++i)
        values[i] = static_cast<float>((i + r) % 64);
      for (const char *name : {"x", "y"}) {
        inputs.push_back(*rank.allocate(type, n, name));
        ASSERT_TRUE(ok(inputs.back().uploadFloats(values)));
      }
      outs.push_back(*rank.allocate(type, n, "out"));
      Status status = jit->launch(rank.stream(), *add, {.grid = {8, 1, 1}},
                                  {{inputs[2 * r], inputs[2 * r + 1], outs[r], n}, {{"BLOCK", 128}}});
      ASSERT_TRUE(ok(status));
    }
    ASSERT_TRUE(ok(world->synchronize()));
    for (uint32_t r = 0; r < 2; ++r) {
      std::vector<float> result = *outs[r].downloadFloats();
      for (int i = 0; i < n; ++i)
        ASSERT_EQ(result[i], 2.0f * static_cast<float>((i + r) % 64)) << toString(type) << " element " << i;
    }
  }
  // One variant per type; both ranks share it.
  EXPECT_EQ(jit->counters().compilations, 3u);
  EXPECT_EQ(jit->counters().cacheHits, 3u);
}

TEST(Jit, variantsAreByWhatTheCodeDependsOn) {
  std::unique_ptr<World> world = *World::local(1, "sim");
  std::unique_ptr<Jit> jit = makeJit();
  KernelFunction add = *jit->load(source, "add");
  Buffer x = *world->rank(0).allocate(DataType::F32, 64, "x");
  auto variant = [&](Argument n, int block, LaunchOptions options = {}) {
    Expected<Specialisation> made = jit->specialise(add, {{x, x, x, n}, {{"BLOCK", block}}}, options);
    EXPECT_TRUE(ok(made.status()));
    return jit->counters().compilations;
  };
  EXPECT_EQ(variant(50, 64), 1u);
  EXPECT_EQ(variant(51, 64), 1u);
  EXPECT_EQ(variant(48, 64), 2u); // a multiple of 16
  EXPECT_EQ(variant(1, 64), 3u);  // the compile-time value 1
  EXPECT_EQ(variant(50, 32), 4u);
  EXPECT_EQ(variant(50, 64, {.numWarps = 2}), 5u);
  EXPECT_EQ(variant(int64_t(1) << 40, 64), 6u);
  EXPECT_EQ(variant(50, 64), 6u);
  EXPECT_THAT(*jit->signatureFor(add, {{x, x, x, 48}, {{"BLOCK", 64}}}), HasSubstr("i32:16"));
  // The same text and name give the same function; its variants are found again.
  EXPECT_TRUE(ok(jit->specialise(*jit->load(source, "add"), {{x, x, x, 50}, {{"BLOCK", 64}}}).status()));
  EXPECT_EQ(jit->counters().compilations, 6u);
}

TEST(Jit, explicitSignatureIsCheckedAtLaunch) {
  std::unique_ptr<World> world = *World::local(1, "sim");
  std::unique_ptr<Jit> jit = makeJit();
  KernelFunction add = *jit->load(source, "add");
  Expected<runtime::Kernel> kernel = jit->compile(add, "*fp32:16, *fp32, *fp32, i32, constexpr BLOCK=64");
  ASSERT_TRUE(ok(kernel.status()));
  Buffer x = *world->rank(0).allocate(DataType::F32, 64, "x"),
         half = *world->rank(0).allocate(DataType::F16, 64, "half");
  runtime::Stream &stream = world->rank(0).stream();
  EXPECT_TRUE(ok(stream.launch(*kernel, {}, {x, x.pointer() + 1, x, 3})));
  EXPECT_THAT(stream.launch(*kernel, {}, {x.pointer() + 1, x, x, 3}).message(), HasSubstr("argument 'x' (number 0)"));
  EXPECT_THAT(stream.launch(*kernel, {}, {x, half, x, 3}).message(), HasSubstr("expected a fp32 pointer, given fp16"));
  EXPECT_TRUE(ok(world->synchronize()));
  EXPECT_FALSE(jit->compile(add, "*fp32, *fp32").isOk());
}

TEST(Jit, threadsCompileBesideEachOtherAndNothingTwice) {
  // PTX is text, so that what two ways of compiling give can be compared.
  const std::unique_ptr<Jit> alone = *Jit::create("cuda:sm_90a"), together = *Jit::create("cuda:sm_90a");
  constexpr int variants = 6, threads = 4;
  auto compile = [](Jit &jit, int variant) -> std::string {
    Expected<KernelFunction> function = jit.load(source, "add");
    EXPECT_TRUE(function.isOk()) << function.status().message();
    Expected<runtime::Kernel> kernel =
        jit.compile(*function, fmt::format("*fp32:16, *fp32, *fp32, i32, constexpr BLOCK={}", 64 << variant));
    EXPECT_TRUE(kernel.isOk()) << kernel.status().message();
    return kernel.isOk() ? kernel->image().code : "";
  };
  std::vector<std::string> expected;
  for (int variant = 0; variant < variants; ++variant)
    expected.push_back(compile(*alone, variant));
  std::vector<std::thread> pool;
  std::atomic<int> equal = 0;
  for (int thread = 0; thread < threads; ++thread)
    pool.emplace_back([&, thread] {
      for (int step = 0; step < variants; ++step) {
        const int variant = (step + thread / 2) % variants; // two threads ask for the same at once
        equal += compile(*together, variant) == expected[variant];
      }
    });
  for (std::thread &thread : pool)
    thread.join();
  EXPECT_EQ(equal, threads * variants);
  EXPECT_EQ(together->counters().compilations, static_cast<uint64_t>(variants));
  EXPECT_EQ(together->counters().cacheHits, static_cast<uint64_t>((threads - 1) * variants));
}

TEST(Jit, compileErrorsAndTheObserver) {
  std::unique_ptr<Jit> jit = makeJit();
  std::vector<std::string> events;
  jit->setObserver([&](const std::string &kernel, const compiler::CompileReport *report) {
    events.push_back(kernel + (report ? " done" : " starts"));
  });
  const compiler::KernelSource wrong = {"wrong.py",
                                        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x):\n"
                                        "    tl.store(x, undefined_name)\n"};
  Expected<KernelFunction> function = jit->load(wrong, "k");
  ASSERT_TRUE(ok(function.status()));
  Status status = jit->compile(*function, "*fp32").status();
  EXPECT_EQ(status.code(), StatusCode::CompileError);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("wrong.py:6:17: error:"), HasSubstr("undefined_name")));
  EXPECT_THAT(events, testing::ElementsAre("k starts", "k done"));
  EXPECT_EQ(jit->load(wrong, "kk").status().code(), StatusCode::NotFound);
}

// The distributed path end to end: symmetric memory, remote stores, notify and wait, compiled inside host fibers.
TEST(Jit, ringThroughSymmetricMemory) {
  for (uint64_t seed : {1, 2, 3}) {
    runtime::WorldOptions options;
    options.seed = seed;
    options.slowRanks[1] = 5;
    std::unique_ptr<World> world = *World::local(4, "sim", options);
    std::unique_ptr<Jit> jit = makeJit();
    SymmetricBuffer data = *world->allocateSymmetric(DataType::I32, 64, "data");
    SymmetricBuffer signal = *world->allocateSymmetric(DataType::I64, 1, "signal");
    std::vector<std::vector<int32_t>> results(4, std::vector<int32_t>(64));
    Status status = world->runRanks([&](Rank &rank) -> Status {
      DITRON_ASSIGN_OR_RETURN(KernelFunction ring, jit->load(source, "ring"));
      DITRON_ASSIGN_OR_RETURN(Buffer out, rank.allocate(DataType::I32, 64, "out"));
      DITRON_RETURN_IF_ERROR(
          jit->launch(rank.stream(), ring, {}, {{data.on(rank.id()), signal.on(rank.id()), out}, {{"BLOCK", 64}}}));
      DITRON_RETURN_IF_ERROR(rank.synchronize());
      DITRON_RETURN_IF_ERROR(out.download(results[rank.id()].data(), 64 * 4));
      return rank.hostBarrier();
    });
    ASSERT_TRUE(ok(status));
    EXPECT_EQ(jit->counters().compilations, 1u);
    for (int r = 0; r < 4; ++r)
      for (int i = 0; i < 64; ++i)
        ASSERT_EQ(results[r][i], i + (r + 3) % 4 * 1000);
  }
}

TEST(Jit, filesThatComeWithASourceAreImportedAndKeyed) {
  const std::string_view importing =
      "import triton\nimport triton.language as tl\nfrom .parts.numbers import answer\n"
      "from ..other import scale\n\n@triton.jit\ndef k(out):\n    tl.store(out, answer() * scale)\n";
  const std::string_view numbers = "import triton\n\n@triton.jit\ndef answer():\n    return 21\n";
  const std::string_view others[] = {"import triton.language as tl\nscale = tl.constexpr(2)\n",
                                     "import triton.language as tl\nscale = tl.constexpr(4)\n"};
  std::unique_ptr<Jit> jit = makeJit();
  std::unique_ptr<World> world = *World::local(1, "sim");
  Buffer out = *world->rank(0).allocate(DataType::I32, 1, "out");
  auto run = [&](std::string_view other) -> int32_t {
    const runtime::ImportableSource files[] = {{"n", "/nowhere/kernels/a/parts/numbers.py", numbers},
                                               {"o", "/nowhere/kernels/other.py", other}};
    const runtime::KernelReference kernel = {
        .name = "a", .path = "/nowhere/kernels/a/a.py", .text = importing, .kernel = "k", .imports = files};
    Expected<Specialisation> variant = jit->specialise(kernel, {{out}, {}}, {});
    EXPECT_TRUE(ok(variant.status()));
    if (!variant.isOk())
      return -1;
    EXPECT_TRUE(ok(world->rank(0).stream().launch(variant->kernel, {}, variant->arguments)));
    EXPECT_TRUE(ok(world->synchronize()));
    int32_t value = 0;
    EXPECT_TRUE(ok(out.download(&value, sizeof value)));
    return value;
  };
  EXPECT_EQ(run(others[0]), 42);
  EXPECT_EQ(run(others[0]), 42);
  EXPECT_EQ(jit->counters().compilations + jit->counters().diskHits, 1u);
  EXPECT_EQ(run(others[1]), 84);
  EXPECT_EQ(run(others[0]), 42);
  EXPECT_EQ(jit->counters().compilations + jit->counters().diskHits, 2u);
  // What neither came with it nor is on disk is missing.
  EXPECT_EQ(
      jit->specialise({.name = "a",
                       .path = "/nowhere/kernels/a/a.py",
                       .text = importing,
                       .kernel = "k",
                       .imports = std::array<runtime::ImportableSource, 1>{{{"n", "/nowhere/kernels/a/parts/numbers.py",
                                                                             numbers}}}},
                      {{out}, {}}, {})
          .status()
          .code(),
      StatusCode::CompileError);
}

TEST(Jit, integersOfAPreparedLaunchChangeBetweenLaunches) {
  const std::string_view text =
      "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(out, a, b):\n    tl.store(out, a + b)\n";
  std::unique_ptr<Jit> jit = makeJit();
  std::unique_ptr<World> world = *World::local(1, "sim");
  Buffer out = *world->rank(0).allocate(DataType::I64, 1, "out");
  const auto i64 = [](int64_t value) { return Argument::typed(DataType::I64, value); };
  Expected<Specialisation> variant =
      jit->specialise({.name = "k", .path = "k.py", .text = text, .kernel = "k"}, {{out, i64(3), i64(32)}, {}}, {});
  ASSERT_TRUE(ok(variant.status()));
  auto launch = runtime::PreparedLaunch::create(world->rank(0).device(), variant->kernel, {}, variant->arguments);
  ASSERT_TRUE(ok(launch.status()));
  const uint32_t a = *launch->integerParameter("a"), b = *launch->integerParameter("b");
  const auto run = [&] {
    EXPECT_TRUE(ok(launch->enqueue(world->rank(0).stream())));
    EXPECT_TRUE(ok(world->synchronize()));
    int64_t value = 0;
    EXPECT_TRUE(ok(out.download(&value, sizeof value)));
    return value;
  };
  EXPECT_EQ(run(), 35);
  EXPECT_TRUE(ok(launch->setInteger(a, -(int64_t{1} << 40))));
  EXPECT_TRUE(ok(launch->setInteger(b, 48)));
  EXPECT_EQ(run(), 48 - (int64_t{1} << 40));
  EXPECT_THAT(launch->setInteger(b, 47).message(), HasSubstr("parameter 'b': 47 is no multiple of 16"));
  EXPECT_EQ(run(), 48 - (int64_t{1} << 40));
  EXPECT_THAT(launch->integerParameter("out").status().message(), HasSubstr("has no i64 parameter 'out'"));
}
