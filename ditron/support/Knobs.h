//===- Knobs.h - Environment variables ------------------------------------------------------------------*- C++ -*-===//
//
// The values of the table Knobs.def, read once from an environment and passed on as a value: no library code calls
// getenv. A DITRON_* variable that is not in the table is an error which names the nearest one that is, since a
// mistyped knob that silently does nothing costs an afternoon.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SUPPORT_KNOBS_H
#define DITRON_SUPPORT_KNOBS_H

#include "ditron/support/Status.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ditron {

enum class KnobType { Bool, Int, String };
enum class KnobEffect { Neutral, AffectsCode };

/// One row of the table, for listings.
struct KnobInfo {
  std::string_view name;
  KnobType type;
  std::string defaultText;
  KnobEffect effect;
  std::string_view help;
};

/// "bool", "int", "string".
std::string_view toString(KnobType type);

/// All rows in the order of Knobs.def.
const std::vector<KnobInfo> &knobTable();

namespace detail {
template <KnobType type> struct KnobStorage;
template <> struct KnobStorage<KnobType::Bool> {
  using Type = bool;
};
template <> struct KnobStorage<KnobType::Int> {
  using Type = int64_t;
};
template <> struct KnobStorage<KnobType::String> {
  using Type = std::string;
};
} // namespace detail

/// The values.
struct Knobs {
#define DITRON_KNOB(member, type, name, defaultValue, effect, help)                                                    \
  detail::KnobStorage<KnobType::type>::Type member = defaultValue;
#include "ditron/support/Knobs.def"

  /// Without a folder for the cache no kernel is kept on disk: so it is for values that come from no environment.
  bool usesCache() const { return cache && !cacheDir.empty(); }

  /// Reads "NAME=value" strings. A folder for the cache that is not given is derived from XDG_CACHE_HOME or HOME.
  /// Bools are 1/0, true/false, yes/no, on/off.
  static Expected<Knobs> parse(std::span<const char *const> environment);
  /// Reads the environment of this process.
  static Expected<Knobs> fromEnvironment();

  /// The values of the knobs that affect code, as text for cache keys.
  std::string codeKey() const;
};

} // namespace ditron
#endif // DITRON_SUPPORT_KNOBS_H
