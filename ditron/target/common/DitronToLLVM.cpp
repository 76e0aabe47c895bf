//===- DitronToLLVM.cpp - The pass ditron-to-llvm ---------------------------------------------------------------------------===//
//
// The lowering in three conversions (see Passes.td), between the target's hooks. Patterns are in the files *ToLLVM.cpp; nothing is
// rewritten here besides what they say.
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
#define GEN_PASS_DEF_DITRONTOLLVM
#include "ditron/target/common/TargetPasses.h.inc"

namespace {

/// Tensor maps arrive by value, as 128 bytes of the kernel's parameters.
void passMapsByValue(ModuleOp module) {
  auto bytes = TypeAttr::get(LLVM::LLVMArrayType::get(IntegerType::get(module.getContext(), 8), 128));
  for (auto function : module.getOps<func::FuncOp>())
    for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
      if (isa<dgpu::TensorMapType>(type))
        function.setArgAttr(i, LLVM::LLVMDialect::getByValAttrName(), bytes);
}

class DitronToLLVMPass : public impl::DitronToLLVMBase<DitronToLLVMPass> {
  using DitronToLLVMBase::DitronToLLVMBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::string name = target;
    if (auto attribute = module->getAttrOfType<StringAttr>(dgpu::targetAttrName); name.empty() && attribute)
      name = attribute.str();
    Expected<std::unique_ptr<TargetInfo>> leaves = createTargetInfo(name);
    if (!leaves.isOk()) {
      emitError(module.getLoc(), leaves.status().message());
      return signalPassFailure();
    }
    if (failed(analysis::checkLayouts(module, "the lowering")) || failed(checkHopper(module, **leaves)) ||
        failed(lower(module, **leaves)))
      signalPassFailure();
  }

  LogicalResult lower(ModuleOp module, TargetInfo &target) {
    SmallVector<StringAttr> kernels;
    for (auto function : module.getOps<func::FuncOp>())
      kernels.push_back(function.getSymNameAttr());
    // Partitions are gone when the launch is described.
    module->setAttr(dgpu::launchWarpsAttrName, Builder(module.getContext()).getI32IntegerAttr(launchWarpsOf(module)));
    passMapsByValue(module);
    LogicalResult isLowered = success(succeeded(target.prepareModule(module)) && succeeded(toScalars(module, target)) &&
                                      succeeded(toBranches(module)) && succeeded(toLLVM(module, target)));
    return success(succeeded(isLowered) && llvm::all_of(kernels, [&](StringAttr kernel) {
                     return succeeded(target.finishKernel(module.lookupSymbol<LLVM::LLVMFuncOp>(kernel)));
                   }));
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
    populatePartitionPatterns(patterns, lowering);
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
    if (LogicalResult converted = applyFullConversion(module, legal, std::move(patterns)); failed(converted))
      return converted;
    SmallVector<UnrealizedConversionCastOp> casts;
    module.walk([&](UnrealizedConversionCastOp cast) { casts.push_back(cast); });
    SmallVector<UnrealizedConversionCastOp> remaining;
    reconcileUnrealizedCasts(casts, &remaining);
    if (!remaining.empty())
      return remaining.front().emitError("a value changed its type where the lowering did not expect it");
    return success();
  }
};

} // namespace
} // namespace ditron::target
