//===- compiler_test.cpp - The compiler as a library --------------------------------------------------------------===//
#include "ditron/compiler/Compiler.h"
#include "ditron/compiler/StageRunner.h"

#include "mlir/IR/BuiltinOps.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <sstream>

using namespace ditron;
using namespace ditron::compiler;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace {

const KernelSource addSource = {"add.py", R"(import triton
import triton.language as tl

@triton.jit
def inner(x):
    return x + x.missing

@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=[0])
def add(x, y, out, n, scale=1.0, BLOCK: tl.constexpr = 128):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask)
    tl.store(out + offsets, total * scale, mask=mask)

@triton.jit
def bad(x):
    tl.store(x, inner(tl.load(x)))

@triton.jit
def old(x):
    tl.store(x, tl.view(tl.load(x + tl.arange(0, 4)), [4]) + missing)

def host():
    pass
)"};

frontend::KernelSignature signature(const char *text) {
  Expected<frontend::KernelSignature> parsed = frontend::parseSignature(text);
  EXPECT_TRUE(parsed.isOk()) << parsed.status().message();
  return *parsed;
}

constexpr const char *addSignature = "*fp32:16, *fp32:16, *fp32:16, i32, fp32, constexpr BLOCK=256";

std::string readText(const std::filesystem::path &path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

} // namespace

TEST(KernelInterface, describes) {
  Expected<KernelInterface> add = describeKernel(addSource, "add");
  ASSERT_TRUE(add.isOk()) << add.status().message();
  EXPECT_THAT(add->parameterNames(), ElementsAre("x", "y", "out", "n", "scale", "BLOCK"));
  EXPECT_FALSE(add->parameters[0].isConstexpr);
  EXPECT_FALSE(add->parameters[0].specialiseAlignment);
  EXPECT_TRUE(add->parameters[0].specialiseValue);
  EXPECT_FALSE(add->parameters[3].specialiseValue);
  EXPECT_TRUE(add->parameters[1].specialiseAlignment);
  EXPECT_TRUE(add->parameters[4].hasDefault);
  EXPECT_TRUE(add->parameters[5].isConstexpr);
  EXPECT_EQ(std::get<frontend::ConstValue>(*add->parameters[5].defaultValue).toInt64(), 128);
}

TEST(KernelInterface, unknownKernel) {
  Status status = describeKernel(addSource, "ad").status();
  EXPECT_EQ(status.code(), StatusCode::NotFound);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("add"), HasSubstr("bad")));
  EXPECT_FALSE(describeKernel(addSource, "host").isOk());
}

TEST(KernelInterface, matchSignature) {
  KernelInterface add = *describeKernel(addSource, "add");
  frontend::KernelSignature full = signature(addSignature);
  auto matched = matchSignature(add, full);
  ASSERT_TRUE(matched.isOk()) << matched.status().message();
  EXPECT_EQ((*matched)[3]->type.signatureText(), "i32");
  frontend::KernelSignature some = signature("*fp32, *fp32, *fp32, i32");
  matched = matchSignature(add, some);
  ASSERT_TRUE(matched.isOk()) << matched.status().message();
  EXPECT_EQ((*matched)[5], nullptr);
  EXPECT_THAT(matchSignature(add, signature("*fp32, *fp32")).status().message(), HasSubstr("lacks parameter 'out'"));
  EXPECT_THAT(matchSignature(add, signature("*fp32, *fp32, *fp32, i32, constexpr BLOKC=3")).status().message(),
              HasSubstr("did you mean 'BLOCK'"));
  EXPECT_THAT(matchSignature(add, signature("i32, i32, i32, i32, fp32, i32, i32")).status().message(),
              HasSubstr("more than the 6 parameters"));
}

