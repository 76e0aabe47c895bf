//===- PlanWords.cpp - Reading "form 128x128x64 warps 8 stages 3" ---------------------------------------------------------===//
#include "ditron/ops/plans/PlanWords.h"

#include "ditron/support/Suggest.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::ops {

PlanWords::PlanWords(std::string_view given) : text(given) {
  const std::string_view view = text;
  for (size_t at = 0; (at = view.find_first_not_of(" \t,", at)) != std::string_view::npos;) {
    const size_t end = std::min(view.find_first_of(" \t,", at), view.size());
    words.push_back(view.substr(at, end - at));
    at = end;
  }
  used.resize(words.size());
  if (!used.empty())
    used[0] = true;
}

bool PlanWords::hasTile() const {
  return words.size() > 1 && !words[1].empty() && words[1][0] >= '0' && words[1][0] <= '9';
}

Expected<TileConfig> PlanWords::tile() {
  const std::string_view word = words[1];
  used[1] = true;
  TileConfig tile;
  const size_t first = word.find('x'), second = first == word.npos ? first : word.find('x', first + 1);
  if (second != word.npos) {
    const std::optional<uint32_t> m = parseWhole<uint32_t>(word.substr(0, first)),
                                  n = parseWhole<uint32_t>(word.substr(first + 1, second - first - 1)),
                                  k = parseWhole<uint32_t>(word.substr(second + 1));
    if (m && n && k) {
      tile.blockM = *m, tile.blockN = *n, tile.blockK = *k;
      return tile;
    }
  }
  return invalidArgument(fmt::format("plan '{}': '{}' is no tile; one is written like 128x128x64", text, word));
}

Status PlanWords::number(std::string_view name, uint32_t least, uint32_t most, uint32_t &value) {
  asked.emplace_back(name);
  for (size_t i = 1; i < words.size(); ++i) {
    if (used[i] || words[i] != name)
      continue;
    const std::optional<uint32_t> number = i + 1 < words.size() ? parseWhole<uint32_t>(words[i + 1]) : std::nullopt;
    if (!number || *number < least || *number > most)
      return invalidArgument(fmt::format("plan '{}': {} is {}; {} to {} are accepted", text, name,
                                         i + 1 < words.size() ? words[i + 1] : "missing", least, most));
    used[i] = used[i + 1] = true;
    value = *number;
    return Status::ok();
  }
  return Status::ok();
}

Status PlanWords::finish() const {
  for (size_t i = 1; i < words.size(); ++i) {
    if (used[i])
      continue;
    if (std::ranges::find(asked, words[i]) != asked.end())
      return invalidArgument(fmt::format("plan '{}': '{}' is given twice", text, words[i]));
    return invalidArgument(fmt::format("plan '{}': '{}' is not understood behind '{}'{}; {}", text, words[i],
                                       words.front(), didYouMean(std::string(words[i]), asked),
                                       asked.empty() ? "nothing is accepted, or a tile like 128x128x64"
                                                     : fmt::format("accepted are {}", fmt::join(asked, ", "))));
  }
  return Status::ok();
}

} // namespace ditron::ops
