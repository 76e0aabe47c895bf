//===- TextScanner.h - Reading the text forms of layouts ----------------------------------------------------*- C++ -*-===//
//
// A cursor over a string, shared by the parsers of the register and the shared layout. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_LAYOUT_TEXTSCANNER_H
#define DITRON_LAYOUT_TEXTSCANNER_H

#include "ditron/layout/LinearLayout.h"

namespace ditron::layout {

/// Reads tokens from left to right, skipping spaces before each.
class TextScanner {
public:
  explicit TextScanner(std::string_view text) : text(text) {}

  /// Consumes `token` if it comes next.
  bool eat(std::string_view token);
  bool atEnd();
  /// A decimal number that fits an int64_t.
  std::optional<int64_t> number();
  /// A word of letters.
  std::string_view word();

  /// `64x32` or `scalar`.
  Expected<Shape> shape();
  /// A bit name such as `j3`, as a packed bit of the shape.
  Expected<int> bit(const Shape &shape);
  /// An error that shows where the text went wrong.
  Status error(std::string_view what) const;

private:
  /// The dimension that a bit's name begins with: `j`, `d8.`.
  Expected<size_t> dimension();
  void skipSpaces();
  std::string_view text;
  size_t at = 0;
};

} // namespace ditron::layout

#endif // DITRON_LAYOUT_TEXTSCANNER_H
