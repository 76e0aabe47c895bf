//===- ScalarModel.h - The language's scalar arithmetic in plain C++ ---------------------------------------*- C++ -*-===//
//
// An independent model of the type rules: which type an operator of two types gives, and the value of every operator and
// conversion for single elements. Written from the language's specification (section 3: promotion, operators, casts), not
// from our compiler, so that the two can disagree.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_E2E_SCALARMODEL_H
#define DITRON_TESTS_E2E_SCALARMODEL_H

#include "ditron/support/DataType.h"

#include <optional>
#include <string>
#include <vector>

namespace ditron::e2e {

/// One element. Integers and bools are held as two's complement bits cut to the width, floats as a double that the type can
/// hold exactly.
struct Scalar {
  DataType type = DataType::I32;
  uint64_t bits = 0;
  double real = 0;

  static Scalar integer(DataType type, int64_t value);
  static Scalar floating(DataType type, double value);
  /// The integer's value; meaningful for u64 only as bits.
  int64_t asSigned() const;
  /// The element as the double nearest to it.
  double asDouble() const;
  bool operator==(const Scalar &other) const;
  std::string text() const;
};

/// Operators by their source text: + - * / // % & | ^ << >> == != < <= > >=.
/// The type of a result; none where the language refuses the combination.
std::optional<DataType> resultType(std::string_view op, DataType left, DataType right);
/// The result; none where it is undefined (division by zero, shift by the width or more, overflow of a quotient).
std::optional<Scalar> evaluate(std::string_view op, const Scalar &left, const Scalar &right);

/// The conversion `.to(type)`; none where it is undefined (float out of an integer's range).
std::optional<Scalar> convert(const Scalar &value, DataType type);

/// A spread of values of a type that is likely to show mistakes: limits, signs, zeros, fractions.
std::vector<Scalar> interestingValues(DataType type);
/// As elements in memory, and back.
std::vector<std::byte> toMemory(DataType type, const std::vector<Scalar> &values);
std::vector<Scalar> fromMemory(DataType type, const std::vector<std::byte> &bytes);

/// Whether two elements of a type are the same, or, as fp32, not more than so many representable values apart. GPUs divide fp32
/// in a fast way that may be off by two (PTX div.full).
bool areClose(const Scalar &a, const Scalar &b, uint32_t steps);

/// The type's name in kernel source: "tl.float16", "tl.int8", "tl.int1", ...
std::string languageName(DataType type);
/// In bits; 1 for bool.
uint32_t widthOf(DataType type);

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_SCALARMODEL_H
