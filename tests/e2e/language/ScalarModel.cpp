//===- ScalarModel.cpp - The language's scalar arithmetic in plain C++ ------------------------------------------------===//
#include "language/ScalarModel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace ditron::e2e {

namespace {

bool isSigned(DataType type) { return isSignedInteger(type); }
bool isDivision(std::string_view op) { return op == "/" || op == "//" || op == "%"; }
bool isBitwise(std::string_view op) { return op == "&" || op == "|" || op == "^"; }
bool isShift(std::string_view op) { return op == "<<" || op == ">>"; }
bool isComparison(std::string_view op) {
  return op == "==" || op == "!=" || op == "<" || op == "<=" || op == ">" || op == ">=";
}

uint64_t cut(uint64_t bits, uint32_t width) { return width >= 64 ? bits : bits & ((uint64_t(1) << width) - 1); }

DataType widerInteger(DataType left, DataType right) {
  if (isSigned(left) == isSigned(right))
    return widthOf(left) >= widthOf(right) ? left : right;
  DataType withSign = isSigned(left) ? left : right, without = isSigned(left) ? right : left;
  return widthOf(without) >= widthOf(withSign) ? without : withSign;
}

/// Rule 2 of the specification's section 3.2.
DataType promote(DataType left, DataType right, bool division) {
  auto either = [&](DataType type) { return left == type || right == type; };
  if (either(DataType::F64))
    return DataType::F64;
  if (either(DataType::F32))
    return DataType::F32;
  if (either(DataType::F16))
    return division ? DataType::F32 : DataType::F16;
  if (either(DataType::BF16))
    return left == right && !division ? DataType::BF16 : DataType::F32;
  return widerInteger(left, right);
}

double roundTo(DataType type, double value) {
  std::byte memory[8];
  storeElement(type, memory, value);
  return loadElement(type, memory);
}

/// The exact result of + - * on floats, rounded once; for the narrow types the fp32 result is rounded again, which gives
/// the same (2p + 2 bits suffice).
Scalar floatArithmetic(std::string_view op, DataType type, double a, double b) {
  if (type == DataType::F64)
    return Scalar::floating(type, op == "+"   ? a + b
                                  : op == "-" ? a - b
                                  : op == "*" ? a * b
                                  : op == "/" ? a / b
                                              : std::fmod(a, b));
  float x = static_cast<float>(a), y = static_cast<float>(b);
  float wide = op == "+" ? x + y : op == "-" ? x - y : op == "*" ? x * y : op == "/" ? x / y : std::fmod(x, y);
  return Scalar::floating(type, wide);
}

template <typename T> bool compareValues(std::string_view op, T a, T b) {
  if (op == "==")
    return a == b;
  if (op == "!=")
    return a != b;
  if (op == "<")
    return a < b;
  if (op == "<=")
    return a <= b;
  if (op == ">")
    return a > b;
  return a >= b;
}

std::optional<Scalar> integerArithmetic(std::string_view op, DataType type, uint64_t a, uint64_t b, bool leftIsSigned) {
  auto give = [&](uint64_t bits) { return Scalar::integer(type, static_cast<int64_t>(bits)); };
  const uint32_t width = widthOf(type);
  if (op == "+")
    return give(a + b);
  if (op == "-")
    return give(a - b);
  if (op == "*")
    return give(a * b);
  if (op == "&")
    return give(a & b);
  if (op == "|")
    return give(a | b);
  if (op == "^")
    return give(a ^ b);
  if (isShift(op)) {
    uint64_t amount = cut(b, width);
    if (amount >= width)
      return std::nullopt;
    if (op == "<<")
      return give(a << amount);
    if (leftIsSigned) { // an arithmetic shift in the result's width, also when that type is unsigned
      const uint32_t unused = 64 - width;
      return give(static_cast<uint64_t>(static_cast<int64_t>(a << unused) >> unused >> amount));
    }
    return give(cut(a, width) >> amount);
  }
  // Quotient and remainder as C has them: towards zero, the remainder with the dividend's sign.
  if (cut(b, width) == 0)
    return std::nullopt;
  if (isSigned(type)) {
    int64_t x = Scalar::integer(type, a).asSigned(), y = Scalar::integer(type, b).asSigned();
    int64_t lowest = width >= 64 ? std::numeric_limits<int64_t>::min() : -(int64_t(1) << (width - 1));
    if (x == lowest && y == -1)
      return std::nullopt;
    return give(static_cast<uint64_t>(op == "//" ? x / y : x % y));
  }
  uint64_t x = cut(a, width), y = cut(b, width);
  return give(op == "//" ? x / y : x % y);
}

} // namespace

uint32_t widthOf(DataType type) { return type == DataType::I1 ? 1 : 8 * sizeOf(type); }

Scalar Scalar::integer(DataType type, int64_t value) {
  return {type, cut(static_cast<uint64_t>(value), widthOf(type)), 0};
}
Scalar Scalar::floating(DataType type, double value) { return {type, 0, roundTo(type, value)}; }

int64_t Scalar::asSigned() const {
  const uint32_t width = widthOf(type);
  if (!isSigned(type) || width >= 64 || !(bits >> (width - 1) & 1))
    return static_cast<int64_t>(bits);
  return static_cast<int64_t>(bits | (~uint64_t(0) << width));
}

double Scalar::asDouble() const {
  if (isFloat(type))
    return real;
  return isSigned(type) ? static_cast<double>(asSigned()) : static_cast<double>(bits);
}

bool Scalar::operator==(const Scalar &other) const {
  if (type != other.type)
    return false;
  if (isFloat(type))
    return real == other.real || (std::isnan(real) && std::isnan(other.real));
  return bits == other.bits;
}

