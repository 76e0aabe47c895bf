//===- provider_test.cpp - Kernels from packages ------------------------------------------------------------------------===//
//
// Links neither LLVM nor MLIR: that it links, and runs a kernel, is a part of what it shows.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "SamplePackage.h"

#include "ditron/package/PackageProvider.h"
#include "ditron/runtime/World.h"

#include <gmock/gmock.h>

using namespace ditron;
using namespace ditron::package;
using runtime::CallArguments;
using testing::AllOf;
using testing::HasSubstr;

namespace {

const runtime::KernelReference reference = {"sample.py", "src/sample.py", sampleText, "sample"};

std::unique_ptr<PackageProvider> providerOf(std::vector<Variant> variants, PackageOptions options = {}) {
  auto provider = PackageProvider::create({{"app.ditron", samplePackage(std::move(variants))}}, options);
  EXPECT_TRUE(provider.isOk()) << provider.status().message();
  return std::move(provider).value();
}

/// A provider that has everything, and counts.
class Fallback : public runtime::KernelProvider {
public:
  const std::string &target() const override { return name; }
  Expected<runtime::Specialisation> specialise(const runtime::KernelReference &, const CallArguments &,
                                               const runtime::LaunchOptions &) override {
    ++calls;
    return runtime::Specialisation();
  }
  std::string name = "sim:sm_80";
  int calls = 0;
};

} // namespace

TEST(PackageProvider, aKernelRunsFromAPackageWithoutACompiler) {
  std::unique_ptr<PackageProvider> provider = providerOf({sampleVariant("sim:sm_80", "i32"), sampleVariant("sim:sm_80", "")});
  std::unique_ptr<runtime::World> world = *runtime::World::local(1, "sim");
  runtime::Rank &rank = world->rank(0);
  runtime::Buffer out = *rank.allocate(DataType::I32, 16, "out");
  for (const auto &[n, expected] : {std::pair(7, 1007), std::pair(1, 2000)}) {
    Expected<runtime::Specialisation> variant = provider->specialise(reference, {{out, n, 64}, {}}, {});
    ASSERT_TRUE(variant.isOk()) << variant.status().message();
    EXPECT_EQ(variant->arguments.size(), n == 1 ? 1u : 2u);
    ASSERT_TRUE(rank.stream().launch(variant->kernel, {}, variant->arguments).isOk());
    const Status status = world->synchronize();
    ASSERT_TRUE(status.isOk()) << status.message();
    EXPECT_EQ(out.downloadFloats().value().front(), expected);
  }
}

TEST(PackageProvider, theSameVariantIsLoadedOnce) {
  std::unique_ptr<PackageProvider> provider = providerOf({sampleVariant("sim:sm_80", "i32")});
  alignas(64) static int words[16];
  const CallArguments call = {{runtime::Pointer{words, DataType::I32}, 7, 64}, {}};
  Expected<runtime::Specialisation> first = provider->specialise(reference, call, {}), second = provider->specialise(reference, call, {});
  ASSERT_TRUE(first.isOk() && second.isOk());
  EXPECT_EQ(first->kernel.identity(), second->kernel.identity());
}

TEST(PackageProvider, aMissingVariantNamesTheCommandThatAddsIt) {
  std::unique_ptr<PackageProvider> provider = providerOf({sampleVariant("sim:sm_80", "i32", 16), sampleVariant("sim:sm_90a", "i32")});
  alignas(64) static int words[16];
  const Status status =
      provider->specialise(reference, {{runtime::Pointer{words, DataType::I32}, 7, 64}, {}}, {.numWarps = 1, .numStages = 3}).status();
  EXPECT_EQ(status.code(), StatusCode::NotFound);
  EXPECT_EQ(status.message(), "kernel 'sample' of 'sample.py' for sim:sm_80: 'app.ditron' has no variant for this call\n"
                              "  'n' is compiled as a multiple of 16, given integer 7\n"
                              "  it is for sim:sm_90a\n"
                              "to add it: ditron build 'src/sample.py:sample' --signature 'out=*i32:16, n=i32, constexpr "
                              "BLOCK=64, scale=fp32' --num-warps 1 --num-stages 3 --target sim:sm_80 --add -o 'app.ditron'");
}

