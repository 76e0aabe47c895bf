//===- ControlToLLVM.cpp - Program ids, and the type conversion -------------------------------------------------------------===//
//
// The type conversion that turns tensors into registers, what the other files use to run code under a condition, and the
// patterns for program ids. Structured control flow itself is converted by upstream's structural patterns, which carry one
// value per register through loops and branches.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Partition.h"
#include "ditron/target/common/Patterns.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"

using namespace mlir;

namespace ditron::target {

TileTypeConverter::TileTypeConverter(const TargetInfo &target) {
  // Tried in reverse order of addition.
  addConversion([](Type type) { return type; });
  addConversion([&target](FloatType type) -> Type { return target.storageType(type); });
  addConversion([](tile::PointerType type) -> Type { return LLVM::LLVMPointerType::get(type.getContext()); });
  addConversion([](dgpu::MbarriersType type) -> Type { return LLVM::LLVMPointerType::get(type.getContext()); });
  addConversion([](dgpu::TensorMapType type) -> Type { return LLVM::LLVMPointerType::get(type.getContext()); });
  addConversion([](dgpu::BufferType type) -> Type { return LLVM::LLVMPointerType::get(type.getContext()); });
  addConversion([this](RankedTensorType type, SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
    Type element = convertType(type.getElementType());
    if (!element || !dgpu::layoutAttrOf(type))
      return failure(); // a pattern that asks says so
    types.append(dgpu::layoutOf(type).numRegs(), element);
    return success();
  });
  // Casts that meet in the middle of the conversion; none is left when it ends.
  addSourceMaterialization([](OpBuilder &builder, Type type, ValueRange inputs, Location loc) -> Value {
    return UnrealizedConversionCastOp::create(builder, loc, type, inputs).getResult(0);
  });
  addTargetMaterialization([](OpBuilder &builder, Type type, ValueRange inputs, Location loc) -> Value {
    return UnrealizedConversionCastOp::create(builder, loc, type, inputs).getResult(0);
  });
}

int LoweringContext::numThreads(Operation *op) const {
  std::optional<Partition> partition = partitionAt(op->getBlock());
  return (partition ? partition->numWarps : numWarps) * target.warpSize();
}

FailureOr<int64_t> scratchOffset(Operation *op) {
  auto offset = op->getAttrOfType<IntegerAttr>(dgpu::offsetBytesAttrName);
  if (!offset)
    return op->emitOpError("has no shared memory: attribute '")
           << dgpu::offsetBytesAttrName << "' is missing; run dgpu-allocate-shared first";
  return offset.getInt();
}

SmallVector<Value> emitIf(Emitter &e, Value condition, TypeRange types,
                          llvm::function_ref<SmallVector<Value>(Emitter &)> body) {
  if (!condition)
    return body(e);
  auto branch = scf::IfOp::create(e, types, condition, /*withElseRegion=*/!types.empty());
  OpBuilder::InsertionGuard guard(e);
  e.setInsertionPointToStart(branch.thenBlock());
  SmallVector<Value> results = body(e);
  if (!types.empty()) {
    scf::YieldOp::create(e, results);
    e.setInsertionPointToStart(branch.elseBlock());
    SmallVector<Value> unspecified;
    for (Type type : types)
      unspecified.push_back(e.zero(type));
    scf::YieldOp::create(e, unspecified);
  }
  return branch.getResults();
}

Value isFirstThread(Emitter &e, TargetInfo &target) { return e.isZero(target.threadId(e)); }

namespace {

class ProgramIdPattern : public TilePattern<tile::ProgramIdOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::ProgramIdOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    rewriter.replaceOp(op, target.programId(e, static_cast<int>(op.getAxis())));
    return success();
  }
};

class NumProgramsPattern : public TilePattern<tile::NumProgramsOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::NumProgramsOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    rewriter.replaceOp(op, target.numPrograms(e, static_cast<int>(op.getAxis())));
    return success();
  }
};

} // namespace

void populateControlPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<ProgramIdPattern, NumProgramsPattern>(patterns.getContext(), lowering);
  populateFunctionOpInterfaceTypeConversionPattern<func::FuncOp>(patterns, lowering.types);
  populateReturnOpTypeConversionPattern(patterns, lowering.types);
  scf::populateSCFStructuralTypeConversions(lowering.types, patterns);
}

} // namespace ditron::target
