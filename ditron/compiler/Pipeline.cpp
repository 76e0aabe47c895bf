//===- Pipeline.cpp - The stages between import and code generation -----------------------------------------------===//
//
// The whole compiler in the order in which it happens; import comes before this and LLVM's code generator after it
// (Compiler.cpp). A line is a stage: its name in reports and dump files, then its passes. No stage asks which target it
// compiles for: what differs is asked of TargetInfo.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/compiler/Pipeline.h"

#include "ditron/analysis/Passes.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dgpu/DiscardableAttrs.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/target/common/Passes.h"
#include "ditron/target/common/TargetInfo.h"
#include "ditron/transforms/Passes.h"
#include "ditron/transforms/loops/WidenTurns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/Transforms/Passes.h"

namespace ditron::compiler {

static int64_t countDescriptors(mlir::ModuleOp module) {
  int64_t count = 0;
  module.walk([&](tile::MakeDescriptorOp) { ++count; });
  return count;
}

Status assignHardware(StageRunner &run, mlir::ModuleOp module, const target::TargetInfo &target, bool &describesTiles) {
  const auto limited = [&](auto options) {
    options.limitBytes = target.sharedMemoryLimit();
    return options;
  };

  // What every later stage may rely on: known operations, each with its place in the kernel's file.
  DITRON_RETURN_IF_ERROR(run.passes("verify-import", module, transforms::createVerifyImport()));
  // A block-level operation that only some threads reach would hang or misbehave silently: refuse it while the IR is
  // still close to the source.
  DITRON_RETURN_IF_ERROR(run.passes("uniformity", module, analysis::createVerifyUniformity()));
  // So are signals that do not reach their receiver or have several owners, and waits that nothing depends on (docs/verifiers.md).
  DITRON_RETURN_IF_ERROR(run.passes("signals", module, analysis::createVerifySignals(), analysis::createVerifyWaits()));
  // Hints are about values, whether their results are used or not.
  DITRON_RETURN_IF_ERROR(run.passes("hints", module, transforms::createApplyHints()));
  // Constants, dead code and equal expressions, which the importer leaves in plenty.
  DITRON_RETURN_IF_ERROR(run.passes("simplify", module, mlir::createCanonicalizerPass(), mlir::createCSEPass()));
  // Two numbers for one thing hide that they are one.
  DITRON_RETURN_IF_ERROR(run.passes("counters", module, transforms::createMergeCounters(), mlir::createCSEPass()));
  // Sums for which one warpgroup has no registers get two.
  DITRON_RETURN_IF_ERROR(run.passes("warps", module, transforms::createWidenBlocks()));
  // What others change meanwhile is one value of the block all the same.
  DITRON_RETURN_IF_ERROR(run.passes("volatile-loads", module, transforms::createAgreeOnLoads()));
  // Reductions whose function does not commute keep the order of their elements; with the knob all do.
  transforms::OrderReductionsOptions ordering;
  ordering.strict = run.knobs().strictReductionOrdering;
  DITRON_RETURN_IF_ERROR(run.passes("reductions", module, transforms::createOrderReductions(ordering)));
  // rank, num_ranks and symm_at become reads of the world view, a hidden last argument of the kernel.
  DITRON_RETURN_IF_ERROR(run.passes("world", module, transforms::createLowerWorld()));
  // Matrix products that are written as sums over blocks of three dimensions.
  DITRON_RETURN_IF_ERROR(run.passes("sums", module, transforms::createSumsToDots()));
  // Dots that no instruction does as they stand: fp32 in several pieces, batches of one, multiply-adds that are too deep.
  DITRON_RETURN_IF_ERROR(run.passes("dots", module, transforms::createDecomposeDots()));
  // On targets with dots of warpgroups: several turns of a loop whose dots have few columns become one, if a producer then fetches its tiles.
  const bool mayDescribe = describesTiles && run.knobs().describeTiles;
  if (mayDescribe && run.knobs().widenTurns && transforms::prepareLongerTurns(module, target.sharedMemoryLimit()))
    DITRON_RETURN_IF_ERROR(run.passes("turns-widened", module, transforms::createWidenTurns(), mlir::createCSEPass()));
  // On targets with tensor copies: tiles of dots that come through pointers are described, where a producer then fetches them.
  const int64_t descriptors = countDescriptors(module);
  if (mayDescribe && !transforms::hasShortTurns(module))
    DITRON_RETURN_IF_ERROR(
        run.passes("describe", module, transforms::createDescribeTiles(limited(transforms::DescribeTilesOptions()))));
  describesTiles = countDescriptors(module) > descriptors;
  // There, too: loops over tiles alike, one masked and one not, become one.
  if (run.knobs().joinLoops)
    DITRON_RETURN_IF_ERROR(run.passes("join", module, transforms::createJoinLoops()));
  // There, too: blocks stay and run one program after the other.
  if (run.knobs().persistentPrograms)
    DITRON_RETURN_IF_ERROR(run.passes(
        "programs", module, transforms::createLoopOverPrograms(limited(transforms::LoopOverProgramsOptions()))));
  // Loads that feed dots are left to a warp of their own, stores go through shared memory.
  DITRON_RETURN_IF_ERROR(run.passes("specialize", module,
                                    transforms::createSpecializeWarps(limited(transforms::SpecializeWarpsOptions()))));
  // Dots that consume what was computed from another one multiply while the threads compute the next operand.
  DITRON_RETURN_IF_ERROR(run.passes("delay", module, transforms::createDelayDots()));
  // Dots that do not need each other's results are started together.
  DITRON_RETURN_IF_ERROR(run.passes("late-waits", module, transforms::createLateWaits()));
  // One warpgroup computes while another one multiplies.
  DITRON_RETURN_IF_ERROR(run.passes("turns", module, transforms::createTakeTurns()));
  DITRON_RETURN_IF_ERROR(run.passes("tensor-stores", module, transforms::createTensorStores()));
  // Tensor descriptors that no tensor copy serves become pointers and masks.
  DITRON_RETURN_IF_ERROR(run.passes("descriptors", module, transforms::createLowerDescriptors()));
  // What else warpgroups can multiply, they do.
  DITRON_RETURN_IF_ERROR(run.passes("warpgroup-dots", module,
                                    transforms::createWarpgroupDots(limited(transforms::WarpgroupDotsOptions()))));
  // Every tensor gets its distribution over registers, lanes and warps; conversions where neighbours disagree.
  DITRON_RETURN_IF_ERROR(run.passes("layouts", module, transforms::createAssignLayouts()));
  // Conversions cost data movement: fold them, move them to narrow values, recompute cheap values instead.
  DITRON_RETURN_IF_ERROR(run.passes("conversions", module, transforms::createRemoveConversions()));
  // What a loop's dots read in each turn, and no thread has registers for, waits in shared memory.
  DITRON_RETURN_IF_ERROR(
      run.passes("operands", module, transforms::createKeepOperands(limited(transforms::KeepOperandsOptions()))));
  // Loads that feed dots run ahead of the loop, through rings of tiles in shared memory.
  DITRON_RETURN_IF_ERROR(
      run.passes("pipelining", module, transforms::createPipelineLoops(limited(transforms::PipelineLoopsOptions()))));
  // The first copies of such a loop need not wait for the loop in front of it.
  DITRON_RETURN_IF_ERROR(
      run.passes("early-copies", module, transforms::createEarlyCopies(limited(transforms::EarlyCopiesOptions()))));
  // The dots of such loops start as soon as they can.
  DITRON_RETURN_IF_ERROR(run.passes("early-dots", module, transforms::createEarlyDots()));
  // What they would read from shared memory in each turn, and for longer than they multiply, is in registers.
  DITRON_RETURN_IF_ERROR(
      run.passes("load-operands", module, transforms::createLoadOperands(limited(transforms::LoadOperandsOptions()))));
  // What the stages above left behind.
  DITRON_RETURN_IF_ERROR(run.passes("cleanup", module, mlir::createCanonicalizerPass(), mlir::createCSEPass()));
  DITRON_RETURN_IF_ERROR(run.passes("verify-layouts", module, transforms::createVerifyLayouts()));
  // A tile that fills a thread's registers many times over would take minutes to compile.
  DITRON_RETURN_IF_ERROR(run.passes("registers", module, analysis::createVerifyRegisters()));
  // Warpgroups that store rows of their own need not wait for each other.
  DITRON_RETURN_IF_ERROR(run.passes("split-stores", module, transforms::createSplitTensorStores()));
  // Buffers and scratch memory get their places in shared memory, reused as soon as free.
  DITRON_RETURN_IF_ERROR(run.passes("shared-memory", module,
                                    transforms::createAllocateShared(limited(transforms::AllocateSharedOptions()))));
  // Block barriers where threads would race on those places.
  DITRON_RETURN_IF_ERROR(run.passes("barriers", module, transforms::createInsertBarriers()));
  // Copies of later turns start where a turn has time for them.
  DITRON_RETURN_IF_ERROR(
      run.passes("late-copies", module, transforms::createLateCopies(limited(transforms::LateCopiesOptions()))));
  // Where warps hold copies, a store waits until all have loaded theirs.
  DITRON_RETURN_IF_ERROR(run.passes("copies", module, transforms::createOrderCopies()));
  // Lanes of a warp go through operations on global memory together, also where no instruction makes them.
  DITRON_RETURN_IF_ERROR(run.passes("lanes", module, transforms::createOrderLanes()));
  DITRON_RETURN_IF_ERROR(run.passes("verify-allocation", module, transforms::createVerifyAllocation()));
  return Status::ok();
}

Status lowerToLLVM(StageRunner &run, mlir::ModuleOp module, const target::TargetInfo &target) {
  transforms::AnnotateAccessesOptions accesses;
  accesses.maxVectorBytes = target.maxVectorBytes();

  // How wide each access is, and whose work: analyses of tensors can be asked for the last time here.
  DITRON_RETURN_IF_ERROR(run.passes("accesses", module, transforms::createAnnotateAccesses(accesses)));
  // Functions of reductions, scans and maps that store or assert do so once, whichever threads compute them.
  DITRON_RETURN_IF_ERROR(run.passes("effects", module, transforms::createGuardEffects()));
  // The boxes of tensor copies, final since stores were split; maps are fetched before their first use.
  DITRON_RETURN_IF_ERROR(run.passes("tensor-maps", module, transforms::createBindTensorMaps()));
  // What the program that makes machine code of our output needs to keep multiplies asynchronous.
  DITRON_RETURN_IF_ERROR(run.passes("assembler", module, target.assemblerPasses()));
  // Scalar work goes under the last multiply of a loop, also where the stage above has put the loop into a branch.
  DITRON_RETURN_IF_ERROR(run.passes("tail-work", module, transforms::createSinkTailWork()));
  // Sums that follow a running maximum are rescaled by warps in which it has changed.
  DITRON_RETURN_IF_ERROR(run.passes("factors", module, transforms::createSkipFactors()));
  // Slots that lanes have read by themselves are given back when all lanes have.
  DITRON_RETURN_IF_ERROR(run.passes("arrivals", module, transforms::createOrderArrivals()));
  DITRON_RETURN_IF_ERROR(run.passes("verify-preparation", module, transforms::createVerifyPreparation()));
  // One thread's program: a scalar per register of every tensor. The target's leaves are emitted here.
  DITRON_RETURN_IF_ERROR(run.passes("lowering", module, target::createDitronToLLVM()));
  // Address arithmetic is shared between the registers of a tensor.
  DITRON_RETURN_IF_ERROR(run.passes("lowered-cleanup", module, mlir::createCSEPass()));
  return Status::ok();
}

void registerPipelineDialects(mlir::DialectRegistry &registry) {
  registry.insert<tile::TileDialect, dist::DistDialect, dgpu::DgpuDialect>();
  registry.insert<mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                  mlir::LLVM::LLVMDialect, mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::ub::UBDialect>();
}

void annotateModule(mlir::ModuleOp module, const CompileOptions &options, target::TargetInfo &target) {
  mlir::Builder builder(module.getContext());
  module->setAttr(dgpu::numWarpsAttrName, builder.getI32IntegerAttr(static_cast<int32_t>(options.numWarps)));
  module->setAttr(dgpu::threadsPerWarpAttrName, builder.getI32IntegerAttr(target.warpSize()));
  module->setAttr(dgpu::numStagesAttrName, builder.getI32IntegerAttr(static_cast<int32_t>(options.numStages)));
  module->setAttr(dgpu::targetAttrName, builder.getStringAttr(options.target));
  if (target.hopper()) {
    module->setAttr(dgpu::wgmmaAttrName, builder.getUnitAttr());
    module->setAttr(dgpu::tmaAttrName, builder.getUnitAttr());
  }
  if (options.residentBlocks)
    module->setAttr(dgpu::residentBlocksAttrName,
                    builder.getI32IntegerAttr(static_cast<int32_t>(*options.residentBlocks)));
  if (options.knobs.boundWaits)
    module->setAttr(dgpu::boundWaitsAttrName, builder.getUnitAttr());
  if (options.knobs.traceGpu)
    module->setAttr(dgpu::noteEventsAttrName, builder.getUnitAttr());
  if (options.knobs.publishWaits)
    module->setAttr(dgpu::publishWaitsAttrName, builder.getUnitAttr());
}

} // namespace ditron::compiler
