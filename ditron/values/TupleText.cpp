//===- TupleText.cpp - Tuples of kernel arguments as text ---------------------------------------------------------===//
//
// Cuts at commas outside of brackets and quotes, one level at a time.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/values/TupleText.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <optional>

namespace ditron::values {

namespace {

constexpr size_t mostLevels = 32;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

bool isIdentifier(std::string_view text) {
  const auto isWord = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) && std::ranges::all_of(text, isWord);
}

Status flatten(const std::string &path, std::string_view text, size_t level, std::vector<TupleLeaf> &leaves) {
  auto fail = [&](std::string_view problem) {
    return invalidArgument(fmt::format("argument {}='{}': {}; a tuple is written (@x.npy, 3, zeros:fp32[4]), one of "
                                       "one element (3,), a named one (x=3, y=@x.npy)",
                                       path, text, problem));
  };
  if (!isTupleText(text)) {
    leaves.push_back({path, std::string(text)});
    return Status::ok();
  }
  if (level == mostLevels)
    return fail(fmt::format("tuples are nested more than {} deep", mostLevels));
  if (text.back() != ')')
    return fail("the tuple has no closing ')'");
  std::optional<std::vector<std::string_view>> pieces = splitAtCommas(text.substr(1, text.size() - 2));
  if (!pieces)
    return fail("brackets or quotes are not closed");
  if (pieces->size() == 1 && pieces->front().empty())
    return fail("a kernel gets nothing from an empty tuple; leave the argument out");
  if (pieces->size() == 1)
    return fail("one value in parentheses is no tuple; write a comma behind it");
  if (pieces->back().empty())
    pieces->pop_back();
  std::vector<std::string> names;
  for (std::string_view piece : *pieces) {
    const size_t equals = piece.find('=');
    const std::string_view name = trimmed(piece.substr(0, std::min(equals, piece.size())));
    const bool isNamed = equals != std::string_view::npos && isIdentifier(name);
    if (!names.empty() && isNamed == names.front().empty())
      return fail("either all elements have names or none");
    if (isNamed && std::ranges::find(names, name) != names.end())
      return fail(fmt::format("'{}' is given twice", name));
    const std::string_view value = isNamed ? trimmed(piece.substr(equals + 1)) : piece;
    if (value.empty())
      return fail("an element is empty");
    const std::string inner = fmt::format("{}.{}", path, isNamed ? std::string(name) : std::to_string(names.size()));
    names.emplace_back(isNamed ? name : std::string_view());
    DITRON_RETURN_IF_ERROR(flatten(inner, value, level + 1, leaves));
  }
  return Status::ok();
}

} // namespace

std::optional<std::vector<std::string_view>> splitAtCommas(std::string_view text) {
  std::vector<std::string_view> pieces;
  std::string open; // the closing brackets that are awaited
  size_t begin = 0;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      quote = c == quote ? 0 : quote;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[') {
      open.push_back(c == '(' ? ')' : ']');
    } else if (c == ')' || c == ']') {
      if (open.empty() || open.back() != c)
        return std::nullopt;
      open.pop_back();
    } else if (c == ',' && open.empty()) {
      pieces.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (quote || !open.empty())
    return std::nullopt;
  pieces.push_back(trimmed(text.substr(begin)));
  return pieces;
}

bool isTupleText(std::string_view text) { return text.starts_with('('); }

Expected<std::vector<TupleLeaf>> parseTupleText(std::string_view name, std::string_view text) {
  std::vector<TupleLeaf> leaves;
  DITRON_RETURN_IF_ERROR(flatten(std::string(name), trimmed(text), 0, leaves));
  return leaves;
}

} // namespace ditron::values
