//===- package_builder_test.cpp - From signatures and calls to a package that serves them ----------------------------------===//
//
// Whatever the builder compiles for a call, the provider finds for the same call, and it computes the same as the jit's.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/aot/PackageBuilder.h"

#include "ditron/package/PackageFile.h"
#include "ditron/package/PackageProvider.h"
#include "ditron/runtime/World.h"

#include <gmock/gmock.h>

using namespace ditron;
using namespace ditron::aot;
using runtime::Buffer;
using runtime::CallArguments;
using runtime::LaunchOptions;
using testing::AllOf;
using testing::HasSubstr;

namespace {

constexpr const char *text = R"(import triton
import triton.language as tl

@triton.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr, SHIFT: tl.constexpr = 3):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) * factor + SHIFT, mask=mask)

@triton.jit
def tuples(pair, out, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(pair[0] + offsets) + pair[1])

@triton.jit
def copy(source, out, BLOCK: tl.constexpr):
    tile = source.load([16, 0])
    tl.store(out + tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :], tile)

@triton.autotune(configs=[triton.Config({"BLOCK": 32}, num_warps=2), triton.Config({"BLOCK": 64}, num_warps=1)], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x + offsets, offsets, mask=offsets < n)
)";

const compiler::KernelSource source = {"scale.py", text};

VariantOrder orderOf(const char *kernel, const char *target = "sim:sm_80") { return {source, "scale.py", kernel, target}; }
runtime::KernelReference referenceTo(const char *kernel) { return {"scale.py", "scale.py", text, kernel}; }

std::string messageOf(const Status &status) { return status.isOk() ? "ok" : status.message(); }

class PackageBuilding : public testing::Test {
protected:
  void SetUp() override {
    world = *runtime::World::local(1, "sim");
    jit = *jit::Jit::create("sim");
    x = *rank().allocate(DataType::F32, 1024, "x");
    std::vector<float> values(1024);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(i % 37) * 0.25f;
    ASSERT_TRUE(x.uploadFloats(values).isOk());
  }
  runtime::Rank &rank() { return world->rank(0); }

  /// The package as a program has it: through the bytes of a file.
  std::unique_ptr<package::PackageProvider> provider() {
    Expected<package::Package> read = package::readPackage(package::writePackage(builder.package()));
    EXPECT_TRUE(read.isOk()) << messageOf(read.status());
    return *package::PackageProvider::create({{"app.ditron", std::move(*read)}}, {});
  }
  /// What a kernel writes to `out`, which the call gets as the keyword out.
  std::vector<float> run(runtime::KernelProvider &kernels, const char *kernel, CallArguments call, const LaunchOptions &options) {
    Buffer out = *rank().allocate(DataType::F32, 1024, "out");
    call.keywords.emplace_back("out", out);
    Expected<runtime::Specialisation> variant = kernels.specialise(referenceTo(kernel), call, options);
    EXPECT_EQ(messageOf(variant.status()), "ok");
    if (!variant.isOk())
      return {};
    EXPECT_EQ(messageOf(rank().stream().launch(variant->kernel, {.grid = {8, 1, 1}}, variant->arguments)), "ok");
    EXPECT_EQ(messageOf(world->synchronize()), "ok");
    return *out.downloadFloats();
  }
  void expectSame(const char *kernel, const CallArguments &call, const LaunchOptions &options = {}) {
    SCOPED_TRACE(kernel);
    CallArguments recorded = call;
    Buffer out = *rank().allocate(DataType::F32, 1024, "out");
    recorded.keywords.emplace_back("out", out);
    ASSERT_EQ(messageOf(builder.addCall(orderOf(kernel), recorded, options).status()), "ok");
    EXPECT_EQ(run(*provider(), kernel, call, options), run(*jit, kernel, call, options));
  }

  std::unique_ptr<runtime::World> world;
  std::unique_ptr<jit::Jit> jit;
  Buffer x;
  PackageBuilder builder{Knobs(), "ditron for a test"};
};

} // namespace

