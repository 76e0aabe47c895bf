//===- ShapeText.h - Shapes of operators as text ---------------------------------------------------------------*- C++ -*-===//
//
// NAME=VALUE words. Each value is taken once by whoever knows the name; what is left over at the end is an error that names
// what there is.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_AOT_SHAPETEXT_H
#define DITRON_AOT_SHAPETEXT_H

#include "ditron/support/DataType.h"

namespace ditron::aot {

class ShapeText {
public:
  /// Refuses words without '=', and names that come twice.
  static Expected<ShapeText> parse(std::string_view text);

  /// An integer of at least `least`; one that is not given and has no default is an error.
  int64_t integer(std::string_view name, std::optional<int64_t> fallback = std::nullopt, int64_t least = 1);
  bool flag(std::string_view name, bool fallback);
  DataType type(std::string_view name, DataType fallback);
  std::string text(std::string_view name, std::string_view fallback);
  /// The first thing that was wrong, or a name that nobody took.
  Status finish() const;

private:
  struct Word {
    std::string name, value;
    bool isTaken = false;
  };
  const std::string *take(std::string_view name);
  void fail(Status problem);

  std::vector<Word> words;
  std::vector<std::string> known;
  Status problem;
};

} // namespace ditron::aot
#endif // DITRON_AOT_SHAPETEXT_H