TEST(CompileOptions, check) {
  CompileOptions options;
  EXPECT_TRUE(options.check().isOk());
  options.numWarps = 3;
  EXPECT_THAT(options.check().message(), HasSubstr("num_warps is 3: it must be a power of 2 from 1 to 32"));
  options.numWarps = 4;
  options.numStages = 0;
  EXPECT_THAT(options.check().message(), HasSubstr("num_stages is 0"));
  options.numStages = 2;
  options.target = "simm";
  EXPECT_THAT(options.check().message(), HasSubstr("unknown target 'simm'"));
  CompileOptions other;
  EXPECT_NE(options.key(), other.key());
  CompileOptions alias;
  alias.target = "sim";
  EXPECT_EQ(alias.key(), other.key());
}

TEST(EmitStage, names) {
  for (const char *name : {"ast", "tile", "layout", "llvm", "asm"})
    EXPECT_EQ(toString(*parseEmitStage(name)), name);
  EXPECT_THAT(parseEmitStage("lvm").status().message(), HasSubstr("did you mean 'llvm'"));
}

// Locations of inlined calls become one error at the innermost place and a note per call.
TEST(KernelMessages, rendersCallChainsAndNotes) {
  frontend::SourceManager sources;
  ASSERT_TRUE(sources.add("k.py", "a = 1\ndef f(x):\n    y = x + 1\n").isOk());
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  KernelMessages messages(context, sources);
  mlir::Location inner = mlir::FileLineColRange::get(mlir::StringAttr::get(&context, "k.py"), 3, 9, 14);
  mlir::Location outer = mlir::FileLineColLoc::get(&context, "k.py", 1, 1);
  mlir::emitError(mlir::CallSiteLoc::get(mlir::NameLoc::get(mlir::StringAttr::get(&context, "y"), inner), outer),
                  "this is wrong")
          .attachNote(outer)
      << "because of that";
  EXPECT_TRUE(messages.hasErrors());
  EXPECT_FALSE(messages.hasCompilerBug());
  EXPECT_EQ(messages.errorText(), "k.py:3:9: error: this is wrong\n"
                                  "    y = x + 1\n"
                                  "        ^~~~~\n"
                                  "k.py:1:1: note: called from here\n"
                                  "a = 1\n"
                                  "^\n"
                                  "k.py:1:1: note: because of that\n"
                                  "a = 1\n"
                                  "^\n");
  mlir::emitWarning(outer, "odd");
  EXPECT_THAT(messages.warningText(), HasSubstr("k.py:1:1: warning: odd"));
  mlir::emitError(outer, "'tile.load' op operand #0 must be a pointer");
  EXPECT_TRUE(messages.hasCompilerBug());
}

namespace {
/// Fails after having changed the module.
struct BrokenPass : mlir::PassWrapper<BrokenPass, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BrokenPass)
  void runOnOperation() override {
    getOperation()->setAttr("half.done", mlir::UnitAttr::get(&getContext()));
    signalPassFailure();
  }
};
} // namespace

TEST(StageRunner, compilerBugsLeaveAReproducer) {
  const std::string folder = testing::TempDir() + "/ditron_reproducers";
  std::filesystem::remove_all(folder);
  CompileOptions options;
  options.knobs.reproducerDir = folder;
  frontend::KernelSignature none;
  const CompileJob job = {addSource, "add", none, options};
  frontend::SourceManager sources;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  KernelMessages messages(context, sources);
  CompileReport report;
  StageRunner run(job, messages, report);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  Status status = run.passes("breaking", *module, std::make_unique<BrokenPass>());
  EXPECT_EQ(status.code(), StatusCode::Internal);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("compiler bug in stage 'breaking' while compiling kernel 'add'"),
                                      HasSubstr("reproducer written to " + folder)));
  ASSERT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  const std::string text = readText(std::filesystem::directory_iterator(folder)->path());
  EXPECT_THAT(text, AllOf(HasSubstr("ditron compile 'add.py:add'"), HasSubstr("def add(x, y"), HasSubstr("module {"),
                          Not(HasSubstr("half.done"))));
  ASSERT_EQ(report.times.size(), 1u);
  EXPECT_EQ(report.times[0].name, "breaking");
  std::filesystem::remove_all(folder);
}