TEST_F(PackageBuilding, whatACallIsCompiledToIsFoundForTheCall) {
  expectSame("scale", {{x}, {{"n", 1000}, {"factor", 2.5}, {"BLOCK", 128}}});
  expectSame("scale", {{x}, {{"n", 1}, {"factor", 2.5}, {"BLOCK", 128}, {"SHIFT", -1}}}, {.numWarps = 2});
  expectSame("scale", {{x}, {{"n", 1024}, {"factor", runtime::Argument::typed(DataType::F64, 0.5)}, {"BLOCK", 64}}});
  expectSame("tuples", {{}, {{"pair.0", x}, {"pair.1", 7}, {"BLOCK", 32}}});
  expectSame("copy", {{runtime::TensorDescriptor{x.pointer(), {64, 16}, {}, {16, 16}}}, {{"BLOCK", 16}}});
  EXPECT_EQ(builder.package().kernels.size(), 3u);
  EXPECT_EQ(builder.package().kernels[0].variants.size(), 3u);
}

TEST_F(PackageBuilding, aSignatureServesAllCallsThatItFits) {
  ASSERT_EQ(messageOf(builder.addSignature(orderOf("scale"), "*fp32:16, *fp32:16, i32, fp32, constexpr BLOCK=128", {})), "ok");
  for (int n : {1, 5, 16, 1000}) // the jit compiles a variant for each of these
    EXPECT_EQ(run(*provider(), "scale", {{x}, {{"n", n}, {"factor", 1.5}, {"BLOCK", 128}}}, {}),
              run(*jit, "scale", {{x}, {{"n", n}, {"factor", 1.5}, {"BLOCK", 128}}}, {}));
  EXPECT_EQ(builder.package().kernels[0].variants.size(), 1u);
}

TEST_F(PackageBuilding, theCommandOfAMissingVariantMakesIt) {
  ASSERT_EQ(messageOf(builder.addSignature(orderOf("scale"), "*fp32, *fp32, i32, fp32, constexpr BLOCK=32", {})), "ok");
  Buffer out = *rank().allocate(DataType::F32, 1024, "out");
  const CallArguments call = {{x, out, 100, 2.0}, {{"BLOCK", 64}}};
  const std::string message = messageOf(provider()->specialise(referenceTo("scale"), call, {}).status());
  const std::string begin = "--signature '";
  const size_t from = message.find(begin);
  ASSERT_NE(from, std::string::npos) << message;
  const std::string signature = message.substr(from + begin.size(), message.find('\'', from + begin.size()) - from - begin.size());
  ASSERT_EQ(messageOf(builder.addSignature(orderOf("scale"), signature, {})), "ok") << signature;
  EXPECT_EQ(messageOf(provider()->specialise(referenceTo("scale"), call, {}).status()), "ok");
}

TEST_F(PackageBuilding, configurationsAreNotedAndHeuristicsMustBeGiven) {
  ASSERT_EQ(messageOf(builder.addSignature(orderOf("tuned"), "*i32, i32, constexpr EVEN=False", {})), "ok");
  ASSERT_EQ(messageOf(builder.addSignature(orderOf("tuned"), "*i32, i32, constexpr EVEN=False", {.config = 1})), "ok");
  const package::Kernel &kernel = builder.package().kernels[0];
  EXPECT_EQ(kernel.variants[0].config, 0);
  EXPECT_EQ(kernel.variants[0].artifact.numWarps, 2u);
  EXPECT_EQ(kernel.variants[1].config, 1);
  EXPECT_TRUE(kernel.parameters[2].isTuned);
  EXPECT_TRUE(kernel.parameters[3].isComputed);
  Buffer ints = *rank().allocate(DataType::I32, 64, "ints");
  EXPECT_THAT(messageOf(provider()->specialise(referenceTo("tuned"), {{ints, 40}, {}}, {}).status()),
              HasSubstr("'EVEN' is computed by @triton.heuristics"));
  Expected<runtime::Specialisation> chosen = provider()->specialise(referenceTo("tuned"), {{ints, 40}, {{"EVEN", false}}}, {.config = 1});
  ASSERT_EQ(messageOf(chosen.status()), "ok");
  EXPECT_EQ(chosen->kernel.artifact().numWarps, 1u);
}