TEST(PackageProvider, anotherVersionOfTheSourceIsNotUsed) {
  std::unique_ptr<PackageProvider> provider = providerOf({sampleVariant("sim:sm_80", "i32")});
  alignas(64) static int words[16];
  runtime::KernelReference changed = reference;
  changed.text = "def sample(out, n, BLOCK: tl.constexpr, scale=2.0): something else";
  EXPECT_THAT(provider->specialise(changed, {{runtime::Pointer{words, DataType::I32}, 7, 64}, {}}, {}).status().message(),
              HasSubstr("package 'app.ditron' was built from another version of 'sample.py'"));
  runtime::KernelReference unknown = reference;
  unknown.kernel = "other";
  EXPECT_THAT(provider->specialise(unknown, {}, {}).status().message(),
              AllOf(HasSubstr("kernel 'other' of 'sample.py'"), HasSubstr("ditron build 'src/sample.py:other'")));
}

TEST(PackageProvider, policies) {
  EXPECT_THAT(PackageProvider::create({}, {.policy = Policy::Jit}).status().message(), HasSubstr("jit needs a provider"));
  EXPECT_THAT(parsePolicy("jit-wran").status().message(), HasSubstr("did you mean 'jit-warn'"));
  Fallback fallback;
  std::vector<std::string> warnings;
  alignas(64) static int words[16];
  const CallArguments call = {{runtime::Pointer{words, DataType::I32}, 7, 64}, {}};
  for (const auto &[policy, expected] : {std::pair(Policy::Jit, 0u), std::pair(Policy::JitWarn, 1u)}) {
    std::unique_ptr<PackageProvider> provider = providerOf(
        {sampleVariant("sim:sm_80", "")},
        {.policy = policy, .fallback = &fallback, .warn = [&](const std::string &text) { warnings.push_back(text); }});
    EXPECT_TRUE(provider->specialise(reference, call, {}).isOk());
    EXPECT_TRUE(provider->specialise(reference, call, {}).isOk());
    EXPECT_EQ(warnings.size(), expected);
  }
  EXPECT_EQ(fallback.calls, 4);
  fallback.name = "sim:sm_90a";
  EXPECT_THAT(PackageProvider::create({}, {.policy = Policy::Jit, .fallback = &fallback}).status().message(),
              HasSubstr("the package is for sim:sm_80, and the fallback compiles for sim:sm_90a"));
}

TEST(PackageProvider, codeOfOlderGpusServesNewerOnes) {
  const Variant old = sampleVariant("cuda:sm_80", "i32"), newer = sampleVariant("cuda:sm_90a", "i32");
  EXPECT_EQ(targetDistance(old, "cuda:sm_80"), 0u);
  EXPECT_EQ(targetDistance(old, "cuda:sm_89"), 10u);
  EXPECT_EQ(targetDistance(old, "cuda:sm_90a"), 11u);
  EXPECT_EQ(targetDistance(newer, "cuda:sm_100a"), std::nullopt);
  EXPECT_EQ(targetDistance(newer, "cuda:sm_80"), std::nullopt);
  EXPECT_EQ(targetDistance(old, "sim:sm_80"), std::nullopt);
  alignas(64) static int words[16];
  const CallArguments call = {{runtime::Pointer{words, DataType::I32}, 7, 64}, {}};
  std::unique_ptr<PackageProvider> provider = providerOf({old, newer}, {.target = "cuda:sm_90a"});
  EXPECT_EQ(provider->specialise(reference, call, {})->kernel.artifact().target, "cuda:sm_90a");
  provider = providerOf({old}, {.target = "cuda:sm_90a"});
  EXPECT_EQ(provider->specialise(reference, call, {})->kernel.artifact().target, "cuda:sm_80");
}

TEST(PackageProvider, aProcessorThatLacksWhatTheCodeUsesIsNamed) {
  Package package = samplePackage({sampleVariant("sim:sm_80", "i32")});
  package.features = {"avx10.9"};
  auto provider = PackageProvider::create({{"app.ditron", package}}, {});
  ASSERT_TRUE(provider.isOk());
  alignas(64) static int words[16];
  EXPECT_THAT((*provider)->specialise(reference, {{runtime::Pointer{words, DataType::I32}, 7, 64}, {}}, {}).status().message(),
              HasSubstr("built on a processor with avx10.9, which this one lacks"));
}