TEST(Compiler, emitsEveryStage) {
  CompileOptions options;
  auto emit = [&](EmitStage stage) {
    Expected<std::string> text = emitStage(addSource, "add", signature(addSignature), options, stage);
    EXPECT_TRUE(text.isOk()) << text.status().message();
    return text.isOk() ? *text : std::string();
  };
  EXPECT_THAT(emit(EmitStage::Ast), HasSubstr("FunctionDef"));
  EXPECT_THAT(emit(EmitStage::Tile),
              AllOf(HasSubstr("tile.load"), HasSubstr("tensor<256x"), Not(HasSubstr("#dgpu.layout"))));
  EXPECT_THAT(emit(EmitStage::Layout), AllOf(HasSubstr("tile.load"), HasSubstr("dgpu.shared_bytes")));
  EXPECT_THAT(emit(EmitStage::Llvm), AllOf(HasSubstr("@add__entry"), HasSubstr("@ditron_sim_access")));
  EXPECT_THAT(emit(EmitStage::Asm), HasSubstr("add__entry:"));
}

TEST(Compiler, artifactDescribesTheLaunch) {
  CompileReport report;
  CompileOptions options;
  options.numWarps = 2;
  Expected<Artifact> artifact = compileKernel(addSource, "add", signature(addSignature), options, &report);
  ASSERT_TRUE(artifact.isOk()) << artifact.status().message();
  EXPECT_EQ(artifact->entrySymbol, "add__entry");
  EXPECT_EQ(artifact->target, "sim:sm_80");
  EXPECT_EQ(artifact->numWarps, 2u);
  ASSERT_EQ(artifact->parameters.size(), 5u);
  EXPECT_EQ(artifact->parameters[0].type, "*fp32");
  EXPECT_EQ(artifact->parameters[0].bytes, 8u);
  EXPECT_EQ(artifact->parameters[0].divisibility, 16u);
  EXPECT_EQ(artifact->parameters[3].name, "n");
  EXPECT_EQ(artifact->parameters[3].bytes, 4u);
  EXPECT_EQ(artifact->code.substr(1, 3), "ELF");
  EXPECT_GT(report.totalMilliseconds(), 0);
  EXPECT_THAT(report.timesText(),
              AllOf(HasSubstr("import"), HasSubstr("layouts"), HasSubstr("code"), HasSubstr("total")));
}

TEST(Compiler, sameInputSameCode) {
  CompileOptions options;
  Expected<Artifact> first = compileKernel(addSource, "add", signature(addSignature), options);
  Expected<Artifact> second = compileKernel(addSource, "add", signature(addSignature), options);
  ASSERT_TRUE(first.isOk() && second.isOk());
  EXPECT_EQ(first->code, second->code);
}

TEST(Compiler, userErrorsShowTheSource) {
  Status status = compileKernel(addSource, "bad", signature("*fp32"), CompileOptions()).status();
  EXPECT_EQ(status.code(), StatusCode::CompileError);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("add.py:6:"), HasSubstr("return x + x.missing"), HasSubstr("^"),
                                      HasSubstr("called from here"), HasSubstr("tl.store(x, inner(tl.load(x)))")));
}

TEST(Compiler, warningsBeforeAnErrorAreSaidOnce) {
  CompileReport report;
  Status status = compileKernel(addSource, "old", signature("*fp32"), CompileOptions(), &report).status();
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("warning: tl.view is deprecated"), HasSubstr("'missing' is not defined")));
  EXPECT_EQ(report.messages, "");
}

TEST(Compiler, dumpsStages) {
  const std::string folder = testing::TempDir() + "/ditron_dump";
  std::filesystem::remove_all(folder);
  CompileOptions options;
  options.knobs.dumpKernel = "add";
  options.knobs.dumpDir = folder;
  ASSERT_TRUE(compileKernel(addSource, "add", signature(addSignature), options).isOk());
  ASSERT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  const std::filesystem::path kernel = std::filesystem::directory_iterator(folder)->path();
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(kernel))
    names.push_back(entry.path().filename().string());
  EXPECT_THAT(names, testing::IsSupersetOf({"00-source.py", "01-command.txt", "02-import.mlir"}));
  EXPECT_THAT(names, AllOf(testing::Contains(HasSubstr("layouts.mlir")), testing::Contains(HasSubstr("code.ll")),
                           testing::Contains(HasSubstr("code.s"))));
  EXPECT_THAT(readText(kernel / "01-command.txt"), HasSubstr("ditron compile 'add.py:add'"));
  std::filesystem::remove_all(folder);
}

