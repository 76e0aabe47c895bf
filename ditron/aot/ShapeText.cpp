//===- ShapeText.cpp - Shapes of operators as text -----------------------------------------------------------------------===//
#include "ditron/aot/ShapeText.h"

#include "ditron/support/Suggest.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>

namespace ditron::aot {

Expected<ShapeText> ShapeText::parse(std::string_view text) {
  ShapeText shape;
  std::istringstream stream{std::string(text)};
  for (std::string word; stream >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size())
      return invalidArgument(fmt::format("'{}' is no NAME=VALUE, as in m=4096", word));
    const std::string name = word.substr(0, equals);
    if (std::ranges::find(shape.words, name, &Word::name) != shape.words.end())
      return invalidArgument(fmt::format("'{}' is given twice", name));
    shape.words.push_back({name, word.substr(equals + 1)});
  }
  return shape;
}

const std::string *ShapeText::take(std::string_view name) {
  known.emplace_back(name);
  const auto found = std::ranges::find(words, name, &Word::name);
  if (found == words.end())
    return nullptr;
  found->isTaken = true;
  return &found->value;
}

void ShapeText::fail(Status status) {
  if (problem.isOk())
    problem = std::move(status);
}

int64_t ShapeText::integer(std::string_view name, std::optional<int64_t> fallback, int64_t least) {
  const std::string *value = take(name);
  if (!value && !fallback)
    fail(invalidArgument(fmt::format("'{}' is missing", name)));
  if (!value)
    return fallback.value_or(least);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error != std::errc() || end != value->data() + value->size() || number < least)
    fail(invalidArgument(fmt::format("{}={}: accepted are integers from {}", name, *value, least)));
  return number;
}

bool ShapeText::flag(std::string_view name, bool fallback) {
  const std::string *value = take(name);
  if (value && *value != "1" && *value != "0")
    fail(invalidArgument(fmt::format("{}={}: accepted are 0 and 1", name, *value)));
  return value ? *value == "1" : fallback;
}

DataType ShapeText::type(std::string_view name, DataType fallback) {
  const std::string *value = take(name);
  if (!value)
    return fallback;
  const Expected<DataType> type = parseDataTypeOrError(*value);
  if (!type.isOk())
    fail(type.status());
  return type.isOk() ? *type : fallback;
}

std::string ShapeText::text(std::string_view name, std::string_view fallback) {
  const std::string *value = take(name);
  return value ? *value : std::string(fallback);
}

Status ShapeText::finish() const {
  DITRON_RETURN_IF_ERROR(problem);
  for (const Word &word : words)
    if (!word.isTaken)
      return invalidArgument(fmt::format("'{}' is no name of this operator's shape{}; it takes {}", word.name,
                                         didYouMean(word.name, known), fmt::join(known, ", ")));
  return Status::ok();
}

} // namespace ditron::aot
