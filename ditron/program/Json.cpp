//===- Json.cpp - JSON values that know their places --------------------------------------------------------------===//
//
// A value begins where the blanks, commas, colons and comments behind the token before it end.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/program/Json.h"

#include "ditron/frontend/syntax/Diagnostics.h"

#include <cctype>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ditron::program {

namespace {

using Json = nlohmann::json;

constexpr size_t mostNested = 64;

/// Goes through a text and keeps somebody else's count of how far it has come.
class CountingIterator {
public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  CountingIterator(const char *at, size_t *count) : at(at), count(count) {}
  reference operator*() const { return *at; }
  CountingIterator &operator++() {
    ++at;
    ++*count;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator &other) const { return at == other.at; }

private:
  const char *at;
  size_t *count;
};

/// Builds the tree from what the parser finds.
class Builder {
public:
  Builder(const JsonSource &source, const size_t &consumed) : source(source), consumed(consumed) {}

  bool null() { return scalar(JsonValue::Kind::Null, "null"); }
  bool boolean(bool value) { return scalar(JsonValue::Kind::Bool, value ? "true" : "false"); }
  bool number_integer(Json::number_integer_t value) {
    return scalar(JsonValue::Kind::Number, std::to_string(value), true);
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    return scalar(JsonValue::Kind::Number, std::to_string(value), true);
  }
  bool number_float(Json::number_float_t, const std::string &written) {
    return scalar(JsonValue::Kind::Number, written);
  }
  bool string(std::string &value) { return scalar(JsonValue::Kind::Text, value); }
  bool binary(Json::binary_t &) { return false; }

  bool start_object(size_t) { return open(JsonValue::Kind::Object); }
  bool start_array(size_t) { return open(JsonValue::Kind::List); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string &name) {
    const Place place = placeOf(beginOfToken(), pathOf(open_.back()) + (open_.size() > 1 ? "." : "") + name);
    cursor = consumed;
    for (const JsonMember &member : open_.back()->members)
      if (member.name == name)
        return fail(place, fmt::format("'{}' is given twice; first at line {}", name, member.place.line));
    open_.back()->members.push_back({name, place, {}});
    return true;
  }

  bool parse_error(size_t position, const std::string &, const nlohmann::detail::exception &error) {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: syntax error while ..."
    std::string text = error.what();
    if (const size_t column = text.find("column "); column != std::string::npos)
      if (const size_t colon = text.find(": ", column); colon != std::string::npos)
        text = text.substr(colon + 2);
    return fail(placeOf(position > 0 ? position - 1 : 0, ""), "this is no JSON: " + text);
  }

  JsonValue root;
  Status problem;

private:
  /// Behind everything that is no token.
  size_t beginOfToken() {
    const std::string &text = source.text;
    size_t at = cursor;
    while (at < text.size()) {
      if (std::string_view(" \t\r\n,:").find(text[at]) != std::string_view::npos)
        ++at;
      else if (text.compare(at, 2, "//") == 0)
        at = std::min(text.find('\n', at), text.size());
      else if (text.compare(at, 2, "/*") == 0)
        at = std::min(text.find("*/", at), text.size() - 2) + 2;
      else if (at == 0 && text.compare(0, 3, "\xEF\xBB\xBF") == 0)
        at = 3;
      else
        break;
    }
    return at;
  }
  Place placeOf(size_t offset, std::string path) {
    // Tokens come in the order of the text: lines are counted once.
    if (offset < counted)
      counted = 0, line = 1, lineBegin = 0;
    for (; counted < offset && counted < source.text.size(); ++counted)
      if (source.text[counted] == '\n')
        ++line, lineBegin = counted + 1;
    return {line, static_cast<uint32_t>(offset - lineBegin + 1), std::move(path)};
  }
  static const std::string &pathOf(const JsonValue *value) { return value->place.path; }

