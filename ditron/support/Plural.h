//===- Plural.h - Numbers of things in messages ---------------------------------------------------------*- C++ -*-===//
//
// "1 rank", "2 ranks", "0 ranks".
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SUPPORT_PLURAL_H
#define DITRON_SUPPORT_PLURAL_H

#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <string_view>

namespace ditron {

/// The number and the noun, for nouns whose plural has an s.
inline std::string plural(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

} // namespace ditron
#endif // DITRON_SUPPORT_PLURAL_H
