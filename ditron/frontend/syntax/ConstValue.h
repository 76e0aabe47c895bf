//===- ConstValue.h - Compile-time scalars with Python's arithmetic -------------------------------------*- C++ -*-===//
//
// The value of a literal and of every compile-time computation on literals: None, Ellipsis, bool, int of any size,
// float (a double), str and bytes. The operators give exactly what Python 3 gives, with Python's messages when they
// fail, since shapes, loop bounds and branches of a kernel are decided by them. Tuples, lists, dtypes and functions are
// not here: the semantic analysis has a value type of its own that wraps this one.
//
// Where this differs from Python on purpose: integers have at most BigInt::maxBits bits and strings made by an operator
// at most maxStringBytes bytes; past that an operator fails with a message that names the limit.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_SYNTAX_CONSTVALUE_H
#define DITRON_FRONTEND_SYNTAX_CONSTVALUE_H

#include "ditron/frontend/syntax/BigInt.h"
#include "ditron/support/Status.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <variant>

namespace ditron::frontend {

/// The binary operators of the expression grammar, `and`, `or` and comparisons apart.
enum class BinaryOp { Add, Sub, Mult, MatMult, Div, FloorDiv, Mod, Pow, LShift, RShift, BitOr, BitXor, BitAnd };
/// The unary operators.
enum class UnaryOp { Invert, Not, UAdd, USub };
/// The comparison operators.
enum class CompareOp { Eq, NotEq, Lt, LtE, Gt, GtE, Is, IsNot, In, NotIn };

/// The operator as it is written: "+", "//", "**".
llvm::StringRef spelling(BinaryOp op);
/// "~", "not", "+", "-".
llvm::StringRef spelling(UnaryOp op);
/// "==", "is not", "not in".
llvm::StringRef spelling(CompareOp op);

/// A compile-time scalar.
class ConstValue {
public:
  enum class Kind { None, Ellipsis, Bool, Int, Float, Str, Bytes };
  static constexpr size_t maxStringBytes = size_t(1) << 20;

  /// None.
  ConstValue() = default;
  static ConstValue none() { return ConstValue(); }
  static ConstValue ellipsis();
  static ConstValue boolean(bool value);
  static ConstValue integer(BigInt value);
  static ConstValue integer(int64_t value) { return integer(BigInt(value)); }
  static ConstValue floating(double value);
  /// A str; the text is UTF-8.
  static ConstValue string(std::string text);
  static ConstValue bytes(std::string data);

  Kind kind() const { return valueKind; }
  bool isNone() const { return valueKind == Kind::None; }
  bool isBool() const { return valueKind == Kind::Bool; }
  bool isInt() const { return valueKind == Kind::Int; }
  bool isFloat() const { return valueKind == Kind::Float; }
  bool isStr() const { return valueKind == Kind::Str; }
  /// bool or int: what Python accepts where it wants an integer.
  bool isIntegral() const { return isBool() || isInt(); }
  /// bool, int or float.
  bool isNumber() const { return isIntegral() || isFloat(); }

  /// The value of a bool. The kind must match; so for the next three.
  bool getBool() const { return std::get<bool>(storage); }
  /// The value of a bool (0 or 1) or an int.
  BigInt getInt() const;
  double getFloat() const { return std::get<double>(storage); }
  /// The text of a str or the data of bytes.
  const std::string &getString() const { return std::get<std::string>(storage); }
  /// A bool or int that fits into 64 bits, else nullopt.
  std::optional<int64_t> toInt64() const;
  /// A bool, int or float as a double; fails when an int is too large.
  Expected<double> toDouble() const;

  /// Python's name of the type: 'NoneType', 'ellipsis', 'bool', 'int', 'float', 'str', 'bytes'.
  llvm::StringRef typeName() const;
  /// Python's truth value: false for None, False, 0, 0.0, '' and b''.
  bool isTrue() const;
  /// Python's repr(): shortest floats that read back the same, quoted and escaped strings.
  std::string repr() const;
  /// Python's str(): repr() except that a str is its own text.
  std::string str() const;

  /// Same kind and same value: 1, True and 1.0 are three values here, nan equals nan, 0.0 and -0.0 differ. What a
  /// cache of instantiations needs; Python's == is compare(CompareOp::Eq, ...).
  bool identical(const ConstValue &other) const;
  size_t hash() const;

private:
  using Storage = std::variant<std::monostate, bool, BigInt, double, std::string>;
  ConstValue(Kind kind, Storage storage) : valueKind(kind), storage(std::move(storage)) {}

  Kind valueKind = Kind::None;
  Storage storage;
};

/// `a op b`. Errors are InvalidArgument with Python's text, for example
/// "unsupported operand type(s) for +: 'int' and 'str'".
Expected<ConstValue> binary(BinaryOp op, const ConstValue &a, const ConstValue &b);
/// `op a`.
Expected<ConstValue> unary(UnaryOp op, const ConstValue &a);
/// `a op b` for one comparison, Is and In too (In: strings in strings, bytes in bytes). `is` on numbers and strings
/// compares values of the same type: Python leaves identity of equal literals open.
Expected<ConstValue> compare(CompareOp op, const ConstValue &a, const ConstValue &b);

/// int(x): bools, ints, floats (towards zero) and strings in Python's syntax of integers, with the given base.
Expected<ConstValue> toInt(const ConstValue &value, int base = 10);
/// float(x): numbers and strings ("1e3", "inf", "-Infinity", "nan", underscores, spaces around).
Expected<ConstValue> toFloat(const ConstValue &value);
/// len(x) of a str in code points, of bytes in bytes.
Expected<ConstValue> length(const ConstValue &value);
/// format(x, spec): Python's format specification mini-language for str, int, bool and float ("", "d", "08.3f", ">10",
/// "#x", ",", "e", "g", "%").
Expected<std::string> format(const ConstValue &value, llvm::StringRef spec);
/// Python's str.isprintable() for one code point: no controls, no separators but the blank, no formatting characters.
bool isPrintable(uint32_t codePoint);
/// The shortest decimal text that reads back as the same double, in Python's form: "1.0", "1e+16", "inf", "nan".
std::string reprDouble(double value);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_SYNTAX_CONSTVALUE_H
