//===- Scope.h - The variables of host code -------------------------------------------------------------*- C++ -*-===//
//
// Integers by name: what the program declares, counters of loops, and rank, ranks and sms. In a text {EXPRESSION} stands for the
// value; where a number is asked for, the text itself may be an expression.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PROGRAM_SCOPE_H
#define DITRON_PROGRAM_SCOPE_H

#include "ditron/values/GridExpression.h"

#include <optional>

namespace ditron::program {

/// Names that mean something everywhere, so that no variable can have them.
inline constexpr std::pair<std::string_view, std::string_view> reservedNames[] = {
    {"rank", "the number of the rank"},       {"RANK", "the number of the rank"},
    {"ranks", "the number of ranks"},         {"RANKS", "the number of ranks"},
    {"sms", "the number of multiprocessors"}, {"SMS", "the number of multiprocessors"}};

class Scope {
public:
  Scope(uint32_t rank, uint32_t ranks, uint32_t sms);

  void set(const std::string &name, int64_t value) { variables[name] = value; }
  void remove(const std::string &name) { variables.erase(name); }
  std::optional<int64_t> find(const std::string &name) const;
  const values::IntegerNames &names() const { return variables; }

  /// The text with the value of each {EXPRESSION}.
  Expected<std::string> substitute(std::string_view text) const;
  Expected<int64_t> evaluate(std::string_view text) const;

private:
  values::IntegerNames variables;
};

} // namespace ditron::program
#endif // DITRON_PROGRAM_SCOPE_H
