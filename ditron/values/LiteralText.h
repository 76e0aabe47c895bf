//===- LiteralText.h - Scalars as text ------------------------------------------------------------------*- C++ -*-===//
//
// Numbers, truth values and None as --arg and --constexpr write them:
//
//   3   -0x10   2.5   inf   true   None         literals
//   i64:7   fp32:1.5   u8:3                     literals of a type
//   scalar@n.npy                                the one element of an array, of its type
//   scalar@n.txt                                one of the literals above, in a file by itself
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_VALUES_LITERALTEXT_H
#define DITRON_VALUES_LITERALTEXT_H

#include "ditron/runtime/Argument.h"

namespace ditron::values {

/// What comes before the name of a file that holds a scalar.
inline constexpr std::string_view scalarMark = "scalar@";
/// An error about the value of a parameter: argument NAME='TEXT': PROBLEM.
Status badArgument(std::string_view name, std::string_view text, std::string_view problem);

/// A literal without a type before it. A number that does not fit into 64 bits is none, rather than another number.
std::optional<runtime::Argument> parseLiteral(std::string_view text);
/// The problem of a number that does not fit into 64 bits; nothing of other texts.
std::optional<std::string> tooLargeLiteral(std::string_view text);
/// A literal that is an argument by itself, where floats are fp32; nothing when the text is no literal.
Expected<std::optional<runtime::Argument>> parseScalar(std::string_view name, std::string_view text);
/// Decimal or hexadecimal digits, with or without a sign.
bool isIntegerText(std::string_view text);

/// TYPE:LITERAL; the colon is at `colon`.
Expected<runtime::Argument> parseTypedLiteral(std::string_view name, std::string_view text, size_t colon);
/// scalar@FILE.
Expected<runtime::Argument> readScalar(std::string_view name, std::string_view text);

/// What --constexpr says after NAME=: any compile-time value, dtypes and quoted strings too, and scalar@FILE.
Expected<runtime::Argument> parseConstexprText(std::string_view name, const std::string &text);

/// An integer or float as the nearest double.
double asDouble(const runtime::Argument &value);

/// What a type's values are, for messages: "-128 to 127".
std::string rangeText(DataType type);
/// The error about a value that a type cannot hold.
Status outsideOf(DataType type, const std::string &value);

/// Writes the element of an array; refuses a number that would become infinite, and beyond 448 of fp8e4nv.
Status storeFloat(DataType type, double value, std::byte *address);
/// The same of a literal; refuses a value that is not one of the type: 300 of i8, 1.5 of i32.
Status storeLiteral(DataType type, const runtime::Argument &value, std::byte *address);

} // namespace ditron::values
#endif // DITRON_VALUES_LITERALTEXT_H
