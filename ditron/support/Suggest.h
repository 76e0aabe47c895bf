//===- Suggest.h - The nearest valid name ---------------------------------------------------------------*- C++ -*-===//
//
// Everything that refuses an unknown name (option, environment variable, parameter, type) says which valid name was
// probably meant. The distance counts insertions, deletions, substitutions and swaps of neighbours, ignoring case.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SUPPORT_SUGGEST_H
#define DITRON_SUPPORT_SUGGEST_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ditron {

/// Number of edits between two names, ignoring case.
unsigned editDistance(std::string_view a, std::string_view b);

/// The candidate nearest to the name, the first of equals; none when no candidate is near enough to be a slip of the
/// keyboard (about a third of the name's length).
std::optional<std::string> nearestName(std::string_view name, const std::vector<std::string> &candidates);

/// "; did you mean 'x'?" or nothing: to be put behind a message.
std::string didYouMean(std::string_view name, const std::vector<std::string> &candidates);

} // namespace ditron
#endif // DITRON_SUPPORT_SUGGEST_H
