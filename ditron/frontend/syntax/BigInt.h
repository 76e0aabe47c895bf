//===- BigInt.h - Integers of any size ------------------------------------------------------------------*- C++ -*-===//
//
// Python's int: a signed integer that grows as needed. A thin wrapper around llvm::APInt which always holds the value
// in the smallest two's complement width, so that equal values have equal bits. Results are exact. Sizes are limited to
// maxBits, far above what a kernel needs, so that `1 << (1 << 40)` in a source is an error and not a crash; operations
// that can pass the limit return nullopt. Floor rules are Python's: 7 // -2 is -4 and 7 % -2 is -1.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_SYNTAX_BIGINT_H
#define DITRON_FRONTEND_SYNTAX_BIGINT_H

#include "llvm/ADT/APInt.h"
#include "llvm/ADT/StringRef.h"
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace ditron::frontend {

/// A signed integer of any size up to maxBits.
class BigInt {
public:
  /// The widest magnitude, in bits, that an operation may produce.
  static constexpr unsigned maxBits = 1u << 16;
  /// The most decimal digits that are read or printed; Python's own default limit.
  static constexpr unsigned maxDecimalDigits = 4300;

  BigInt(int64_t value = 0) : bits(64, static_cast<uint64_t>(value), /*isSigned=*/true) { normalize(); }
  static BigInt fromUnsigned(uint64_t value);
  /// The value of an APInt read as a signed number.
  static BigInt fromSignedAPInt(const llvm::APInt &value);
  /// Digits of a radix (2, 8, 10 or 16) without sign, prefix or underscores; nullopt for bad digits or too many.
  static std::optional<BigInt> fromDigits(llvm::StringRef digits, unsigned radix);
  /// The integer part of a finite double (towards zero); nullopt for inf and nan.
  static std::optional<BigInt> fromDouble(double value);

  bool isZero() const { return bits.isZero(); }
  bool isNegative() const { return bits.isNegative(); }
  bool isOdd() const { return bits[0]; }
  /// Bits of the magnitude, Python's int.bit_length().
  unsigned bitLength() const;
  /// True if the value fits into a signed (unsigned) integer of that width.
  bool fitsSigned(unsigned width) const { return bits.getSignificantBits() <= width; }
  bool fitsUnsigned(unsigned width) const { return !isNegative() && bits.getActiveBits() <= width; }
  std::optional<int64_t> toInt64() const;
  std::optional<uint64_t> toUint64() const;
  /// The value as two's complement of exactly that width, cut off at the top.
  llvm::APInt toAPInt(unsigned width) const { return bits.sextOrTrunc(width); }
  /// The nearest double, ties to even; nullopt when it overflows (Python's "int too large to convert to float").
  std::optional<double> toDouble() const;
  /// Decimal text, or that of another radix with no prefix. Empty if it had more than maxDecimalDigits digits.
  std::string toString(unsigned radix = 10) const;
  size_t hash() const;

  BigInt operator-() const;
  BigInt operator~() const;
  BigInt abs() const { return isNegative() ? -*this : *this; }
  friend std::optional<BigInt> add(const BigInt &a, const BigInt &b);
  friend std::optional<BigInt> sub(const BigInt &a, const BigInt &b);
  friend std::optional<BigInt> mul(const BigInt &a, const BigInt &b);
  /// Quotient and remainder of Python's floor division; the divisor must not be zero.
  friend void floorDivMod(const BigInt &a, const BigInt &b, BigInt &quotient, BigInt &remainder);
  /// a to the power of a non-negative exponent.
  friend std::optional<BigInt> pow(const BigInt &a, const BigInt &exponent);
  /// Shifts by a non-negative amount of any size.
  friend std::optional<BigInt> shl(const BigInt &a, const BigInt &amount);
  friend BigInt shr(const BigInt &a, const BigInt &amount);
  friend BigInt operator&(const BigInt &a, const BigInt &b);
  friend BigInt operator|(const BigInt &a, const BigInt &b);
  friend BigInt operator^(const BigInt &a, const BigInt &b);
  /// The quotient a / b rounded once to the nearest double, as Python's int / int; nullopt when it overflows.
  friend std::optional<double> trueDivide(const BigInt &a, const BigInt &b);

  bool operator==(const BigInt &other) const;
  std::strong_ordering operator<=>(const BigInt &other) const;

private:
  explicit BigInt(llvm::APInt value) : bits(std::move(value)) { normalize(); }
  void normalize();
  static std::optional<BigInt> checked(llvm::APInt value);

  llvm::APInt bits; ///< Two's complement, exactly getSignificantBits() wide.
};

/// Compares an integer with a double exactly, without rounding the integer; unordered for nan.
std::partial_ordering compareExactly(const BigInt &a, double b);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_SYNTAX_BIGINT_H
