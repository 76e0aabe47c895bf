//===- random_programs_test.cpp - Random kernels through all passes and the simulator -------------------------------------===//
//
// The differential test of the room: whatever layouts, conversions, pipelines and barriers the passes choose, the kernel must give
// exactly what its operations say. A missing barrier shows as well, since the simulator runs each thread until it has to meet
// others.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "RandomProgram.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/target/sim/test/KernelHarness.h"
#include "ditron/transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "gtest/gtest.h"

namespace ditron::transforms::test {
namespace {

struct Planned {
  std::string text; ///< Empty if a pass failed; `messages` then says why.
  std::string messages;
  int64_t sharedBytes = 0;
};

/// All passes of this room, with the phase verifiers after each phase.
Planned plan(const std::string &source) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<tile::TileDialect, dist::DistDialect, dgpu::DgpuDialect, mlir::arith::ArithDialect,
                      mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::func::FuncDialect>();
  Planned planned;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    planned.messages += diagnostic.str() + "\n";
    return mlir::success();
  });
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
  if (!module)
    return planned;
  AllocateSharedOptions memory;
  memory.limitBytes = 1 << 20;
  mlir::PassManager passes(&context);
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass());
  passes.addPass(createLowerWorld());
  passes.addPass(createAssignLayouts());
  passes.addPass(createVerifyLayouts());
  passes.addPass(createRemoveConversions());
  passes.addPass(createVerifyLayouts());
  passes.addPass(createPipelineLoops());
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass());
  passes.addPass(createVerifyLayouts());
  passes.addPass(createAllocateShared(memory));
  passes.addPass(createInsertBarriers());
  passes.addPass(createVerifyAllocation());
  if (mlir::failed(passes.run(*module)))
    return planned;
  planned.sharedBytes = (*module)->getAttrOfType<mlir::IntegerAttr>(dgpu::sharedBytesAttrName).getInt();
  llvm::raw_string_ostream(planned.text) << *module;
  return planned;
}

class RandomPrograms : public ::testing::TestWithParam<uint32_t> {};

TEST_P(RandomPrograms, giveWhatTheirOperationsSay) {
  for (uint32_t i = 0; i < 10; ++i) {
    RandomProgram program(GetParam() * 1000 + i);
    SCOPED_TRACE("program " + std::to_string(GetParam() * 1000 + i));
    Planned planned = plan(program.text());
    ASSERT_FALSE(planned.text.empty()) << planned.messages << program.text();

    target::test::KernelRun run;
    run.source = planned.text;
    run.numWarps = program.numWarps;
    run.sharedBytes = std::max<int64_t>(planned.sharedBytes, 16);
    std::vector<int32_t> output(program.outputWords + 16, -1);
    std::vector<target::test::ArrayArgument> arrays{target::test::ArrayArgument::of(program.input),
                                                    target::test::ArrayArgument::of(output)};
    Status status = runKernel(run, arrays);
    ASSERT_TRUE(status.isOk()) << status.message();
    output = arrays[1].as<int32_t>();
    for (const Expectation &expectation : program.expectations)
      for (size_t e = 0; e < expectation.places.size(); ++e)
        ASSERT_EQ(output[expectation.places[e]], expectation.values[e])
            << "element " << e << " of " << expectation.name << " in\n"
            << program.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, ::testing::Range(0u, 4u));

} // namespace
} // namespace ditron::transforms::test
