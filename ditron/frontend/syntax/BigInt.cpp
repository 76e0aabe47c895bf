//===- BigInt.cpp - Integers of any size --------------------------------------------------------------------------===//
//
// Every operation widens its operands so far that the APInt operation cannot overflow, and shrinks the result again.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/BigInt.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallString.h"
#include <algorithm>
#include <bit>
#include <cmath>

namespace ditron::frontend {

using llvm::APInt;

void BigInt::normalize() {
  unsigned needed = bits.getSignificantBits();
  if (needed != bits.getBitWidth())
    bits = bits.trunc(needed);
}

std::optional<BigInt> BigInt::checked(APInt value) {
  BigInt result(std::move(value));
  if (result.bitLength() > maxBits)
    return std::nullopt;
  return result;
}

BigInt BigInt::fromUnsigned(uint64_t value) { return BigInt(APInt(65, value)); }

BigInt BigInt::fromSignedAPInt(const APInt &value) { return BigInt(value); }

std::optional<BigInt> BigInt::fromDigits(llvm::StringRef digits, unsigned radix) {
  if (digits.empty())
    return std::nullopt;
  for (char c : digits) {
    unsigned digit = c >= '0' && c <= '9'   ? unsigned(c - '0')
                     : c >= 'a' && c <= 'z' ? unsigned(c - 'a') + 10
                     : c >= 'A' && c <= 'Z' ? unsigned(c - 'A') + 10
                                            : 99;
    if (digit >= radix)
      return std::nullopt;
  }
  digits = digits.ltrim('0');
  if (digits.empty())
    return BigInt(0);
  unsigned bitsPerDigit = radix == 2 ? 1 : radix == 8 ? 3 : 4;
  size_t maxDigits = radix == 10 ? maxDecimalDigits : maxBits / bitsPerDigit + 1;
  if (digits.size() > maxDigits)
    return std::nullopt;
  return checked(APInt(static_cast<unsigned>(digits.size()) * bitsPerDigit + 1, digits, static_cast<uint8_t>(radix)));
}

std::optional<BigInt> BigInt::fromDouble(double value) {
  if (!std::isfinite(value))
    return std::nullopt;
  value = std::trunc(value);
  int exponent = 0;
  double fraction = std::frexp(value, &exponent);
  if (exponent <= 62)
    return BigInt(static_cast<int64_t>(value));
  // value = mantissa * 2^(exponent - 53) with an integral mantissa of 53 bits.
  auto scaled = static_cast<int64_t>(std::ldexp(fraction, 53));
  APInt mantissa(static_cast<unsigned>(exponent) + 2, static_cast<uint64_t>(scaled), /*isSigned=*/true);
  return BigInt(mantissa << static_cast<unsigned>(exponent - 53));
}

unsigned BigInt::bitLength() const { return isNegative() ? (-*this).bits.getActiveBits() : bits.getActiveBits(); }

std::optional<int64_t> BigInt::toInt64() const {
  if (!fitsSigned(64))
    return std::nullopt;
  return bits.getSExtValue();
}

std::optional<uint64_t> BigInt::toUint64() const {
  if (!fitsUnsigned(64))
    return std::nullopt;
  return bits.getZExtValue();
}

std::optional<double> BigInt::toDouble() const { return trueDivide(*this, BigInt(1)); }

std::string BigInt::toString(unsigned radix) const {
  // A decimal digit holds less than four bits: the cheap test spares the quadratic conversion.
  if (radix == 10 && bitLength() / 4 > maxDecimalDigits)
    return {};
  llvm::SmallString<40> text;
  bits.toString(text, radix, /*Signed=*/true, /*formatAsCLiteral=*/false, /*UpperCase=*/false);
  if (radix == 10 && text.size() - isNegative() > maxDecimalDigits)
    return {};
  return text.str().str();
}

size_t BigInt::hash() const { return llvm::hash_value(bits); }

BigInt BigInt::operator-() const { return BigInt(-bits.sext(bits.getBitWidth() + 1)); }

BigInt BigInt::operator~() const { return BigInt(~bits); }

static unsigned widest(const APInt &a, const APInt &b) { return std::max(a.getBitWidth(), b.getBitWidth()); }

std::optional<BigInt> add(const BigInt &a, const BigInt &b) {
  unsigned width = widest(a.bits, b.bits) + 1;
  return BigInt::checked(a.bits.sext(width) + b.bits.sext(width));
}

std::optional<BigInt> sub(const BigInt &a, const BigInt &b) {
  unsigned width = widest(a.bits, b.bits) + 1;
  return BigInt::checked(a.bits.sext(width) - b.bits.sext(width));
}

std::optional<BigInt> mul(const BigInt &a, const BigInt &b) {
  unsigned width = a.bits.getBitWidth() + b.bits.getBitWidth();
  return BigInt::checked(a.bits.sext(width) * b.bits.sext(width));
}

void floorDivMod(const BigInt &a, const BigInt &b, BigInt &quotient, BigInt &remainder) {
  unsigned width = widest(a.bits, b.bits) + 1; // one more: the smallest number over -1
  APInt divisor = b.bits.sext(width), q, r;
  APInt::sdivrem(a.bits.sext(width), divisor, q, r);
  // sdivrem truncates; the floor is one below whenever there is a remainder and the signs differ.
  if (!r.isZero() && r.isNegative() != divisor.isNegative()) {
    q -= 1;
    r += divisor;
  }
  quotient = BigInt(std::move(q));
  remainder = BigInt(std::move(r));
}

std::optional<BigInt> pow(const BigInt &a, const BigInt &exponent) {
  if (exponent.isZero())
    return BigInt(1);
  if (a.bitLength() <= 1) // 0, 1, -1: any exponent is fine
    return a.isNegative() && !exponent.isOdd() ? BigInt(1) : a;
  std::optional<int64_t> count = exponent.toInt64();
  if (!count || *count > BigInt::maxBits)
    return std::nullopt;
  BigInt result(1), base = a;
  for (uint64_t left = static_cast<uint64_t>(*count); left != 0;) {
    if (left & 1) {
      std::optional<BigInt> product = mul(result, base);
      if (!product)
        return std::nullopt;
      result = *product;
    }
    left >>= 1;
    if (left == 0)
      break;
    std::optional<BigInt> square = mul(base, base);
    if (!square)
      return std::nullopt;
    base = *square;
  }
  return result;
}

std::optional<BigInt> shl(const BigInt &a, const BigInt &amount) {
  if (a.isZero())
    return a;
  std::optional<int64_t> count = amount.toInt64();
  if (!count || *count > BigInt::maxBits)
    return std::nullopt;
  unsigned shift = static_cast<unsigned>(*count);
  return BigInt::checked(a.bits.sext(a.bits.getBitWidth() + shift) << shift);
}

BigInt shr(const BigInt &a, const BigInt &amount) {
  std::optional<int64_t> count = amount.toInt64();
  if (!count || *count >= a.bits.getBitWidth())
    return a.isNegative() ? BigInt(-1) : BigInt(0);
  return BigInt(a.bits.ashr(static_cast<unsigned>(*count)));
}

BigInt operator&(const BigInt &a, const BigInt &b) {
  unsigned width = widest(a.bits, b.bits);
  return BigInt(a.bits.sext(width) & b.bits.sext(width));
}

BigInt operator|(const BigInt &a, const BigInt &b) {
  unsigned width = widest(a.bits, b.bits);
  return BigInt(a.bits.sext(width) | b.bits.sext(width));
}

BigInt operator^(const BigInt &a, const BigInt &b) {
  unsigned width = widest(a.bits, b.bits);
  return BigInt(a.bits.sext(width) ^ b.bits.sext(width));
}

/// One rounding only: the dividend is scaled by a power of two so that the integer quotient has two or three bits more
/// than a double keeps (for a subnormal result: than that keeps), and the remainder tells on which side of a tie it is.
std::optional<double> trueDivide(const BigInt &a, const BigInt &b) {
  if (a.isZero())
    return b.isNegative() ? -0.0 : 0.0; // as 0.0 / b
  bool negative = a.isNegative() != b.isNegative();
  APInt dividend = a.abs().bits, divisor = b.abs().bits;
  int exponent = static_cast<int>(dividend.getActiveBits()) - static_cast<int>(divisor.getActiveBits());
  if (exponent > 1025)
    return std::nullopt;
  if (exponent < -1080)
    return negative ? -0.0 : 0.0;
  // For a subnormal result fewer bits are wanted: never scale beyond the smallest subnormal's 2^-1074, less two.
  int scale = std::min(55 - exponent, 1076);
  unsigned width = std::max(dividend.getBitWidth(), divisor.getBitWidth()) + static_cast<unsigned>(std::abs(scale)) + 2;
  dividend = dividend.zext(width);
  divisor = divisor.zext(width);
  if (scale >= 0)
    dividend <<= static_cast<unsigned>(scale);
  else
    divisor <<= static_cast<unsigned>(-scale);
  APInt quotient, remainder;
  APInt::udivrem(dividend, divisor, quotient, remainder);
  uint64_t value = quotient.getZExtValue();
  // value * 2^-scale plus a fraction. Keep 53 bits, or what a subnormal result leaves of them.
  bool sticky = !remainder.isZero();
  unsigned length = static_cast<unsigned>(64 - std::countl_zero(value | 1));
  unsigned drop = length > 53 ? length - 53 : 0;
  if (scale == 1076)
    drop = std::max(drop, 2u);
  if (drop) {
    uint64_t tail = value & ((uint64_t(1) << drop) - 1);
    uint64_t half = uint64_t(1) << (drop - 1);
    value >>= drop;
    if (tail > half || (tail == half && (sticky || (value & 1))))
      ++value;
  }
  double result = std::ldexp(static_cast<double>(value), static_cast<int>(drop) - scale);
  if (std::isinf(result))
    return std::nullopt;
  return negative ? -result : result;
}

bool BigInt::operator==(const BigInt &other) const {
  return bits.getBitWidth() == other.bits.getBitWidth() && bits == other.bits;
}

std::strong_ordering BigInt::operator<=>(const BigInt &other) const {
  if (*this == other)
    return std::strong_ordering::equal;
  unsigned width = widest(bits, other.bits);
  return bits.sext(width).slt(other.bits.sext(width)) ? std::strong_ordering::less : std::strong_ordering::greater;
}

std::partial_ordering compareExactly(const BigInt &a, double b) {
  if (std::isnan(b))
    return std::partial_ordering::unordered;
  if (std::isinf(b))
    return b > 0 ? std::partial_ordering::less : std::partial_ordering::greater;
  double whole = std::trunc(b);
  std::strong_ordering order = a <=> *BigInt::fromDouble(whole);
  if (order != std::strong_ordering::equal)
    return order;
  // Equal integer parts: the fraction of b decides, and it has b's sign.
  return 0.0 <=> (b - whole);
}

} // namespace ditron::frontend
