//===- GridExpression.cpp - Launch grids as integer expressions ---------------------------------------------------===//
//
// Recursive descent; arithmetic is checked for overflow.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/values/GridExpression.h"

#include "ditron/support/Suggest.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fmt/format.h>
#include <vector>

namespace ditron::values {

namespace {

constexpr unsigned maxDepth = 100;

/// Floor division, as Python's //; the divisor is not 0.
int64_t floorDivide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

class Parser {
public:
  Parser(std::string_view text, const IntegerNames &names) : text(text), names(names) {}

  Expected<std::vector<int64_t>> list() {
    std::vector<int64_t> values;
    do {
      DITRON_ASSIGN_OR_RETURN(int64_t value, sum());
      values.push_back(value);
    } while (take(","));
    skipSpace();
    if (position != text.size())
      return unexpected();
    return values;
  }

private:
  Status fail(std::string_view problem) const { return invalidArgument(fmt::format("'{}': {}", text, problem)); }
  Status unexpected() {
    skipSpace();
    if (position == text.size())
      return fail("the expression ends too early");
    return fail(
        fmt::format("'{}' at position {} is not expected here; accepted are integers, names, + - * // % ( ), cdiv, "
                    "min and max",
                    text[position], position + 1));
  }
  Status overflow() const { return fail("the value does not fit into 64 bits"); }

  void skipSpace() {
    while (position < text.size() && std::isspace(static_cast<unsigned char>(text[position])))
      ++position;
  }
  bool take(std::string_view token) {
    skipSpace();
    if (text.substr(position, token.size()) != token)
      return false;
    position += token.size();
    return true;
  }

  Expected<int64_t> sum() {
    DITRON_ASSIGN_OR_RETURN(int64_t value, product());
    while (true) {
      const bool plus = take("+");
      if (!plus && !take("-"))
        return value;
      DITRON_ASSIGN_OR_RETURN(int64_t next, product());
      if (plus ? __builtin_add_overflow(value, next, &value) : __builtin_sub_overflow(value, next, &value))
        return overflow();
    }
  }

  Expected<int64_t> product() {
    DITRON_ASSIGN_OR_RETURN(int64_t value, factor());
    while (true) {
      enum { Multiply, Divide, Modulo } op;
      if (take("*"))
        op = Multiply;
      else if (take("//"))
        op = Divide;
      else if (take("%"))
        op = Modulo;
      else
        return value;
      DITRON_ASSIGN_OR_RETURN(int64_t next, factor());
      if (op == Multiply) {
        if (__builtin_mul_overflow(value, next, &value))
          return overflow();
        continue;
      }
      DITRON_RETURN_IF_ERROR(checkDivision(value, next));
      value = op == Divide ? floorDivide(value, next) : value - floorDivide(value, next) * next;
    }
  }

  Status checkDivision(int64_t a, int64_t b) const {
    if (b == 0)
      return fail("division by zero");
    return a == INT64_MIN && b == -1 ? overflow() : Status::ok();
  }

  Expected<int64_t> factor() {
    if (++depth > maxDepth)
      return fail("the expression is nested too deeply");
    Expected<int64_t> value = unnested();
    --depth;
    return value;
  }

  Expected<int64_t> unnested() {
    if (take("-")) {
      DITRON_ASSIGN_OR_RETURN(int64_t value, factor());
      return value == INT64_MIN ? Expected<int64_t>(overflow()) : Expected<int64_t>(-value);
    }
    if (take("(")) {
      DITRON_ASSIGN_OR_RETURN(int64_t value, sum());
      if (!take(")"))
        return unexpected();
      return value;
    }
    skipSpace();
    if (position < text.size() && std::isdigit(static_cast<unsigned char>(text[position]))) {
      int64_t value = 0;
      auto [end, error] = std::from_chars(text.data() + position, text.data() + text.size(), value);
      if (error != std::errc())
        return overflow();
      position = static_cast<size_t>(end - text.data());
      return value;
    }
    return name();
  }

  Expected<int64_t> name() {
    const size_t begin = position;
    // A dot leads to an element of a tuple: t.0
    while (position < text.size() && (std::isalnum(static_cast<unsigned char>(text[position])) || text[position] == '_' ||
                                      (text[position] == '.' && position > begin)))
      ++position;
    const std::string word(text.substr(begin, position - begin));
    if (word.empty())
      return unexpected();
    if (auto found = names.find(word); found != names.end())
      return found->second;
    if (take("("))
      return call(word);
    std::vector<std::string> known;
    for (const auto &[name, value] : names)
      known.push_back(name);
    return fail(fmt::format("no integer is called '{}'{}; known are {}", word, didYouMean(word, known),
                            known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
  }

  Expected<int64_t> call(const std::string &function) {
    if (function != "cdiv" && function != "min" && function != "max")
      return fail(fmt::format("there is no function '{}'; accepted are cdiv, min and max", function));
    DITRON_ASSIGN_OR_RETURN(int64_t a, sum());
    if (!take(","))
      return unexpected();
    DITRON_ASSIGN_OR_RETURN(int64_t b, sum());
    if (!take(")"))
      return unexpected();
    if (function == "min")
      return std::min(a, b);
    if (function == "max")
      return std::max(a, b);
    DITRON_RETURN_IF_ERROR(checkDivision(a, b));
    // ceil(a / b) = -floor(-a / b)
    return a == INT64_MIN ? Expected<int64_t>(overflow()) : Expected<int64_t>(-floorDivide(-a, b));
  }

  std::string_view text;
  const IntegerNames &names;
  size_t position = 0;
  unsigned depth = 0;
};

} // namespace

Expected<int64_t> evaluateInteger(std::string_view text, const IntegerNames &names) {
  DITRON_ASSIGN_OR_RETURN(std::vector<int64_t> values, Parser(text, names).list());
  if (values.size() != 1)
    return invalidArgument(fmt::format("'{}': one integer expected, {} given", text, values.size()));
  return values.front();
}

Expected<std::array<uint32_t, 3>> evaluateGrid(std::string_view text, const IntegerNames &names) {
  Expected<std::vector<int64_t>> values = Parser(text, names).list();
  if (!values.isOk())
    return values.status().withContext("--grid");
  if (values->size() > 3)
    return invalidArgument(
        fmt::format("--grid '{}': at most three dimensions X,Y,Z are accepted, {} given", text, values->size()));
  std::array<uint32_t, 3> grid = {1, 1, 1};
  for (size_t axis = 0; axis < values->size(); ++axis) {
    const int64_t value = (*values)[axis];
    if (value < 0 || value > INT32_MAX)
      return invalidArgument(
          fmt::format("--grid '{}': dimension {} is {}; accepted are 0 to {}", text, "xyz"[axis], value, INT32_MAX));
    grid[axis] = static_cast<uint32_t>(value);
  }
  return grid;
}

} // namespace ditron::values
