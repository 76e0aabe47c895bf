//===- hopper_test.cpp - PTX of tensor copies and warpgroup multiplies ------------------------------------------------===//
//
// Writes kernels from the leaves alone and looks at their PTX; where ptxas is found (utils/find-ptxas), it must accept
// them for sm_90a without a complaint about performance. A GEMM main loop with a multiply in flight must not spill.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/Assembler.h"
#include "ditron/target/nvptx/NvptxTargetInfo.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cstdio>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ditron::target {
namespace {

using namespace mlir;
using testing::HasSubstr;
using testing::Not;

/// A kernel under construction: parameters are a tensor map, a pointer, an i32 and the world view.
class HopperKernel {
public:
  HopperKernel() : target(*nvptxArchitectureOf("cuda:sm_90a")) {
    context.loadDialect<LLVM::LLVMDialect, func::FuncDialect, scf::SCFDialect>();
    module = ModuleOp::create(UnknownLoc::get(&context));
    OpBuilder builder(&context);
    (*module)->setAttr(dgpu::numWarpsAttrName, builder.getI32IntegerAttr(4));
    EXPECT_TRUE(succeeded(target.prepareModule(*module)));
    builder.setInsertionPointToEnd(module->getBody());
    auto pointer = LLVM::LLVMPointerType::get(&context);
    auto none = LLVM::LLVMVoidType::get(&context);
    auto type = LLVM::LLVMFunctionType::get(none, {pointer, pointer, builder.getI32Type(), pointer});
    kernel = LLVM::LLVMFuncOp::create(builder, module->getLoc(), "kernel", type);
    kernel.setArgAttr(0, LLVM::LLVMDialect::getByValAttrName(),
                      TypeAttr::get(LLVM::LLVMArrayType::get(builder.getI8Type(), 128)));
    block = kernel.addEntryBlock(builder);
  }

  Value map() { return block->getArgument(0); }
  Value out() { return block->getArgument(1); }
  Value number() { return block->getArgument(2); }

  /// PTX of the finished kernel.
  std::string ptx() {
    EXPECT_TRUE(succeeded(target.finishKernel(kernel)));
    Expected<TargetCode> code = target.generateCode(*module, CodegenOptions{3});
    EXPECT_TRUE(code.isOk()) << code.status().message();
    return code.isOk() ? code->code : std::string();
  }

