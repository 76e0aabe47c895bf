//===- PlanWords.h - Reading "form 128x128x64 warps 8 stages 3" -----------------------------------------------*- C++ -*-===//
#ifndef DITRON_OPS_PLANS_PLANWORDS_H
#define DITRON_OPS_PLANS_PLANWORDS_H

#include "ditron/ops/GemmKernels.h"

#include <charconv>
#include <optional>
#include <vector>

namespace ditron::ops {

/// The whole of the text as a number; none where it is something else.
template <typename Number> std::optional<Number> parseWhole(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && !text.empty() && end == text.data() + text.size() ? std::optional(value)
                                                                                   : std::nullopt;
}

/// The words of a plan: one that says what it is, perhaps a tile, and names with numbers in any order. What nobody has asked for is an
/// error in the end.
class PlanWords {
public:
  explicit PlanWords(std::string_view text);
  PlanWords(const PlanWords &) = delete; // words are parts of its text
  PlanWords &operator=(const PlanWords &) = delete;

  /// Empty for an empty plan.
  std::string_view first() const { return words.empty() ? std::string_view() : words.front(); }
  /// The second word is one.
  bool hasTile() const;
  /// Blocks of 128x128x64 and the other defaults of TileConfig.
  Expected<TileConfig> tile();
  /// "NAME value" from `least` to `most`; `value` stays when there is no such name.
  Status number(std::string_view name, uint32_t least, uint32_t most, uint32_t &value);
  /// Refuses what is left, naming what could stand there.
  Status finish() const;

private:
  std::string text;
  std::vector<std::string_view> words; ///< Of `text`.
  std::vector<std::string> asked;
  std::vector<bool> used;
};

} // namespace ditron::ops
#endif // DITRON_OPS_PLANS_PLANWORDS_H
