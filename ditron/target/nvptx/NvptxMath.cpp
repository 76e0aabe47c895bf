//===- NvptxMath.cpp - Math for NVIDIA GPUs ---------------------------------------------------------------------------------===//
//
// In this order:
//   1. f32 (and f16 and bf16 through f32) in the hardware's approximations: ex2, lg2, rsqrt, sin, cos, with range reduction
//      where needed, and our own formulas for tanh and erf. Division and square root are exact unless the operation carries
//      `afn` (approximations allowed), as the frontend says of `/`.
//   2. Instructions: rounding, fma, bits.
//   3. libdevice calls for the rest: f64, powers, inverse functions (Libdevice.h).
// Accuracy in f32: exp, exp2 (zero where the result is below 2 to the power of -126), log, log2, rsqrt about 2 ulp (log absolute near 1), tanh 4 ulp, erf 2e-7 absolute, sin and cos
// 1e-6 absolute for arguments up to 1e5.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/NvptxTargetInfo.h"
#include "ditron/target/nvptx/PtxAsm.h"

#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/VectorPattern.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <numbers>

using namespace mlir;

namespace ditron::target {

namespace {

/// Short names for f32 arithmetic.
class FloatEmitter {
public:
  explicit FloatEmitter(Emitter &e) : e(e) {}

  Value constant(double value) {
    return LLVM::ConstantOp::create(e, e.getF32Type(), e.getF32FloatAttr(static_cast<float>(value)));
  }
  Value add(Value x, Value y) { return LLVM::FAddOp::create(e, x, y); }
  Value sub(Value x, Value y) { return LLVM::FSubOp::create(e, x, y); }
  Value mul(Value x, Value y) { return LLVM::FMulOp::create(e, x, y); }
  Value mul(Value x, double y) { return mul(x, constant(y)); }
  Value fma(Value x, Value y, Value z) { return LLVM::FMAOp::create(e, x, y, z); }
  Value abs(Value x) { return LLVM::FAbsOp::create(e, x); }
  Value copySign(Value magnitude, Value sign) { return LLVM::CopySignOp::create(e, magnitude, sign); }
  Value approximate(StringRef name, ValueRange x) {
    return callIntrinsic(e, ("llvm.nvvm." + name).str(), e.getF32Type(), x);
  }
  /// Subnormal results are zero: to have them costs three more instructions, which attention and softmax would pay.
  Value exp2(Value x) { return approximate("ex2.approx.ftz.f32", x); }
  Value exp(Value x) { return exp2(mul(x, std::numbers::log2e)); }
  Value log2(Value x) { return approximate("lg2.approx.f", x); }
  Value divide(Value x, Value y) { return approximate("div.full", {x, y}); }
  /// coefficients[0] * x^n + ... + coefficients[n].
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value sum = constant(coefficients.front());
    for (double coefficient : coefficients.drop_front())
      sum = fma(sum, x, constant(coefficient));
    return sum;
  }
  Value isLess(Value x, double y) { return LLVM::FCmpOp::create(e, LLVM::FCmpPredicate::olt, x, constant(y)); }

private:
  Emitter &e;
};

} // namespace

static Value emitExp(Emitter &e, Value x) { return FloatEmitter(e).exp(x); }
static Value emitExp2(Emitter &e, Value x) { return FloatEmitter(e).exp2(x); }
static Value emitLog2(Emitter &e, Value x) { return FloatEmitter(e).log2(x); }
static Value emitLog(Emitter &e, Value x) {
  FloatEmitter f(e);
  return f.mul(f.log2(x), std::numbers::ln2);
}
static Value emitLog10(Emitter &e, Value x) {
  FloatEmitter f(e);
  return f.mul(f.log2(x), std::numbers::ln2 / std::numbers::ln10);
}
static Value emitRsqrt(Emitter &e, Value x) { return FloatEmitter(e).approximate("rsqrt.approx.f", x); }

/// Brings an angle into [-pi, pi], where the hardware's sine and cosine are good to 2^-20: subtracts a multiple of 2 pi that
/// is held in three floats (Cody and Waite), so that the difference is exact up to about 1e5.
static Value reduceAngle(Emitter &e, Value x) {
  FloatEmitter f(e);
  Value turns = LLVM::RoundEvenOp::create(e, f.mul(x, 0.5 * std::numbers::inv_pi));
  Value rest = x;
  for (double part : {6.28125, 1.93500518798828125e-3, 3.0199159819e-7})
    rest = f.fma(turns, f.constant(-part), rest);
  return rest;
}
static Value emitSin(Emitter &e, Value x) { return FloatEmitter(e).approximate("sin.approx.f", reduceAngle(e, x)); }
static Value emitCos(Emitter &e, Value x) { return FloatEmitter(e).approximate("cos.approx.f", reduceAngle(e, x)); }