std::string Scalar::text() const {
  return isFloat(type) ? std::to_string(real) : (isSigned(type) ? std::to_string(asSigned()) : std::to_string(bits));
}

std::optional<DataType> resultType(std::string_view op, DataType left, DataType right) {
  const bool floats = isFloat(left) || isFloat(right);
  if (isComparison(op))
    return DataType::I1;
  if (isBitwise(op) || isShift(op))
    return floats ? std::nullopt : std::optional(widerInteger(left, right));
  if (isDivision(op) && !floats && isSigned(left) != isSigned(right))
    return std::nullopt;
  if (op == "//")
    return floats ? std::nullopt : std::optional(widerInteger(left, right));
  if (op == "/" && !floats)
    return DataType::F32;
  return promote(left, right, isDivision(op));
}

std::optional<Scalar> evaluate(std::string_view op, const Scalar &left, const Scalar &right) {
  std::optional<DataType> type = resultType(op, left.type, right.type);
  if (!type)
    return std::nullopt;
  DataType operand = isComparison(op) ? promote(left.type, right.type, false) : *type;
  std::optional<Scalar> a = convert(left, operand), b = convert(right, operand);
  if (!a || !b)
    return std::nullopt;
  if (isComparison(op)) {
    bool holds = isFloat(operand)    ? compareValues(op, a->real, b->real)
                 : isSigned(operand) ? compareValues(op, a->asSigned(), b->asSigned())
                                     : compareValues(op, a->bits, b->bits);
    return Scalar::integer(DataType::I1, holds);
  }
  if (isFloat(operand))
    return floatArithmetic(op, operand, a->real, b->real);
  return integerArithmetic(op, operand, a->bits, b->bits, isSigned(left.type));
}

std::optional<Scalar> convert(const Scalar &value, DataType type) {
  if (value.type == type)
    return value;
  if (isFloat(value.type)) {
    if (isFloat(type))
      return Scalar::floating(type, type == DataType::F64 || type == DataType::F32 ? value.real
                                                                                   : static_cast<float>(value.real));
    if (type == DataType::I1)
      return Scalar::integer(type, value.real != 0);
    double whole = std::trunc(value.real), limit = std::ldexp(1.0, widthOf(type) - (isSigned(type) ? 1 : 0));
    if (std::isnan(whole) || whole >= limit || whole < (isSigned(type) ? -limit : 0))
      return std::nullopt;
    return isSigned(type) ? Scalar::integer(type, static_cast<int64_t>(whole))
                          : Scalar{type, static_cast<uint64_t>(whole), 0};
  }
  if (type == DataType::I1)
    return Scalar::integer(type, value.bits != 0);
  if (!isFloat(type))
    return Scalar::integer(type, value.asSigned());
  // One rounding from the integer, except that 16-bit floats go through fp32.
  if (type == DataType::F64)
    return Scalar::floating(type, value.asDouble());
  float rounded = isSigned(value.type) ? static_cast<float>(value.asSigned()) : static_cast<float>(value.bits);
  return Scalar::floating(type, rounded);
}

std::vector<Scalar> interestingValues(DataType type) {
  std::vector<Scalar> values;
  if (type == DataType::I1) {
    for (int i = 0; i < 16; ++i)
      values.push_back(Scalar::integer(type, i % 3 == 0));
    return values;
  }
  if (isFloat(type)) {
    for (double value :
         {0.0, 1.0, -1.0, 0.5, -2.5, 7.25, -7.0, 100.0, -100.0, 3.0, 0.1, -0.3, 1e-3, 33.5, -12.75, 120.0})
      values.push_back(Scalar::floating(type, value));
    return values;
  }
  const uint32_t width = widthOf(type);
  const int64_t high = isSigned(type) ? static_cast<int64_t>((uint64_t(1) << (width - 1)) - 1) : -1;
  for (int64_t value :
       {int64_t(0), int64_t(1), int64_t(2), int64_t(3), int64_t(5), int64_t(7), int64_t(-1), int64_t(-2), int64_t(-7),
        int64_t(100), high, high - 1, high / 3, int64_t(-100), int64_t(17), int64_t(64)})
    values.push_back(Scalar::integer(type, value));
  return values;
}

std::vector<std::byte> toMemory(DataType type, const std::vector<Scalar> &values) {
  const uint32_t size = sizeOf(type);
  std::vector<std::byte> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i)
    if (isFloat(type))
      storeElement(type, &bytes[i * size], values[i].real);
    else
      std::memcpy(&bytes[i * size], &values[i].bits, size);
  return bytes;
}

std::vector<Scalar> fromMemory(DataType type, const std::vector<std::byte> &bytes) {
  const uint32_t size = sizeOf(type);
  std::vector<Scalar> values(bytes.size() / size);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i].type = type;
    if (isFloat(type))
      values[i].real = loadElement(type, &bytes[i * size]);
    else
      std::memcpy(&values[i].bits, &bytes[i * size], size);
  }
  return values;
}

bool areClose(const Scalar &a, const Scalar &b, uint32_t steps) {
  if (a == b)
    return true;
  if (a.type != DataType::F32 || b.type != DataType::F32)
    return false;
  return std::abs(a.real - b.real) <= steps * std::ldexp(std::abs(b.real), -23);
}

std::string languageName(DataType type) {
  switch (type) {
  case DataType::F16: return "tl.float16";
  case DataType::BF16: return "tl.bfloat16";
  case DataType::F32: return "tl.float32";
  case DataType::F64: return "tl.float64";
  case DataType::F8E5: return "tl.float8e5";
  case DataType::F8E4NV: return "tl.float8e4nv";
  default: return (isSigned(type) || type == DataType::I1 ? "tl.int" : "tl.uint") + std::to_string(widthOf(type));
  }
}

} // namespace ditron::e2e