/// A product whose last turn has masks: of the tiles of whole turns a producer could have a ring.
const KernelSource productSource = {"product.py", R"(import triton
import triton.language as tl

@triton.jit
def product(a_ptr, b_ptr, c_ptr, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    depth = tl.arange(0, 64)
    a = a_ptr + rows[:, None] * K + depth[None, :]
    b = b_ptr + columns[None, :] * K + depth[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K // 64):
        acc = tl.dot(tl.load(a), tl.load(b), acc)
        a += 64
        b += 64
    for k in tl.range(K // 64, tl.cdiv(K, 64), num_stages=1):
        acc = tl.dot(tl.load(a, mask=depth[None, :] < K - k * 64), tl.load(b, mask=depth[:, None] < K - k * 64), acc)
    tl.store(c_ptr + rows[:, None] * BLOCK_N + columns[None, :], acc.to(tl.bfloat16))
)"};

TEST(Compile, tilesOfPointersAreDescribedWhereAllFits) {
  CompileOptions options;
  options.target = "sim:sm_90a";
  options.numWarps = 8;
  CompileReport report;
  Expected<Artifact> described =
      compileKernel(productSource, "product",
                    signature("*bf16:16, *bf16:16, *bf16:16, i32:16, constexpr BLOCK_M=128, constexpr BLOCK_N=128"),
                    options, &report);
  ASSERT_TRUE(described.isOk()) << described.status().message();
  EXPECT_EQ(described->tensorMaps.size(), 2u);
  EXPECT_THAT(report.remarks, Not(HasSubstr("would need more")));
  // A ring of three turns leaves no room for what the last turn and the store need.
  options.numStages = 3;
  const char *const large = "*bf16:16, *bf16:16, *bf16:16, i32:16, constexpr BLOCK_M=128, constexpr BLOCK_N=256";
  CompileReport second;
  Expected<Artifact> plain = compileKernel(productSource, "product", signature(large), options, &second);
  ASSERT_TRUE(plain.isOk()) << plain.status().message();
  EXPECT_TRUE(plain->tensorMaps.empty());
  EXPECT_THAT(second.remarks, HasSubstr("with rings for them the kernel would need more than the target has"));
  EXPECT_EQ(second.messages, "");
  // Too large either way: what is said is said once.
  options.numStages = 8;
  const Status status =
      compileKernel(productSource, "product",
                    signature("*fp16:16, *fp16:16, *fp16:16, i32:16, constexpr BLOCK_M=256, constexpr BLOCK_N=256"),
                    options)
          .status();
  EXPECT_EQ(status.code(), StatusCode::ResourceExhausted) << status.message();
}

// Each of forty scalars uses the one before it twice: what a tile's start comes from is looked at once, not in 2^40 ways.
TEST(Compile, startsOfTilesAreFollowedOnce) {
  const KernelSource source = {"deep.py", R"(import triton
import triton.language as tl

@triton.jit
def deep(a_ptr, c_ptr, M, K, x, stride):
    first = x
    for i in tl.static_range(0, 40):
        first = tl.minimum(first // 2, first // 3 + 1)
    rows = tl.arange(0, 64)
    acc = tl.zeros((64, 64), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, 64)):
        depth = k * 64 + rows
        mask = ((first + rows)[:, None] < M) & (depth[None, :] < K)
        a = tl.load(a_ptr + (first + rows)[:, None] * stride + depth[None, :], mask=mask, other=0.0)
        acc = tl.dot(a, a.T, acc)
    tl.store(c_ptr + rows[:, None] * 64 + rows[None, :], acc)
)"};
  CompileOptions options;
  options.target = "sim:sm_90a";
  CompileReport report;
  Expected<Artifact> artifact =
      compileKernel(source, "deep", signature("*fp16:16, *fp32:16, i32, i32, i32, i32:16"), options, &report);
  ASSERT_TRUE(artifact.isOk()) << artifact.status().message();
  EXPECT_THAT(report.remarks, HasSubstr("where an index begins or ends is not known to be at an id or a counter"));
}

TEST(Compile, tensorMapsOfDescriptors) {
  const KernelSource source = {"gemm.py", R"(import triton
import triton.language as tl

@triton.jit
def gemm(a_ptr, b, c_ptr, M, N, K, stride_a, stride_c):
    a = tl.make_tensor_descriptor(a_ptr, [M, 192], [stride_a, 1], [128, 64])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [stride_c, 1], [128, 128])
    row = tl.program_id(0) * 128
    acc = tl.zeros((128, 128), dtype=tl.float32)
    for k in range(0, K, 64):
        acc = tl.dot(a.load([row, k]), b.load([0, k]).T, acc)
    c.store([row, 0], acc.to(c.dtype))
)"};
  const char *const types =
      "*bf16:16, tensordesc<bf16[128,64],nan>:16, *bf16:16, i32, i32:16, constexpr K=192, i32:16, i32:16";
  CompileOptions options;
  options.numWarps = 8;
  options.target = "sim:sm_80";
  Expected<Artifact> plain = compileKernel(source, "gemm", signature(types), options);
  ASSERT_TRUE(plain.isOk()) << plain.status().message();
  EXPECT_TRUE(plain->tensorMaps.empty());
  std::vector<std::string> names;
  for (const ArtifactParameter &parameter : plain->parameters)
    names.push_back(parameter.name + ":" + parameter.type);
  EXPECT_THAT(names, ElementsAre("a_ptr:*bf16", "b:*bf16", "b.shape.0:i32", "b.shape.1:i32", "b.stride.0:i64",
                                 "c_ptr:*bf16", "M:i32", "N:i32", "stride_a:i32", "stride_c:i32"));

  options.target = "sim:sm_90a";
  Expected<Artifact> mapped = compileKernel(source, "gemm", signature(types), options);
  ASSERT_TRUE(mapped.isOk()) << mapped.status().message();
  EXPECT_EQ(mapped->numWarps, 8u);
  EXPECT_GT(mapped->launchWarps, 8u);
  ASSERT_EQ(mapped->tensorMaps.size(), 3u);
  auto mapOf = [&](uint32_t base) {
    for (const ArtifactTensorMap &map : mapped->tensorMaps)
      if (map.base == base)
        return map;
    ADD_FAILURE() << "no tensor map of parameter " << base;
    return ArtifactTensorMap();
  };
  const ArtifactTensorMap a = mapOf(0), b = mapOf(1), c = mapOf(5);
  EXPECT_THAT(a.sizes, ElementsAre(ArtifactMapNumber{6, 0}, ArtifactMapNumber{-1, 192}));
  EXPECT_THAT(a.strides, ElementsAre(ArtifactMapNumber{8, 0}, ArtifactMapNumber{-1, 1}));
  EXPECT_THAT(a.box, ElementsAre(128u, 64u));
  EXPECT_EQ(a.element, "bf16");
  EXPECT_EQ(a.swizzleBytes, 128u);
  EXPECT_FALSE(a.fillNan);
  EXPECT_THAT(b.sizes, ElementsAre(ArtifactMapNumber{2, 0}, ArtifactMapNumber{3, 0}));
  EXPECT_THAT(b.strides, ElementsAre(ArtifactMapNumber{4, 0}, ArtifactMapNumber{-1, 1}));
  EXPECT_TRUE(b.fillNan);
  EXPECT_THAT(c.sizes, ElementsAre(ArtifactMapNumber{6, 0}, ArtifactMapNumber{7, 0}));
}
