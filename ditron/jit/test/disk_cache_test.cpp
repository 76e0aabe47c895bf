//===- disk_cache_test.cpp - The second process compiles nothing --------------------------------------------------------===//
//
// A Jit of its own stands for a process of its own: they share nothing but the folder.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/compiler/Identity.h"
#include "ditron/jit/Jit.h"
#include "ditron/runtime/World.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <unistd.h>

using namespace ditron;
using namespace ditron::jit;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

const compiler::KernelSource source = {"fill.py", R"(import triton
import triton.language as tl

@triton.jit
def fill(out, value, BLOCK: tl.constexpr):
    tl.static_print("filling", BLOCK)
    tl.store(out + tl.arange(0, BLOCK), value)
)"};
constexpr const char *signature = "*i32:16, i32, constexpr BLOCK=64";

class DiskCacheTest : public testing::Test {
protected:
  void SetUp() override {
    folder = fs::path(testing::TempDir()) / ("ditron-disk-cache-" + std::to_string(getpid()));
    fs::remove_all(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  Knobs knobs() const {
    Knobs result;
    result.cacheDir = folder;
    return result;
  }

  /// Compiles in a process of its own, so to speak.
  runtime::Kernel compile(const Knobs &knobs, const compiler::KernelSource &kernelSource, const std::string &text,
                          const LaunchOptions &options = {}, const char *target = "sim") {
    Expected<std::unique_ptr<Jit>> created = Jit::create(target, knobs);
    EXPECT_TRUE(created.isOk()) << created.status().message();
    jit = std::move(created).value();
    jit->setObserver([this](const std::string &, const compiler::CompileReport *done) {
      if (done)
        report = *done;
    });
    Expected<KernelFunction> function = jit->load(kernelSource, "fill");
    EXPECT_TRUE(function.isOk()) << function.status().message();
    Expected<runtime::Kernel> kernel = jit->compile(*function, text, options);
    EXPECT_TRUE(kernel.isOk()) << kernel.status().message();
    return *kernel;
  }
  bool compiles(const Knobs &knobs, const compiler::KernelSource &kernelSource, const std::string &text,
                const LaunchOptions &options = {}, const char *target = "sim") {
    compile(knobs, kernelSource, text, options, target);
    EXPECT_EQ(jit->counters().compilations + jit->counters().diskHits, 1u);
    EXPECT_EQ(report.isFromCache, jit->counters().diskHits == 1);
    return jit->counters().compilations == 1;
  }

  fs::path folder;
  std::unique_ptr<Jit> jit;
  compiler::CompileReport report;
};

TEST_F(DiskCacheTest, TheSecondProcessCompilesNothing) {
  EXPECT_TRUE(compiles(knobs(), source, signature));
  EXPECT_THAT(report.timesText(),
              testing::AllOf(HasSubstr("  LLVM\n"), HasSubstr("    optimisation\n"), HasSubstr("  load\n")));
  EXPECT_EQ(report.printed, "filling 64\n");

  std::unique_ptr<runtime::World> world = *runtime::World::local(1, "sim");
  runtime::Kernel kernel = compile(knobs(), source, signature);
  EXPECT_EQ(jit->counters().compilations, 0u);
  EXPECT_EQ(jit->counters().diskHits, 1u);
  EXPECT_THAT(report.timesText(), HasSubstr("total (cache hit)"));
  EXPECT_THAT(report.timesText(), testing::Not(HasSubstr("frontend")));
  EXPECT_EQ(report.printed, "filling 64\n");
  ASSERT_EQ(kernel.artifact().parameters.size(), 2u);
  EXPECT_EQ(kernel.artifact().parameters[0].divisibility, 16u);

  runtime::Buffer out = *world->rank(0).allocate(DataType::I32, 64, "out");
  const runtime::Argument arguments[] = {out.pointer(), 42};
  ASSERT_TRUE(world->rank(0).stream().launch(kernel, {}, arguments).isOk());
  ASSERT_TRUE(world->synchronize().isOk());
  std::vector<int32_t> values(64);
  ASSERT_TRUE(out.download(values.data(), 256).isOk());
  EXPECT_THAT(values, testing::Each(42));
}

TEST_F(DiskCacheTest, WhateverAffectsTheCodeIsInTheKey) {
  EXPECT_TRUE(compiles(knobs(), source, signature));
  EXPECT_FALSE(compiles(knobs(), source, signature));
  EXPECT_TRUE(compiles(knobs(), {source.path, source.text + "# other text"}, signature));
  EXPECT_TRUE(compiles(knobs(), {"other.py", source.text}, signature));
  EXPECT_TRUE(compiles(knobs(), source, "*i32:16, i32, constexpr BLOCK=128"));
  EXPECT_TRUE(compiles(knobs(), source, "*i32, i32, constexpr BLOCK=64"));
  EXPECT_TRUE(compiles(knobs(), source, signature, {.numWarps = 2}));
  EXPECT_TRUE(compiles(knobs(), source, signature, {.numStages = 2}));
  EXPECT_TRUE(compiles(knobs(), source, signature, {}, "sim:sm_90a"));
  Knobs strict = knobs();
  strict.strictReductionOrdering = true;
  EXPECT_TRUE(compiles(strict, source, signature));
  Knobs unoptimised = knobs();
  unoptimised.optLevel = 0;
  EXPECT_TRUE(compiles(unoptimised, source, signature));
  EXPECT_FALSE(compiles(knobs(), source, signature));
  EXPECT_THAT(compiler::compilerIdentity("sim"), HasSubstr("LLVM 22."));
  EXPECT_NE(compiler::compilerIdentity("sim"), compiler::compilerIdentity("cuda:sm_90a")); // the processor
}

TEST_F(DiskCacheTest, PtxIsKeptToo) {
  runtime::Kernel first = compile(knobs(), source, signature, {}, "cuda:sm_90a");
  EXPECT_EQ(jit->counters().compilations, 1u);
  runtime::Kernel second = compile(knobs(), source, signature, {}, "cuda:sm_90a");
  EXPECT_EQ(jit->counters().compilations, 0u);
  EXPECT_THAT(second.image().code, HasSubstr(".entry fill"));
  EXPECT_EQ(second.image().code, first.image().code);
}

TEST_F(DiskCacheTest, DamagedEntriesAreCompiledAgain) {
  EXPECT_TRUE(compiles(knobs(), source, signature));
  for (const fs::directory_entry &file : fs::directory_iterator(folder))
    fs::resize_file(file, 1000);
  EXPECT_TRUE(compiles(knobs(), source, signature));
  EXPECT_FALSE(compiles(knobs(), source, signature));
}

TEST_F(DiskCacheTest, WorksWithoutAFolder) {
  Knobs off = knobs();
  off.cache = false;
  EXPECT_TRUE(compiles(off, source, signature));
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_TRUE(compiles(Knobs(), source, signature));

  EXPECT_TRUE(compiles(knobs(), source, signature));
  fs::permissions(folder, fs::perms::all); // others could have put code into it
  testing::internal::CaptureStderr();
  EXPECT_TRUE(compiles(knobs(), source, signature));
  EXPECT_TRUE(compiles(knobs(), source, signature));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("chmod go-w"));
  EXPECT_EQ(said.find("chmod"), said.rfind("chmod")); // once
}

} // namespace