/// Below 0.625 an odd polynomial (Cephes' coefficients), where 1 - 2 / (exp(2x) + 1) would cancel.
static Value emitTanh(Emitter &e, Value x) {
  FloatEmitter f(e);
  Value magnitude = f.abs(x), square = f.mul(x, x);
  Value series = f.polynomial(square, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1,
                                       -3.33332819422e-1, 0.0});
  Value small = f.fma(series, x, x);
  Value power = f.exp(f.mul(magnitude, 2.0));
  Value large = f.sub(f.constant(1.0), f.divide(f.constant(2.0), f.add(power, f.constant(1.0))));
  return e.select(f.isLess(magnitude, 0.625), small, f.copySign(large, x));
}

/// Abramowitz and Stegun 7.1.26: 1 - t p(t) exp(-x^2) with t = 1 / (1 + c |x|).
static Value emitErf(Emitter &e, Value x) {
  FloatEmitter f(e);
  Value magnitude = f.abs(x);
  Value t = f.divide(f.constant(1.0), f.fma(magnitude, f.constant(0.3275911), f.constant(1.0)));
  Value tail = f.polynomial(t, {1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592, 0.0});
  Value decay = f.exp(f.mul(f.mul(magnitude, magnitude), -1.0));
  return f.copySign(f.sub(f.constant(1.0), f.mul(tail, decay)), x);
}

namespace {

using FloatFormula = Value (*)(Emitter &, Value);

/// A formula for f32, also for narrower floats.
template <typename OpT> class FormulaPattern : public ConvertOpToLLVMPattern<OpT> {
public:
  FormulaPattern(const LLVMTypeConverter &converter, FloatFormula formula)
      : ConvertOpToLLVMPattern<OpT>(converter, /*benefit=*/10), formula(formula) {}

  LogicalResult matchAndRewrite(OpT op, typename OpT::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value x = adaptor.getOperand();
    Type type = x.getType();
    if (!type.isF32() && !type.isF16() && !type.isBF16())
      return rewriter.notifyMatchFailure(
          op, [&](Diagnostic &why) { why << "its formula is for f32, f16 and bf16, not for " << type; });
    Emitter e(op.getLoc(), rewriter);
    bool isNarrow = !type.isF32();
    Value result = formula(e, isNarrow ? LLVM::FPExtOp::create(e, e.getF32Type(), x).getResult() : x);
    rewriter.replaceOp(op, isNarrow ? LLVM::FPTruncOp::create(e, type, result).getResult() : result);
    return success();
  }

private:
  FloatFormula formula;
};

/// Division and square root with `afn`: the hardware's fast forms (2 ulp).
class FastDivisionPattern : public ConvertOpToLLVMPattern<arith::DivFOp> {
public:
  explicit FastDivisionPattern(const LLVMTypeConverter &converter) : ConvertOpToLLVMPattern(converter, /*benefit=*/10) {}

  LogicalResult matchAndRewrite(arith::DivFOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type type = op.getType();
    bool isNarrow = type.isF16() || type.isBF16();
    if ((!type.isF32() && !isNarrow) || !bitEnumContainsAny(op.getFastmath(), arith::FastMathFlags::afn))
      return rewriter.notifyMatchFailure(op, "must be exact");
    Emitter e(op.getLoc(), rewriter);
    Value x = adaptor.getLhs(), y = adaptor.getRhs();
    if (isNarrow) {
      x = LLVM::FPExtOp::create(e, e.getF32Type(), x);
      y = LLVM::FPExtOp::create(e, e.getF32Type(), y);
    }
    Value quotient = FloatEmitter(e).divide(x, y);
    rewriter.replaceOp(op, isNarrow ? LLVM::FPTruncOp::create(e, type, quotient).getResult() : quotient);
    return success();
  }
};

class SquareRootPattern : public ConvertOpToLLVMPattern<math::SqrtOp> {
public:
  explicit SquareRootPattern(const LLVMTypeConverter &converter) : ConvertOpToLLVMPattern(converter, /*benefit=*/10) {}

