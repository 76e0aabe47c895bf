//===- Operators.cpp - Arithmetic, comparison and selection ------------------------------------------------------------===//
//
// The language's operators on numbers, tensors, pointers and tuples. Two compile-time operands give a
// compile-time result with Python's semantics; otherwise the tensor rules hold, with C's division.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/tile/Tile.h"
#include "ditron/frontend/Emitter.h"
#include "ditron/frontend/Vectors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include <fmt/format.h>

namespace ditron::frontend {
namespace arith = mlir::arith;

//===------------------------------------------------------------------------------------------------------------------===//
// Binary operators
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Emitter::binary(BinaryOp op, const LangValue &a, const LangValue &b, SourceRange range) {
  if (a.isPoison() || b.isPoison())
    return LangValue::poison();
  At at(*this, range);
  if (a.isConstant() && b.isConstant()) {
    auto result = frontend::binary(op, a.constant(), b.constant());
    return result.isOk() ? LangValue(*result) : fail(range, result.status().message());
  }
  if (isVector(a) || isVector(b)) {
    bool isArithmetic = op == BinaryOp::Add || op == BinaryOp::Sub || op == BinaryOp::Mult;
    auto fits = [](const LangValue &value) { return isVector(value) || value.isLiteral() || (value.isTensor() && !value.type().isBlock()); };
    if (isArithmetic && fits(a) && fits(b))
      return vectorArithmetic(*this, op, a, b, range);
    return fail(range, fmt::format("operator '{}' does not take {} and {}; vectors take + - * with vectors and scalars",
                                   spelling(op).str(), a.describe(), b.describe()));
  }
  if (a.isTuple() || b.isTuple())
    return tupleArithmetic(op, a, b, range);
  bool isNumeric = (a.isTensor() || a.isLiteral()) && (b.isTensor() || b.isLiteral());
  if (!isNumeric || op == BinaryOp::MatMult)
    return fail(range,
                fmt::format("operator '{}' does not take {} and {}", spelling(op).str(), a.describe(), b.describe()));
  if ((a.isTensor() && a.type().isPointer()) || (b.isTensor() && b.type().isPointer()))
    return pointerArithmetic(op, a, b, range);
  return numericBinary(op, a, b, range);
}

LangValue Emitter::tupleArithmetic(BinaryOp op, const LangValue &a, const LangValue &b, SourceRange range) {
  if (op == BinaryOp::Add && a.isTuple() && b.isTuple()) {
    std::vector<LangValue> elements = a.elements();
    elements.insert(elements.end(), b.elements().begin(), b.elements().end());
    return LangValue::tuple(std::move(elements));
  }
  if (op == BinaryOp::Mult) {
    const LangValue &tuple = a.isTuple() ? a : b;
    const LangValue &count = a.isTuple() ? b : a;
    if (count.isConstant() && count.constant().isIntegral()) {
      int64_t times = std::max<int64_t>(0, count.constant().toInt64().value_or(INT64_MAX));
      if (times > maxBlockElements || times * int64_t(tuple.elements().size()) > maxBlockElements)
        return fail(range, "the tuple would be too long");
      std::vector<LangValue> elements;
      for (int64_t i = 0; i < times; ++i)
        elements.insert(elements.end(), tuple.elements().begin(), tuple.elements().end());
      return LangValue::tuple(std::move(elements));
    }
  }
  return fail(range,
              fmt::format("operator '{}' does not take {} and {}", spelling(op).str(), a.describe(), b.describe()));
}

LangValue Emitter::pointerArithmetic(BinaryOp op, const LangValue &a, const LangValue &b, SourceRange range) {
  bool leftIsPointer = a.isTensor() && a.type().isPointer();
  bool rightIsPointer = b.isTensor() && b.type().isPointer();
  bool isAllowed = (op == BinaryOp::Add && leftIsPointer != rightIsPointer) ||
                   (op == BinaryOp::Sub && leftIsPointer && !rightIsPointer);
  LangValue pointer = leftIsPointer ? a : b;
  LangValue offset = toTensor(leftIsPointer ? b : a, range);
  if (offset.isPoison())
    return offset;
  if (!isAllowed || !offset.type().isInt())
    return fail(range, fmt::format("operator '{}' does not take {} and {}; a pointer takes + and - with an integer on "
                                   "its right, or + on its left",
                                   spelling(op).str(), a.describe(), b.describe()));
  // The hardware adds signed 64-bit offsets; narrow unsigned ones must not become negative.
  LangType element = offset.type().element();
  if (element.isUnsigned() && element.bitWidth() < 64)
    offset = cast(offset, ScalarKind::Int64, range);
  else if (element.bitWidth() < 32)
    offset = cast(offset, ScalarKind::Int32, range);
  if (op == BinaryOp::Sub) {
    mlir::Value zero = integerConstant(0, offset.ir().getType());
    offset = wrap(create<arith::SubIOp>(zero, offset.ir()), offset.type());
  }
  LangValue pair[] = {pointer, offset};
  if (!broadcastTogether(pair, range))
    return LangValue::poison();
  return wrap(create<tile::AddPtrOp>(pair[0].ir().getType(), pair[0].ir(), pair[1].ir()), pair[0].type());
}

void Emitter::assertNoOverflow(BinaryOp op, const LangValue &a, const LangValue &b) {
  const LangType type = a.type();
  mlir::Operation *parent = builder.getInsertionBlock()->getParentOp();
  bool isCombining = parent && llvm::isa<tile::ReduceOp, tile::ScanOp>(parent); // these run on values that nobody sees
  if (!type.isInt() || type.isBool() || type.bitWidth() >= 64 || isCombining)
    return;
  // Exact in 64 bits; a difference of unsigned numbers below zero is a large number there.
  LangType wide = LangType(type.isSigned() ? ScalarKind::Int64 : ScalarKind::UInt64).withShape(type.shape());
  auto widen = [&](const LangValue &value) -> mlir::Value {
    return type.isSigned() ? create<arith::ExtSIOp>(ir(wide), value.ir()).getResult() : create<arith::ExtUIOp>(ir(wide), value.ir()).getResult();
  };
  mlir::Value x = widen(a), y = widen(b);
  mlir::Value exact = op == BinaryOp::Add   ? create<arith::AddIOp>(x, y).getResult()
                      : op == BinaryOp::Sub ? create<arith::SubIOp>(x, y).getResult()
                                            : create<arith::MulIOp>(x, y).getResult();
  unsigned bits = type.bitWidth();
  mlir::Value fits;
  if (type.isSigned()) {
    int64_t limit = int64_t(1) << (bits - 1);
    mlir::Value below = create<arith::CmpIOp>(arith::CmpIPredicate::sle, exact, integerConstant(limit - 1, exact.getType()));
    mlir::Value above = create<arith::CmpIOp>(arith::CmpIPredicate::sge, exact, integerConstant(-limit, exact.getType()));
    fits = create<arith::AndIOp>(below, above);
  } else {
    fits = create<arith::CmpIOp>(arith::CmpIPredicate::ule, exact, integerConstant((int64_t(1) << bits) - 1, exact.getType()));
  }
  const char *name = op == BinaryOp::Add ? "add" : op == BinaryOp::Sub ? "sub" : "mul";
  create<tile::AssertOp>(fits, fmt::format("int{} overflow detected for operation {}", bits, name), mlir::Value());
}

void Emitter::assertDefined(BinaryOp op, const LangValue &a, const LangValue &b) {
  const LangType type = a.type();
  const bool isShift = op == BinaryOp::LShift || op == BinaryOp::RShift;
  const bool isDivision = op == BinaryOp::FloorDiv || op == BinaryOp::Mod;
  mlir::Operation *parent = builder.getInsertionBlock()->getParentOp();
  if (!type.isInt() || type.isBool() || !(isShift || isDivision) ||
      llvm::isa_and_nonnull<tile::ReduceOp, tile::ScanOp>(parent))
    return;
  const unsigned bits = type.bitWidth();
  mlir::Value x = a.ir(), y = b.ir();
  const auto check = [&](arith::CmpIPredicate predicate, mlir::Value value, int64_t number) -> mlir::Value {
    return create<arith::CmpIOp>(predicate, value, integerConstant(number, value.getType()));
  };
  const auto require = [&](mlir::Value condition, std::string_view what) {
    create<tile::AssertOp>(condition, fmt::format("int{} {}", bits, what), mlir::Value());
  };
  if (isShift) // compared as an unsigned number, what is less than zero is large
    return require(check(arith::CmpIPredicate::ult, y, bits),
                   fmt::format("shift by an amount outside of 0 to {}", bits - 1));
  const char *name = op == BinaryOp::FloorDiv ? "division" : "remainder";
  require(check(arith::CmpIPredicate::ne, y, 0), fmt::format("{} by zero", name));
  if (!type.isSigned())
    return;
  const int64_t least = bits == 64 ? INT64_MIN : -(int64_t(1) << (bits - 1));
  mlir::Value isOther = check(arith::CmpIPredicate::ne, x, least),
              isNotMinusOne = check(arith::CmpIPredicate::ne, y, -1);
  require(create<arith::OrIOp>(isOther, isNotMinusOne),
          fmt::format("{} of {} by -1, whose quotient does not fit", name, least));
}

/// The operation on operands of one type; nothing for an operator that has none. `>>` follows the sign of the original left operand.
static std::optional<LangValue> emitBinary(Emitter &emit, BinaryOp op, const LangValue &a, const LangValue &b, bool leftIsSigned) {
  const LangType type = a.type();
  mlir::Value x = a.ir(), y = b.ir();
  auto done = [&](mlir::Value value) { return emit.wrap(value, type); };
  bool isFloat = type.isFloat(), isSigned = type.isSigned();
  switch (op) {
  case BinaryOp::Add: return isFloat ? done(emit.create<arith::AddFOp>(x, y)) : done(emit.create<arith::AddIOp>(x, y));
  case BinaryOp::Sub: return isFloat ? done(emit.create<arith::SubFOp>(x, y)) : done(emit.create<arith::SubIOp>(x, y));
  case BinaryOp::Mult: return isFloat ? done(emit.create<arith::MulFOp>(x, y)) : done(emit.create<arith::MulIOp>(x, y));
  case BinaryOp::Div: return done(emit.create<arith::DivFOp>(x, y, arith::FastMathFlags::afn)); // 2 ulp are enough for `/`
  case BinaryOp::FloorDiv: return isSigned ? done(emit.create<arith::DivSIOp>(x, y)) : done(emit.create<arith::DivUIOp>(x, y));
  case BinaryOp::Mod:
    if (isFloat)
      return done(emit.create<arith::RemFOp>(x, y));
    return isSigned ? done(emit.create<arith::RemSIOp>(x, y)) : done(emit.create<arith::RemUIOp>(x, y));
  case BinaryOp::LShift: return done(emit.create<arith::ShLIOp>(x, y));
  case BinaryOp::RShift:
    return leftIsSigned ? done(emit.create<arith::ShRSIOp>(x, y)) : done(emit.create<arith::ShRUIOp>(x, y));
  case BinaryOp::BitAnd: return done(emit.create<arith::AndIOp>(x, y));
  case BinaryOp::BitOr: return done(emit.create<arith::OrIOp>(x, y));
  case BinaryOp::BitXor: return done(emit.create<arith::XOrIOp>(x, y));
  default: return std::nullopt;
  }
}

LangValue Emitter::numericBinary(BinaryOp op, LangValue a, LangValue b, SourceRange range) {
  auto invalid = [&](llvm::StringRef why) {
    return fail(range, fmt::format("invalid operands of type {} and {} for operator '{}': {}", a.describe(),
                                   b.describe(), spelling(op).str(), why.str()));
  };
  auto isFloating = [](const LangValue &v) { return v.isTensor() ? v.type().isFloat() : v.constant().isFloat(); };
  bool anyFloat = isFloating(a) || isFloating(b);
  ArithmeticKind kind = ArithmeticKind::Plain;
  switch (op) {
  case BinaryOp::Pow:
    return fail(
        range, fmt::format("operator '**' needs compile-time operands, but got {} and {}", a.describe(), b.describe()));
  case BinaryOp::FloorDiv:
    if (anyFloat)
      return invalid("it needs integers; use / and tl.floor");
    [[fallthrough]];
  case BinaryOp::Div:
  case BinaryOp::Mod: kind = ArithmeticKind::DivisionLike; break;
  case BinaryOp::LShift:
  case BinaryOp::RShift:
  case BinaryOp::BitAnd:
  case BinaryOp::BitOr:
  case BinaryOp::BitXor:
    if (anyFloat)
      return invalid("it needs integers");
    kind = ArithmeticKind::Bitwise;
    break;
  default: break;
  }
  LangType leftType = a.isTensor() ? a.type().element() : naturalType(a.constant()).value_or(ScalarKind::Int32);
  if ((op == BinaryOp::LShift || op == BinaryOp::RShift) && b.isConstant() && a.isTensor()) {
    auto amount = b.constant().toInt64();
    if (!amount || *amount < 0 || *amount >= leftType.bitWidth())
      warning(range, fmt::format("shifting {} by {} is undefined", a.type().str(), b.constant().repr()));
  }
  if (!promoteOperands(a, b, kind, range))
    return LangValue::poison();
  if (op == BinaryOp::Div && a.type().isInt()) {
    a = cast(a, ScalarKind::FP32, range);
    b = cast(b, ScalarKind::FP32, range);
  }
  if (checksOverflow && (op == BinaryOp::Add || op == BinaryOp::Sub || op == BinaryOp::Mult))
    assertNoOverflow(op, a, b);
  else if (checksOverflow)
    assertDefined(op, a, b);
  const std::optional<LangValue> result = emitBinary(*this, op, a, b, leftType.isSigned());
  return result ? *result : invalid("it is not supported");
}

//===------------------------------------------------------------------------------------------------------------------===//
// Unary operators, comparison, logic
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Emitter::unary(UnaryOp op, const LangValue &a, SourceRange range) {
  if (a.isPoison())
    return a;
  At at(*this, range);
  if (a.isConstant()) {
    auto result = frontend::unary(op, a.constant());
    return result.isOk() ? LangValue(*result) : fail(range, result.status().message());
  }
  if (!a.isTensor()) {
    if (op == UnaryOp::Not && a.isTuple())
      return LangValue::boolean(a.elements().empty());
    return fail(range, fmt::format("operator '{}' does not take {}", spelling(op).str(), a.describe()));
  }
  const LangType &type = a.type();
  if (type.is(ScalarKind::FP8E4B15))
    return unary(op, cast(a, ScalarKind::FP16, range), range);
  if (op == UnaryOp::Not) {
    LangValue bit = a;
    if (type.isPointer())
      bit = cast(a, ScalarKind::Int1, range);
    else if (!type.isBool())
      return fail(range, fmt::format("operator 'not' needs int1, but got {}", a.describe()));
    return wrap(create<arith::XOrIOp>(bit.ir(), integerConstant(-1, bit.ir().getType())), bit.type());
  }
  if (type.isPointer())
    return fail(range, fmt::format("operator '{}' does not take {}", spelling(op).str(), a.describe()));
  switch (op) {
  case UnaryOp::UAdd: return a;
  case UnaryOp::USub:
    if (type.isFloat())
      return wrap(create<arith::NegFOp>(a.ir()), type);
    return wrap(create<arith::SubIOp>(integerConstant(0, a.ir().getType()), a.ir()), type);
  default:
    if (type.isFloat())
      return fail(range, fmt::format("operator '~' needs integers, but got {}", a.describe()));
    return wrap(create<arith::XOrIOp>(a.ir(), integerConstant(-1, a.ir().getType())), type);
  }
}

LangValue Emitter::compare(CompareOp op, const LangValue &a, const LangValue &b, SourceRange range) {
  if (a.isPoison() || b.isPoison())
    return LangValue::poison();
  At at(*this, range);
  if (op == CompareOp::In || op == CompareOp::NotIn)
    return fail(range, "operator 'in' is not part of the kernel language");
  if (op == CompareOp::Is || op == CompareOp::IsNot)
    return LangValue::boolean(a.identical(b) == (op == CompareOp::Is));
  if (a.isConstant() && b.isConstant()) {
    auto result = frontend::compare(op, a.constant(), b.constant());
    return result.isOk() ? LangValue(*result) : fail(range, result.status().message());
  }
  bool isEquality = op == CompareOp::Eq || op == CompareOp::NotEq;
  auto isNumeric = [](const LangValue &v) { return v.isTensor() || v.isLiteral(); };
  if (!isNumeric(a) || !isNumeric(b)) {
    if (!isEquality)
      return fail(range,
                  fmt::format("operator '{}' does not take {} and {}", spelling(op).str(), a.describe(), b.describe()));
    if (a.isTuple() && b.isTuple() && a.elements().size() == b.elements().size()) {
      // Element by element; the first compile-time difference decides.
      LangValue result = LangValue::boolean(true);
      for (auto [x, y] : llvm::zip(a.elements(), b.elements())) {
        LangValue equal = compare(CompareOp::Eq, x, y, range);
        if (equal.isPoison())
          return equal;
        if (equal.isConstant() && !equal.constant().isTrue())
          return LangValue::boolean(op == CompareOp::NotEq);
        if (equal.isTensor())
          result = result.isTensor() ? logical(true, result, equal, range) : equal;
      }
      return op == CompareOp::Eq ? result : unary(UnaryOp::Not, result, range);
    }
    return LangValue::boolean(a.identical(b) == (op == CompareOp::Eq));
  }
  LangValue x = a, y = b;
  if ((x.isTensor() && x.type().isPointer()) || (y.isTensor() && y.type().isPointer())) {
    error(range, fmt::format("operator '{}' does not take {} and {}", spelling(op).str(), a.describe(), b.describe()))
        .hint("pointers are compared as addresses: p.to(tl.int64)");
    return LangValue::poison();
  }
  if (!promoteAsTensors(x, y, range))
    return LangValue::poison();
  LangType type = LangType(ScalarKind::Int1).withShape(x.type().shape());
  if (x.type().isFloat()) {
    static constexpr arith::CmpFPredicate predicates[] = {arith::CmpFPredicate::OEQ, arith::CmpFPredicate::UNE,
                                                          arith::CmpFPredicate::OLT, arith::CmpFPredicate::OLE,
                                                          arith::CmpFPredicate::OGT, arith::CmpFPredicate::OGE};
    return wrap(create<arith::CmpFOp>(predicates[static_cast<unsigned>(op)], x.ir(), y.ir()), type);
  }
  static constexpr arith::CmpIPredicate signedPredicates[] = {arith::CmpIPredicate::eq,  arith::CmpIPredicate::ne,
                                                              arith::CmpIPredicate::slt, arith::CmpIPredicate::sle,
                                                              arith::CmpIPredicate::sgt, arith::CmpIPredicate::sge};
  static constexpr arith::CmpIPredicate unsignedPredicates[] = {arith::CmpIPredicate::eq,  arith::CmpIPredicate::ne,
                                                                arith::CmpIPredicate::ult, arith::CmpIPredicate::ule,
                                                                arith::CmpIPredicate::ugt, arith::CmpIPredicate::uge};
  const auto &predicates = x.type().isSigned() ? signedPredicates : unsignedPredicates;
  return wrap(create<arith::CmpIOp>(predicates[static_cast<unsigned>(op)], x.ir(), y.ir()), type);
}

LangValue Emitter::logical(bool isAnd, const LangValue &a, const LangValue &b, SourceRange range) {
  LangValue x = toTensor(a, range), y = toTensor(b, range);
  if (x.isPoison() || y.isPoison())
    return LangValue::poison();
  At at(*this, range);
  for (LangValue *side : {&x, &y}) {
    if (side->type().isPointer())
      *side = cast(*side, ScalarKind::Int1, range);
    if (!side->type().isBool())
      return fail(range,
                  fmt::format("operator '{}' needs int1 operands, but got {}", isAnd ? "and" : "or", side->describe()));
  }
  LangValue pair[] = {x, y};
  if (!broadcastTogether(pair, range))
    return LangValue::poison();
  if (isAnd)
    return wrap(create<arith::AndIOp>(pair[0].ir(), pair[1].ir()), pair[0].type());
  return wrap(create<arith::OrIOp>(pair[0].ir(), pair[1].ir()), pair[0].type());
}

//===------------------------------------------------------------------------------------------------------------------===//
// Selection
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Emitter::minMax(bool isMax, const LangValue &a, const LangValue &b, bool propagateNan, SourceRange range) {
  At at(*this, range);
  LangValue x = a, y = b;
  if (!promoteAsTensors(x, y, range))
    return LangValue::poison();
  if (x.type().is(ScalarKind::BF16) || x.type().isFP8()) {
    x = cast(x, ScalarKind::FP32, range);
    y = cast(y, ScalarKind::FP32, range);
  }
  const LangType type = x.type();
  mlir::Value l = x.ir(), r = y.ir();
  if (type.isFloat()) {
    if (propagateNan)
      return isMax ? wrap(create<arith::MaximumFOp>(l, r), type) : wrap(create<arith::MinimumFOp>(l, r), type);
    return isMax ? wrap(create<arith::MaxNumFOp>(l, r), type) : wrap(create<arith::MinNumFOp>(l, r), type);
  }
  if (type.isSigned())
    return isMax ? wrap(create<arith::MaxSIOp>(l, r), type) : wrap(create<arith::MinSIOp>(l, r), type);
  return isMax ? wrap(create<arith::MaxUIOp>(l, r), type) : wrap(create<arith::MinUIOp>(l, r), type);
}

LangValue Emitter::select(const LangValue &condition, const LangValue &a, const LangValue &b, SourceRange range) {
  At at(*this, range);
  LangValue x = a, y = b;
  LangValue bit = toBool(condition, range);
  if (bit.isPoison() || x.isPoison() || y.isPoison())
    return LangValue::poison();
  bool hasPointer = (x.isTensor() && x.type().isPointer()) || (y.isTensor() && y.type().isPointer());
  if (hasPointer) {
    if (!x.isTensor() || !y.isTensor() || x.type().element() != y.type().element())
      return fail(range, fmt::format("tl.where cannot choose between {} and {}: pointers must have the same type",
                                     a.describe(), b.describe()));
  } else if (!promoteOperands(x, y, ArithmeticKind::Plain, range)) {
    return LangValue::poison();
  }
  LangValue three[] = {bit, x, y};
  if (!broadcastTogether(three, range))
    return LangValue::poison();
  return wrap(create<arith::SelectOp>(three[0].ir(), three[1].ir(), three[2].ir()), three[1].type());
}

} // namespace ditron::frontend