  MLIRContext context;
  NvptxTargetInfo target;
  OwningOpRef<ModuleOp> module;
  LLVM::LLVMFuncOp kernel;
  Block *block = nullptr;
};

/// The path of ptxas; empty without one.
const std::string &ptxasPath() {
  static const std::string path = [] {
    std::string output(1024, '\0');
    FILE *pipe = popen(DITRON_FIND_PTXAS, "r");
    output.resize(std::fread(output.data(), 1, output.size(), pipe));
    pclose(pipe);
    return output.substr(0, output.find('\n'));
  }();
  return path;
}

void expectAssembles(const std::string &ptx) {
  if (ptxasPath().empty())
    GTEST_SKIP() << "no ptxas";
  Expected<AssembledPtx> assembled = assemblePtx(ptxasPath(), "sm_90a", ptx);
  ASSERT_TRUE(assembled.isOk()) << assembled.status().message() << ptx;
  EXPECT_THAT(assembled->log, Not(HasSubstr("Performance Loss")));
  EXPECT_THAT(assembled->log, HasSubstr(" 0 bytes spill stores"));
}

TEST(Assembler, Errors) {
  EXPECT_EQ(assemblePtx("/nowhere/ptxas", "sm_90a", "").status().code(), StatusCode::NotFound);
  if (ptxasPath().empty())
    GTEST_SKIP() << "no ptxas";
  Status refused = assemblePtx(ptxasPath(), "sm_90a", ".version 8.0\n.target sm_90a\n.address_size 64\nmov;\n").status();
  EXPECT_EQ(refused.code(), StatusCode::Internal);
  EXPECT_THAT(refused.message(), HasSubstr("line 4"));
}

TEST(Hopper, OnlyWhereTheHardwareIs) {
  EXPECT_EQ(NvptxTargetInfo(*nvptxArchitectureOf("cuda:sm_80")).hopper(), nullptr);
  EXPECT_NE(NvptxTargetInfo(*nvptxArchitectureOf("cuda:sm_90a")).hopper(), nullptr);
}

TEST(Hopper, TensorCopies) {
  HopperKernel kernel;
  OpBuilder builder = OpBuilder::atBlockEnd(kernel.block);
  Emitter e(kernel.module->getLoc(), builder);
  HopperLeaves &leaves = *kernel.target.hopper();
  Value first = e.isZero(kernel.target.threadId(e));
  Value bar = kernel.target.sharedMemoryBase(e), tile = e.addBytes(bar, 1024);
  leaves.mbarrierInit(e, bar, 1, first);
  leaves.mbarrierInitFence(e);
  kernel.target.blockBarrier(e);
  Value zero = e.i32(0);
  leaves.mbarrierExpect(e, bar, 16384, first);
  leaves.tmaLoad(e, kernel.map(), {zero, kernel.number()}, tile, bar, first);
  leaves.tmaLoad(e, kernel.map(), {zero, kernel.number()}, tile, bar, first, tile::EvictionPolicy::EvictFirst);
  leaves.tmaLoad(e, kernel.map(), {zero, kernel.number()}, tile, bar, first, tile::EvictionPolicy::EvictLast);
  leaves.mbarrierWait(e, bar, zero);
  leaves.mbarrierWait(e, bar, zero);
  leaves.mbarrierArrive(e, bar, Value());
  leaves.fenceAsync(e);
  leaves.namedBarrier(e, e.i32(1), 128, NamedBarrierKind::Sync);
  leaves.tmaStore(e, kernel.map(), {zero, kernel.number()}, tile, first);
  leaves.tmaStoreCommit(e);
  leaves.tmaStoreWait(e, 0, /*onlyRead=*/true);
  leaves.tmaStoreWait(e, 0, /*onlyRead=*/false);
  leaves.mbarrierInvalidate(e, bar, first);
  LLVM::ReturnOp::create(e, ValueRange());
  std::string ptx = kernel.ptx();
  EXPECT_THAT(ptx, HasSubstr(".param .align 64 .b8 kernel_param_0[128]"));
  EXPECT_THAT(ptx, HasSubstr("cvta.param.u64"));
  EXPECT_THAT(ptx, Not(HasSubstr(".local")));
  EXPECT_THAT(ptx, HasSubstr("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"));
  EXPECT_THAT(ptx, HasSubstr("createpolicy.fractional.L2::evict_first.b64 policy, 1.0;"));
  EXPECT_THAT(ptx, HasSubstr("createpolicy.fractional.L2::evict_last.b64 policy, 1.0;"));
  EXPECT_THAT(ptx, HasSubstr("complete_tx::bytes.L2::cache_hint ["));
  EXPECT_THAT(ptx, HasSubstr("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r"));
  EXPECT_THAT(ptx, HasSubstr(", 16384;"));
  expectAssembles(ptx);
}

struct MultiplyCase {
  const char *name;
  const char *instruction;
  int n, fragment; ///< Elements of A per thread and step when A comes from registers, else 0.
};

class HopperMultiply : public testing::TestWithParam<MultiplyCase> {
protected:
  static Type operandType(MLIRContext *context, llvm::StringRef name) {
    if (name.starts_with("BF16"))
      return BFloat16Type::get(context);
    if (name.starts_with("F16"))
      return Float16Type::get(context);
    if (name.starts_with("TF32"))
      return Float32Type::get(context);
    if (name.starts_with("E4M3"))
      return Float8E4M3FNType::get(context);
    if (name.starts_with("E5M2"))
      return Float8E5M2Type::get(context);
    return IntegerType::get(context, 8);
  }
};

TEST_P(HopperMultiply, StaysInFlightThroughALoop) {
  const MultiplyCase &test = GetParam();
  HopperKernel kernel;
  OpBuilder builder = OpBuilder::atBlockEnd(kernel.block);
  Emitter e(kernel.module->getLoc(), builder);
  HopperLeaves &leaves = *kernel.target.hopper();
  WarpgroupDot dot;
  dot.operandType = operandType(&kernel.context, test.name);
  dot.n = test.n;
  dot.kSteps = 4;
  dot.aStepBytes = dot.bStepBytes = 32;
  Value shared = kernel.target.sharedMemoryBase(e);
  dot.aDescriptor = leaves.matrixDescriptor(e, shared, 16, 1024, 128);
  dot.bDescriptor = leaves.matrixDescriptor(e, e.addBytes(shared, 16384), 16, 1024, 128);
  Type sum = dot.operandType.isInteger(8) ? Type(e.getI32Type()) : Type(e.getF32Type());
  Type stored = kernel.target.storageType(dot.operandType);
  for (int i = 0; i < test.fragment * dot.kSteps; ++i)
    dot.a.push_back(LLVM::LoadOp::create(e, stored, e.addBytes(kernel.out(), 4 * i)));

  // for (i = 0; i < number; ++i) { multiply; wait until the one before is done }, as a loop in LLVM blocks.
  Block *loop = kernel.kernel.addBlock(), *done = kernel.kernel.addBlock();
  SmallVector<Value> initial(dot.n / 2 + 1, e.zero(sum));
  initial[0] = e.i32(0);
  LLVM::BrOp::create(e, initial, loop);
  for (Value value : initial)
    loop->addArgument(value.getType(), e.getLoc());
  for (int i = 0; i < dot.n / 2; ++i)
    done->addArgument(sum, e.getLoc());
  e.setInsertionPointToStart(loop);
  dot.c.assign(loop->args_begin() + 1, loop->args_end());
  leaves.wgmmaFence(e);
  SmallVector<Value> sums = leaves.wgmma(e, dot);
  leaves.wgmmaCommit(e);
  sums = leaves.wgmmaWait(e, 1, sums);
  SmallVector<Value> next{e.add(loop->getArgument(0), e.i32(1))};
  next.append(sums);
  Value again = e.compare(LLVM::ICmpPredicate::slt, next[0], kernel.number());
  LLVM::CondBrOp::create(e, again, loop, next, done, sums);
  e.setInsertionPointToStart(done);
  SmallVector<Value> results = leaves.wgmmaWait(e, 0, done->getArguments());
  Value thread = e.mul(e.zextOrTrunc(kernel.target.threadId(e), e.getI64Type()), e.i64(4));
  for (auto [i, value] : llvm::enumerate(results))
    LLVM::StoreOp::create(e, value, e.addBytes(e.addBytes(kernel.out(), thread), int64_t(i) * 512));
  LLVM::ReturnOp::create(e, ValueRange());

  std::string ptx = kernel.ptx();
  size_t begin = ptx.find("wgmma.fence.sync.aligned"), end = ptx.find("bra", begin);
  ASSERT_NE(begin, std::string::npos) << ptx;
  std::string body = ptx.substr(begin, end - begin);
  EXPECT_THAT(body, HasSubstr(test.instruction));
  EXPECT_THAT(body, HasSubstr("wgmma.commit_group.sync.aligned"));
  EXPECT_THAT(body, HasSubstr("wgmma.wait_group.sync.aligned 1;"));
  EXPECT_THAT(body, Not(HasSubstr("mov.b32"))) << "an accumulator must stay in its register";
  expectAssembles(ptx);
}

INSTANTIATE_TEST_SUITE_P(
    Types, HopperMultiply,
    testing::Values(MultiplyCase{"BF16", "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", 256, 0},
                    MultiplyCase{"F16", "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", 128, 0},
                    MultiplyCase{"BF16Registers", "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", 128, 8},
                    MultiplyCase{"TF32", "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32", 64, 0},
                    MultiplyCase{"E4M3", "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3", 64, 0},
                    MultiplyCase{"E5M2", "wgmma.mma_async.sync.aligned.m64n64k32.f32.e5m2.e5m2", 64, 0},
                    MultiplyCase{"I8", "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8", 64, 0}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace ditron::target
