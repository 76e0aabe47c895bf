//===- Math.cpp - Functions of Python that run while compiling: math and operator -----------------------------------===//
//
// The modules math and operator. Functions of floats are those of the C library, as in CPython, with CPython's errors: a NaN
// that no operand is, is a domain error, and an infinity that none is, an overflow.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/natives/Natives.h"

#include <cmath>
#include <fmt/format.h>
#include <numbers>
#include <numeric>

namespace ditron::frontend {
namespace {

//===------------------------------------------------------------------------------------------------------------------===//
// Floats
//===------------------------------------------------------------------------------------------------------------------===//

/// An operand as a double; nullopt after a reported error.
std::optional<double> doubleOf(const NativeCall &call, const LangValue &value) {
  if (!value.isLiteral()) {
    call.fail(fmt::format("{} takes numbers, but got {}", llvm::StringRef(call.function.name).str(), value.describe()));
    return std::nullopt;
  }
  auto number = value.constant().toDouble();
  if (number.isOk())
    return *number;
  call.fail(number.status().message(), "OverflowError");
  return std::nullopt;
}

/// A result, if it follows from finite operands only where it is finite.
LangValue checkFloat(const NativeCall &call, double result, std::initializer_list<double> operands) {
  const bool hasNan = llvm::any_of(operands, [](double x) { return std::isnan(x); });
  const bool isFinite = llvm::all_of(operands, [](double x) { return std::isfinite(x); });
  if (std::isnan(result) && !hasNan)
    return call.fail("math domain error", "ValueError");
  if (std::isinf(result) && isFinite && call.function.shortName() == "atanh")
    return call.fail("math domain error", "ValueError");
  if (std::isinf(result) && isFinite)
    return call.fail("math range error", "OverflowError");
  return LangValue::floating(result);
}

/// Functions of one number that give a float.
template <double (*function)(double)> LangValue floatFunction(NativeCall &call) {
  std::optional<double> x = doubleOf(call, call.args[0]);
  return x ? checkFloat(call, function(*x), {*x}) : LangValue::poison();
}
/// Of two numbers.
template <double (*function)(double, double)> LangValue floatFunction2(NativeCall &call) {
  std::optional<double> x = doubleOf(call, call.args[0]), y = x ? doubleOf(call, call.args[1]) : std::nullopt;
  return y ? checkFloat(call, function(*x, *y), {*x, *y}) : LangValue::poison();
}
/// Predicates of one number.
template <bool (*function)(double)> LangValue floatPredicate(NativeCall &call) {
  std::optional<double> x = doubleOf(call, call.args[0]);
  return x ? LangValue::boolean(function(*x)) : LangValue::poison();
}

double squareRoot(double x) { return std::sqrt(x); }
double cubeRoot(double x) { return std::cbrt(x); }
double exponential(double x) { return std::exp(x); }
double exponential2(double x) { return std::exp2(x); }
double exponentialMinus1(double x) { return std::expm1(x); }
double sine(double x) { return std::sin(x); }
double cosine(double x) { return std::cos(x); }
double tangent(double x) { return std::tan(x); }
double arcSine(double x) { return std::asin(x); }
double arcCosine(double x) { return std::acos(x); }
double arcTangent(double x) { return std::atan(x); }
double hyperbolicSine(double x) { return std::sinh(x); }
double hyperbolicCosine(double x) { return std::cosh(x); }
double hyperbolicTangent(double x) { return std::tanh(x); }
double areaSine(double x) { return std::asinh(x); }
double areaCosine(double x) { return std::acosh(x); }
double areaTangent(double x) { return std::atanh(x); }
double magnitude(double x) { return std::fabs(x); }
double errorFunction(double x) { return std::erf(x); }
double errorComplement(double x) { return std::erfc(x); }
double radiansOf(double x) { return x * (std::numbers::pi / 180); }
double degreesOf(double x) { return x * (180 / std::numbers::pi); }
double arcTangent2(double y, double x) { return std::atan2(y, x); }
double remainderOf(double x, double y) { return std::fmod(x, y); }
double nearestRemainder(double x, double y) { return std::remainder(x, y); }
double withSign(double x, double y) { return std::copysign(x, y); }
bool isNanNumber(double x) { return std::isnan(x); }
bool isInfinite(double x) { return std::isinf(x); }
bool isFiniteNumber(double x) { return std::isfinite(x); }

/// gamma and lgamma, whose last digit may differ from CPython's, which has its own. Where the result is infinite at a pole,
/// Python reports a domain error.
LangValue gammaOf(NativeCall &call) {
  std::optional<double> x = doubleOf(call, call.args[0]);
  if (!x)
    return LangValue::poison();
  const bool isLog = call.function.shortName() == "lgamma";
  if (*x <= 0 && std::floor(*x) == *x && (!isLog || std::isfinite(*x)))
    return call.fail("math domain error", "ValueError");
  return checkFloat(call, isLog ? std::lgamma(*x) : std::tgamma(*x), {*x});
}

/// The logarithm of a positive int that may be too large for a double: log(x / 2**k) + k * log(2).
double logOf(const BigInt &x, double (*function)(double)) {
  if (std::optional<double> value = x.toDouble())
    return function(*value);
  const unsigned shift = x.bitLength() - 64;
  return function(*shr(x, BigInt(shift)).toDouble()) + shift * function(2.0);
}

/// A logarithm of a number; nullopt after a reported error.
std::optional<double> logarithm(const NativeCall &call, const LangValue &value, double (*function)(double)) {
  if (value.isConstant() && value.constant().isIntegral() && !value.constant().getInt().isNegative() &&
      !value.constant().getInt().isZero())
    return logOf(value.constant().getInt(), function);
  std::optional<double> x = doubleOf(call, value);
  if (x && *x <= 0) {
    call.fail("math domain error", "ValueError");
    return std::nullopt;
  }
  return x ? std::optional(function(*x)) : std::nullopt;
}

/// log, log2 and log10.
LangValue logarithmOf(NativeCall &call) {
  llvm::StringRef name = call.function.shortName();
  double (*function)(double) = [](double x) { return std::log(x); };
  if (name == "log2")
    function = [](double x) { return std::log2(x); };
  else if (name == "log10")
    function = [](double x) { return std::log10(x); };
  std::optional<double> result = logarithm(call, call.args[0], function);
  if (!result || call.args.size() == 1)
    return result ? LangValue::floating(*result) : LangValue::poison();
  std::optional<double> base = logarithm(call, call.args[1], function);
  if (!base)
    return LangValue::poison();
  return *base == 0 ? call.fail("float division by zero", "ZeroDivisionError") : LangValue::floating(*result / *base);
}

LangValue log1pOf(NativeCall &call) {
  std::optional<double> x = doubleOf(call, call.args[0]);
  if (!x)
    return LangValue::poison();
  return *x <= -1 ? call.fail("math domain error", "ValueError") : LangValue::floating(std::log1p(*x));
}

LangValue powerOf(NativeCall &call) {
  std::optional<double> x = doubleOf(call, call.args[0]), y = x ? doubleOf(call, call.args[1]) : std::nullopt;
  if (!y)
    return LangValue::poison();
  if (*x == 0 && *y < 0 && std::isfinite(*y))
    return call.fail("math domain error", "ValueError");
  return checkFloat(call, std::pow(*x, *y), {*x, *y});
}

LangValue loadExponent(NativeCall &call) {
  std::optional<double> x = doubleOf(call, call.args[0]);
  std::optional<int64_t> exponent = x ? call.integer(call.args[1], "the exponent of math.ldexp") : std::nullopt;
  return exponent
             ? checkFloat(call, std::ldexp(*x, static_cast<int>(std::clamp<int64_t>(*exponent, -5000, 5000))), {*x})
             : LangValue::poison();
}

/// frexp and modf.
LangValue splitFloat(NativeCall &call) {
  std::optional<double> x = doubleOf(call, call.args[0]);
  if (!x)
    return LangValue::poison();
  if (call.function.shortName() == "modf") {
    double whole = 0, fraction = std::modf(*x, &whole);
    return LangValue::tuple({LangValue::floating(fraction), LangValue::floating(whole)});
  }
  int exponent = 0;
  double mantissa = std::frexp(*x, &exponent);
  return LangValue::tuple({LangValue::floating(mantissa), LangValue::integer(std::isfinite(*x) ? exponent : 0)});
}

/// ceil, floor and trunc: an int.
LangValue roundToInt(NativeCall &call) {
  if (call.args[0].isConstant() && call.args[0].constant().isIntegral())
    return LangValue(ConstValue::integer(call.args[0].constant().getInt()));
  std::optional<double> x = doubleOf(call, call.args[0]);
  if (!x)
    return LangValue::poison();
  llvm::StringRef name = call.function.shortName();
  return call.result(toInt(ConstValue::floating(name == "ceil"    ? std::ceil(*x)
                                                : name == "floor" ? std::floor(*x)
                                                                  : *x)));
}

/// The root of the sum of squares, scaled so that neither overflows nor vanishes.
double lengthOf(llvm::ArrayRef<double> coordinates) {
  double result = 0;
  for (double x : coordinates)
    result = std::hypot(result, x);
  return result;
}

LangValue hypotenuse(NativeCall &call) {
  std::vector<double> coordinates;
  for (const LangValue &value : call.args) {
    std::optional<double> x = doubleOf(call, value);
    if (!x)
      return LangValue::poison();
    coordinates.push_back(*x);
  }
  return LangValue::floating(lengthOf(coordinates));
}

/// The sum of floats rounded once: partial sums that do not overlap, as CPython's math.fsum.
double exactSum(llvm::ArrayRef<double> terms) {
  std::vector<double> partials;
  for (double x : terms) {
    size_t kept = 0;
    for (double y : partials) {
      if (std::fabs(x) < std::fabs(y))
        std::swap(x, y);
      const double high = x + y, low = y - (high - x);
      if (low != 0)
        partials[kept++] = low;
      x = high;
    }
    partials.resize(kept);
    partials.push_back(x);
  }
  double high = 0, low = 0;
  while (!partials.empty() && low == 0) {
    const double x = high, y = partials.back();
    partials.pop_back();
    high = x + y;
    low = y - (high - x);
  }
  // What was cut off may tip a tie.
  if (!partials.empty() && ((low < 0 && partials.back() < 0) || (low > 0 && partials.back() > 0))) {
    const double y = low * 2, x = high + y;
    if (y == x - high)
      high = x;
  }
  return high;
}

LangValue floatSum(NativeCall &call) {
  std::optional<std::vector<LangValue>> elements = call.elements(0);
  std::vector<double> terms;
  double special = 0;
  for (const LangValue &element : elements.value_or(std::vector<LangValue>())) {
    std::optional<double> x = element.isUnknown() ? std::nullopt : doubleOf(call, element);
    if (!x)
      return element.isUnknown() ? element : LangValue::poison();
    if (std::isfinite(*x))
      terms.push_back(*x);
    else
      special += *x;
  }
  if (!elements)
    return LangValue::poison();
  return LangValue::floating(special != 0 || std::isnan(special) ? special : exactSum(terms));
}

LangValue isClose(NativeCall &call) {
  std::optional<double> a = doubleOf(call, call.args[0]), b = a ? doubleOf(call, call.args[1]) : std::nullopt;
  const LangValue *relative = call.keyword("rel_tol"), *absolute = call.keyword("abs_tol");
  std::optional<double> rel = relative ? doubleOf(call, *relative) : std::optional(1e-9);
  std::optional<double> abs = absolute ? doubleOf(call, *absolute) : std::optional(0.0);
  if (!b || !rel || !abs)
    return LangValue::poison();
  if (*rel < 0 || *abs < 0)
    return call.fail("tolerances must be non-negative", "ValueError");
  if (*a == *b)
    return LangValue::boolean(true);
  if (std::isinf(*a) || std::isinf(*b))
    return LangValue::boolean(false);
  const double difference = std::fabs(*b - *a);
  return LangValue::boolean(difference <= std::fabs(*rel * *b) || difference <= std::fabs(*rel * *a) ||
                            difference <= *abs);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Ints
//===------------------------------------------------------------------------------------------------------------------===//

/// An operand as an int of any size; nullopt after a reported error.
std::optional<BigInt> intOf(const NativeCall &call, const LangValue &value) {
  if (value.isConstant() && value.constant().isIntegral())
    return value.constant().getInt();
  call.fail(fmt::format("{} takes ints, but got {}", llvm::StringRef(call.function.name).str(), value.describe()));
  return std::nullopt;
}

LangValue integerResult(const NativeCall &call, const std::optional<BigInt> &value) {
  return value ? LangValue(ConstValue::integer(*value))
               : call.fail(fmt::format("integer result too large: compile-time integers have at most {} bits",
                                       BigInt::maxBits),
                           "");
}

BigInt greatestCommonDivisor(BigInt a, BigInt b) {
  a = a.abs();
  b = b.abs();
  while (!b.isZero()) {
    BigInt quotient, rest;
    floorDivMod(a, b, quotient, rest);
    a = std::move(b);
    b = std::move(rest);
  }
  return a;
}

/// gcd and lcm.
LangValue commonDivisor(NativeCall &call) {
  const bool isLcm = call.function.shortName() == "lcm";
  BigInt result(isLcm ? 1 : 0);
  for (const LangValue &value : call.args) {
    std::optional<BigInt> number = intOf(call, value);
    if (!number || !call.evaluator.countSteps(1 + std::min(result.bitLength(), number->bitLength()), call.range))
      return LangValue::poison();
    BigInt divisor = greatestCommonDivisor(result, *number);
    if (!isLcm) {
      result = divisor;
      continue;
    }
    BigInt quotient(0), rest;
    if (!divisor.isZero())
      floorDivMod(result, divisor, quotient, rest);
    std::optional<BigInt> multiple = mul(quotient, number->abs());
    if (!multiple)
      return integerResult(call, multiple);
    result = *multiple;
  }
  return integerResult(call, result);
}

/// The integer part of a root, by Newton's method from above.
LangValue integerRoot(NativeCall &call) {
  std::optional<BigInt> number = intOf(call, call.args[0]);
  if (!number)
    return LangValue::poison();
  if (number->isNegative())
    return call.fail("isqrt() argument must be nonnegative", "ValueError");
  if (number->isZero())
    return LangValue::integer(0);
  BigInt root = *shl(BigInt(1), BigInt((number->bitLength() + 1) / 2));
  while (true) {
    BigInt quotient, rest;
    floorDivMod(*number, root, quotient, rest);
    BigInt next = shr(*add(root, quotient), BigInt(1));
    if (next >= root)
      return integerResult(call, root);
    root = next;
  }
}

/// factorial, comb and perm: products of consecutive ints.
LangValue factorialLike(NativeCall &call) {
  llvm::StringRef name = call.function.shortName();
  std::optional<int64_t> n = call.integer(call.args[0], "the operand of math." + name.str());
  const bool hasCount = call.args.size() > 1 && !call.args[1].isNone();
  std::optional<int64_t> k = hasCount ? call.integer(call.args[1], "the second operand of math." + name.str()) : n;
  if (!n || !k)
    return LangValue::poison();
  if (*n < 0 || *k < 0)
    return call.fail(fmt::format("math.{} is not defined for negative values", name.str()), "ValueError");
  if (*k > *n)
    return LangValue::integer(0);
  const int64_t count = name == "comb" ? std::min(*k, *n - *k) : *k;
  BigInt result(1);
  for (int64_t i = 0; i < count; ++i) {
    if (!call.evaluator.countSteps(1, call.range))
      return LangValue::poison();
    std::optional<BigInt> next = mul(result, BigInt(*n - i));
    if (!next)
      return integerResult(call, next);
    result = *next;
    if (name == "comb") {
      BigInt quotient, rest;
      floorDivMod(result, BigInt(i + 1), quotient, rest);
      result = quotient;
    }
  }
  return integerResult(call, result);
}

LangValue productOf(NativeCall &call) {
  std::optional<std::vector<LangValue>> elements = call.elements(0);
  if (!elements)
    return LangValue::poison();
  const LangValue *start = call.keyword("start");
  LangValue product = start ? *start : LangValue::integer(1);
  for (const LangValue &element : *elements) {
    product = element.isUnknown() ? element : call.evaluator.binaryOf(BinaryOp::Mult, product, element, call.range);
    if (product.isPoison() || product.isUnknown())
      return product;
  }
  return product;
}

//===------------------------------------------------------------------------------------------------------------------===//
// operator
//===------------------------------------------------------------------------------------------------------------------===//

template <BinaryOp op> LangValue binaryOperator(NativeCall &call) {
  return call.evaluator.binaryOf(op, call.args[0], call.args[1], call.range);
}

template <CompareOp op> LangValue comparison(NativeCall &call) {
  std::optional<bool> result = call.evaluator.compareOf(op, call.args[0], call.args[1], call.range);
  return result ? LangValue::boolean(*result) : LangValue::poison();
}

template <UnaryOp op> LangValue unaryOperator(NativeCall &call) {
  if (op == UnaryOp::Not || !call.args[0].isConstant()) {
    std::optional<bool> truth = op == UnaryOp::Not ? call.evaluator.truthOf(call.args[0], call.range) : std::nullopt;
    if (truth)
      return LangValue::boolean(!*truth);
    return op == UnaryOp::Not ? LangValue::poison()
                              : call.fail(fmt::format("bad operand type for unary {}: '{}'", spelling(op).str(),
                                                      call.args[0].typeName()));
  }
  return call.result(unary(op, call.args[0].constant()));
}

LangValue truthOf(NativeCall &call) {
  std::optional<bool> truth = call.evaluator.truthOf(call.args[0], call.range);
  return truth ? LangValue::boolean(*truth) : LangValue::poison();
}

/// `container[index]` of a sequence, dict or string.
LangValue itemAt(NativeCall &call, const LangValue &container, const LangValue &index) {
  if (container.isUnknown() || index.isUnknown())
    return container.isUnknown() ? container : index;
  if (const auto *dict = container.getIf<DictValue>())
    return itemOf(call.evaluator, *dict, index, call.range);
  if (const NativeFunction *method = findNativeMethod(container, "__getitem__"))
    return callNative({call.evaluator, *method, container, {index}, {}, call.range});
  std::optional<std::vector<LangValue>> elements = call.evaluator.elementsOf(container, call.range);
  std::optional<int64_t> at = elements ? call.integer(index, "an index") : std::nullopt;
  if (!at)
    return LangValue::poison();
  const int64_t size = elements->size();
  if (*at < -size || *at >= size)
    return call.fail(fmt::format("{} index {} is out of range", container.typeName(), *at), "IndexError");
  return (*elements)[*at < 0 ? *at + size : *at];
}

LangValue getItem(NativeCall &call) { return itemAt(call, call.args[0], call.args[1]); }

LangValue containsElement(NativeCall &call) {
  std::optional<bool> result = call.evaluator.compareOf(CompareOp::In, call.args[1], call.args[0], call.range);
  return result ? LangValue::boolean(*result) : LangValue::poison();
}

/// operator.itemgetter(1, 2): an object that is called; attrgetter likewise.
LangValue makeGetter(NativeCall &call) {
  return LangValue::object(llvm::StringRef(call.function.name).str(), {{"items", LangValue::tuple(call.args)}});
}

LangValue callItemGetter(NativeCall &call) {
  const std::vector<LangValue> &indices = find(*call.self.object(), "items")->elements();
  std::vector<LangValue> items;
  for (const LangValue &index : indices) {
    items.push_back(itemAt(call, call.args[0], index));
    if (items.back().isPoison() || items.back().isUnknown())
      return items.back();
  }
  return items.size() == 1 ? items.front() : LangValue::tuple(std::move(items));
}

LangValue callAttributeGetter(NativeCall &call) {
  std::vector<LangValue> items;
  for (const LangValue &dotted : find(*call.self.object(), "items")->elements()) {
    const std::string *text = call.text(dotted, "the name of an attribute");
    if (!text)
      return LangValue::poison();
    LangValue value = call.args[0];
    llvm::SmallVector<llvm::StringRef> names;
    llvm::StringRef(*text).split(names, '.');
    for (llvm::StringRef name : names)
      if (!value.isPoison() && !value.isUnknown())
        value = call.evaluator.attributeOf(value, call.evaluator.intern(name), call.range);
    if (value.isPoison() || value.isUnknown())
      return value;
    items.push_back(std::move(value));
  }
  return items.size() == 1 ? items.front() : LangValue::tuple(std::move(items));
}

} // namespace

llvm::ArrayRef<NativeConstant> nativeMathConstants() {
  static constexpr NativeConstant rows[] = {
      {"math.e", [](Evaluator &) { return LangValue::floating(std::numbers::e); }},
      {"math.inf", [](Evaluator &) { return LangValue::floating(INFINITY); }},
      {"math.nan", [](Evaluator &) { return LangValue::floating(NAN); }},
      {"math.pi", [](Evaluator &) { return LangValue::floating(std::numbers::pi); }},
      {"math.tau", [](Evaluator &) { return LangValue::floating(2 * std::numbers::pi); }},
  };
  return rows;
}

static constexpr unsigned any = NativeFunction::any;
static constexpr NativeFunction mathRows[] = {
    {"math.acos", 1, 1, floatFunction<arcCosine>},
    {"math.acosh", 1, 1, floatFunction<areaCosine>},
    {"math.asin", 1, 1, floatFunction<arcSine>},
    {"math.asinh", 1, 1, floatFunction<areaSine>},
    {"math.atan", 1, 1, floatFunction<arcTangent>},
    {"math.atan2", 2, 2, floatFunction2<arcTangent2>},
    {"math.atanh", 1, 1, floatFunction<areaTangent>},
    {"math.cbrt", 1, 1, floatFunction<cubeRoot>},
    {"math.ceil", 1, 1, roundToInt},
    {"math.comb", 2, 2, factorialLike},
    {"math.copysign", 2, 2, floatFunction2<withSign>},
    {"math.cos", 1, 1, floatFunction<cosine>},
    {"math.cosh", 1, 1, floatFunction<hyperbolicCosine>},
    {"math.degrees", 1, 1, floatFunction<degreesOf>},
    {"math.erf", 1, 1, floatFunction<errorFunction>},
    {"math.erfc", 1, 1, floatFunction<errorComplement>},
    {"math.exp", 1, 1, floatFunction<exponential>},
    {"math.exp2", 1, 1, floatFunction<exponential2>},
    {"math.expm1", 1, 1, floatFunction<exponentialMinus1>},
    {"math.fabs", 1, 1, floatFunction<magnitude>},
    {"math.factorial", 1, 1, factorialLike},
    {"math.floor", 1, 1, roundToInt},
    {"math.fmod", 2, 2, floatFunction2<remainderOf>},
    {"math.frexp", 1, 1, splitFloat},
    {"math.fsum", 1, 1, floatSum},
    {"math.gamma", 1, 1, gammaOf},
    {"math.gcd", 0, any, commonDivisor},
    {"math.hypot", 0, any, hypotenuse},
    {"math.isclose", 2, 2, isClose, "rel_tol abs_tol"},
    {"math.isfinite", 1, 1, floatPredicate<isFiniteNumber>},
    {"math.isinf", 1, 1, floatPredicate<isInfinite>},
    {"math.isnan", 1, 1, floatPredicate<isNanNumber>},
    {"math.isqrt", 1, 1, integerRoot},
    {"math.lcm", 0, any, commonDivisor},
    {"math.ldexp", 2, 2, loadExponent},
    {"math.lgamma", 1, 1, gammaOf},
    {"math.log", 1, 2, logarithmOf},
    {"math.log10", 1, 1, logarithmOf},
    {"math.log1p", 1, 1, log1pOf},
    {"math.log2", 1, 1, logarithmOf},
    {"math.modf", 1, 1, splitFloat},
    {"math.perm", 1, 2, factorialLike},
    {"math.pow", 2, 2, powerOf},
    {"math.prod", 1, 1, productOf, "start"},
    {"math.radians", 1, 1, floatFunction<radiansOf>},
    {"math.remainder", 2, 2, floatFunction2<nearestRemainder>},
    {"math.sin", 1, 1, floatFunction<sine>},
    {"math.sinh", 1, 1, floatFunction<hyperbolicSine>},
    {"math.sqrt", 1, 1, floatFunction<squareRoot>},
    {"math.tan", 1, 1, floatFunction<tangent>},
    {"math.tanh", 1, 1, floatFunction<hyperbolicTangent>},
    {"math.trunc", 1, 1, roundToInt},
    {"operator.abs", 1, 1,
     [](NativeCall &call) {
       return callNative({call.evaluator, *findNative("abs"), {}, call.args, {}, call.range});
     }},
    {"operator.add", 2, 2, binaryOperator<BinaryOp::Add>},
    {"operator.and_", 2, 2, binaryOperator<BinaryOp::BitAnd>},
    {"operator.attrgetter", 1, any, makeGetter, "", false, true},
    {"operator.attrgetter.__call__", 1, 1, callAttributeGetter},
    {"operator.concat", 2, 2, binaryOperator<BinaryOp::Add>},
    {"operator.contains", 2, 2, containsElement},
    {"operator.eq", 2, 2, comparison<CompareOp::Eq>},
    {"operator.floordiv", 2, 2, binaryOperator<BinaryOp::FloorDiv>},
    {"operator.ge", 2, 2, comparison<CompareOp::GtE>},
    {"operator.getitem", 2, 2, getItem},
    {"operator.gt", 2, 2, comparison<CompareOp::Gt>},
    {"operator.inv", 1, 1, unaryOperator<UnaryOp::Invert>},
    {"operator.invert", 1, 1, unaryOperator<UnaryOp::Invert>},
    {"operator.is_", 2, 2, comparison<CompareOp::Is>},
    {"operator.is_not", 2, 2, comparison<CompareOp::IsNot>},
    {"operator.itemgetter", 1, any, makeGetter, "", false, true},
    {"operator.itemgetter.__call__", 1, 1, callItemGetter},
    {"operator.le", 2, 2, comparison<CompareOp::LtE>},
    {"operator.lshift", 2, 2, binaryOperator<BinaryOp::LShift>},
    {"operator.lt", 2, 2, comparison<CompareOp::Lt>},
    {"operator.mod", 2, 2, binaryOperator<BinaryOp::Mod>},
    {"operator.mul", 2, 2, binaryOperator<BinaryOp::Mult>},
    {"operator.ne", 2, 2, comparison<CompareOp::NotEq>},
    {"operator.neg", 1, 1, unaryOperator<UnaryOp::USub>},
    {"operator.not_", 1, 1, unaryOperator<UnaryOp::Not>},
    {"operator.or_", 2, 2, binaryOperator<BinaryOp::BitOr>},
    {"operator.pos", 1, 1, unaryOperator<UnaryOp::UAdd>},
    {"operator.pow", 2, 2, binaryOperator<BinaryOp::Pow>},
    {"operator.rshift", 2, 2, binaryOperator<BinaryOp::RShift>},
    {"operator.sub", 2, 2, binaryOperator<BinaryOp::Sub>},
    {"operator.truediv", 2, 2, binaryOperator<BinaryOp::Div>},
    {"operator.truth", 1, 1, truthOf},
    {"operator.xor", 2, 2, binaryOperator<BinaryOp::BitXor>},
};

llvm::ArrayRef<NativeFunction> nativeMathFunctions() { return mathRows; }

} // namespace ditron::frontend
