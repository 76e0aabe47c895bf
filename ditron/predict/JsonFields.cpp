//===- JsonFields.cpp - Reading JSON objects strictly ---------------------------------------------------------------===//
#include "ditron/predict/JsonFields.h"

#include "ditron/support/Suggest.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::predict {

namespace {

std::string shown(const nlohmann::json &value) {
  const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

/// Objects with a key twice are refused, which nlohmann::json would take for one.
struct DuplicateKeys {
  std::vector<std::vector<std::string>> open;
  std::string duplicate;

  bool operator()(int, nlohmann::json::parse_event_t event, nlohmann::json &parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start)
      open.emplace_back();
    else if (event == Event::object_end)
      open.pop_back();
    else if (event == Event::key) {
      std::string key = parsed.get<std::string>();
      if (duplicate.empty() && std::ranges::find(open.back(), key) != open.back().end())
        duplicate = key;
      open.back().push_back(std::move(key));
    }
    return true;
  }
};

} // namespace

Expected<nlohmann::json> parseJson(std::string_view text, const std::string &file) {
  DuplicateKeys keys;
  try {
    nlohmann::json parsed =
        nlohmann::json::parse(text, [&](int depth, auto event, auto &value) { return keys(depth, event, value); });
    if (!keys.duplicate.empty())
      return invalidArgument(fmt::format("{}: the key '{}' stands twice in one object", file, keys.duplicate));
    return parsed;
  } catch (const nlohmann::json::parse_error &error) {
    const size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
    const size_t line = 1 + std::ranges::count(text.substr(0, at), '\n');
    const size_t newline = text.substr(0, at).rfind('\n');
    const size_t column = newline == std::string_view::npos ? at + 1 : at - newline;
    std::string problem = error.what(); // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const size_t colon = problem.find(": ");
    return invalidArgument(fmt::format("{}:{}:{}: no valid JSON: {}", file, line, column,
                                       colon == problem.npos ? problem : problem.substr(colon + 2)));
  }
}

JsonFields::JsonFields(const nlohmann::json &value, std::string file, std::string path)
    : value(value), fileName(std::move(file)), path(std::move(path)) {
  if (!value.is_object())
    error = invalidArgument(fmt::format("{}: {} is {}; an object {{...}} is expected", fileName,
                                        this->path.empty() ? "the whole" : this->path, shown(value)));
}

std::string JsonFields::pathOf(const std::string &key) const { return path.empty() ? key : path + "." + key; }

void JsonFields::fail(const std::string &key, const std::string &problem) {
  if (error.isOk())
    error = invalidArgument(fmt::format("{}: {} {}", fileName, pathOf(key), problem));
}

const nlohmann::json *JsonFields::find(const std::string &key, bool isRequired) {
  known.push_back(key);
  if (!value.is_object())
    return nullptr;
  const auto found = value.find(key);
  if (found != value.end())
    return &*found;
  if (isRequired && missing.empty())
    missing = key;
  return nullptr;
}

double JsonFields::number(const std::string &key, double least, double most, std::optional<double> fallback) {
  const nlohmann::json *found = find(key, !fallback);
  if (!found)
    return fallback.value_or(least);
  const double number = found->is_number() ? found->get<double>() : NAN;
  if (!(number >= least && number <= most)) {
    fail(key, fmt::format("is {}; a number from {} to {} is accepted", shown(*found), least, most));
    return least;
  }
  return number;
}

int64_t JsonFields::integer(const std::string &key, int64_t least, int64_t most, std::optional<int64_t> fallback) {
  const nlohmann::json *found = find(key, !fallback);
  if (!found)
    return fallback.value_or(least);
  const bool fits = found->is_number_integer() && !(found->is_number_unsigned() && found->get<uint64_t>() > INT64_MAX);
  const int64_t number = fits ? found->get<int64_t>() : 0;
  if (!fits || number < least || number > most) {
    fail(key, fmt::format("is {}; an integer from {} to {} is accepted", shown(*found), least, most));
    return least;
  }
  return number;
}

std::string JsonFields::text(const std::string &key, const std::vector<std::string> &accepted,
                             std::optional<std::string> fallback) {
  const nlohmann::json *found = find(key, !fallback);
  if (!found)
    return fallback.value_or("");
  if (!found->is_string()) {
    fail(key, fmt::format("is {}; a text is expected", shown(*found)));
    return fallback.value_or("");
  }
  const std::string word = found->get<std::string>();
  if (!accepted.empty() && std::ranges::find(accepted, word) == accepted.end())
    fail(key, fmt::format("is '{}'{}; accepted are {}", word, didYouMean(word, accepted), fmt::join(accepted, ", ")));
  return word;
}

bool JsonFields::has(const std::string &key) {
  known.push_back(key);
  return value.is_object() && value.contains(key);
}

const nlohmann::json &JsonFields::child(const std::string &key) {
  static const nlohmann::json nothing;
  const nlohmann::json *found = find(key, true);
  return found ? *found : nothing;
}

Status JsonFields::finish() {
  std::vector<std::string> unknown;
  for (const auto &[key, ignored] : value.items())
    if (value.is_object() && std::ranges::find(known, key) == known.end())
      unknown.push_back(key);
  // Before the caller's errors, which may come from the value that stands for a missing one. A key that was mistyped is missing too:
  // one mistake, one message.
  if (value.is_object() && !missing.empty()) {
    error = Status::ok();
    if (const std::optional<std::string> mistyped = nearestName(missing, unknown))
      fail(*mistyped, fmt::format("is no key here; did you mean '{}'?", missing));
    else
      fail(missing, "is missing");
  }
  for (const std::string &key : unknown)
    fail(key, fmt::format("is no key here{}; accepted are {}", didYouMean(key, known), fmt::join(known, ", ")));
  return error;
}

} // namespace ditron::predict
