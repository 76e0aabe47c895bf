//===- TextPieces.h - Numbers and lists in the text of options ------------------------------------------*- C++ -*-===//
#ifndef DITRON_VALUES_TEXTPIECES_H
#define DITRON_VALUES_TEXTPIECES_H

#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ditron::values {

/// The whole text as a decimal number of the type; none when it is not one, or out of the type's range.
template <typename Number> std::optional<Number> wholeNumber(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// What stands between the separators, without blanks around it; brackets and quotes mean nothing (TupleText.h for those).
inline std::vector<std::string_view> splitAndTrim(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const size_t at = text.find(separator);
    std::string_view piece = text.substr(0, at);
    while (piece.starts_with(' '))
      piece.remove_prefix(1);
    while (piece.ends_with(' '))
      piece.remove_suffix(1);
    pieces.push_back(piece);
    if (at == std::string_view::npos)
      return pieces;
    text.remove_prefix(at + 1);
  }
}

/// "[2, 0]": where an element lies, of its number in row-major order.
inline std::string indexText(int64_t element, const std::vector<int64_t> &shape) {
  std::string text;
  for (size_t axis = shape.size(); axis-- > 0; element /= shape[axis])
    text = fmt::format("{}{}{}", element % shape[axis], text.empty() ? "" : ", ", text);
  return fmt::format("[{}]", text);
}

} // namespace ditron::values
#endif // DITRON_VALUES_TEXTPIECES_H