  /// Where the next value goes.
  JsonValue &next() {
    if (open_.empty()) {
      root.place = placeOf(beginOfToken(), "");
      return root;
    }
    JsonValue &outer = *open_.back();
    if (outer.kind == JsonValue::Kind::List) {
      const std::string path = fmt::format("{}[{}]", outer.place.path, outer.items.size());
      outer.items.emplace_back().place = placeOf(beginOfToken(), path);
      return outer.items.back();
    }
    JsonMember &member = outer.members.back();
    member.value.place = placeOf(beginOfToken(), member.place.path);
    return member.value;
  }
  bool scalar(JsonValue::Kind kind, std::string text, bool isInteger = false) {
    const size_t begin = beginOfToken();
    JsonValue &value = next();
    value.kind = kind;
    value.isInteger = isInteger;
    // The parser has to see the character behind a number to know its end.
    cursor = consumed;
    if (kind != JsonValue::Kind::Text)
      for (cursor = begin; cursor < source.text.size() &&
                           (std::isalnum(static_cast<unsigned char>(source.text[cursor])) ||
                            std::string_view("+-.").find(source.text[cursor]) != std::string_view::npos);)
        ++cursor;
    value.text = std::move(text);
    return true;
  }
  bool open(JsonValue::Kind kind) {
    JsonValue &value = next();
    if (open_.size() >= mostNested)
      return fail(value.place, fmt::format("lists and objects are nested more than {} deep", mostNested));
    value.kind = kind;
    cursor = consumed;
    open_.push_back(&value);
    return true;
  }
  bool close() {
    cursor = consumed;
    open_.pop_back();
    return true;
  }
  bool fail(const Place &place, std::string_view message) {
    problem = source.error(place, message);
    return false;
  }

  const JsonSource &source;
  const size_t &consumed; ///< Characters that the parser has taken.
  size_t cursor = 0;      ///< Behind the last token.
  size_t counted = 0, lineBegin = 0;
  uint32_t line = 1;
  std::vector<JsonValue *> open_; ///< Outer values do not move while inner ones grow.
};

} // namespace

std::string_view JsonValue::kindName() const {
  switch (kind) {
  case Kind::Null: return "null";
  case Kind::Bool: return "true or false";
  case Kind::Number: return "a number";
  case Kind::Text: return "a text";
  case Kind::List: return "a list";
  case Kind::Object: return "an object";
  }
  return "";
}

Status JsonSource::error(const Place &place, std::string_view message, StatusCode code) const {
  const std::string whole = place.path.empty() ? std::string(message) : fmt::format("{}: {}", place.path, message);
  frontend::SourceManager sources;
  Expected<frontend::FileId> file = sources.add(name, text);
  if (!file.isOk() || place.line == 0)
    return Status(code, fmt::format("{}: error: {}", name, whole));
  const uint32_t offset = sources.file(*file).offsetOf({place.line, place.column});
  const frontend::SourceRange range = sources.file(*file).range(offset, offset);
  return Status(code, frontend::renderMessage(sources, frontend::Severity::Error, range, whole))
      .at({name, place.line, place.column});
}

Status JsonSource::withLine(const Status &status) const {
  const SourceLocation *place = status.location();
  if (!place || place->file != name)
    return status;
  const std::string begin = fmt::format("{}:{}:{}: ", name, place->line, place->column);
  const std::string_view message = status.message();
  if (!message.starts_with(begin) || message.substr(begin.size()).starts_with("error: "))
    return status;
  return error({place->line, place->column, ""}, message.substr(begin.size()), status.code());
}

Expected<JsonValue> parseJson(const JsonSource &source) {
  size_t consumed = 0;
  Builder builder(source, consumed);
  const char *begin = source.text.data();
  const bool parsed =
      Json::sax_parse(CountingIterator(begin, &consumed), CountingIterator(begin + source.text.size(), &consumed),
                      &builder, Json::input_format_t::json, /*strict=*/true, /*ignore_comments=*/true);
  if (!builder.problem.isOk())
    return builder.problem;
  if (!parsed)
    return source.error({1, 1, ""}, "this is no JSON");
  return std::move(builder.root);
}

} // namespace ditron::program
