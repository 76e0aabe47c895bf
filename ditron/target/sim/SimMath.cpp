//===- SimMath.cpp - Arithmetic that the host does otherwise than a GPU -----------------------------------------------------===//
//
// See SimMath.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/sim/SimMath.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace ditron::target {
namespace {

template <typename OpT> class SaturatingConversion : public ConvertOpToLLVMPattern<OpT> {
public:
  SaturatingConversion(const LLVMTypeConverter &converter, StringRef intrinsic)
      : ConvertOpToLLVMPattern<OpT>(converter, /*benefit=*/10), intrinsic(intrinsic) {}

  LogicalResult matchAndRewrite(OpT op, typename OpT::Adaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Value x = adaptor.getIn();
    if (!x.getType().isF16() && !x.getType().isF32() && !x.getType().isF64())
      return rewriter.notifyMatchFailure(op, "not for this type");
    auto call = LLVM::CallIntrinsicOp::create(rewriter, op.getLoc(), op.getType(), rewriter.getStringAttr(intrinsic), ValueRange(x));
    rewriter.replaceOp(op, call.getResult(0));
    return success();
  }

private:
  StringRef intrinsic;
};

} // namespace

void populateSimMathPatterns(const LLVMTypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<SaturatingConversion<arith::FPToSIOp>>(converter, "llvm.fptosi.sat");
  patterns.add<SaturatingConversion<arith::FPToUIOp>>(converter, "llvm.fptoui.sat");
}

} // namespace ditron::target
