//===- hopper_gemm_ptx_test.cpp - PTX of a warp-specialised matrix product ------------------------------------------------===//
//
// The kernels of sim/test/hopper_gemm_test.cpp, compiled for sm_90a. Where ptxas is found it must accept them without spills
// and without serialising the multiplies; the main loop must move no accumulator.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "../../sim/test/HopperGemm.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/target/Passes.h"
#include "ditron/target/common/Passes.h"
#include "ditron/target/common/TargetInfo.h"
#include "ditron/target/nvptx/Assembler.h"
#include "ditron/transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ditron;
using namespace ditron::target;
using namespace ditron::target::test;
using testing::HasSubstr;
using testing::Not;

namespace {

/// PTX of a module's text.
Expected<std::string> compileToPtx(const std::string &source) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context
      .loadDialect<tile::TileDialect, dist::DistDialect, dgpu::DgpuDialect, mlir::arith::ArithDialect,
                   mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::func::FuncDialect, mlir::LLVM::LLVMDialect>();
  std::string messages;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    messages += diagnostic.str() + "\n";
    return mlir::success();
  });
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
  if (!module)
    return invalidArgument("the test's IR does not parse: " + messages + source);
  mlir::registerTransformsPasses();
  transforms::registerTransformsPasses();
  registerTargetPasses();
  mlir::PassManager passes(&context);
  if (mlir::failed(
          mlir::parsePassPipeline(std::string("nvptx-guard-accumulator-loops,") + passesBeforeLowering, passes)))
    return internalError("no such pipeline");
  passes.addPass(createDitronToLLVM({"cuda:sm_90a"}));
  passes.addPass(mlir::createCSEPass());
  if (mlir::failed(passes.run(*module)))
    return internalError("lowering failed: " + messages);
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<TargetInfo> target, createTargetInfo("cuda:sm_90a"));
  CodegenOptions options;
  options.optimizationLevel = 3;
  DITRON_ASSIGN_OR_RETURN(TargetCode code, target->generateCode(*module, options));
  return code.code;
}

std::string findPtxas() {
  std::string output(1024, '\0');
  FILE *pipe = popen(DITRON_FIND_PTXAS, "r");
  output.resize(std::fread(output.data(), 1, output.size(), pipe));
  pclose(pipe);
  return output.substr(0, output.find('\n'));
}

struct PtxCase {
  const char *name;
  HopperGemm gemm;
  const char *instruction;
};

void PrintTo(const PtxCase &test, std::ostream *stream) { *stream << test.name; }

class HopperGemmPtx : public testing::TestWithParam<PtxCase> {};

TEST_P(HopperGemmPtx, KeepsAccumulatorsInPlace) {
  Expected<std::string> ptx = compileToPtx(GetParam().gemm.text());
  ASSERT_TRUE(ptx.isOk()) << ptx.status().message();
  if (const char *folder = std::getenv("DITRON_TEST_PTX")) // to look at the text
    std::ofstream(std::string(folder) + "/" + GetParam().name + ".ptx") << *ptx;
  EXPECT_THAT(*ptx, HasSubstr(GetParam().instruction));
  EXPECT_THAT(*ptx, HasSubstr("setmaxnreg"));
  EXPECT_THAT(*ptx, HasSubstr("stmatrix.sync.aligned.m8n8.x4.shared.b16"));
  EXPECT_THAT(*ptx, Not(HasSubstr(".local")));
  // From the multiply to the wait of the main loop.
  size_t begin = ptx->find("wgmma.fence.sync.aligned"), end = ptx->find("wgmma.wait_group", begin);
  ASSERT_NE(end, std::string::npos);
  std::string loop = ptx->substr(begin, end - begin);
  EXPECT_THAT(loop, Not(HasSubstr("mov.b32")));
  EXPECT_THAT(loop, Not(HasSubstr("mov.f32")));
  static const std::string ptxas = findPtxas();
  if (ptxas.empty())
    GTEST_SKIP() << "no ptxas";
  Expected<AssembledPtx> assembled = assemblePtx(ptxas, "sm_90a", *ptx);
  ASSERT_TRUE(assembled.isOk()) << assembled.status().message();
  EXPECT_THAT(assembled->log, Not(HasSubstr("Performance Loss")));
  EXPECT_THAT(assembled->log, Not(HasSubstr("setmaxnreg")));
  EXPECT_THAT(assembled->log, HasSubstr(" 0 bytes spill stores"));
  size_t used = assembled->log.find("Used ");
  RecordProperty("registers", assembled->log.substr(used, assembled->log.find('\n', used) - used));
}

HopperGemm with(HopperGemm gemm, void (*change)(HopperGemm &)) {
  change(gemm);
  return gemm;
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, HopperGemmPtx,
    testing::Values(
        PtxCase{"BF16", {}, "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"},
        PtxCase{"BRowMajor", with({}, [](HopperGemm &g) { g.isBRowMajor = true; }), "m64n256k16.f32.bf16.bf16"},
        PtxCase{"AColumnMajor", with({}, [](HopperGemm &g) { g.isAColumnMajor = true; }), "m64n256k16.f32.bf16.bf16"},
        PtxCase{"TwoTiles", with({}, [](HopperGemm &g) { g.blockM = 256, g.blockN = 128; }),
                "m64n128k16.f32.bf16.bf16"},
        PtxCase{"WaitsForSignals", with({}, [](HopperGemm &g) { g.waitsForSignal = true; }),
                "fence.proxy.async.global;"},
        PtxCase{"F16", with({}, [](HopperGemm &g) { g.element = g.output = "f16"; }), "m64n256k16.f32.f16.f16"},
        PtxCase{"E4M3", with({}, [](HopperGemm &g) { g.element = "f8E4M3FN", g.blockK = 128; }),
                "m64n256k32.f32.e4m3.e4m3"}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(HopperGemmPtx, BoundedWaitsAreAccepted) {
  std::string text = HopperGemm{}.text();
  const std::string attribute = "dgpu.tma}";
  text.replace(text.find(attribute), attribute.size(), "dgpu.tma, dgpu.bound_waits}");
  Expected<std::string> ptx = compileToPtx(text);
  ASSERT_TRUE(ptx.isOk()) << ptx.status().message();
  EXPECT_THAT(*ptx, HasSubstr("ditron_wait_visit"));
  EXPECT_THAT(*ptx, Not(HasSubstr("$L_mbarrier_"))); // no wait without an end
  static const std::string ptxas = findPtxas();
  if (ptxas.empty())
    GTEST_SKIP() << "no ptxas";
  Expected<AssembledPtx> assembled = assemblePtx(ptxas, "sm_90a", *ptx);
  EXPECT_TRUE(assembled.isOk()) << assembled.status().message();
}

} // namespace
