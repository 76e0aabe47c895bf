//===- tuning_test.cpp - Configurations, heuristics and imported files of kernels ---------------------------------===//
#include "ditron/jit/Jit.h"
#include "ditron/runtime/World.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>

using namespace ditron;
using namespace ditron::jit;
using runtime::Argument;
using runtime::Pointer;
using testing::HasSubstr;

namespace {

const compiler::KernelSource source = {"tuned.py", R"(import torch
import triton
import triton.language as tl
from triton import autotune

def configs():
    return [triton.Config({"BLOCK": b}, num_warps=w, num_stages=2) for b in (64, 128) for w in [2, 8]]

@autotune(configs=[triton.Config({"BLOCK": 32}, num_ctas=2)] + configs(), key=["n"], restore_value=["out"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0, "HALF": lambda args: args["x"].dtype == tl.float16,
                    "WIDE": lambda args: "wide" if args["num_warps"] > 4 and not args["HALF"] else "narrow"})
@triton.jit(do_not_specialize=["n"])
def tuned(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, HALF: tl.constexpr, WIDE: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1)

@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})
@triton.autotune([triton.Config({}, num_warps=1)], key=[])
@triton.jit
def warps(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), tl.load(x))

@triton.jit(do_not_specialize=["BLOCK"])
def contradicts(x, BLOCK: tl.constexpr):
    tl.store(x, BLOCK)

@triton.autotune(configs=torch.configs(), key=[])
@triton.jit
def unknown(x, BLOCK: tl.constexpr):
    tl.store(x, BLOCK)
)"};

testing::AssertionResult ok(const Status &status) {
  return status.isOk() ? testing::AssertionSuccess() : testing::AssertionFailure() << status.message();
}

struct Tuning : testing::Test {
  std::unique_ptr<Jit> jit = std::move(Jit::create("sim")).value();
  int words[4] = {};
  CallArguments call(Argument n, DataType type = DataType::F32) { return {{Pointer{words, type}, n}, {}}; }

  KernelFunction function(const char *name) {
    Expected<KernelFunction> loaded = jit->load(source, name);
    EXPECT_TRUE(ok(loaded.status()));
    return loaded.value();
  }
  std::string valueOf(const TunedCall &tuned, std::string_view name) {
    for (const auto &[each, value] : tuned.arguments.keywords)
      if (each == name)
        return value.describe();
    return "nothing";
  }
};

} // namespace

TEST_F(Tuning, theFirstConfigurationThatCanBeCompiledIsUsed) {
  Expected<TunedCall> tuned = jit->tune(function("tuned"), call(int64_t(256)));
  ASSERT_TRUE(ok(tuned.status()));
  EXPECT_EQ(tuned->config, "BLOCK=64 num_warps=2 num_stages=2");
  EXPECT_EQ(tuned->options.warps(), 2u);
  EXPECT_EQ(tuned->options.stages(), 2u);
  Expected<std::string> signature = jit->signatureFor(function("tuned"), call(int64_t(100), DataType::F16));
  ASSERT_TRUE(ok(signature.status()));
  EXPECT_THAT(*signature, HasSubstr("n=i32, constexpr BLOCK=64, constexpr EVEN=False, constexpr HALF=True, constexpr WIDE=\"narrow\""));
}

TEST_F(Tuning, heuristicsSeeTheConfigurationAndEachOther) {
  LaunchOptions options;
  options.config = 4;
  Expected<TunedCall> tuned = jit->tune(function("tuned"), call(int64_t(256)), options);
  ASSERT_TRUE(ok(tuned.status()));
  EXPECT_EQ(tuned->options.warps(), 8u);
  EXPECT_EQ(valueOf(*tuned, "EVEN"), Argument(true).describe());
  EXPECT_EQ(valueOf(*tuned, "WIDE"), Argument("wide").describe());
}

