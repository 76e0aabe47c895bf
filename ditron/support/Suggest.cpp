//===- Suggest.cpp - The nearest valid name -----------------------------------------------------------------------===//
//
// Edit distance with three rolling rows (the third is for swaps of neighbours).
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/support/Suggest.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace ditron {

static char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

unsigned editDistance(std::string_view a, std::string_view b) {
  std::vector<unsigned> beforeLast(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (unsigned j = 0; j <= b.size(); ++j)
    last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<unsigned>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0u : 1u)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
        row[j] = std::min(row[j], beforeLast[j - 2] + 1);
    }
    std::swap(beforeLast, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::optional<std::string> nearestName(std::string_view name, const std::vector<std::string> &candidates) {
  std::optional<std::string> best;
  unsigned bestDistance = static_cast<unsigned>(name.size() / 3 + 2);
  for (const std::string &candidate : candidates) {
    const unsigned distance = editDistance(name, candidate);
    // A distance of a whole name would suggest something that shares no letter with it.
    if (distance < bestDistance && distance < std::max(name.size(), candidate.size())) {
      bestDistance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string didYouMean(std::string_view name, const std::vector<std::string> &candidates) {
  if (std::optional<std::string> nearest = nearestName(name, candidates))
    return fmt::format("; did you mean '{}'?", *nearest);
  return "";
}

} // namespace ditron
