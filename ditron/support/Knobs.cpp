//===- Knobs.cpp - Environment variables --------------------------------------------------------------------------===//
//
// Expands Knobs.def into the listing, the parser and the cache key.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/support/Knobs.h"

#include "ditron/support/Suggest.h"

#include <charconv>
#include <fmt/format.h>
#include <unistd.h>

namespace ditron {

namespace {

std::string textOf(bool value) { return value ? "1" : "0"; }
std::string textOf(int64_t value) { return std::to_string(value); }
std::string textOf(int value) { return std::to_string(value); }
std::string textOf(const std::string &value) { return value; }
std::string textOf(const char *value) { return value; }

Status parseValue(std::string_view name, std::string_view text, bool &value) {
  if (text == "1" || text == "true" || text == "yes" || text == "on")
    value = true;
  else if (text == "0" || text == "false" || text == "no" || text == "off" || text.empty())
    value = false;
  else
    return invalidArgument(
        fmt::format("environment variable {}='{}': expected 1 or 0 (also true, false, yes, no, on, off)", name, text));
  return Status::ok();
}

Status parseValue(std::string_view name, std::string_view text, int64_t &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return invalidArgument(fmt::format("environment variable {}='{}': expected an integer", name, text));
  return Status::ok();
}

Status parseValue(std::string_view, std::string_view text, std::string &value) {
  value = text;
  return Status::ok();
}

} // namespace

std::string_view toString(KnobType type) {
  switch (type) {
  case KnobType::Bool: return "bool";
  case KnobType::Int: return "int";
  case KnobType::String: return "string";
  }
  return "";
}

const std::vector<KnobInfo> &knobTable() {
  static const std::vector<KnobInfo> table = {
#define DITRON_KNOB(member, type, name, defaultValue, effect, help)                                                    \
  KnobInfo{name, KnobType::type, textOf(defaultValue), KnobEffect::effect, help},
#include "ditron/support/Knobs.def"
  };
  return table;
}

Expected<Knobs> Knobs::parse(std::span<const char *const> environment) {
  constexpr std::string_view prefix = "DITRON_";
  constexpr std::string_view cacheHomePrefix = "XDG_CACHE_HOME=/", homePrefix = "HOME=/"; // absolute paths only
  Knobs knobs;
  std::string cacheHome, home;
  for (const char *entry : environment) {
    const std::string_view text = entry;
    if (text.starts_with(cacheHomePrefix))
      cacheHome = text.substr(cacheHomePrefix.size() - 1);
    if (text.starts_with(homePrefix))
      home = text.substr(homePrefix.size() - 1);
    if (!text.starts_with(prefix))
      continue;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos)
      continue;
    const std::string_view name = text.substr(0, equals), value = text.substr(equals + 1);
#define DITRON_KNOB(member, type, knobName, defaultValue, effect, help)                                                \
  if (name == knobName) {                                                                                              \
    DITRON_RETURN_IF_ERROR(parseValue(name, value, knobs.member));                                                     \
    continue;                                                                                                          \
  }
#include "ditron/support/Knobs.def"
    std::vector<std::string> known;
    for (const KnobInfo &info : knobTable())
      known.emplace_back(info.name);
    return invalidArgument(fmt::format("environment variable {} is not one of Ditron's{}; `ditron knobs` lists them",
                                       name, didYouMean(name, known)));
  }
  if (knobs.optLevel < 0 || knobs.optLevel > 3)
    return invalidArgument(fmt::format("environment variable DITRON_OPT_LEVEL={}: expected 0 to 3", knobs.optLevel));
  if (knobs.cacheMegabytes < 1)
    return invalidArgument(
        fmt::format("environment variable DITRON_CACHE_MB={}: expected at least 1; DITRON_CACHE=0 keeps no kernels",
                    knobs.cacheMegabytes));
  if (knobs.cacheDir.empty() && !cacheHome.empty())
    knobs.cacheDir = cacheHome + "/ditron";
  else if (knobs.cacheDir.empty() && !home.empty())
    knobs.cacheDir = home + "/.cache/ditron";
  return knobs;
}

Expected<Knobs> Knobs::fromEnvironment() {
  std::vector<const char *> entries;
  for (char **entry = environ; entry && *entry; ++entry)
    entries.push_back(*entry);
  return parse(entries);
}

std::string Knobs::codeKey() const {
  std::string key;
#define DITRON_KNOB(member, type, name, defaultValue, effect, help)                                                    \
  if (KnobEffect::effect == KnobEffect::AffectsCode)                                                                   \
    key += fmt::format("{}={};", name, textOf(member));
#include "ditron/support/Knobs.def"
  return key;
}

} // namespace ditron