TEST_F(Tuning, whatTheCallGivesWins) {
  CallArguments given = call(int64_t(256));
  given.keywords = {{"BLOCK", int64_t(16)}, {"EVEN", false}};
  Expected<TunedCall> tuned = jit->tune(function("tuned"), given);
  ASSERT_TRUE(ok(tuned.status()));
  EXPECT_EQ(tuned->config, "");
  EXPECT_EQ(tuned->options.warps(), 4u);
  EXPECT_EQ(valueOf(*tuned, "EVEN"), Argument(false).describe());
  LaunchOptions options;
  options.config = 1;
  EXPECT_THAT(jit->tune(function("tuned"), given, options).status().message(),
              HasSubstr("parameter 'BLOCK' of kernel 'tuned' is given, and configuration 1 sets it to 64"));
  options.numWarps = 4;
  EXPECT_THAT(jit->tune(function("tuned"), call(int64_t(1)), options).status().message(),
              HasSubstr("num_warps is given, and configuration 1 of kernel 'tuned' sets it"));
}

TEST_F(Tuning, refusals) {
  LaunchOptions options;
  options.config = 0;
  EXPECT_THAT(jit->tune(function("tuned"), call(int64_t(1)), options).status().message(), HasSubstr("num_ctas is 2"));
  options.config = 9;
  EXPECT_THAT(jit->tune(function("tuned"), call(int64_t(1)), options).status().message(), HasSubstr("has 5 configurations"));
  EXPECT_THAT(jit->tune(function("warps"), call(Argument("text"))).status().message(),
              HasSubstr("the heuristic for 'BLOCK': tuned.py:16:43: the argument of triton.next_power_of_2 must be an int"));
  EXPECT_THAT(jit->load(source, "contradicts").status().message(),
              HasSubstr("BLOCK marked as constexpr and listed in do_not_specialize"));
  Expected<Specialisation> missing = jit->specialise(function("unknown"), {{Pointer{words, DataType::F32}}, {}});
  EXPECT_THAT(missing.status().message(), HasSubstr("its decorators could not be evaluated: tuned.py:26:26: `torch.configs()` is "
                                                    "not known at compile time"));
}

TEST_F(Tuning, decoratorsInAnyOrder) {
  Expected<TunedCall> tuned = jit->tune(function("warps"), call(int64_t(33)));
  ASSERT_TRUE(ok(tuned.status()));
  EXPECT_EQ(tuned->options.warps(), 1u);
  EXPECT_EQ(valueOf(*tuned, "BLOCK"), Argument(int64_t(64)).describe());
}

TEST_F(Tuning, changedImportsAreCompiledAgain) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "ditron-import-test";
  std::filesystem::create_directories(folder);
  auto write = [&](const char *value) {
    std::ofstream(folder / "values.py") << "import triton.language as tl\nVALUE = tl.constexpr(" << value << ")\n";
  };
  const compiler::KernelSource kernel = {"kernel.py", R"(import triton
from values import VALUE

@triton.jit
def fill(x):
    triton.language.store(x, VALUE)
)", {folder.string()}, {}};
  auto world = std::move(runtime::World::local(1, "sim", {})).value();
  auto run = [&] {
    runtime::Rank &rank = world->rank(0);
    runtime::Buffer buffer = std::move(rank.allocate(DataType::I32, 1, "value")).value();
    Expected<KernelFunction> fill = jit->load(kernel, "fill");
    EXPECT_TRUE(ok(fill.status()));
    EXPECT_TRUE(ok(jit->launch(rank.stream(), *fill, {}, {{buffer}, {}})));
    EXPECT_TRUE(ok(world->synchronize()));
    int result = 0;
    EXPECT_TRUE(ok(buffer.download(&result, sizeof(result))));
    return result;
  };
  write("3");
  EXPECT_EQ(run(), 3);
  EXPECT_EQ(run(), 3);
  EXPECT_EQ(jit->counters().compilations, 1u);
  write("4 + 1");
  EXPECT_EQ(run(), 5);
  std::filesystem::remove_all(folder);
}
