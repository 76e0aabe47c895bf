//===- Json.h - JSON values that know their places ------------------------------------------------------*- C++ -*-===//
//
// Errors about a run file name the line and column of the value that is wrong. nlohmann-json's parser tells what it finds but
// not where, so that it is given the text through an iterator that counts. Comments (// and /* */) are skipped. A key that
// stands twice in an object is an error.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PROGRAM_JSON_H
#define DITRON_PROGRAM_JSON_H

#include "ditron/support/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ditron::program {

/// Where a value begins, and what it is: "steps[3].args.x".
struct Place {
  uint32_t line = 0, column = 0; ///< From 1.
  std::string path;
};

struct JsonMember;

struct JsonValue {
  enum class Kind { Null, Bool, Number, Text, List, Object };
  Kind kind = Kind::Null;
  std::string text; ///< Of a text; of a number, as it was written; "true", "false", "null".
  bool isInteger = false;
  Place place;
  std::vector<JsonValue> items;
  std::vector<JsonMember> members; ///< In the order of the text.

  /// "a text", "a list".
  std::string_view kindName() const;
};

struct JsonMember {
  std::string name;
  Place place; ///< Of the name.
  JsonValue value;
};

/// The text that errors are about.
struct JsonSource {
  std::string name; ///< "ring.json"
  std::string text;

  /// "ring.json:3:5: error: PATH: MESSAGE" with the line and a caret below.
  Status error(const Place &place, std::string_view message, StatusCode code = StatusCode::InvalidArgument) const;
  /// An error of the running program that begins with a place in this file, as one of error(); every other as it is.
  Status withLine(const Status &status) const;
};

Expected<JsonValue> parseJson(const JsonSource &source);

} // namespace ditron::program
#endif // DITRON_PROGRAM_JSON_H