TEST_F(PackageBuilding, theSameVariantIsKeptOnceAndAnotherSourceIsRefused) {
  const std::string signature = "*fp32, *fp32, i32, fp32, constexpr BLOCK=32";
  ASSERT_EQ(messageOf(builder.addSignature(orderOf("scale"), signature, {})), "ok");
  ASSERT_EQ(messageOf(builder.addSignature(orderOf("scale"), signature, {})), "ok");
  EXPECT_EQ(builder.package().kernels[0].variants.size(), 1u);
  VariantOrder changed = orderOf("scale");
  changed.source.text += "\n# changed\n";
  EXPECT_THAT(messageOf(builder.addSignature(changed, signature, {})), HasSubstr("from another version of 'scale.py'"));
}

TEST_F(PackageBuilding, gpusGetPtx) {
  ASSERT_EQ(messageOf(builder.addSignature(orderOf("scale", "cuda:sm_80"), "*fp32, *fp32, i32, fp32, constexpr BLOCK=128", {})), "ok");
  const package::Variant &variant = builder.package().kernels[0].variants[0];
  ASSERT_EQ(variant.codes.size(), 1u);
  EXPECT_EQ(variant.codes[0].kind, ArtifactCode::Ptx);
  EXPECT_THAT(variant.codes[0].bytes, AllOf(HasSubstr(".target sm_80"), HasSubstr(variant.artifact.entrySymbol)));
  EXPECT_TRUE(builder.package().features.empty());
}

TEST_F(PackageBuilding, filesThatComeWithASourceAreKnownByTheirNames) {
  const std::string_view importing =
      "import triton\nimport triton.language as tl\nfrom .numbers import factor\n\n@triton.jit\n"
      "def fill(out):\n    tl.store(out + tl.arange(0, 1024), tl.full((1024,), factor, tl.float32))\n";
  const std::string_view texts[] = {"import triton.language as tl\nfactor = tl.constexpr(2.0)\n",
                                    "import triton.language as tl\nfactor = tl.constexpr(3.0)\n"};
  Buffer out = *rank().allocate(DataType::F32, 1024, "out");
  auto specialise = [&](auto &&provide, const std::string &folder, std::string_view text) {
    const std::string path = folder + "/fill.py", importedPath = folder + "/numbers.py";
    const runtime::ImportableSource files[] = {{"lib:numbers", importedPath, text},
                                               {"lib:unused", folder + "/unused.py", "x = 1"}};
    return provide(runtime::KernelReference{"lib:fill", path, importing, "fill", files});
  };
  const Status built = specialise(
      [&](const runtime::KernelReference &kernel) {
        return builder.addCall(VariantOrder::of(kernel, "sim:sm_80"), {{out}, {}}, {}).status();
      },
      "/build/kernels", texts[0]);
  ASSERT_EQ(messageOf(built), "ok");
  ASSERT_EQ(builder.package().kernels[0].imports.size(), 1u);
  EXPECT_EQ(builder.package().kernels[0].imports[0].name, "lib:numbers");
  std::unique_ptr<package::PackageProvider> packaged = provider();
  const auto ask = [&](const runtime::KernelReference &kernel) {
    return packaged->specialise(kernel, {{out}, {}}, {}).status();
  };
  EXPECT_EQ(messageOf(specialise(ask, "/elsewhere", texts[0])), "ok");
  packaged = provider();
  EXPECT_NE(messageOf(specialise(ask, "/elsewhere", texts[1]))
                .find("another version of 'lib:fill' or of a file that it imports"),
            std::string::npos);
}