  LogicalResult matchAndRewrite(math::SqrtOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value x = adaptor.getOperand();
    if (!x.getType().isF32() && !x.getType().isF64())
      return rewriter.notifyMatchFailure(
          op, [&](Diagnostic &why) { why << "the instruction is for f32 and f64, not for " << x.getType(); });
    if (x.getType().isF32() && bitEnumContainsAny(op.getFastmath(), arith::FastMathFlags::afn))
      rewriter.replaceOp(op, FloatEmitter(e).approximate("sqrt.approx.f", x));
    else
      rewriter.replaceOpWithNewOp<LLVM::SqrtOp>(op, x);
    return success();
  }
};

/// Bit counts whose LLVM form takes a flag for zero.
template <typename OpT, typename LLVMOpT> class BitPattern : public ConvertOpToLLVMPattern<OpT> {
public:
  explicit BitPattern(const LLVMTypeConverter &converter) : ConvertOpToLLVMPattern<OpT>(converter, /*benefit=*/5) {}

  LogicalResult matchAndRewrite(OpT op, typename OpT::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value x = adaptor.getOperand();
    rewriter.replaceOpWithNewOp<LLVMOpT>(op, x.getType(), x, /*undefined=*/false);
    return success();
  }
};

template <typename OpT, typename LLVMOpT> using InstructionPattern = VectorConvertToLLVMPattern<OpT, LLVMOpT>;

} // namespace

void NvptxTargetInfo::populateMathPatterns(const LLVMTypeConverter &converter, RewritePatternSet &patterns) const {
  patterns.add<FormulaPattern<math::ExpOp>>(converter, emitExp);
  patterns.add<FormulaPattern<math::Exp2Op>>(converter, emitExp2);
  patterns.add<FormulaPattern<math::LogOp>>(converter, emitLog);
  patterns.add<FormulaPattern<math::Log2Op>>(converter, emitLog2);
  patterns.add<FormulaPattern<math::Log10Op>>(converter, emitLog10);
  patterns.add<FormulaPattern<math::RsqrtOp>>(converter, emitRsqrt);
  patterns.add<FormulaPattern<math::SinOp>>(converter, emitSin);
  patterns.add<FormulaPattern<math::CosOp>>(converter, emitCos);
  patterns.add<FormulaPattern<math::TanhOp>>(converter, emitTanh);
  patterns.add<FormulaPattern<math::ErfOp>>(converter, emitErf);
  patterns.add<FastDivisionPattern, SquareRootPattern, BitPattern<math::AbsIOp, LLVM::AbsOp>,
               BitPattern<math::CountLeadingZerosOp, LLVM::CountLeadingZerosOp>,
               BitPattern<math::CountTrailingZerosOp, LLVM::CountTrailingZerosOp>>(converter);
  patterns.add<InstructionPattern<math::AbsFOp, LLVM::FAbsOp>, InstructionPattern<math::CeilOp, LLVM::FCeilOp>,
               InstructionPattern<math::FloorOp, LLVM::FFloorOp>, InstructionPattern<math::TruncOp, LLVM::FTruncOp>,
               InstructionPattern<math::RoundOp, LLVM::RoundOp>,
               InstructionPattern<math::RoundEvenOp, LLVM::RoundEvenOp>,
               InstructionPattern<math::CopySignOp, LLVM::CopySignOp>, InstructionPattern<math::FmaOp, LLVM::FMAOp>,
               InstructionPattern<math::CtPopOp, LLVM::CtPopOp>>(converter, /*benefit=*/5);
  populateLibDeviceConversionPatterns(converter, patterns, /*benefit=*/1);
  populateMathToLLVMConversionPatterns(converter, patterns, /*approximateLog1p=*/false, /*benefit=*/0);
}

//===--- 8-bit floats ---------------------------------------------------------------------------------------------------===//

static const char *wordOf(FloatType format) { return isa<Float8E5M2Type>(format) ? "e5m2x2" : "e4m3x2"; }

Value NvptxTargetInfo::narrowPair(Emitter &e, FloatType format, Value low, Value high) {
  if (!architecture.convertsFloat8())
    return {};
  return callIntrinsic(e, (Twine("llvm.nvvm.ff.to.") + wordOf(format) + ".rn").str(), e.getIntegerType(16),
                       {high, low});
}

SmallVector<Value> NvptxTargetInfo::widenPair(Emitter &e, FloatType format, Value pair) {
  if (!architecture.convertsFloat8())
    return {};
  Value halves = callIntrinsic(e, (Twine("llvm.nvvm.") + wordOf(format) + ".to.f16x2.rn").str(),
                               VectorType::get(2, e.getF16Type()), pair);
  SmallVector<Value> result;
  for (int i = 0; i < 2; ++i)
    result.push_back(
        LLVM::FPExtOp::create(e, e.getF32Type(), LLVM::ExtractElementOp::create(e, halves, e.i32(i)).getResult()));
  return result;
}

} // namespace ditron::target
