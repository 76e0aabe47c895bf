//===- PtxArithmetic.cpp - Inline assembly for the simulated GPU: arithmetic and conversions --------------------------------===//
//
// See PtxTranslator.h. Floats of 8 and 16 bits are computed in f32 and rounded once. Approximations are the exact functions of the host.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/sim/PtxTranslator.h"

#include "ditron/target/common/Patterns.h"

#include <fmt/format.h>

using namespace mlir;

namespace ditron::target {

/// True if all parts between the name and `types` types are among the modifiers.
static bool hasOnly(const PtxStatement &statement, ArrayRef<StringRef> modifiers, unsigned types = 1) {
  return llvm::all_of(ArrayRef(statement.opcode).drop_front().drop_back(types),
                      [&](const std::string &part) { return llvm::is_contained(modifiers, StringRef(part)); });
}

static Value intrinsic(Emitter &e, StringRef name, Type result, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(e, result, e.getStringAttr(name), operands).getResult(0);
}

Value PtxTranslator::callLibrary(StringRef symbol, Value operand) {
  LLVM::LLVMFuncOp function = declareLibraryFunction(e, symbol, operand.getType(), operand.getType(), /*isPure=*/true);
  return LLVM::CallOp::create(e, function, operand).getResult();
}

bool PtxTranslator::integers(const PtxStatement &statement, const PtxType &type) {
  StringRef name = statement.opcode.front();
  ArrayRef<PtxOperand> operands(statement.operands);
  bool isSigned = type.isSigned();
  if (type.lanes != 1 || !hasOnly(statement, {"lo", "hi", "wide"}) || operands.size() < 2)
    return false;
  unsigned bits = type.bits;
  Type narrowType = e.getIntegerType(bits), wideType = e.getIntegerType(2 * bits);
  auto x = [&](unsigned index) { return read(operands[index], bits); };
  auto extend = [&](Value value) { return isSigned ? e.sextOrTrunc(value, wideType) : e.zextOrTrunc(value, wideType); };
  bool isWide = statement.has("wide"), isHigh = statement.has("hi");
  if ((name == "mul" && operands.size() == 3) || (name == "mad" && operands.size() == 4)) {
    Value product = isWide || isHigh ? e.mul(extend(x(1)), extend(x(2))) : e.mul(x(1), x(2));
    if (isHigh)
      product = e.zextOrTrunc(e.lshr(product, static_cast<int>(bits)), narrowType);
    if (name == "mad")
      product = e.add(product, read(operands[3], isWide ? 2 * bits : bits));
    write(operands[0], product);
    return true;
  }
  if (operands.size() == 2) {
    Value result;
    if (name == "neg")
      result = e.sub(e.constant(narrowType, 0), x(1));
    else if (name == "abs")
      result = LLVM::AbsOp::create(e, narrowType, x(1), /*is_int_min_poison=*/false);
    if (result)
      write(operands[0], result);
    return result != nullptr;
  }
  if (operands.size() != 3)
    return false;
  Value a = x(1), b = x(2), result;
  if (name == "add")
    result = e.add(a, b);
  else if (name == "sub")
    result = e.sub(a, b);
  else if (name == "min" || name == "max") {
    bool isMax = name == "max";
    auto predicate = isSigned ? (isMax ? LLVM::ICmpPredicate::sgt : LLVM::ICmpPredicate::slt)
                              : (isMax ? LLVM::ICmpPredicate::ugt : LLVM::ICmpPredicate::ult);
    result = e.select(e.compare(predicate, a, b), a, b);
  } else if (name == "div" || name == "rem") {
    // By zero the hardware gives something; the host must not trap.
    Value zero = e.isZero(b), minusOne = e.compare(LLVM::ICmpPredicate::eq, b, e.constant(narrowType, -1));
    Value safe = e.select(isSigned ? e.bitOr(zero, minusOne) : zero, e.constant(narrowType, 1), b);
    if (name == "rem") {
      result = isSigned ? LLVM::SRemOp::create(e, a, safe).getResult() : LLVM::URemOp::create(e, a, safe).getResult();
    } else {
      result = isSigned ? LLVM::SDivOp::create(e, a, safe).getResult() : LLVM::UDivOp::create(e, a, safe).getResult();
      if (isSigned)
        result = e.select(minusOne, e.sub(e.constant(narrowType, 0), a), result);
    }
  }
  if (result)
    write(operands[0], result);
  return result != nullptr;
}

bool PtxTranslator::bitwise(const PtxStatement &statement, const PtxType &type) {
  StringRef name = statement.opcode.front();
  ArrayRef<PtxOperand> operands(statement.operands);
  unsigned bits = type.bits * type.lanes;
  if (name == "shf" && operands.size() == 4 && bits == 32 && statement.has("wrap") && hasOnly(statement, {"l", "r", "wrap"})) {
    // 32 of the 64 bits of (second, first).
    Value low = read(operands[1], 32), high = read(operands[2], 32), amount = read(operands[3], 32);
    write(operands[0], intrinsic(e, statement.has("l") ? "llvm.fshl" : "llvm.fshr", e.getI32Type(), {high, low, amount}));
    return true;
  }
  if (type.isFloat() || statement.opcode.size() != 2 || operands.size() < 2)
    return false;
  Type word = e.getIntegerType(bits);
  auto x = [&](unsigned index) { return read(operands[index], bits); };
  Value result;
  if (operands.size() == 2) {
    if (name == "not")
      result = e.bitXor(x(1), e.constant(word, -1));
    else if (name == "popc")
      result = LLVM::CtPopOp::create(e, word, x(1));
    else if (name == "clz")
      result = LLVM::CountLeadingZerosOp::create(e, word, x(1), /*is_zero_poison=*/false);
    else if (name == "brev")
      result = LLVM::BitReverseOp::create(e, word, x(1));
  } else if (name == "and") {
    result = e.bitAnd(x(1), x(2));
  } else if (name == "or") {
    result = e.bitOr(x(1), x(2));
  } else if (name == "xor") {
    result = e.bitXor(x(1), x(2));
  } else if (name == "shl" || name == "shr") {
    // The amount is 32 bits wide, and beyond the width nothing (or the sign) is left.
    Value amount = read(operands[2], 32), limit = e.i32(bits - 1);
    Value isTooFar = e.compare(LLVM::ICmpPredicate::ugt, amount, limit);
    Value by = e.zextOrTrunc(e.select(isTooFar, limit, amount), word);
    if (name == "shr" && type.isSigned()) {
      result = LLVM::AShrOp::create(e, x(1), by);
    } else {
      Value shifted = name == "shl" ? LLVM::ShlOp::create(e, x(1), by).getResult() : LLVM::LShrOp::create(e, x(1), by).getResult();
      result = e.select(isTooFar, e.constant(word, 0), shifted);
    }
  } else if (name == "lop3" && operands.size() == 5) {
    std::optional<int64_t> table = e.constantOf(read(operands[4], 32));
    if (!table)
      return false;
    // The table says the result for every combination of a (bit 2), b (bit 1) and c (bit 0).
    Value a = x(1), b = x(2), c = x(3), all = e.constant(word, -1);
    result = e.constant(word, 0);
    for (int row = 0; row < 8; ++row)
      if (*table >> row & 1) {
        Value term = e.bitAnd(row & 4 ? a : e.bitXor(a, all), row & 2 ? b : e.bitXor(b, all));
        result = e.bitOr(result, e.bitAnd(term, row & 1 ? c : e.bitXor(c, all)));
      }
  } else if (name == "prmt" && operands.size() == 4) {
    Value bytes = e.bitOr(e.zextOrTrunc(x(1), e.getI64Type()), e.shl(e.zextOrTrunc(x(2), e.getI64Type()), 32));
    Value selector = x(3);
    result = e.i32(0);
    for (int i = 0; i < 4; ++i) {
      Value nibble = e.bitAnd(e.lshr(selector, 4 * i), e.i32(0xf));
      Value amount = e.zextOrTrunc(e.shl(e.bitAnd(nibble, e.i32(7)), 3), e.getI64Type());
      Value byte = e.bitAnd(e.zextOrTrunc(LLVM::LShrOp::create(e, bytes, amount), e.getI32Type()), e.i32(0xff));
      // The highest bit of a nibble asks for the byte's sign, repeated.
      Value sign = e.mul(e.lshr(byte, 7), e.i32(0xff));
      byte = e.select(e.bitOf(nibble, 3), sign, byte);
      result = e.bitOr(result, e.shl(byte, 8 * i));
    }
  }
  if (result)
    write(operands[0], result);
  return result != nullptr;
}

bool PtxTranslator::floats(const PtxStatement &statement, const PtxType &type) {
  StringRef name = statement.opcode.front();
  ArrayRef<PtxOperand> operands(statement.operands);
  if (type.bits < 16 || !hasOnly(statement, {"rn", "ftz", "full", "approx", "sat", "NaN"}))
    return false;
  SmallVector<Values> x;
  for (const PtxOperand &operand : operands.drop_front())
    x.push_back(readLanes(operand, type));
  size_t arity = name == "neg" || name == "abs" ? 1 : name == "fma" || name == "mad" ? 3 : 2;
  if (x.size() != arity)
    return false;
  Values results;
  for (unsigned lane = 0; lane < type.lanes; ++lane) {
    Value a = x[0][lane], b = arity > 1 ? x[1][lane] : Value(), result;
    bool keepsNan = statement.has("NaN");
    if (name == "add")
      result = LLVM::FAddOp::create(e, a, b);
    else if (name == "sub")
      result = LLVM::FSubOp::create(e, a, b);
    else if (name == "mul")
      result = LLVM::FMulOp::create(e, a, b);
    else if (name == "div")
      result = LLVM::FDivOp::create(e, a, b);
    else if (name == "fma" || name == "mad")
      result = LLVM::FMAOp::create(e, a, b, x[2][lane]);
    else if (name == "neg")
      result = LLVM::FNegOp::create(e, a);
    else if (name == "abs")
      result = LLVM::FAbsOp::create(e, a);
    else if (name == "min")
      result = keepsNan ? LLVM::MinimumOp::create(e, a, b).getResult() : LLVM::MinNumOp::create(e, a, b).getResult();
    else if (name == "max")
      result = keepsNan ? LLVM::MaximumOp::create(e, a, b).getResult() : LLVM::MaxNumOp::create(e, a, b).getResult();
    else
      return false;
    if (statement.has("sat")) { // NaN becomes 0
      Value zero = e.zero(result.getType()), one = LLVM::ConstantOp::create(e, result.getType(), e.getFloatAttr(result.getType(), 1.0));
      result = LLVM::MinNumOp::create(e, LLVM::MaxNumOp::create(e, result, zero), one);
    }
    results.push_back(result);
  }
  writeLanes(operands[0], type, results);
  return true;
}

bool PtxTranslator::approximate(const PtxStatement &statement, const PtxType &type) {
  static const std::map<StringRef, StringRef> symbols = {{"ex2", "exp2"},   {"lg2", "log2"}, {"rsqrt", "rsqrt"}, {"sqrt", "sqrt"},
                                                         {"sin", "sin"},    {"cos", "cos"},  {"tanh", "tanh"},   {"rcp", ""}};
  auto found = symbols.find(statement.opcode.front());
  if (found == symbols.end() || statement.operands.size() != 2 || type.bits < 16 || !hasOnly(statement, {"approx", "rn", "ftz"}))
    return false;
  Values results;
  for (Value x : readLanes(statement.operands[1], type)) {
    if (found->second.empty())
      results.push_back(LLVM::FDivOp::create(e, LLVM::ConstantOp::create(e, x.getType(), e.getFloatAttr(x.getType(), 1.0)), x));
    else
      results.push_back(callLibrary(fmt::format("__nv_{}{}", found->second.str(), x.getType().isF64() ? "" : "f"), x));
  }
  writeLanes(statement.operands[0], type, results);
  return true;
}

bool PtxTranslator::compareOrSelect(const PtxStatement &statement, const PtxType &type) {
  StringRef name = statement.opcode.front();
  ArrayRef<PtxOperand> operands(statement.operands);
  if (type.lanes != 1)
    return false;
  if (name == "selp" && operands.size() == 4) {
    write(operands[0], e.select(read(operands[3], 1), read(operands[1], type.bits), read(operands[2], type.bits)));
    return true;
  }
  if (name != "setp" || operands.size() != 3 || statement.opcode.size() < 3)
    return false;
  StringRef relation = statement.opcode[1];
  Value a = readLanes(operands[1], type)[0], b = readLanes(operands[2], type)[0];
  if (type.isFloat()) {
    using P = LLVM::FCmpPredicate;
    static const std::map<StringRef, P> predicates = {
        {"eq", P::oeq},  {"ne", P::one},  {"lt", P::olt},  {"le", P::ole},  {"gt", P::ogt},  {"ge", P::oge},  {"equ", P::ueq},
        {"neu", P::une}, {"ltu", P::ult}, {"leu", P::ule}, {"gtu", P::ugt}, {"geu", P::uge}, {"num", P::ord}, {"nan", P::uno}};
    auto found = predicates.find(relation);
    if (found != predicates.end())
      write(operands[0], LLVM::FCmpOp::create(e, found->second, a, b));
    return found != predicates.end() && hasOnly(statement, {relation, "ftz"});
  }
  using P = LLVM::ICmpPredicate;
  static const std::map<StringRef, std::pair<P, P>> predicates = {
      {"eq", {P::eq, P::eq}},   {"ne", {P::ne, P::ne}},   {"lt", {P::slt, P::ult}}, {"le", {P::sle, P::ule}}, {"gt", {P::sgt, P::ugt}},
      {"ge", {P::sge, P::uge}}, {"lo", {P::ult, P::ult}}, {"ls", {P::ule, P::ule}}, {"hi", {P::ugt, P::ugt}}, {"hs", {P::uge, P::uge}}};
  auto found = predicates.find(relation);
  if (found == predicates.end() || !hasOnly(statement, {relation}))
    return false;
  write(operands[0], e.compare(type.isSigned() ? found->second.first : found->second.second, a, b));
  return true;
}

//===------------------------------------------------------------------------------------------------------------------===//
// Conversions
//===------------------------------------------------------------------------------------------------------------------===//

Value PtxTranslator::toInteger(Value value, const PtxType &type) {
  // Saturates and gives 0 for NaN, as cvt does.
  return intrinsic(e, type.isSigned() ? "llvm.fptosi.sat" : "llvm.fptoui.sat", e.getIntegerType(type.bits), value);
}

bool PtxTranslator::convert(const PtxStatement &statement) {
  ArrayRef<PtxOperand> operands(statement.operands);
  if (statement.opcode.size() < 3)
    return false;
  std::optional<PtxType> to = typeOf(statement.opcode.back()), from = to;
  StringRef toName = statement.opcode[statement.opcode.size() - 2];
  to = typeOf(toName);
  if (!to || !from)
    return false;
  if (toName == "tf32") {
    if (!statement.has("rna") || !from->isFloat() || from->bits != 32 || operands.size() != 2)
      return false;
    Value bits = e.add(read(operands[1], 32), e.i32(0x1000));
    write(operands[0], e.bitAnd(bits, e.i32(~0x1fff)));
    return true;
  }
  if (!hasOnly(statement, {"rn", "rni", "rzi", "rmi", "rpi", "satfinite", "ftz", "relu", "sat"}, 2) ||
      (statement.has("sat") && !(to->isFloat() && from->isFloat())))
    return false;

  if (to->isFloat() && from->isFloat()) {
    Values values;
    if (to->lanes == 2 && from->lanes == 1) { // two sources: the first becomes the upper half
      if (operands.size() != 3)
        return false;
      values = {readLanes(operands[2], *from)[0], readLanes(operands[1], *from)[0]};
    } else {
      if (operands.size() != 2 || to->lanes != from->lanes)
        return false;
      values = readLanes(operands[1], *from);
    }
    for (Value &value : values) {
      Value zero = e.zero(value.getType());
      if (statement.has("rni"))
        value = LLVM::RoundEvenOp::create(e, value);
      else if (statement.has("rzi"))
        value = LLVM::FTruncOp::create(e, value);
      else if (statement.has("rmi"))
        value = LLVM::FFloorOp::create(e, value);
      else if (statement.has("rpi"))
        value = LLVM::FCeilOp::create(e, value);
      if (statement.has("relu")) // keeps NaN
        value = e.select(LLVM::FCmpOp::create(e, LLVM::FCmpPredicate::olt, value, zero), zero, value);
      if (statement.has("sat"))
        value = LLVM::MinNumOp::create(e, LLVM::MaxNumOp::create(e, value, zero),
                                       LLVM::ConstantOp::create(e, value.getType(), e.getFloatAttr(value.getType(), 1.0)));
    }
    writeLanes(operands[0], *to, values);
    return true;
  }
  if (operands.size() != 2 || to->lanes != 1 || from->lanes != 1)
    return false;
  if (from->isFloat()) {
    Value value = readLanes(operands[1], *from)[0];
    if (statement.has("rni"))
      value = LLVM::RoundEvenOp::create(e, value);
    else if (statement.has("rmi"))
      value = LLVM::FFloorOp::create(e, value);
    else if (statement.has("rpi"))
      value = LLVM::FCeilOp::create(e, value);
    write(operands[0], toInteger(value, *to));
    return true;
  }
  Value value = read(operands[1], from->bits);
  if (to->isFloat()) {
    Type wide = to->bits == 64 ? e.getF64Type() : e.getF32Type();
    Value number = from->isSigned() ? LLVM::SIToFPOp::create(e, wide, value).getResult() : LLVM::UIToFPOp::create(e, wide, value).getResult();
    writeLanes(operands[0], *to, number);
    return true;
  }
  Type width = e.getIntegerType(to->bits);
  Value number = from->isSigned() ? e.sextOrTrunc(value, width) : e.zextOrTrunc(value, width);
  // A wider destination register takes the sign of a signed result.
  if (to->isSigned() && to->bits < 32)
    number = e.sextOrTrunc(number, e.getI32Type());
  write(operands[0], number);
  return true;
}

} // namespace ditron::target
