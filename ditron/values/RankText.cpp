//===- RankText.cpp - Values that differ between ranks, as text ---------------------------------------------------===//
#include "ditron/values/RankText.h"

#include "ditron/values/LiteralText.h"
#include "ditron/values/TupleText.h"
#include "ditron/values/OutputText.h"

#include "ditron/support/Plural.h"

#include <fmt/format.h>

namespace ditron::values {

Expected<std::string> textForRank(std::string_view name, std::string_view text, uint32_t rank, uint32_t numRanks) {
  constexpr std::string_view mark = "per-rank:";
  if (!text.starts_with(mark))
    return pathForRank(std::string(text), rank);
  std::string_view list = text.substr(mark.size());
  std::optional<std::vector<std::string_view>> pieces = splitAtCommas(list);
  if (pieces && pieces->size() == 1 && list.starts_with('[') && list.ends_with(']'))
    pieces = splitAtCommas(list.substr(1, list.size() - 2));
  if (!pieces)
    return badArgument(name, text, "brackets or quotes are not closed");
  if (pieces->size() != numRanks)
    return badArgument(name, text,
                       fmt::format("{} {} given, but there {} {}; write one for each, as in per-rank:0,1,2,3",
                                   pieces->size(), pieces->size() == 1 ? "value is" : "values are",
                                   numRanks == 1 ? "is" : "are",
                                   plural(numRanks, "rank")));
  const std::string_view own = (*pieces)[rank];
  if (own.empty() || own.starts_with(mark))
    return badArgument(name, text, fmt::format("the value of rank {} is '{}'", rank, own));
  return pathForRank(std::string(own), rank);
}

} // namespace ditron::values
