//===- DitronToLLVM.cpp - The pass ditron-to-llvm ---------------------------------------------------------------------------===//
//
// The lowering in three conversions:
//   1. tile, dist, dgpu, and all arith, math and scf that touch tensors, pointers or floats that the target does not compute
//      in, become scalar code of one thread (1:N: a tensor is one value per register). Leaves are emitted here.
//   2. scf becomes branches.
//   3. arith, math, cf and func become LLVM.
// The target's hooks run before and after.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/CheckLayouts.h"
#include "ditron/target/common/Passes.h"
#include "ditron/target/common/Partition.h"
#include "ditron/target/common/Patterns.h"
#include "ditron/target/common/ScalarOps.h"
#include "ditron/target/common/ScalarRegion.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace ditron::target {
namespace {

class DitronToLLVMPass : public PassWrapper<DitronToLLVMPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DitronToLLVMPass)

  DitronToLLVMPass() = default;
  explicit DitronToLLVMPass(std::string name) { targetName = std::move(name); }
  DitronToLLVMPass(const DitronToLLVMPass &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "ditron-to-llvm"; }
  StringRef getDescription() const override { return "Lower laid-out tile code to the LLVM dialect for a target"; }

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<LLVM::LLVMDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect, cf::ControlFlowDialect,
                    func::FuncDialect, ub::UBDialect>();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::string name = targetName;
    if (auto attribute = module->getAttrOfType<StringAttr>(dgpu::targetAttrName); name.empty() && attribute)
      name = attribute.str();
    Expected<std::unique_ptr<TargetInfo>> target = createTargetInfo(name);
    if (!target.isOk()) {
      emitError(module.getLoc(), target.status().message());
      return signalPassFailure();
    }
    if (failed(analysis::checkLayouts(module, "the lowering")) || failed(lower(module, **target)))
      signalPassFailure();
  }

private:
  LogicalResult lower(ModuleOp module, TargetInfo &target) {
    SmallVector<StringAttr> kernels;
    for (auto function : module.getOps<func::FuncOp>())
      kernels.push_back(function.getSymNameAttr());
    annotateForLowering(module, target);
    prepareScalarRegions(module);
    if (failed(target.prepareModule(module)) || failed(prepareHopper(module, target)) || failed(toScalars(module, target)) || failed(toBranches(module)) ||
        failed(toLLVM(module, target)))
      return failure();
    for (StringAttr kernel : kernels)
      if (failed(target.finishKernel(module.lookupSymbol<LLVM::LLVMFuncOp>(kernel))))
        return failure();
    return success();
  }

  /// Conversion 1.
  LogicalResult toScalars(ModuleOp module, TargetInfo &target) {
    TileTypeConverter types(target);
    LoweringContext lowering{target, types, dgpu::numWarpsOf(module)};
    RewritePatternSet patterns(&getContext());
    populateElementwisePatterns(patterns, lowering);
    populateCallPatterns(patterns, lowering);
    populateShapePatterns(patterns, lowering);
    populatePointerPatterns(patterns, lowering);
    populateDebugPatterns(patterns, lowering);
    populateMemoryPatterns(patterns, lowering);
    populateAtomicPatterns(patterns, lowering);
    populateReducePatterns(patterns, lowering);
    populateScanPatterns(patterns, lowering);
    populateMapPatterns(patterns, lowering);
    populateGatherPatterns(patterns, lowering);
    populateSortPatterns(patterns, lowering);
    populateConvertLayoutPatterns(patterns, lowering);
    populateDotPatterns(patterns, lowering);
    populateSharedPatterns(patterns, lowering);
    populateHopperPatterns(patterns, lowering);
    populateWarpgroupPatterns(patterns, lowering);
    populateDistPatterns(patterns, lowering);
    populateThreadPatterns(patterns, lowering);
    populateShmemPatterns(patterns, lowering);
    populateControlPatterns(patterns, lowering);

    ConversionTarget legal(getContext());
    legal.addIllegalDialect<tile::TileDialect, dist::DistDialect, dgpu::DgpuDialect>();
    legal.addLegalDialect<LLVM::LLVMDialect>();
    legal.addLegalOp<ModuleOp, UnrealizedConversionCastOp>();
    auto hasLegalTypes = [&types](Operation *op) { return types.isLegal(op); };
    legal.addDynamicallyLegalDialect<math::MathDialect, ub::UBDialect>(hasLegalTypes);
    legal.addDynamicallyLegalDialect<arith::ArithDialect>([&](Operation *op) {
      return types.isLegal(op) && !isUnguardedDivision(target, op) && !isTruncationTowardZero(op) &&
             !isIntegerToHalf(op);
    });
    scf::populateSCFStructuralTypeConversionTarget(types, legal);
    legal.addDynamicallyLegalOp<func::FuncOp>(
        [&types](func::FuncOp op) { return types.isSignatureLegal(op.getFunctionType()); });
    legal.addDynamicallyLegalOp<func::ReturnOp>(hasLegalTypes);
    ConversionConfig config;
    config.foldingMode = DialectConversionFoldingMode::Never;
    return applyFullConversion(module, legal, std::move(patterns), config);
  }

  /// Conversion 2.
  LogicalResult toBranches(ModuleOp module) {
    RewritePatternSet patterns(&getContext());
    populateSCFToControlFlowConversionPatterns(patterns);
    ConversionTarget legal(getContext());
    legal.addIllegalDialect<scf::SCFDialect>();
    legal.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    return applyPartialConversion(module, legal, std::move(patterns));
  }

  /// Conversion 3.
  LogicalResult toLLVM(ModuleOp module, TargetInfo &target) {
    LowerToLLVMOptions options(&getContext());
    options.overrideIndexBitwidth(64);
    LLVMTypeConverter types(&getContext(), options);
    RewritePatternSet patterns(&getContext());
    arith::populateArithToLLVMConversionPatterns(types, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
    populateFuncToLLVMConversionPatterns(types, patterns);
    ub::populateUBToLLVMConversionPatterns(types, patterns);
    target.populateMathPatterns(types, patterns);
    LLVMConversionTarget legal(getContext());
    legal.addLegalOp<ModuleOp>();
    if (failed(applyFullConversion(module, legal, std::move(patterns))))
      return failure();
    SmallVector<UnrealizedConversionCastOp> casts;
    module.walk([&](UnrealizedConversionCastOp cast) { casts.push_back(cast); });
    SmallVector<UnrealizedConversionCastOp> remaining;
    reconcileUnrealizedCasts(casts, &remaining);
    if (!remaining.empty())
      return remaining.front().emitError("a value changed its type where the lowering did not expect it");
    return success();
  }

  Option<std::string> targetName{*this, "target", llvm::cl::desc("Full name of the target, for example sim:sm_80"),
                                 llvm::cl::init("")};
};

} // namespace

std::unique_ptr<Pass> createDitronToLLVMPass(std::string target) {
  return std::make_unique<DitronToLLVMPass>(std::move(target));
}

void registerDitronToLLVMPass() { PassRegistration<DitronToLLVMPass>(); }

} // namespace ditron::target
