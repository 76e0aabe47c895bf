//===- Fields.cpp - The members of a JSON object, each asked for once ---------------------------------------------===//
#include "ditron/program/Fields.h"

#include "ditron/support/Suggest.h"
#include "ditron/values/TextPieces.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::program {

Expected<Text> asText(const JsonSource &source, const JsonValue &value) {
  switch (value.kind) {
  case JsonValue::Kind::Null: return Text{"None", value.place};
  case JsonValue::Kind::Bool:
  case JsonValue::Kind::Number:
  case JsonValue::Kind::Text: return Text{value.text, value.place};
  case JsonValue::Kind::List:
  case JsonValue::Kind::Object: break;
  }
  return source.error(value.place, fmt::format("{} is not accepted here; write a text, a number, true, false or null",
                                               value.kindName()));
}

Expected<Fields> Fields::of(const JsonSource &source, const JsonValue &object, std::string what) {
  if (object.kind != JsonValue::Kind::Object)
    return source.error(object.place, fmt::format("{} is {}; write an object, {{...}}", what, object.kindName()));
  Fields fields;
  fields.source = &source;
  fields.object = &object;
  fields.what = std::move(what);
  return fields;
}

const JsonValue *Fields::find(std::string_view name) {
  known.emplace_back(name);
  for (const JsonMember &member : object->members)
    if (member.name == name)
      return &member.value;
  return nullptr;
}

Expected<const JsonValue *> Fields::require(std::string_view name) {
  if (const JsonValue *value = find(name))
    return value;
  // A key that is nearly right explains more than one that is missing.
  DITRON_RETURN_IF_ERROR(nearMiss(name));
  return error(object->place, fmt::format("{} needs '{}'", what, name));
}

Status Fields::nearMiss(std::string_view name) const {
  for (const JsonMember &member : object->members)
    if (std::ranges::find(known, member.name) == known.end() && nearestName(member.name, {std::string(name)}))
      return error(member.place, fmt::format("{} has no '{}'; did you mean '{}'?", what, member.name, name));
  return Status::ok();
}

Expected<Text> Fields::text(std::string_view name) {
  DITRON_ASSIGN_OR_RETURN(const JsonValue *value, require(name));
  return asText(*source, *value);
}

Expected<std::optional<Text>> Fields::optionalText(std::string_view name) {
  const JsonValue *value = find(name);
  if (!value)
    return std::optional<Text>();
  DITRON_ASSIGN_OR_RETURN(Text text, asText(*source, *value));
  return std::optional<Text>(std::move(text));
}

Expected<std::string> Fields::word(std::string_view name) {
  DITRON_ASSIGN_OR_RETURN(const JsonValue *value, require(name));
  if (value->kind != JsonValue::Kind::Text || value->text.empty())
    return error(value->place, fmt::format("{} is not accepted; write a name",
                                           value->kind == JsonValue::Kind::Text ? "an empty text" : value->kindName()));
  return value->text;
}

Expected<std::optional<int64_t>> Fields::integer(std::string_view name, int64_t least, int64_t most) {
  const JsonValue *value = find(name);
  if (!value)
    return std::optional<int64_t>();
  const std::optional<int64_t> number = value->kind == JsonValue::Kind::Number && value->isInteger
                                            ? values::wholeNumber<int64_t>(value->text)
                                            : std::nullopt;
  if (!number || *number < least || *number > most)
    return error(value->place, fmt::format("{} is not accepted; write an integer from {} to {}",
                                           value->text.empty() ? value->kindName() : value->text, least, most));
  return number;
}

Expected<bool> Fields::flag(std::string_view name) {
  const JsonValue *value = find(name);
  if (!value)
    return false;
  if (value->kind != JsonValue::Kind::Bool)
    return error(value->place, fmt::format("{} is not accepted; write true or false", value->kindName()));
  return value->text == "true";
}

Expected<NamedTexts> Fields::texts(std::string_view name) {
  NamedTexts result;
  const JsonValue *value = find(name);
  if (!value)
    return result;
  if (value->kind != JsonValue::Kind::Object)
    return error(value->place,
                 fmt::format("{} is not accepted; write an object of names and values", value->kindName()));
  for (const JsonMember &member : value->members) {
    DITRON_ASSIGN_OR_RETURN(Text text, asText(*source, member.value));
    result.emplace_back(member.name, std::move(text));
  }
  return result;
}

Status Fields::finish() const {
  for (const JsonMember &member : object->members)
    if (std::ranges::find(known, member.name) == known.end())
      return error(member.place, fmt::format("{} has no '{}'{}; accepted are {}", what, member.name,
                                             didYouMean(member.name, known), fmt::join(known, ", ")));
  return Status::ok();
}

} // namespace ditron::program
