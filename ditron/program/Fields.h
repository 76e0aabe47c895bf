//===- Fields.h - The members of a JSON object, each asked for once -------------------------------------*- C++ -*-===//
//
// A reader asks for the members that an object may have and calls finish(): what nobody has asked for is an error that names the
// nearest of them.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PROGRAM_FIELDS_H
#define DITRON_PROGRAM_FIELDS_H

#include "ditron/program/Program.h"

#include <functional>

namespace ditron::program {

class Fields {
public:
  /// `what` is the object for people: "a launch".
  static Expected<Fields> of(const JsonSource &source, const JsonValue &object, std::string what);

  const Place &place() const { return object->place; }
  Status error(const Place &where, std::string_view message) const { return source->error(where, message); }

  /// Null when it is not there.
  const JsonValue *find(std::string_view name);
  /// The same, or an error that says what is missing.
  Expected<const JsonValue *> require(std::string_view name);

  /// A text, or a number or truth value as one.
  Expected<Text> text(std::string_view name);
  Expected<std::optional<Text>> optionalText(std::string_view name);
  /// A text that stands for something: not empty.
  Expected<std::string> word(std::string_view name);
  Expected<std::optional<int64_t>> integer(std::string_view name, int64_t least, int64_t most);
  Expected<bool> flag(std::string_view name);
  /// An object of texts, in order.
  Expected<NamedTexts> texts(std::string_view name);

  /// Refuses members that nobody has asked for.
  Status finish() const;

private:
  /// An error about a member that nobody knows and that is nearly called `name`.
  Status nearMiss(std::string_view name) const;

  const JsonSource *source = nullptr;
  const JsonValue *object = nullptr;
  std::string what;
  std::vector<std::string> known;
};

/// The value as a text; null is "None".
Expected<Text> asText(const JsonSource &source, const JsonValue &value);

} // namespace ditron::program
#endif // DITRON_PROGRAM_FIELDS_H
